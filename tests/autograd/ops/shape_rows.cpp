// Rows of the test table: ops that arrange all elements anew.

#include "autograd/ops/shape_rows.hpp"

namespace xgrad::testing {
namespace {

// ---- another shape

std::vector<Bad> bad_reshapes(const std::string& op,
                              Tensor (*f)(const Tensor& x, const Dims& sizes)) {
  return {bad("another number of elements", Bad::shape,
              [f] {
                f(zeros({2, 3}), {4, 2});
              },
              {op, "(2, 3)", "6", "(4, 2)", "8"}),
          bad("two unknown sizes", Bad::shape,
              [f] {
                f(zeros({2, 3}), {-1, -1});
              },
              {op, "(-1, -1)", "more than one -1"}),
          bad("no whole number", Bad::shape,
              [f] {
                f(zeros({2, 3}), {4, -1});
              },
              {op, "(2, 3)", "(4, -1)"}),
          bad("ambiguous", Bad::shape,
              [f] {
                f(zeros({0, 3}), {-1, 0});
              },
              {op, "(0, 3)", "(-1, 0)", "any number"}),
          bad("one element", Bad::shape,
              [f] {
                f(zeros({}), {2, 3});
              },
              {op, "1 element but", "()", "(2, 3)"}),
          bad("one element and unknown", Bad::shape,
              [f] {
                f(zeros({1}), {2, -1});
              },
              {op, "the 1 element of x (1,)", "(2, -1)"}),
          bad("zero and unknown", Bad::shape,
              [f] {
                f(zeros({2, 3}), {-1, 0});
              },
              {op, "(2, 3)", "(-1, 0)"}),
          bad("negative", Bad::shape,
              [f] {
                f(zeros({2, 3}), {-2, 3});
              },
              {op, "-2", "negative"})};
}

std::vector<Sample> reshape_samples(Tensor (*f)(const Tensor& x, const Dims& sizes)) {
  const auto to = [f](const Dims& sizes) {
    return [f, sizes](const Tensor& x) { return f(x, sizes); };
  };
  return {in_order("merged", {2, 3, 4}, to({6, 4}), {6, 4}),
          in_order("unknown size", {2, 3, 4}, to({4, -1}), {4, 6}),
          in_order("the same", {2, 3}, to({2, 3}), {2, 3}),
          in_order("flat", {2, 3}, to(-1), {6}),
          in_order("from 0-d", {}, to({1, 1}), {1, 1}),
          in_order("to 0-d", {1, 1}, to({}), {}),
          in_order("no elements", {0, 3}, to({3, 0, 5}), {3, 0, 5}),
          in_order("no elements, unknown size", {0, 3}, to({-1, 3}), {0, 3}),
          in_order("large", {200, 300}, to({300, 200}), {300, 200})};
}

Row flatten_row() {
  return {
      "flatten",
      {in_order("all", {2, 3, 4}, [](const Tensor& x) { return flatten(x); }, {24}),
       in_order("last two", {2, 3, 4}, [](const Tensor& x) { return flatten(x, -2); }, {2, 12}),
       in_order("first two", {2, 3, 4}, [](const Tensor& x) { return flatten(x, 0, 1); }, {6, 4}),
       in_order("one", {2, 3}, [](const Tensor& x) { return flatten(x, 1, 1); }, {2, 3}),
       in_order("0-d", {}, [](const Tensor& x) { return flatten(x); }, {1}),
       in_order("no elements", {2, 0, 4}, [](const Tensor& x) { return flatten(x, 1); }, {2, 0})},
      {out_of_range([](const Tensor& x) { return flatten(x, 0, 2); }),
       bad("wrong order", Bad::value,
           [] {
             flatten(zeros({2, 3}), 1, 0);
           },
           {"flatten", "start_dim 1", "end_dim 0"})}};
}

Row squeeze_row() {
  const auto at = [](const Dims& dims) {
    return [dims](const Tensor& x) { return squeeze(x, dims); };
  };
  const auto all = [](const Tensor& x) { return squeeze(x); };
  return {"squeeze",
          {in_order("all", {1, 3, 1, 2}, all, {3, 2}), in_order("none", {3, 2}, all, {3, 2}),
           in_order("to 0-d", {1, 1}, all, {}), in_order("0-d", {}, all, {}),
           in_order("one", {1, 3, 1}, at(0), {3, 1}), in_order("last", {1, 3, 1}, at(-1), {1, 3}),
           in_order("not of size 1", {2, 3}, at(1), {2, 3}), in_order("dim of 0-d", {}, at(-1), {}),
           in_order("no elements", {1, 0}, all, {0}),
           in_order("several", {1, 3, 1, 1}, at({0, -1}), {3, 1}),
           in_order("several, one not of size 1", {1, 3, 1}, at({1, 2, 0}), {3}),
           in_order("no dims", {1, 3, 1}, at({}), {1, 3, 1})},
          {out_of_range(at(2)), out_of_range(at(1), {}), out_of_range(at({0, 2})),
           bad("twice", Bad::value,
               [] {
                 squeeze(zeros({1, 3, 1}), {2, -1});
               },
               {"squeeze", "dimension -1", "(2, -1)", "twice"})}};
}

Row unsqueeze_row() {
  const auto at = [](std::int64_t dim) {
    return [dim](const Tensor& x) { return unsqueeze(x, dim); };
  };
  return {
      "unsqueeze",
      {in_order("first", {2, 3}, at(0), {1, 2, 3}), in_order("middle", {2, 3}, at(1), {2, 1, 3}),
       in_order("last", {2, 3}, at(-1), {2, 3, 1}),
       in_order("from the end", {2, 3}, at(-3), {1, 2, 3}), in_order("0-d", {}, at(0), {1}),
       in_order("no elements", {0}, at(1), {0, 1})},
      {out_of_range(at(3)), out_of_range(at(-4))}};
}

Row expand_row() {
  const auto to = [](const Dims& sizes) {
    return [sizes](const Tensor& x) { return expand(x, sizes); };
  };
  return {"expand",
          {sample("column", {3, 1}, to({3, 4}), {3, 4},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], 0});
                  }),
           sample("row", {1, 4}, to({3, 4}), {3, 4},
                  [](const Tensor& x, const At& at) {
                    return read(x, {0, at[1]});
                  }),
           sample("new dimension", {3, 1}, to({2, -1, 2}), {2, 3, 2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[1], 0});
                  }),
           sample("middle", {2, 1, 3}, to({2, 4, 3}), {2, 4, 3},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], 0, at[2]});
                  }),
           sample("0-d", {}, to({2, 3}), {2, 3},
                  [](const Tensor& x, const At&) { return read(x, {}); }),
           in_order("the same", {2, 3}, to({2, -1}), {2, 3}),
           sample("to no elements", {3, 1}, to({3, 0}), {3, 0},
                  [](const Tensor&, const At&) { return 0.0; }),
           sample("large", {300, 1}, to({300, 200}), {300, 200},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], 0});
                  })},
          {bad("size that does not fit", Bad::shape,
               [] {
                 expand(zeros({2, 3}), {2, 4});
               },
               {"expand", "(2, 3)", "(2, 4)"}),
           bad("too few sizes", Bad::shape,
               [] {
                 expand(zeros({2, 1}), {2});
               },
               {"expand", "(2, 1)"}),
           bad("-1 for a new dimension", Bad::shape,
               [] {
                 expand(zeros({2, 1}), {-1, 2, 1});
               },
               {"expand", "-1", "(2, 1)"}),
           bad("negative", Bad::shape, [] { expand(zeros({1}), {-2}); },
               {"expand", "-2", "negative"})}};
}

