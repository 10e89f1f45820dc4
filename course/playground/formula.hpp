#pragma once
// The playground's language: formulas of which each name, call and sign is one op of the engine.
//
//   scores = q @ k.T / sqrt(2) + mask
//   softmax(scores) @ v
//
// A statement is `name = formula` or a formula; statements end with a line or a `;`, and the last
// one is the result.  Numbers and tables, [[1, 2], [3, 4]], are float64 constants.

#include <map>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace playground {

using Names = std::map<std::string, xgrad::Tensor>;

/// A name without a value.
struct UnknownName : xgrad::ValueError {
  UnknownName(const std::string& message, std::string unknown)
      : ValueError(message), name(std::move(unknown)) {}
  std::string name;
};

constexpr std::size_t most_bytes = 4'000, most_depth = 32, most_ops = 200, most_elements = 1'024;

/// The value of the last statement; `names` gets those that the statements name.  ValueError, with
/// the place, for a text that is not a formula, or one above these limits; errors of ops are passed
/// on.
xgrad::Tensor evaluate(const std::string& formula, Names& names);
/// ValueError if a Tensor has more than most_elements; `what` names it.
void check_size(const std::string& what, const xgrad::Shape& shape);
/// "1.5", "inf", "-inf" and "nan" as a double; ValueError, beginning with `what`, for another text.
double number_of(const std::string& what, const std::string& text);

}  // namespace playground
