#pragma once
// Round numbers along an axis.

#include <cstddef>
#include <string>
#include <vector>

namespace xgrad::pages {

struct Tick {
  double value;
  std::string text;
};

/// About `about` multiples of 1, 2 or 5 times a power of ten within [low, high]; one for equal
/// ends.
std::vector<Tick> ticks(double low, double high, std::size_t about);
/// Powers of ten within [low, high], at most about `about`, or where there are fewer than two, what
/// ticks() gives.  Both ends are positive.
std::vector<Tick> log_ticks(double low, double high, std::size_t about);

}  // namespace xgrad::pages
