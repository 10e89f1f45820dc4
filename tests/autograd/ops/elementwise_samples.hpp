#pragma once
// What the rows of elementwise ops are made of: references, samples of every way to broadcast, and
// bad inputs.

#include <tuple>

#include "autograd/ops/op_table.hpp"

namespace xgrad::testing {

using Numbers = std::vector<double>;
using Call = std::function<Tensor(const Inputs&)>;
using Formula = std::function<double(const Numbers&)>;
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

/// The reference: a formula at every element of the broadcast operands, by plain index arithmetic.
Call everywhere(const Formula& formula);
Call everywhere(double (*formula)(double, double));

/// A 1-D sample of these.
Tensor values(const Numbers& numbers);

/// Where samples are drawn from: [low, high), but nowhere closer than `gap` to a kink or a pole.
struct Range {
  double low, high;
  Numbers kinks = {};
  double gap = 0.05;
};

Tensor draw(const Dims& sizes, const Range& range, std::uint64_t seed);

/// Names of the ways in which two operands broadcast, with their shapes.
extern const std::vector<std::tuple<std::string, Dims, Dims>> pairs;

/// Adds samples of one operand, named `name` and their shape: every rank, a length that fills no
/// register evenly, no elements at all; and the special values, which are not differentiated.
void add_unary(Row& row, const std::string& name, const Call& f, const Formula& formula,
               const Range& range, const Numbers& special = {});
/// The row of an op of one operand: these samples, and an undefined operand.
Row unary_row(const std::string& op, Unary f, double (*formula)(double), const Range& range,
              const Numbers& special);
/// Adds samples of two operands for all `pairs`.
void add_binary(Row& row, const std::string& name, Binary f, double (*formula)(double, double),
                const Range& left, const Range& right);
/// Adds shapes that do not broadcast, mixed dtypes, and an undefined operand.
void add_bad_binary(Row& row, Binary f);

}  // namespace xgrad::testing
