// Rows of the test table: copies in which some elements are replaced.

#include <optional>

#include "autograd/ops/index_samples.hpp"

namespace xgrad::testing {
namespace {

using Place = std::function<std::optional<At>(const At&)>;

// The output is in[1] at its place `of` an element, if it has one, else in[0].
Sample replaced(std::string name, const Dims& sizes, const Dims& src,
                const std::function<Tensor(const Tensor&, const Tensor&)>& op, const Place& of) {
  return {std::move(name),
          {sample_randn(sizes, 1), sample_randn(src, 2)},
          [op](const Inputs& in) { return op(in[0], in[1]); },
          [of](const Inputs& in) {
            return build(in[0].shape(), [&](const At& at) {
              const std::optional<At> place = of(at);
              return place ? read(in[1], *place) : read(in[0], at);
            });
          }};
}

Bad other_dtype(const std::string& op,
                const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
  return bad("dtypes", Bad::dtype,
             [f] {
               f(zeros({2, 3}), zeros(3, DType::float64));
             },
             {op + ":", "x is float32", "float64", "to()"});
}

Row select_scatter_row() {
  const auto at = [](std::int64_t dim, std::int64_t i) {
    return [=](const Tensor& x, const Tensor& src) { return select_scatter(x, src, dim, i); };
  };
  const auto one = [](std::size_t d, std::size_t i) {
    return [=](const At& place) -> std::optional<At> {
      if (place[d] != i)
        return {};
      At rest = place;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(d));
      return rest;
    };
  };
  return {"select_scatter",
          {replaced("row", {3, 4}, 4, at(0, 1), one(0, 1)),
           replaced("column, from the end", {3, 4}, 3, at(-1, -2), one(1, 2)),
           replaced("middle", {2, 3, 2}, {2, 2}, at(1, 2), one(1, 2)),
           replaced("an element", 5, {}, at(0, 4), one(0, 4)),
           replaced("no elements", {2, 0}, 0, at(0, 1), one(0, 1)),
           replaced("large", {200, 300}, 200, at(1, 7), one(1, 7))},
          {other_dtype("select_scatter", at(0, 0)),
           bad("shape of src", Bad::shape,
               [] {
                 select_scatter(zeros({2, 3}), zeros(2), 0, 1);
               },
               {"select_scatter: src", "(2,)", "(2, 3)", "(3,)"}),
           bad("index", Bad::value,
               [] {
                 select_scatter(zeros({2, 3}), zeros(3), 0, 2);
               },
               {"select_scatter: index 2", "(2, 3)"}),
           bad("0-d", Bad::shape, [] { select_scatter(zeros({}), zeros({}), 0, 0); },
               {"select_scatter", "0-d"})}};
}

Row scatter_row() {
  Row row{"scatter", {}, {}};
  const auto add = [&row](const IndexCase& c, const Shape& src) {
    row.samples.push_back({c.name,
                           {sample_randn(c.sizes, 1), sample_randn(src, 2)},
                           [c](const Inputs& in) { return scatter(in[0], c.dim, c.index, in[1]); },
                           [c](const Inputs& in) { return scattered(c, in, 0); }});
  };
  const std::vector<IndexCase> cases = {
      {"dimension 0", {3, 4}, 0, {{0, 2, 1, 0}, {2, 1, 2, 1}}, 0},
      {"dimension 0, some twice", {3, 4}, 0, {{0, 2, 1, 0}, {2, 2, 1, 1}}, 0},
      {"dimension -1, some twice", {3, 4}, -1, {{3, 0, 3}, {1, 1, 1}, {2, 3, 2}}, 1},
      {"smaller off dim", {4, 5}, 0, {{3, 0, 3}}, 0},
      {"middle", {2, 4, 3}, 1, some_indices({2, 2, 3}, 4), 1},
      {"1-d", {5}, 0, {4, 1, 4}, 0},
      {"no indices", {3, 4}, 0, some_indices({0, 4}, 3), 0},
      {"large, last", {300, 80}, 1, some_indices({300, 60}, 80), 1},
      {"large, first", {80, 300}, 0, some_indices({70, 300}, 80), 0},
  };
  for (const IndexCase& c : cases)
    add(c, c.index.shape());
  add({"src larger than the index", {3, 4}, 1, {{3, 0}, {1, 1}}, 1}, {5, 3});
  row.samples.push_back(
      {"to 0-d",
       {sample_randn({}, 1), sample_randn({}, 2)},
       [](const Inputs& in) { return scatter(in[0], -1, some_indices({}, 1), in[1]); },
       [](const Inputs& in) { return in[1]; }});
  row.samples.push_back({"a number",
                         {sample_randn({2, 3}, 1)},
                         [](const Inputs& in) {
                           return scatter(in[0], 1, {{2}, {0}}, -1.5);
                         },
                         [](const Inputs& in) {
                           std::vector<double> y = list_of(in[0]);
                           y[2] = y[3] = -1.5;
                           return from_list({2, 3}, y);
                         }});
  row.bad = {other_dtype("scatter",
                         [](const Tensor& x, const Tensor& src) {
                           return scatter(x, 0, {{0, 0, 0}}, src);
                         }),
             bad("another rank", Bad::shape,
                 [] {
                   scatter(zeros({4, 3}), 0, {0, 1}, zeros(2));
                 },
                 {"scatter: the index", "(2,)", "(4, 3)"}),
             bad("larger than src", Bad::shape,
                 [] {
                   scatter(zeros({4, 3}), 0, {{0, 1}}, zeros({1, 1}));
                 },
                 {"scatter: the index", "src (1, 1)"}),
             bad("index too large", Bad::value,
                 [] {
                   scatter(zeros({4, 3}), 0, {{0, 4}}, 1);
                 },
                 {"scatter: index 4", "(0, 1)", "0 to 3"})};
  return row;
}

Row index_put_row() {
  Row row{"index_put", {}, {}};
  struct Case {
    std::string name;
    Dims sizes;
    std::vector<Indices> indices;
    Dims values;
    std::vector<std::size_t> rows;  // where the indices point, by the dimensions they name
    Shape rest = {};                // x's other sizes
  };
  const std::vector<Case> cases = {
      {"elements", {3, 4}, {{0, 2}, {3, 1}}, 2, {3, 9}},
      {"some twice", {3, 4}, {{0, 2, 0}, {3, 1, 3}}, 3, {3, 9, 3}},
      {"from the end", {3, 4}, {{-1, 0}, {-4, -1}}, 2, {8, 3}},
      {"rows", {3, 4}, {{2, 0}}, {2, 4}, {2, 0}, {4}},
      {"rows, one twice, one value each", {3, 4}, {{2, 0, 2}}, {3, 1}, {2, 0, 2}, {4}},
      {"rows and a column", {3, 4}, {{{0}, {2}}, {1, 3}}, {2, 2}, {1, 3, 9, 11}},
      {"one value", {2, 3, 2}, {{1, 0}, {2}}, {}, {5, 2}, {2}},
      {"0-d indices", {3, 2}, {some_indices({}, 3)}, 2, {2}, {2}},
      {"no indices", {3, 2}, {some_indices(0, 3)}, {0, 2}, {}, {2}},
      {"no columns", {3, 0}, {{0, 1}}, {2, 0}, {0, 1}, {0}},
  };
  for (const bool accumulate : {false, true})
    for (const Case& c : cases)
      row.samples.push_back(
          {c.name + (accumulate ? ", added" : ""),
           {sample_randn(c.sizes, 1), sample_randn(c.values, 2)},
           [=](const Inputs& in) { return index_put(in[0], c.indices, in[1], accumulate); },
           [=](const Inputs& in) {
             Shape shape;
             for (const Indices& index : c.indices)
               shape = common_shape(shape, index.shape());
             for (const std::size_t n : c.rest)
               shape.push_back(n);
             const std::size_t width = numel(c.rest);
             std::vector<double> y = list_of(in[0]);
             for (Size i = 0; i < numel(shape); ++i) {
               double& to = y[c.rows[i / width] * width + i % width];
               const double v =
                   in[1].data<double>()[broadcast_from(position(i, shape), in[1].shape())];
               to = accumulate ? to + v : v;
             }
             return from_list(in[0].shape(), y);
           }});
  row.bad = {
      bad("dtypes", Bad::dtype, [] { index_put(zeros(3), {Indices{0}}, zeros(1, DType::float64)); },
          {"index_put: x is float32 but values is float64"}),
      bad("no indices", Bad::value, [] { index_put(zeros(3), {}, zeros(1)); },
          {"index_put: 0 lists", "(3,)"}),
      bad("more indices than dimensions", Bad::value,
          [] {
            index_put(zeros(3), {Indices{0}, Indices{0}}, zeros(1));
          },
          {"index_put: 2 lists", "(3,)", "1 dimension"}),
      bad("out of range", Bad::value,
          [] {
            index_put(zeros({3, 4}), {Indices{0, 1}, Indices{1, 4}}, zeros(2));
          },
          {"index_put: 4", "dimension 1", "size 4"}),
      bad("undefined values", Bad::value, [] { index_put(zeros(3), {Indices{0}}, Tensor()); },
          {"index_put", "values are undefined"}),
      bad("indices of other shapes", Bad::shape,
          [] {
            index_put(zeros({3, 4}), {Indices{0, 1}, Indices{1, 2, 3}}, zeros(2));
          },
          {"index_put", "(2,)", "(3,)"}),
      bad("values", Bad::shape,
          [] {
            index_put(zeros({3, 4}), {Indices{0, 1}}, zeros({2, 3}));
          },
          {"index_put: values (2, 3)", "(2, 4)"})};
  return row;
}

}  // namespace

std::vector<Row> scatter_rows() { return {select_scatter_row(), scatter_row(), index_put_row()}; }

}  // namespace xgrad::testing
