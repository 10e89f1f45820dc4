// Basic indexing, as in Python: x[0, 1:3, ..., None].

#include <algorithm>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/selection.hpp>

namespace xgrad {
namespace {

// Walks through the dimensions of an x of this shape, from the first, and applies each entry to the
// next one.
struct Indexer {
  const Shape& x;
  detail::Selection selection{x};
  std::size_t hidden;    // dimensions that the Ellipsis stands for
  std::size_t at = 0;    // the next dimension of the selection
  std::size_t of_x = 0;  // the same, counted in x

  void operator()(std::int64_t i) {
    const auto n = static_cast<std::int64_t>(selection.shape[at]);
    if (i < -n || i >= n)
      fail<ValueError>("index: {} is out of range for dimension {} of x {}, which has size {}", i,
                       of_x, to_string(x), n);
    selection.slice(at, static_cast<std::size_t>(i < 0 ? i + n : i), 1);
    selection.drop(at);
    ++of_x;
  }
  void operator()(const Slice& slice) {
    const auto [start, length] =
        detail::slice_range("index", selection.shape[at], slice.start, slice.end, slice.step);
    selection.slice(at, start, length, length > 1 ? slice.step : 1);
    ++at;
    ++of_x;
  }
  void operator()(Ellipsis) {
    at += hidden;
    of_x += hidden;
  }
  void operator()(NewAxis) { selection.insert(at++); }
};

}  // namespace

detail::Selection detail::indexed(const Shape& x, const std::vector<Index>& indices) {
  const auto count = [&]<class T>() {
    return static_cast<std::size_t>(std::ranges::count_if(
        indices, [](const Index& i) { return std::holds_alternative<T>(i.value); }));
  };
  const std::size_t used = count.operator()<std::int64_t>() + count.operator()<Slice>();
  check<ValueError>(count.operator()<Ellipsis>() <= 1, "index: there is more than one Ellipsis");
  if (used > x.size())
    fail<ValueError>("index: {} for x {}, which has {}",
                     counted(used, "integer or slice", "integers and slices"), to_string(x),
                     counted(x.size(), "dimension", "dimensions"));
  Indexer indexer{.x = x, .hidden = x.size() - used};
  for (const Index& i : indices)
    std::visit(indexer, i.value);
  return indexer.selection;
}

Tensor index(const Tensor& x, const std::vector<Index>& indices) {
  return detail::pick("index", x, detail::indexed(x.shape(), indices));
}

}  // namespace xgrad
