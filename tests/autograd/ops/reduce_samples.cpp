#include "autograd/ops/reduce_samples.hpp"

namespace xgrad::testing {

Tensor folded(const Tensor& x, const Dims& dims, bool keepdim, const Fold& fold) {
  const std::size_t rank = x.dim();
  std::vector<bool> gone(rank, dims.empty());
  for (const std::int64_t d : dims)
    if (rank > 0)
      gone[static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(rank) : d)] = true;
  Shape shape;
  std::size_t lists = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    if (!gone[d] || keepdim)
      shape.push_back(gone[d] ? 1 : static_cast<std::size_t>(x.shape()[d]));
    if (!gone[d])
      lists *= x.shape()[d];
  }
  std::vector<Numbers> parts(lists);
  for (Size flat = 0; flat < x.numel(); ++flat) {
    std::size_t rest = flat, list = 0, stride = 1;
    for (std::size_t d = rank; d-- > 0; rest /= x.shape()[d])
      if (!gone[d]) {
        list += rest % x.shape()[d] * stride;
        stride *= x.shape()[d];
      }
    parts[list].push_back(x.data<double>()[flat]);
  }
  return sample_from(shape, [&](std::size_t i) { return fold(parts[i]); });
}

// Sizes of 1, but for three.
static Dims many_dims(std::size_t rank) {
  Dims sizes;
  sizes.resize(rank, 1);
  sizes[0] = 2, sizes[rank - 6] = 3, sizes[rank - 1] = 4;
  return sizes;
}
static Dims dims_up_to(std::int64_t last) {
  Dims dims;
  for (std::int64_t d = 0; d <= last; ++d)
    dims.push_back(d);
  return dims;
}

const std::vector<Way> ways_to_reduce = {
    {"last", {3, 4}, {-1}},
    {"first", {3, 4}, {0}},
    {"middle, kept", {2, 3, 4}, {1}, true},
    {"last, kept", {2, 3, 5}, {-1}, true},
    {"odd row", {2, 37}, {1}},
    {"odd columns", {9, 21}, {0}},
    {"short rows", {35, 3}, {1}},
    {"narrow columns", {300, 3}, {0}},
    {"size 1", {3, 1}, {1}},
    {"between sizes of 1", {1, 4, 1}, {1}, true},
    {"0-d, dimension -1", {}, {-1}},
    {"0-d, dimension 0, kept", {}, {0}, true},
    {"no rows", {0, 3}, {1}},
    {"no columns", {3, 0, 2}, {0}, true},
    {"neighbours", {2, 3, 4}, {1, 2}},
    {"apart", {2, 3, 4}, {0, -1}},
    {"apart and backwards, kept", {2, 3, 4}, {-1, 0}, true},
    {"every second", {2, 3, 2, 3, 2}, {0, 2, 4}},
    {"every other second", {2, 3, 2, 3, 2}, {1, 3}, true},
    {"all by name", {2, 3, 4}, {0, 1, 2}},
    {"an empty list, which is all", {2, 3}, {}},
    {"an empty list, kept", {2, 3}, {}, true},
    {"0-d", {}, {}},
    {"long rows, in blocks", {3, 5000}, {1}},
    {"many rows, in blocks", {1500, 40}, {0}},
    {"wide rows, in tiles", {20, 1100}, {0}},
    {"outer and inner", {5, 300, 70}, {1}},
    {"apart, large", {40, 30, 50}, {0, 2}},
    {"large, all", {200, 300}, {}},
    {"64 dimensions, all", many_dims(64), {}},
    {"70 dimensions, some", many_dims(70), {69, 2, 64}},
    {"70 dimensions, all but some, kept", many_dims(70), dims_up_to(64), true},
};

Tensor normal(const Dims& sizes) { return sample_randn(sizes, 3); }

Tensor not_small(const Dims& sizes) {
  const Tensor x = sample_uniform(sizes, 0.5, 1.5, 5);
  return sample_from(x.shape(),
                     [&](std::size_t i) { return x.data<double>()[i] * (i % 3 == 0 ? -1 : 1); });
}

Sample reduction(const std::string& name, const Tensor& x, const Dims& dims, bool keepdim,
                 const Reduce& f, const Fold& fold, bool differentiable) {
  return {name,
          {x},
          [=](const Inputs& in) { return f(in[0], dims, keepdim); },
          [=](const Inputs& in) { return folded(in[0], dims, keepdim, fold); },
          differentiable};
}

void add_ways(Row& row, const std::string& prefix, const Reduce& f, const Fold& fold,
              const Draw& draw, Reduces dims) {
  for (const Way& way : ways_to_reduce)
    if (dims == Reduces::any || way.dims.size() == 1)
      row.samples.push_back(
          reduction(prefix + way.name, draw(way.sizes), way.dims, way.keepdim, f, fold));
}

void add_total(Row& row, Tensor (*f)(const Tensor&), const Fold& fold, const Draw& draw) {
  const Reduce total = [f](const Tensor& x, const Dims&, bool) { return f(x); };
  for (const Dims& sizes : {Dims{}, Dims{1}, Dims{7}, Dims{2, 3, 4}, Dims{150, 170}})
    row.samples.push_back(reduction("total of " + to_string(to_shape(sizes, "total")), draw(sizes),
                                    {}, false, total, fold));
}

void add_bad_dims(Row& row, const Reduce& f, Reduces dims) {
  const std::string op = row.op;
  row.bad.push_back({"dimension too large",
                     [f] {
                       f(zeros({2, 3}), {2}, false);
                     },
                     Bad::value,
                     {op, "dimension 2", "out of range", "2-d"}});
  row.bad.push_back({"dimension too small",
                     [f] {
                       f(zeros({2, 3}), {-3}, false);
                     },
                     Bad::value,
                     {op, "dimension -3", "out of range"}});
  row.bad.push_back({"dimension 1 of 0-d",
                     [f] { f(zeros({}), {1}, false); },
                     Bad::value,
                     {op, "dimension 1", "0-d"}});
  row.bad.push_back({"undefined", [f] { f(Tensor(), {0}, false); }, Bad::value, {"undefined"}});
  if (dims == Reduces::one)
    return;
  row.bad.push_back({"the same dimension twice",
                     [f] {
                       f(zeros({2, 3}), {1, -1}, false);
                     },
                     Bad::value,
                     {op, "dimension -1", "twice", "1, -1"}});
}

void add_bad_empty(Row& row, const Reduce& f) {
  row.bad.push_back({"nothing to choose from",
                     [f] {
                       f(zeros({2, 0}), {1}, false);
                     },
                     Bad::shape,
                     {row.op, "(2, 0)", "no elements"}});
}

}  // namespace xgrad::testing
