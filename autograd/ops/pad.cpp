// Ops that move what is there, or put something around it.

#include <fmt/ranges.h>

#include <algorithm>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/selection.hpp>

namespace xgrad {

using detail::Selection;

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  if (dims.empty() && shifts.size() == 1)
    return reshape(roll(reshape(x, -1), shifts, 0), x.shape());
  check<ValueError>(shifts.size() == dims.size(), "roll: {} for {}",
                    counted(shifts.size(), "shift", "shifts"),
                    counted(dims.size(), "dimension", "dimensions"));
  check<ShapeError>(dims.empty() || x.dim() > 0, "roll: x is 0-d and has no dimension {}",
                    dims.empty() ? 0 : dims[0]);
  Tensor y = x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = normalize_dim(dims[i], x.dim(), "roll");
    const std::int64_t n = x.numel() == 0 ? 1 : x.shape()[d], to = (shifts[i] % n + n) % n;
    if (to != 0)
      y = cat({narrow(y, dims[i], n - to, to), narrow(y, dims[i], 0, n - to)}, dims[i]);
  }
  return y;
}

Tensor pad(const Tensor& x, const Dims& pad, double value) {
  if (pad.size() % 2 != 0 || std::cmp_greater(pad.size() / 2, x.dim()))
    fail<ValueError>("pad: ({}) are no pairs for the last dimensions of x {}", fmt::join(pad, ", "),
                     to_string(x.shape()));
  Tensor part = x;
  Shape shape = x.shape();
  std::vector<std::size_t> starts(shape.size());
  for (std::size_t i = 0; i < pad.size(); i += 2) {
    const std::size_t d = shape.size() - 1 - i / 2;
    const std::int64_t left = pad[i], right = pad[i + 1], n = x.shape()[d];
    constexpr std::int64_t most = std::int64_t{1} << 60;  // sums of three stay in the range
    check<ShapeError>(std::max(left, right) < most && std::min(left, right) > -most,
                      "pad: {} and {} are beyond what any dimension has", left, right);
    if (n + std::min<std::int64_t>(left, 0) + std::min<std::int64_t>(right, 0) < 0)
      fail<ShapeError>("pad: {} and {} cut more from dimension {} of x {} than there is", left,
                       right, d, to_string(x.shape()));
    const std::int64_t first = std::max<std::int64_t>(-left, 0);
    part = narrow(part, static_cast<std::int64_t>(d), first,
                  n - first - std::max<std::int64_t>(-right, 0));
    shape[d] = to_shape(n + left + right, "pad")[0];
    starts[d] = static_cast<std::size_t>(std::max<std::int64_t>(left, 0));
  }
  Selection s(shape);
  for (std::size_t d = 0; d < shape.size(); ++d)
    s.slice(d, starts[d], static_cast<std::size_t>(part.shape()[d]));
  return detail::put("pad", full(shape, value, x.dtype()), part, std::move(s));
}

}  // namespace xgrad
