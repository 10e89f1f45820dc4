// Ops that use each element several times.

#include <fmt/ranges.h>

#include <algorithm>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

// A dimension of n that is repeated r times is (r, n), with n expanded r times; no copy but that.
Tensor repeat(const Tensor& x, const Dims& sizes) {
  if (std::cmp_less(sizes.size(), x.dim()))
    fail<ShapeError>("repeat: sizes ({}) are fewer than the dimensions of x {}",
                     fmt::join(sizes, ", "), to_string(x.shape()));
  const Shape times = to_shape(sizes, "repeat");
  const std::size_t added = times.size() - x.dim();
  Shape split, repeated, out;
  for (std::size_t d = 0; d < times.size(); ++d) {
    const std::size_t n = d < added ? std::size_t{1} : x.shape()[d - added];
    if (times[d] != 1) {
      split.push_back(1);
      repeated.push_back(times[d]);
    }
    split.push_back(n);
    repeated.push_back(n);
    out.push_back(times[d] * n);
  }
  return reshape(expand(reshape(x, split), repeated), out);
}

Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> dim) {
  check<ValueError>(repeats >= 0, "repeat_interleave: repeats is {}, which is negative", repeats);
  if (!dim || x.dim() == 0)
    return repeat_interleave(reshape(x, {x.numel()}), repeats, 0);
  const std::size_t d = normalize_dim(*dim, x.dim(), "repeat_interleave");
  Shape repeated = x.shape(), out = x.shape();
  repeated.insert(repeated.begin() + d + 1, static_cast<std::size_t>(repeats));
  out[d] *= static_cast<std::size_t>(repeats);  // where this wraps around, expand() throws
  return reshape(expand(unsqueeze(x, static_cast<std::int64_t>(d) + 1), repeated), out);
}

Tensor repeat_interleave(const Tensor& x, const Indices& repeats, std::optional<std::int64_t> dim) {
  if (repeats.dim() > 1)
    fail<ShapeError>("repeat_interleave: repeats has shape {} but must be 1-dimensional",
                     to_string(repeats.shape()));
  if (!dim || x.dim() == 0)
    return x.dim() == 1 ? repeat_interleave(x, repeats, 0)
                        : repeat_interleave(reshape(x, {x.numel()}), repeats, 0);
  const std::size_t d = normalize_dim(*dim, x.dim(), "repeat_interleave");
  const std::size_t n = x.shape()[d];
  if (repeats.numel() == 1 && n != 1)
    return repeat_interleave(x, repeats.item(), dim);
  if (std::cmp_not_equal(repeats.numel(), n))
    fail<ShapeError>("repeat_interleave: {} for dimension {} of x {}, which has size {}",
                     counted(repeats.numel(), "repeat", "repeats"), d, to_string(x.shape()), n);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    check<ValueError>(repeats.data()[i] >= 0,
                      "repeat_interleave: repeats[{}] is {}, which is negative", i,
                      repeats.data()[i]);
    if (__builtin_add_overflow(total, repeats.data()[i], &total))
      fail<ShapeError>("repeat_interleave: the repeats of dimension {} of x {} are too many", d,
                       to_string(x.shape()));
  }
  auto index = empty_array<std::int64_t>(to_shape(Dims(total), "repeat_interleave"));
  std::int64_t* at = index.data();
  for (std::size_t i = 0; i < n; ++i)
    at = std::fill_n(at, repeats.data()[i], static_cast<std::int64_t>(i));
  return index_select(x, static_cast<std::int64_t>(d), Indices(std::move(index)));
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, Meshgrid indexing) {
  const bool exchanged = indexing == Meshgrid::xy && axes.size() > 1;
  Shape grid;
  for (const Tensor& axis : axes) {
    if (axis.dim() > 1)
      fail<ShapeError>("meshgrid: axis {} has shape {} but must be 0-d or 1-d", grid.size(),
                       to_string(axis.shape()));
    if (axis.dtype() != axes[0].dtype())
      fail<DTypeError>("meshgrid: axis 0 is {} but axis {} is {}", to_string(axes[0].dtype()),
                       grid.size(), to_string(axis.dtype()));
    grid.push_back(axis.numel());
  }
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    Shape line(axes.size(), 1);
    line[k] = grid[k];
    const Tensor y = expand(reshape(axes[k], line), grid);
    out.push_back(exchanged ? transpose(y, 0, 1) : y);
  }
  return out;
}

}  // namespace xgrad
