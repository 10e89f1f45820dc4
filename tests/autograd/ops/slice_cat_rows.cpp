// Rows of the test table: ops that take Tensors apart or join them.

#include <algorithm>

#include "autograd/ops/shape_rows.hpp"

namespace xgrad::testing {
namespace {

// ---- one part

Row slice_row() {
  using End = std::optional<std::int64_t>;
  const auto part = [](std::int64_t dim, End start, End end, std::int64_t step = 1) {
    return [=](const Tensor& x) { return slice(x, dim, start, end, step); };
  };
  return {
      "slice",
      {sample("rows", {5, 2}, part(0, 1, 4), {3, 2},
              [](const Tensor& x, const At& at) {
                return read(x, {at[0] + 1, at[1]});
              }),
       sample("from the end", {2, 5}, part(-1, -3, -1), {2, 2},
              [](const Tensor& x, const At& at) {
                return read(x, {at[0], at[1] + 2});
              }),
       sample("step", {2, 7}, part(1, 1, {}, 3), {2, 2},
              [](const Tensor& x, const At& at) {
                return read(x, {at[0], 1 + 3 * at[1]});
              }),
       sample("step beyond the end", {4}, part(0, 2, {}, 9), {1},
              [](const Tensor& x, const At&) { return read(x, {2}); }),
       in_order("clipped", {3, 2}, part(0, -9, 9), {3, 2}),
       in_order("all", {3, 2}, part(0, {}, {}), {3, 2}),
       sample("end before start", {4, 2}, part(0, 3, 1), {0, 2},
              [](const Tensor&, const At&) { return 0.0; }),
       sample("no elements", {0, 2}, part(0, 0, 3), {0, 2},
              [](const Tensor&, const At&) { return 0.0; }),
       sample("large", {200, 300}, part(1, 7, 297, 2), {200, 145},
              [](const Tensor& x, const At& at) {
                return read(x, {at[0], 7 + 2 * at[1]});
              })},
      {out_of_range(part(2, 0, 1)),
       bad("step 0", Bad::value, [] { slice(zeros({3}), 0, 0, 3, 0); }, {"slice", "step 0"}),
       bad("backwards", Bad::value, [] { slice(zeros({3}), 0, 0, 3, -1); }, {"step -1", "flip"}),
       bad("0-d", Bad::shape, [] { slice(zeros({}), 0, 0, 1); }, {"slice", "0-d"})}};
}

Row narrow_row() {
  const auto part = [](std::int64_t dim, std::int64_t start, std::int64_t length) {
    return [=](const Tensor& x) { return narrow(x, dim, start, length); };
  };
  return {"narrow",
          {sample("columns", {2, 5}, part(1, 1, 3), {2, 3},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], at[1] + 1});
                  }),
           sample("negative", {5, 2}, part(-2, -2, 2), {2, 2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0] + 3, at[1]});
                  }),
           in_order("all", {3, 2}, part(0, 0, 3), {3, 2}),
           sample("none at the end", {3}, part(0, 3, 0), {0},
                  [](const Tensor&, const At&) { return 0.0; }),
           sample("no elements", {2, 0}, part(0, 1, 1), {1, 0},
                  [](const Tensor&, const At&) { return 0.0; })},
          {out_of_range(part(2, 0, 1)),
           bad("too long", Bad::value,
               [] {
                 narrow(zeros({3, 2}), 0, 2, 2);
               },
               {"narrow", "start 2", "length 2", "(3, 2)"}),
           bad("start", Bad::value, [] { narrow(zeros({3}), 0, -4, 1); }, {"narrow", "-4", "(3,)"}),
           bad("negative length", Bad::value, [] { narrow(zeros({3}), 0, 2, -1); },
               {"narrow", "length -1", "negative"}),
           bad("negative length of the member", Bad::value, [] { zeros({3}).narrow(0, 2, -2); },
               {"narrow", "length -2", "negative"}),
           bad("0-d", Bad::shape, [] { narrow(zeros({}), 0, 0, 0); }, {"narrow", "0-d"})}};
}

