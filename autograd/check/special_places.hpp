#pragma once
// Places where right ops may give a gradient that is not the function's.

#include <optional>
#include <string>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/check/gradcheck_function.hpp>

namespace xgrad::detail {

struct SpecialPlaces {
  std::string infinite;  ///< "op 3, sqrt", the first at an infinite or NaN place
  bool kink = false;     ///< an op is at one
};
/// Those of the ops that f runs; nothing if one of these is wrong.
std::optional<SpecialPlaces> special_places(const CheckedFunction& f,
                                            const GradcheckOptions& options);

}  // namespace xgrad::detail
