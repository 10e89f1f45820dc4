// Rows of the test table: whole rows by index.  Single elements, scans and selection:
// element_rows.cpp.

#include "autograd/ops/index_samples.hpp"

namespace xgrad::testing {
namespace {

const std::vector<IndexCase>& row_cases() {
  static const std::vector<IndexCase> cases = {
      {"first", {4, 3}, 0, {2, 0, 2, 3, 2}, 0},
      {"last, negative", {3, 4}, -1, {1, 1, 0}, 1},
      {"middle", {2, 5, 3}, 1, {4, 0, 4}, 1},
      {"1-D", {5}, 0, {4, 4, 1}, 0},
      {"no indices", {4, 3}, 0, some_indices({0}, 4), 0},
      {"no columns", {4, 0}, 0, {1, 2}, 0},
      {"size 1", {1, 3}, 0, {0, 0}, 0},
      {"large", {90, 70}, 0, some_indices({400}, 90), 0},
      {"large, inner", {30, 40, 20}, 1, some_indices({60}, 40), 1},
      {"large, last", {200, 50}, 1, some_indices({90}, 50), 1},
  };
  return cases;
}

Row index_select_row() {
  Row row{"index_select", {}, {}};
  for (const IndexCase& c : row_cases())
    row.samples.push_back({c.name,
                           {sample_randn(c.sizes, 1)},
                           [c](const Inputs& in) { return index_select(in[0], c.dim, c.index); },
                           [c](const Inputs& in) {
                             const Shape shape = with_size(c.sizes, c.d, c.index.numel());
                             return sample_from(shape, [&](std::size_t flat) {
                               At at = position(flat, shape);
                               at[c.d] = number(c.index, at[c.d]);
                               return read(in[0], at);
                             });
                           }});
  for (const Indices& index : {Indices{0}, some_indices({}, 1)})
    row.samples.push_back({"of 0-d",
                           {sample_randn({}, 1)},
                           [index](const Inputs& in) { return index_select(in[0], -1, index); },
                           [](const Inputs& in) { return in[0]; }});
  row.bad = {{"index too large",
              [] {
                index_select(zeros({4, 3}), 0, {0, 4});
              },
              Bad::value,
              {"index_select", "index 4", "(1,)", "0 to 3"}},
             {"negative index",
              [] {
                index_select(zeros({4, 3}), 1, {-1});
              },
              Bad::value,
              {"index_select", "index -1", "0 to 2"}},
             {"a table of indices",
              [] {
                index_select(zeros({4, 3}), 0, {{0, 1}});
              },
              Bad::shape,
              {"index_select", "(1, 2)", "1-dimensional"}},
             {"two of 0-d",
              [] {
                index_select(zeros({}), 0, {0, 0});
              },
              Bad::shape,
              {"index_select", "2 indices", "0-d"}},
             {"dimension out of range",
              [] {
                index_select(zeros({4, 3}), 2, {0});
              },
              Bad::value,
              {"index_select", "out of range"}}};
  return row;
}

Row index_add_row() {
  Row row{"index_add", {}, {}};
  for (const IndexCase& c : row_cases()) {
    const Shape shape = with_size(c.sizes, c.d, c.index.numel());
    row.samples.push_back(
        {c.name,
         {sample_randn(c.sizes, 1), sample_randn(shape, 2)},
         [c](const Inputs& in) { return index_add(in[0], c.dim, c.index, in[1]); },
         [c](const Inputs& in) {
           std::vector<double> y = list_of(in[0]);
           for (Size i = 0; i < in[1].numel(); ++i) {
             At at = position(i, in[1].shape());
             at[c.d] = number(c.index, at[c.d]);
             y[flat(at, in[0].shape())] += in[1].data<double>()[i];
           }
           return from_list(in[0].shape(), y);
         }});
  }
  row.samples.push_back({"to 0-d",
                         {sample_randn({}, 1), sample_randn({}, 2)},
                         [](const Inputs& in) { return index_add(in[0], 0, {0}, in[1]); },
                         [](const Inputs& in) {
                           return sample_from({}, [&](std::size_t) {
                             return *in[0].data<double>() + *in[1].data<double>();
                           });
                         }});
  row.bad = {{"src of another shape",
              [] {
                index_add(zeros({4, 3}), 0, {0, 1}, zeros({3, 3}));
              },
              Bad::shape,
              {"index_add", "(3, 3)", "(4, 3)", "2 indices", "(2, 3)"}},
             {"index too large",
              [] {
                index_add(zeros({4, 3}), 0, {0, 4}, zeros({2, 3}));
              },
              Bad::value,
              {"index_add", "index 4", "0 to 3"}},
             {"another dtype",
              [] {
                index_add(zeros({4, 3}), 0, {0}, zeros({1, 3}, DType::float64));
              },
              Bad::dtype,
              {"index_add", "float32", "float64"}},
             {"a table of indices",
              [] {
                index_add(zeros({4, 3}), 0, {{0, 1}}, zeros({2, 3}));
              },
              Bad::shape,
              {"index_add", "1-dimensional"}},
             {"dimension out of range",
              [] {
                index_add(zeros({4, 3}), 2, {0}, zeros({1, 3}));
              },
              Bad::value,
              {"index_add", "out of range"}}};
  return row;
}

Row embedding_row() {
  Row row{"embedding", {}, {}};
  struct Lookup {
    std::string name;
    Indices ids;
    Dims weight;
  };
  const std::vector<Lookup> lookups = {
      {"a table of ids, some twice", {{0, 2, 2}, {1, 0, 4}}, {5, 3}},
      {"one id, 0-d", some_indices({}, 3), {3, 4}},
      {"no ids", some_indices({0}, 3), {3, 4}},
      {"no ids, two dimensions", some_indices({2, 0}, 3), {3, 4}},
      {"no columns", {1, 0}, {3, 0}},
      {"one column", {1, 0, 1}, {2, 1}},
      {"large", some_indices({16, 40}, 60), {60, 150}},
  };
  for (const Lookup& l : lookups)
    row.samples.push_back({l.name,
                           {sample_randn(l.weight, 1)},
                           [l](const Inputs& in) { return embedding(l.ids, in[0]); },
                           [l](const Inputs& in) {
                             const std::size_t width = in[0].shape()[1];
                             Shape shape = l.ids.shape();
                             shape.push_back(width);
                             return sample_from(shape, [&](std::size_t flat) {
                               return read(in[0], {number(l.ids, flat / width), flat % width});
                             });
                           }});
  // The second use finds the gradient of the first.
  const Indices first = {0, 2}, second = {2, 2};
  row.samples.push_back(
      {"two uses of one weight",
       {sample_randn({3, 4}, 1)},
       [=](const Inputs& in) { return embedding(first, in[0]) * embedding(second, in[0]); },
       [=](const Inputs& in) {
         return sample_from({2, 4}, [&](std::size_t flat) {
           return read(in[0], {number(first, flat / 4), flat % 4}) *
                  read(in[0], {number(second, flat / 4), flat % 4});
         });
       }});
  row.bad = {{"id too large",
              [] {
                embedding({{0, 1}, {5, 2}}, zeros({5, 3}));
              },
              Bad::value,
              {"embedding", "index 5", "(1, 0)", "0 to 4"}},
             {"negative id",
              [] {
                embedding({0, -1}, zeros({5, 3}));
              },
              Bad::value,
              {"embedding", "index -1", "(1,)"}},
             {"a weight that is no table",
              [] { embedding({0}, zeros({5})); },
              Bad::shape,
              {"embedding", "(5,)", "(V, C)"}},
             {"undefined weight", [] { embedding({0}, Tensor()); }, Bad::value, {"undefined"}}};
  return row;
}

}  // namespace

std::vector<Row> index_rows() {
  std::vector<Row> rows = {index_select_row(), index_add_row(),   embedding_row(),
                           gather_row(),       scatter_add_row(), cumsum_row(),
                           topk_row(),         cumprod_row(),     sort_row()};
  for (const auto& more : {scatter_rows(), masked_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace xgrad::testing