Row select_row() {
  const auto at = [](std::int64_t dim, std::int64_t i) {
    return [=](const Tensor& x) { return select(x, dim, i); };
  };
  return {
      "select",
      {sample("row", {3, 2}, at(0, 1), {2},
              [](const Tensor& x, const At& i) {
                return read(x, {1, i[0]});
              }),
       sample("last of a middle dimension", {2, 3, 2}, at(-2, -1), {2, 2},
              [](const Tensor& x, const At& i) {
                return read(x, {i[0], 2, i[1]});
              }),
       sample("column", {3, 2}, at(1, 0), {3},
              [](const Tensor& x, const At& i) {
                return read(x, {i[0], 0});
              }),
       sample("to 0-d", {3}, at(0, 2), {}, [](const Tensor& x, const At&) { return read(x, {2}); }),
       sample("no elements", {2, 0}, at(0, 1), {0}, [](const Tensor&, const At&) { return 0.0; })},
      {out_of_range(at(2, 0)),
       bad("index", Bad::value,
           [] {
             select(zeros({3, 2}), 0, 3);
           },
           {"select", "index 3", "(3, 2)"}),
       bad("negative index", Bad::value, [] { select(zeros({3}), 0, -4); }, {"index -4", "(3,)"}),
       bad("0-d", Bad::shape, [] { select(zeros({}), 0, 0); }, {"select", "0-d"})}};
}

// x[i, j:k, ..., None]
Row index_row() {
  const auto by = [](const std::vector<Index>& indices) {
    return [indices](const Tensor& x) { return index(x, indices); };
  };
  return {"index",
          {sample("integer and slice", {3, 4}, by({1, Slice{1, 3}}), {2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {1, at[0] + 1});
                  }),
           sample("ellipsis", {2, 3, 4}, by({Ellipsis{}, -1}), {2, 3},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], at[1], 3});
                  }),
           sample("around an ellipsis", {2, 3, 4}, by({1, Ellipsis{}, Slice{{}, {}, 2}}), {3, 2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {1, at[0], 2 * at[1]});
                  }),
           sample("new axes", {2, 3}, by({NewAxis{}, 0, NewAxis{}, Slice{-2, {}}}), {1, 1, 2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {0, at[2] + 1});
                  }),
           sample("fewer than dimensions", {3, 2}, by({2}), {2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {2, at[0]});
                  }),
           in_order("none", {3, 2}, by({}), {3, 2}),
           in_order("0-d", {}, by({Ellipsis{}, NewAxis{}}), {1}),
           sample("no elements", {2, 0}, by({Slice{1, 9}}), {1, 0},
                  [](const Tensor&, const At&) { return 0.0; })},
          {bad("out of range", Bad::value,
               [] {
                 index(zeros({3, 2}), {0, 2});
               },
               {"index", "2", "dimension 1", "(3, 2)"}),
           bad("too many", Bad::value,
               [] {
                 index(zeros({3}), {0, Slice{}});
               },
               {"index", "(3,)"}),
           bad("two ellipses", Bad::value,
               [] {
                 index(zeros({3}), {Ellipsis{}, Ellipsis{}});
               },
               {"index", "Ellipsis"}),
           bad("step", Bad::value,
               [] {
                 index(zeros({3}), {Slice{0, 3, -1}});
               },
               {"index", "step -1"}),
           bad("0-d", Bad::value, [] { index(zeros({}), {0}); }, {"index", "()"})}};
}

// ---- all parts

// The parts joined in falling order, each times its number, so that none can be mistaken for
// another; along the first dimension, which is the one that is split.
Tensor fingerprint(std::vector<Tensor> parts) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = parts[i] * static_cast<double>(i + 1);
  std::ranges::reverse(parts);
  return cat(parts);
}

// A matrix of n rows cut into parts of these sizes; the op is given a transpose if it is to cut
// columns.
Sample cut(std::string name, std::size_t n, const std::vector<std::size_t>& sizes,
           const std::function<std::vector<Tensor>(const Tensor&)>& op, bool columns = false) {
  return sample(
      std::move(name), {n, 2},
      [=](const Tensor& x) {
        std::vector<Tensor> parts = op(columns ? transpose(x, 0, 1) : x);
        if (columns)
          for (Tensor& part : parts)
            part = transpose(part, 0, 1);
        if (parts.size() != sizes.size())
          throw Error("another number of parts");
        return fingerprint(std::move(parts));
      },
      {n, 2},
      [=](const Tensor& x, const At& at) {
        // Row r of the output lies in the last part for which the parts before it leave room.
        std::size_t part = sizes.size(), row = at[0];
        while (row >= sizes[part - 1])
          row -= sizes[--part];
        for (std::size_t i = 0; i + 1 < part; ++i)
          row += sizes[i];
        return static_cast<double>(part) * read(x, {row, at[1]});
      });
}