// ---- another order

Row permute_row() {
  const auto by = [](const Dims& dims) {
    return [dims](const Tensor& x) { return permute(x, dims); };
  };
  return {
      "permute",
      {sample("turned", {2, 3, 4}, by({2, 0, 1}), {4, 2, 3},
              [](const Tensor& x, const At& at) {
                return read(x, {at[1], at[2], at[0]});
              }),
       sample("heads", {2, 3, 2, 4}, by({0, 2, 1, 3}), {2, 2, 3, 4},
              [](const Tensor& x, const At& at) {
                return read(x, {at[0], at[2], at[1], at[3]});
              }),
       sample("negative dims", {2, 3, 4}, by({-1, -2, -3}), {4, 3, 2},
              [](const Tensor& x, const At& at) {
                return read(x, {at[2], at[1], at[0]});
              }),
       in_order("the same", {2, 3}, by({0, 1}), {2, 3}),
       in_order("sizes of 1", {2, 1, 3}, by({1, 0, 2}), {1, 2, 3}), in_order("0-d", {}, by({}), {}),
       sample("no elements", {0, 3}, by({1, 0}), {3, 0},
              [](const Tensor&, const At&) { return 0.0; }),
       sample("narrow and deep", {50, 3, 60}, by({2, 0, 1}), {60, 50, 3},
              [](const Tensor& x, const At& at) {
                return read(x, {at[1], at[2], at[0]});
              }),
       sample("large", {17, 70, 43}, by({2, 0, 1}), {43, 17, 70},
              [](const Tensor& x, const At& at) {
                return read(x, {at[1], at[2], at[0]});
              })},
      {out_of_range(by({0, 2})),
       bad("too few", Bad::value,
           [] {
             permute(zeros({2, 3}), {0});
           },
           {"permute", "(0)", "(2, 3)"}),
       bad("twice", Bad::value,
           [] {
             permute(zeros({2, 3}), {1, -1});
           },
           {"permute", "(1, -1)", "twice"})}};
}

