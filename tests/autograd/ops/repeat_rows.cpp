// Rows of the test table: ops that use each element several times.

#include <limits>
#include <optional>

#include "autograd/ops/index_samples.hpp"

namespace xgrad::testing {
namespace {

Row repeat_row() {
  const auto times = [](const Dims& sizes) {
    return [sizes](const Tensor& x) { return repeat(x, sizes); };
  };
  // Element `at` of the output is that of x where each index begins again after x's size.
  const auto wrapped = [](const Tensor& x, const At& at) {
    At inside(at.end() - static_cast<std::ptrdiff_t>(x.dim()), at.end());
    for (std::size_t d = 0; d < inside.size(); ++d)
      inside[d] %= x.shape()[d];
    return read(x, inside);
  };
  return {"repeat",
          {sample("both dimensions", {2, 3}, times({3, 2}), {6, 6}, wrapped),
           sample("the last", {2, 3}, times({1, 2}), {2, 6}, wrapped),
           sample("new dimensions", {2, 3}, times({2, 1, 4, 1}), {2, 1, 8, 3}, wrapped),
           sample("0-d", {}, times({2, 3}), {2, 3}, wrapped),
           in_order("0-d, no sizes", {}, times({}), {}),
           in_order("once", {2, 3}, times({1, 1}), {2, 3}),
           sample("never", {2, 3}, times({0, 2}), {0, 6}, wrapped),
           sample("no elements", {0, 3}, times({2, 2}), {0, 6}, wrapped),
           sample("large", {60, 50}, times({3, 5}), {180, 250}, wrapped)},
          {bad("fewer sizes than dimensions", Bad::shape,
               [] {
                 repeat(zeros({2, 3}), 2);
               },
               {"repeat: sizes (2)", "(2, 3)"}),
           bad("negative", Bad::shape, [] { repeat(zeros(2), {-1}); }, {"repeat", "-1"})}};
}

Row repeat_interleave_row() {
  Row row{"repeat_interleave", {}, {}};
  const auto add = [&row](const std::string& name, const Dims& sizes, const Op& op,
                          const Shape& out, std::size_t d, const std::vector<std::size_t>& from) {
    row.samples.push_back(sample(name, sizes, op, out, [=](const Tensor& x, const At& at) {
      At inside = at;
      inside[d] = from[at[d]];
      return read(x, inside);
    }));
  };
  const auto each = [](std::int64_t n, std::optional<std::int64_t> dim = {}) {
    return [=](const Tensor& x) { return repeat_interleave(x, n, dim); };
  };
  const auto listed = [](const Indices& n, std::optional<std::int64_t> dim = {}) {
    return [=](const Tensor& x) { return repeat_interleave(x, n, dim); };
  };
  add("rows", {2, 3}, each(2, 0), {4, 3}, 0, {0, 0, 1, 1});
  add("columns", {2, 3}, each(3, -1), {2, 9}, 1, {0, 0, 0, 1, 1, 1, 2, 2, 2});
  add("middle", {2, 2, 2}, each(2, 1), {2, 4, 2}, 1, {0, 0, 1, 1});
  add("1-d, no dim", {3}, each(2), {6}, 0, {0, 0, 1, 1, 2, 2});
  add("never", {2, 3}, each(0, 0), {0, 3}, 0, {});
  add("no elements", {0, 3}, each(2, 0), {0, 3}, 0, {});
  add("a list", {3, 2}, listed({2, 0, 3}, 0), {5, 2}, 0, {0, 0, 2, 2, 2});
  add("a list, last", {2, 3}, listed({1, 2, 1}, -1), {2, 4}, 1, {0, 1, 1, 2});
  add("a list of one", {3, 2}, listed(Indices{2}, 0), {6, 2}, 0, {0, 0, 1, 1, 2, 2});
  add("a list for size 1", {1, 2}, listed(Indices{3}, 0), {3, 2}, 0, {0, 0, 0});
  add("0-d repeats", {2}, listed(some_indices({}, 3), 0), {4}, 0, {0, 0, 1, 1});
  row.samples.push_back(
      sample("flattened", {2, 3}, each(2), {12},
             [](const Tensor& x, const At& at) { return x.data<double>()[at[0] / 2]; }));
  row.samples.push_back(
      sample("flattened, a list", {2, 2}, listed({1, 0, 2, 0}), {3},
             [](const Tensor& x, const At& at) { return x.data<double>()[at[0] == 0 ? 0 : 2]; }));
  row.samples.push_back(
      sample("0-d", {}, each(3, 0), {3}, [](const Tensor& x, const At&) { return read(x, {}); }));
  row.samples.push_back(
      sample("large", {60, 50}, each(7, 0), {420, 50}, [](const Tensor& x, const At& at) {
        return read(x, {at[0] / 7, at[1]});
      }));
  row.bad = {out_of_range([](const Tensor& x) { return repeat_interleave(x, 2, 2); }),
             bad("negative", Bad::value, [] { repeat_interleave(zeros(2), -1); },
                 {"repeat_interleave: repeats is -1"}),
             bad("too many in a list", Bad::shape,
                 [] {
                   constexpr auto most = std::numeric_limits<std::int64_t>::max();
                   repeat_interleave(zeros(2), {most, most}, 0);
                 },
                 {"repeat_interleave", "too many"}),
             bad("negative in a list", Bad::value,
                 [] {
                   repeat_interleave(zeros(2), {1, -2}, 0);
                 },
                 {"repeat_interleave: repeats[1] is -2"}),
             bad("another length", Bad::shape,
                 [] {
                   repeat_interleave(zeros({2, 3}), {1, 2}, 1);
                 },
                 {"repeat_interleave: 2 repeats", "dimension 1", "(2, 3)", "size 3"}),
             bad("2-d repeats", Bad::shape,
                 [] {
                   repeat_interleave(zeros({2, 2}), {{1, 2}, {1, 2}}, 1);
                 },
                 {"repeat_interleave: repeats", "(2, 2)"})};
  return row;
}

}  // namespace

std::vector<Row> repeat_rows() { return {repeat_row(), repeat_interleave_row()}; }

}  // namespace xgrad::testing