Row split_row() {
  const auto by = [](std::size_t size, std::int64_t dim = 0) {
    return [=](const Tensor& x) { return split(x, size, dim); };
  };
  const auto into = [](const Dims& sizes, std::int64_t dim = 0) {
    return [=](const Tensor& x) { return split(x, sizes, dim); };
  };
  return {"split",
          {cut("even", 6, {2, 2, 2}, by(2)), cut("smaller last", 7, {3, 3, 1}, by(3)),
           cut("columns", 5, {2, 2, 1}, by(2, -1), true), cut("one part", 3, {3}, by(9)),
           cut("no elements", 0, {0}, by(2)), cut("parts of size 0", 0, {0}, by(0)),
           cut("sizes", 6, {1, 2, 3}, into({1, 2, 3})),
           cut("sizes with 0", 3, {0, 3, 0}, into({0, 3, 0}, 1), true),
           cut("large", 9000, {4000, 5000}, into({4000, 5000}))},
          {out_of_range([](const Tensor& x) { return split(x, 1, 2)[0]; }),
           bad("size 0", Bad::value, [] { split(zeros({3}), 0); }, {"split", "0", "(3,)"}),
           bad("too little", Bad::value,
               [] {
                 split(zeros({5, 2}), {2, 2});
               },
               {"split", "(2, 2)", "5", "(5, 2)"}),
           bad("too much", Bad::value,
               [] {
                 split(zeros({5}), {3, 3});
               },
               {"split", "(3, 3)", "(5,)"}),
           bad("negative", Bad::value, [] { split(zeros({3}), zeros({3}).size(0) - 5); },
               {"split", "-2"}),
           bad("0-d", Bad::shape, [] { split(zeros({}), 1); }, {"split", "0-d"})}};
}

Row chunk_row() {
  const auto into = [](std::size_t chunks, std::int64_t dim = 0) {
    return [=](const Tensor& x) { return chunk(x, chunks, dim); };
  };
  return {
      "chunk",
      {cut("even", 6, {2, 2, 2}, into(3)), cut("smaller last", 7, {3, 3, 1}, into(3)),
       cut("fewer than asked", 5, {2, 2, 1}, into(4)), cut("columns", 4, {2, 2}, into(2, -1), true),
       cut("more than elements", 2, {1, 1}, into(5)), cut("one", 3, {3}, into(1)),
       cut("no elements", 0, {0, 0, 0}, into(3))},
      {out_of_range([](const Tensor& x) { return chunk(x, 2, -3)[0]; }),
       bad("no chunks", Bad::value, [] { chunk(zeros({3}), 0); }, {"chunk", "0"}),
       bad("negative", Bad::value, [] { chunk(zeros({3}), zeros({3}).size(0) - 5); },
           {"chunk", "-2"}),
       bad("0-d", Bad::shape, [] { chunk(zeros({}), 1); }, {"chunk", "0-d"})}};
}

// ---- joining

Sample joined(std::string name, const std::vector<Dims>& sizes,
              const std::function<Tensor(const Inputs&)>& op, const Shape& out,
              const std::function<double(const Inputs& in, const At& at)>& element) {
  Inputs inputs;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    inputs.push_back(sample_randn(sizes[i], i));
  return {std::move(name), inputs, op, [out, element](const Inputs& in) {
            return build(out, [&](const At& at) { return element(in, at); });
          }};
}

