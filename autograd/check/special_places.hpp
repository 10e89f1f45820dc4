#pragma once
// Finds places of a function where right ops may give a gradient that is not the function's.

#include <string>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/check/gradcheck_function.hpp>

namespace xgrad::detail {

/// The ops of one run, checked one by one.
struct SpecialPlaces {
  std::string wrong;     ///< "op 2, mine: its backward is wrong: ...", and nothing else, if one is
  std::string infinite;  ///< "op 3, sqrt", the first at an infinite or NaN place
  bool kink = false;     ///< an op is at one
  std::size_t ops = 0;
};
/// Runs f and checks each of its ops alone.
SpecialPlaces special_places(const CheckedFunction& f, const GradcheckOptions& options);

}  // namespace xgrad::detail
