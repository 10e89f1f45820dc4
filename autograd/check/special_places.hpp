#pragma once
// What the ops of a function say of its gradient.

#include <string>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/check/gradcheck_function.hpp>

namespace xgrad::detail {

/// Places where right ops may give a gradient that is not the function's.
struct SpecialPlaces {
  std::string wrong;     ///< "op 2, mine: its backward is wrong: ...", and nothing else, if one is
  std::string infinite;  ///< "op 3, sqrt", the first at an infinite or NaN place
  bool kink = false;     ///< an op is at one
  std::size_t ops = 0;
};
/// Those of the ops that f runs.
SpecialPlaces special_places(const CheckedFunction& f, const GradcheckOptions& options);

}  // namespace xgrad::detail