Row cat_row() {
  const auto along = [](std::int64_t dim) {
    return [dim](const Inputs& in) { return cat(in, dim); };
  };
  // Looks along dimension d for the input that holds an element.
  const auto found = [](std::size_t d) {
    return [d](const Inputs& in, At at) {
      std::size_t i = 0;
      while (std::cmp_less_equal(in[i].dim(), d) || std::cmp_greater_equal(at[d], in[i].shape()[d]))
        at[d] -= std::cmp_less_equal(in[i].dim(), d) ? 0 : in[i].shape()[d], ++i;
      return read(in[i], at);
    };
  };
  return {"cat",
          {joined("rows", {{2, 3}, {1, 3}, {3, 3}}, along(0), {6, 3}, found(0)),
           joined("columns", {{2, 3}, {2, 1}}, along(-1), {2, 4}, found(1)),
           joined("middle", {{2, 1, 2}, {2, 3, 2}}, along(1), {2, 4, 2}, found(1)),
           joined("one", {{2, 3}}, along(0), {2, 3}, found(0)),
           joined("an empty one", {{0}, {2, 3}, {0}, {2, 1}}, along(1), {2, 4}, found(1)),
           joined("only empty ones", {{0}, {0}}, along(0), {0}, found(0)),
           joined("no rows", {{2, 3}, {0, 3}}, along(0), {2, 3}, found(0)),
           joined("no elements", {{0, 2}, {0, 3}}, along(1), {0, 5}, found(1)),
           joined("large", {{300, 70}, {300, 130}}, along(1), {300, 200}, found(1))},
          {out_of_range([](const Tensor& x) {
             return cat({x, x}, 2);
           }),
           bad("nothing", Bad::value, [] { cat(std::vector<Tensor>()); }, {"cat"}),
           bad("0-d", Bad::shape,
               [] {
                 cat({zeros({}), zeros({})});
               },
               {"cat", "0-d", "stack"}),
           bad("other sizes", Bad::shape,
               [] {
                 cat({zeros({2, 3}), zeros({2, 4})});
               },
               {"cat", "(2, 3)", "(2, 4)", "dimension 0"}),
           bad("other rank", Bad::shape,
               [] {
                 cat({zeros({2, 3}), zeros({2})});
               },
               {"cat", "(2, 3)", "(2,)", "2 and 1 dimensions"}),
           bad("undefined", Bad::value,
               [] {
                 cat({zeros({2}), Tensor()});
               },
               {"cat: Tensor 1 is undefined"}),
           bad("dtypes", Bad::dtype,
               [] {
                 cat({zeros({2}), zeros({2}, DType::float64)});
               },
               {"cat", "float32", "float64"})}};
}

Row stack_row() {
  const auto along = [](std::int64_t dim) {
    return [dim](const Inputs& in) { return stack(in, dim); };
  };
  return {"stack",
          {joined("first", {{2, 3}, {2, 3}}, along(0), {2, 2, 3},
                  [](const Inputs& in, const At& at) {
                    return read(in[at[0]], {at[1], at[2]});
                  }),
           joined("middle", {{2, 3}, {2, 3}, {2, 3}}, along(1), {2, 3, 3},
                  [](const Inputs& in, const At& at) {
                    return read(in[at[1]], {at[0], at[2]});
                  }),
           joined("last", {{2, 3}, {2, 3}}, along(-1), {2, 3, 2},
                  [](const Inputs& in, const At& at) {
                    return read(in[at[2]], {at[0], at[1]});
                  }),
           joined("0-d", {{}, {}, {}}, along(0), {3},
                  [](const Inputs& in, const At& at) { return read(in[at[0]], {}); }),
           joined("no elements", {{0, 2}, {0, 2}}, along(0), {2, 0, 2},
                  [](const Inputs&, const At&) { return 0.0; }),
           joined("one", {{2}}, along(1), {2, 1},
                  [](const Inputs& in, const At& at) { return read(in[0], {at[0]}); })},
          {out_of_range([](const Tensor& x) {
             return stack({x, x}, 3);
           }),
           bad("nothing", Bad::value, [] { stack(std::vector<Tensor>()); }, {"stack"}),
           bad("undefined", Bad::value,
               [] {
                 stack({Tensor(), zeros({2})});
               },
               {"stack: Tensor 0 is undefined"}),
           bad("other shapes", Bad::shape,
               [] {
                 stack({zeros({2, 3}), zeros({3, 2})});
               },
               {"stack", "(2, 3)", "(3, 2)"}),
           bad("dtypes", Bad::dtype,
               [] {
                 stack({zeros({2}), zeros({2}, DType::float64)});
               },
               {"stack", "float32", "float64"})}};
}

}  // namespace

std::vector<Row> slice_cat_rows() {
  return {slice_row(), narrow_row(), select_row(), index_row(),
          split_row(), chunk_row(),  cat_row(),    stack_row()};
}

}  // namespace xgrad::testing
