#pragma once
// The positions of an array's elements, by plain loops, for references of ops.

#include <algorithm>
#include <vector>
#include <xgrad/autograd/shape.hpp>

namespace xgrad::testing {

/// One index for each dimension.
using Position = std::vector<std::size_t>;

inline Position position(std::size_t flat, const Shape& shape) {
  Position p(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; flat /= shape[d])
    p[d] = flat % shape[d];
  return p;
}

inline std::size_t flat(const Position& p, const Shape& shape) {
  std::size_t at = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    at = at * shape[d] + p[d];
  return at;
}

/// The element of an operand at a position of the broadcast result: the operand is aligned at the
/// last dimension, and size 1 repeats.
inline std::size_t broadcast_from(const Position& p, const Shape& operand) {
  Position q(p.end() - static_cast<std::ptrdiff_t>(operand.size()), p.end());
  for (std::size_t d = 0; d < q.size(); ++d)
    if (operand[d] == 1)
      q[d] = 0;
  return flat(q, operand);
}

/// The shape to which both broadcast.
inline Shape common_shape(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (const Shape* s : {&a, &b})
    for (std::size_t d = 1; d <= s->size(); ++d)
      if ((*s)[s->size() - d] != 1)
        out[out.size() - d] = (*s)[s->size() - d];
  return out;
}

}  // namespace xgrad::testing