Row transpose_row() {
  const auto swap = [](std::int64_t a, std::int64_t b) {
    return [a, b](const Tensor& x) { return transpose(x, a, b); };
  };
  const Element turned = [](const Tensor& x, const At& at) { return read(x, {at[1], at[0]}); };
  return {
      "transpose",
      {sample("matrix", {3, 4}, swap(0, 1), {4, 3}, turned),
       sample("outer", {2, 3, 4}, swap(0, -1), {4, 3, 2},
              [](const Tensor& x, const At& at) {
                return read(x, {at[2], at[1], at[0]});
              }),
       in_order("with itself", {3, 4}, swap(1, -1), {3, 4}), in_order("0-d", {}, swap(0, -1), {}),
       sample("no elements", {0, 2}, swap(0, 1), {2, 0}, turned),
       sample("blocks and rest", {35, 21}, swap(0, 1), {21, 35}, turned),
       sample("tall", {9000, 5}, swap(0, 1), {5, 9000}, turned),
       sample("wide", {5, 9000}, swap(0, 1), {9000, 5}, turned),
       sample("large", {203, 170}, swap(0, 1), {170, 203}, turned)},
      {out_of_range(swap(0, 2))}};
}

Row flip_row() {
  const auto over = [](const Dims& dims) {
    return [dims](const Tensor& x) { return flip(x, dims); };
  };
  return {"flip",
          {sample("rows", {3, 2}, over(0), {3, 2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {2 - at[0], at[1]});
                  }),
           sample("last", {3, 4}, over(-1), {3, 4},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], 3 - at[1]});
                  }),
           sample("both", {3, 4}, over({0, 1}), {3, 4},
                  [](const Tensor& x, const At& at) {
                    return read(x, {2 - at[0], 3 - at[1]});
                  }),
           in_order("none", {3, 2}, over({}), {3, 2}), in_order("0-d", {}, over(0), {}),
           in_order("no elements", {0, 2}, over({0, 1}), {0, 2}),
           sample("large", {200, 300}, over(1), {200, 300},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], 299 - at[1]});
                  })},
          {out_of_range(over(2)), bad("twice", Bad::value,
                                      [] {
                                        flip(zeros({2, 3}), {0, -2});
                                      },
                                      {"flip", "(0, -2)", "twice"})}};
}

// ---- triangles

Row triangle_row(const std::string& op, Tensor (*f)(const Tensor& x, std::int64_t diagonal),
                 bool lower) {
  const auto make = [=](const std::string& name, const Dims& sizes, std::int64_t diagonal) {
    Shape shape(sizes.size(), 0);
    for (std::size_t d = 0; d < shape.size(); ++d)
      shape[d] = static_cast<std::size_t>(sizes[d]);
    return sample(
        name, sizes, [=](const Tensor& x) { return f(x, diagonal); }, shape,
        [=](const Tensor& x, const At& at) {
          const auto row = static_cast<std::int64_t>(at[at.size() - 2]);
          const std::int64_t above = static_cast<std::int64_t>(at.back()) - row;
          return (lower ? above <= diagonal : above >= diagonal) ? read(x, at) : 0.0;
        });
  };
  return {op,
          {make("square", {3, 3}, 0), make("wide", {2, 4}, 1), make("tall", {4, 2}, -1),
           make("batch", {2, 2, 3}, 0), make("nothing kept or all", {2, 3}, -7),
           make("all kept or nothing", {2, 3}, 7), make("no elements", {0, 3}, 0),
           make("no columns", {2, 0}, 0), make("large", {3, 90, 100}, 2)},
          {bad("1-d", Bad::shape, [f] { f(zeros({3}), 0); }, {op, "(3,)"})}};
}

}  // namespace

std::vector<Row> shape_rows() {
  std::vector<Row> rows = {{"reshape", reshape_samples(reshape), bad_reshapes("reshape", reshape)},
                           {"view", reshape_samples(view), bad_reshapes("view", view)},
                           flatten_row(),
                           squeeze_row(),
                           unsqueeze_row(),
                           expand_row(),
                           permute_row(),
                           transpose_row(),
                           flip_row(),
                           triangle_row("tril", tril, true),
                           triangle_row("triu", triu, false)};
  for (auto* const more : {repeat_rows, slice_cat_rows, arrange_rows})
    for (Row& row : more())
      rows.push_back(std::move(row));
  return rows;
}

}  // namespace xgrad::testing
