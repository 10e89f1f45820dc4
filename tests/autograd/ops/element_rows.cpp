// Rows of the test table: elements by index, running sums, and the largest k.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "autograd/ops/index_samples.hpp"

namespace xgrad::testing {
namespace {

// ---- single elements

const std::vector<IndexCase>& element_cases() {
  static const std::vector<IndexCase> cases = {
      {"dimension 0", {3, 4}, 0, {{0, 2, 1, 0}, {2, 2, 1, 1}}, 0},
      {"dimension 1", {3, 4}, 1, {{3, 0}, {1, 1}, {2, 3}}, 1},
      {"last, more than x has", {2, 3}, -1, some_indices({2, 7}, 3), 1},
      {"smaller off dim", {4, 5}, 0, {{3, 0, 3}}, 0},
      {"3-D, middle", {2, 4, 3}, 1, some_indices({2, 2, 3}, 4), 1},
      {"3-D, first, smaller", {3, 4, 3}, 0, some_indices({5, 2, 2}, 3), 0},
      {"3-D, last, smaller", {2, 3, 4}, 2, some_indices({1, 2, 6}, 4), 2},
      {"1-D", {5}, 0, {4, 1, 4}, 0},
      {"no indices", {3, 4}, 0, some_indices({0, 4}, 3), 0},
      {"size 1", {1, 4}, 0, some_indices({3, 4}, 1), 0},
      {"large, last", {300, 80}, 1, some_indices({300, 60}, 80), 1},
      {"large, first", {80, 300}, 0, some_indices({70, 300}, 80), 0},
  };
  return cases;
}

struct Along {
  std::string name;
  Dims sizes;
  std::int64_t dim;
  std::size_t d;
};

const std::vector<Along> ways = {
    {"last", {3, 5}, -1, 1},          {"first", {5, 3}, 0, 0},
    {"middle", {2, 4, 3}, 1, 1},      {"1-D", {6}, 0, 0},
    {"size 1", {3, 1}, 1, 1},         {"no rows", {0, 3}, 1, 1},
    {"large, last", {60, 500}, 1, 1}, {"large, first", {70, 300}, 0, 0},
};

}  // namespace

Row gather_row() {
  Row row{"gather", {}, {}};
  for (const IndexCase& c : element_cases())
    row.samples.push_back({c.name,
                           {sample_randn(c.sizes, 1)},
                           [c](const Inputs& in) { return gather(in[0], c.dim, c.index); },
                           [c](const Inputs& in) {
                             return sample_from(c.index.shape(), [&](std::size_t flat) {
                               At at = position(flat, c.index.shape());
                               at[c.d] = number(c.index, flat);
                               return read(in[0], at);
                             });
                           }});
  row.samples.push_back({"of 0-d",
                         {sample_randn({}, 1)},
                         [](const Inputs& in) { return gather(in[0], 0, some_indices({}, 1)); },
                         [](const Inputs& in) { return in[0]; }});
  for (const Shape& shape : {Shape{0}, Shape{2, 0, 5}, Shape{0, 9}}) {
    const Indices none = empty_array<std::int64_t>(shape);
    row.samples.push_back({"no indices of shape " + to_string(shape),
                           {sample_randn({3, 4}, 1)},
                           [none](const Inputs& in) { return gather(in[0], 1, none); },
                           [none](const Inputs&) { return from_list(none.shape(), {}); }});
  }
  row.bad = {{"another rank",
              [] {
                gather(zeros({4, 3}), 0, {0, 1});
              },
              Bad::shape,
              {"gather", "(2,)", "(4, 3)", "as many dimensions"}},
             {"larger off dim",
              [] {
                gather(zeros({4, 3}), 0, {{0, 0, 0, 0}});
              },
              Bad::shape,
              {"gather", "(1, 4)", "(4, 3)", "dimension 1"}},
             {"index too large",
              [] {
                gather(zeros({4, 3}), 1, {{0, 1}, {2, 3}});
              },
              Bad::value,
              {"gather", "index 3", "(1, 1)", "0 to 2"}},
             {"negative index",
              [] {
                gather(zeros({4, 3}), 1, {{-2}});
              },
              Bad::value,
              {"gather", "index -2", "(0, 0)"}},
             {"dimension out of range",
              [] {
                gather(zeros({4, 3}), -3, {{0}});
              },
              Bad::value,
              {"gather", "out of range"}}};
  return row;
}

Row scatter_add_row() {
  Row row{"scatter_add", {}, {}};
  const auto add = [&row](const std::string& name, const IndexCase& c, const Shape& src) {
    row.samples.push_back(
        {name,
         {sample_randn(c.sizes, 1), sample_randn(src, 2)},
         [c](const Inputs& in) { return scatter_add(in[0], c.dim, c.index, in[1]); },
         [c](const Inputs& in) { return scattered(c, in, 1); }});
  };
  for (const IndexCase& c : element_cases())
    add(c.name, c, c.index.shape());
  add("src larger than the index", {"", {3, 4}, 1, {{3, 0}, {1, 1}}, 1}, {5, 3});
  add("no indices of another rank", {"", {3, 4}, 1, some_indices({2, 0, 5}, 1), 1}, {2, 2});
  row.samples.push_back(
      {"to 0-d",
       {sample_randn({}, 1), sample_randn({}, 2)},
       [](const Inputs& in) { return scatter_add(in[0], -1, some_indices({}, 1), in[1]); },
       [](const Inputs& in) {
         return sample_from(
             {}, [&](std::size_t) { return *in[0].data<double>() + *in[1].data<double>(); });
       }});
  row.bad = {{"another rank",
              [] {
                scatter_add(zeros({4, 3}), 0, {0, 1}, zeros({2}));
              },
              Bad::shape,
              {"scatter_add", "(2,)", "(4, 3)"}},
             {"larger than x off dim",
              [] {
                scatter_add(zeros({4, 3}), 0, {{0, 0, 0, 0}}, zeros({1, 4}));
              },
              Bad::shape,
              {"scatter_add", "(1, 4)", "x (4, 3)", "dimension 1"}},
             {"larger than src",
              [] {
                scatter_add(zeros({4, 3}), 0, {{0, 0}, {1, 1}}, zeros({1, 2}));
              },
              Bad::shape,
              {"scatter_add", "(2, 2)", "src (1, 2)", "dimension 0"}},
             {"index too large",
              [] {
                scatter_add(zeros({4, 3}), 0, {{4}}, zeros({1, 1}));
              },
              Bad::value,
              {"scatter_add", "index 4", "0 to 3"}},
             {"another dtype",
              [] {
                scatter_add(zeros({4, 3}), 0, {{0}}, zeros({1, 1}, DType::float64));
              },
              Bad::dtype,
              {"scatter_add", "float32", "float64"}},
             {"dimension out of range",
              [] {
                scatter_add(zeros({4, 3}), 2, {{0}}, zeros({1, 1}));
              },
              Bad::value,
              {"scatter_add", "out of range"}}};
  return row;
}

// ---- scans and selection

namespace {

using Scan = Tensor (*)(const Tensor&, std::int64_t);

// Each element of the output is made of those of x up to it.
Row scan_row(const std::string& op, Scan f,
             const std::function<double(const std::vector<double>&)>& fold,
             const std::vector<Tensor>& special = {}) {
  Row row{op, {}, {}};
  const auto add = [&](const Along& w, const Tensor& x, bool differentiable = true) {
    row.samples.push_back({w.name,
                           {x},
                           [=](const Inputs& in) { return f(in[0], w.dim); },
                           [=](const Inputs& in) {
                             const Shape& shape = in[0].shape();
                             return sample_from(shape, [&](std::size_t flat) {
                               At at = position(flat, shape);
                               const std::size_t last = at[w.d];
                               std::vector<double> line;
                               for (at[w.d] = 0; at[w.d] <= last; ++at[w.d])
                                 line.push_back(read(in[0], at));
                               return fold(line);
                             });
                           },
                           differentiable});
  };
  for (const Along& w : ways)
    add(w, sample_randn(w.sizes, 1));
  add({"nothing to add", {}, 1, 1}, zeros({3, 0}, DType::float64));
  for (const Tensor& x : special)
    add({"special values " + to_string(x), {}, 0, 0}, x, all(isfinite(x)));
  row.samples.push_back({"0-d",
                         {sample_randn({}, 1)},
                         [f](const Inputs& in) { return f(in[0], -1); },
                         [](const Inputs& in) { return in[0]; }});
  row.bad = {{"dimension out of range",
              [f] {
                f(zeros({4, 3}), 2);
              },
              Bad::value,
              {op, "dimension 2", "out of range"}},
             {"undefined", [f] { f(Tensor(), 0); }, Bad::value, {"undefined"}}};
  return row;
}

}  // namespace

Row cumsum_row() {
  return scan_row("cumsum", cumsum, [](const std::vector<double>& line) {
    return std::accumulate(line.begin(), line.end(), 0.0);
  });
}

Row cumprod_row() {
  return scan_row("cumprod", cumprod,
                  [](const std::vector<double>& line) {
                    return std::accumulate(line.begin(), line.end(), 1.0, std::multiplies<>());
                  },
                  {tensor({2, 0, 3, 0.5}, DType::float64), tensor({0, 2, 0, 0, 3}, DType::float64),
                   tensor({inf, 2, 0, 1, not_a_number, 3}, DType::float64)});
}

namespace {

Row order_row(const std::string& op) {
  Row row{op, {}, {}};
  const auto add = [&row](const std::string& name, const Tensor& x, const Along& w, std::size_t k,
                          bool largest) {
    row.samples.push_back({name,
                           {x},
                           [=, sorts = row.op == "sort"](const Inputs& in) {
                             return sorts ? sort(in[0], w.dim, largest).values
                                          : topk(in[0], k, w.dim, largest).values;
                           },
                           [=](const Inputs& in) {
                             const Shape shape = with_size(w.sizes, w.d, k);
                             std::map<At, std::vector<double>> lines;
                             return sample_from(shape, [&](std::size_t flat) {
                               At at = position(flat, shape);
                               const std::size_t rank = std::exchange(at[w.d], 0);
                               std::vector<double>& line = lines[at];
                               if (line.empty()) {
                                 for (; std::cmp_less(at[w.d], in[0].shape()[w.d]); ++at[w.d])
                                   line.push_back(read(in[0], at));
                                 std::ranges::sort(line);
                               }
                               return largest ? line[line.size() - 1 - rank] : line[rank];
                             });
                           }});
  };
  for (const Along& w : ways)
    for (const bool largest : {true, false}) {
      const std::size_t n = to_shape(w.sizes, "topk")[w.d];
      for (const std::size_t k :
           op == "sort" ? std::vector{n} : std::vector{std::size_t{0}, n / 2, n})
        add(w.name + (largest ? ", largest " : ", smallest ") + std::to_string(k),
            sample_randn(w.sizes, 1), w, k, largest);
    }
  return row;
}

}  // namespace

Row topk_row() {
  Row row = order_row("topk");
  row.samples.push_back({"0-d",
                         {sample_randn({}, 1)},
                         [](const Inputs& in) { return topk(in[0], 1).values; },
                         [](const Inputs& in) { return in[0]; }});
  row.bad = {{"more than there are",
              [] {
                topk(zeros({4, 3}), 4);
              },
              Bad::value,
              {"topk", "k is 4", "(4, 3)", "3 elements"}},
             {"dimension out of range",
              [] {
                topk(zeros({4, 3}), 1, 2);
              },
              Bad::value,
              {"topk", "out of range"}}};
  return row;
}

Row sort_row() {
  Row row = order_row("sort");
  row.samples.push_back({"0-d",
                         {sample_randn({}, 1)},
                         [](const Inputs& in) { return sort(in[0]).values; },
                         [](const Inputs& in) { return in[0]; }});
  row.bad = {
      {"dimension out of range", [] { sort(zeros(3), 1); }, Bad::value, {"sort", "out of range"}}};
  return row;
}

}  // namespace xgrad::testing
