// Rows of the test table: elementwise ops that choose or copy.

#include <algorithm>
#include <cmath>

#include "autograd/ops/elementwise_samples.hpp"

namespace xgrad::testing {
namespace {

// The left operand holds multiples of 0.1 and the right one numbers between them: no ties, but in
// the last sample.
Row extremum(const std::string& op, Binary f, double (*formula)(double, double)) {
  Row row{op, {}, {}};
  std::uint64_t seed = 300;
  for (const auto& [shape, a, b] : pairs) {
    const auto snap = [](const Tensor& x, double offset) {
      return sample_from(x.shape(), [&](std::size_t i) {
        return std::round(10 * x.data<double>()[i]) / 10 + offset;
      });
    };
    row.samples.push_back({shape,
                           {snap(sample_randn(a, seed), 0), snap(sample_randn(b, seed + 1), 0.05)},
                           [f](const Inputs& in) { return f(in[0], in[1]); },
                           everywhere(formula)});
    seed += 2;
  }
  row.samples.push_back({"ties, NaN and infinities",
                         {values({1, not_a_number, 2, inf, -inf, 0.5, not_a_number}),
                          values({1, 2, not_a_number, 1, 1, 0.5, not_a_number})},
                         [f](const Inputs& in) { return f(in[0], in[1]); },
                         everywhere(formula),
                         false});
  add_bad_binary(row, f);
  return row;
}

// True in an irregular pattern.
Mask mask(const Shape& shape) {
  auto m = empty_array<bool>(shape);
  for (std::size_t i = 0; i < m.size(); ++i)
    m.data()[i] = i % 3 == 0 || i % 7 == 2;
  return Mask(std::move(m));
}

// The mask as an operand of ones and zeros, for the reference.
Tensor as_numbers(const Mask& m) {
  return sample_from(m.shape(), [&](std::size_t i) { return m.data()[i] ? 1.0 : 0.0; });
}

// The reference of an op that takes a mask besides its Tensors: formula(mask, operands...).
Call everywhere_masked(const Mask& m, const Formula& formula) {
  return [m, formula](const Inputs& in) {
    Inputs all = {as_numbers(m)};
    all.insert(all.end(), in.begin(), in.end());
    return everywhere(formula)(all);
  };
}

}  // namespace

Row maximum_row() {
  Row row = extremum("maximum", maximum, [](double a, double b) {
    return std::isnan(a) || std::isnan(b) ? not_a_number : std::max(a, b);
  });
  add_unary(
      row, "a number, ", [](const Inputs& in) { return maximum(in[0], 0.5); },
      [](const Numbers& at) { return std::max(at[0], 0.5); }, {-2, 2, {0.5}});
  return row;
}

Row minimum_row() {
  Row row = extremum("minimum", minimum, [](double a, double b) {
    return std::isnan(a) || std::isnan(b) ? not_a_number : std::min(a, b);
  });
  add_unary(
      row, "a number, ", [](const Inputs& in) { return minimum(in[0], 0.5); },
      [](const Numbers& at) { return std::min(at[0], 0.5); }, {-2, 2, {0.5}});
  return row;
}

Row clamp_row() {
  Row row{"clamp", {}, {}};
  const Numbers special = {-0.5, 0.75, -1, 2, inf, -inf, not_a_number, 0.0};
  const auto reference = [](const std::optional<double>& low, const std::optional<double>& high) {
    return [low, high](const Numbers& at) {
      double v = at[0];
      if (low && v < *low)
        v = *low;
      if (high && v > *high)
        v = *high;
      return v;
    };
  };
  for (const auto& [name, low, high] :
       std::vector<std::tuple<std::string, std::optional<double>, std::optional<double>>>{
           {"both, ", -0.5, 0.75},
           {"min, ", -0.5, {}},
           {"max, ", {}, 0.75},
           {"min above max, ", 0.75, -0.5}})
    add_unary(
        row, name, [low = low, high = high](const Inputs& in) { return clamp(in[0], low, high); },
        reference(low, high), {-2, 2, {-0.5, 0.75}}, special);
  // bounds that are Tensors; min is above max in places
  const Formula between = [](const Numbers& at) { return std::min(std::max(at[0], at[1]), at[2]); };
  std::uint64_t seed = 21;
  for (const auto& [name, x, min, max] : std::vector<std::tuple<std::string, Dims, Dims, Dims>>{
           {"Tensors", {3, 7}, {3, 7}, {3, 7}},
           {"0-d Tensors", {}, {}, {}},
           {"row and column", {3, 7}, {7}, {3, 1}},
           {"Tensors larger than x", {4}, {2, 1, 4}, {3, 1}},
           {"zero-size Tensors", {0, 3}, {3}, {}}}) {
    row.samples.push_back({name,
                           {sample_uniform(x, -2, 2, seed), sample_uniform(min, -2, 1, seed + 1),
                            sample_uniform(max, -1, 2, seed + 2)},
                           [](const Inputs& in) { return clamp(in[0], in[1], in[2]); },
                           everywhere(between)});
    seed += 3;
  }
  const Tensor x = sample_uniform({3, 7}, -2, 2, 61), bound = sample_uniform({7}, -1, 1, 62);
  row.samples.push_back({"min, a Tensor",
                         {x, bound},
                         [](const Inputs& in) { return clamp(in[0], in[1], Tensor()); },
                         everywhere([](double a, double b) { return std::max(a, b); })});
  row.samples.push_back({"max, a Tensor",
                         {x, bound},
                         [](const Inputs& in) { return clamp(in[0], Tensor(), in[1]); },
                         everywhere([](double a, double b) { return std::min(a, b); })});
  row.samples.push_back(
      {"Tensors, ties, NaN and infinities",
       {values({1, 1, 1, not_a_number, 0, 0, inf, -inf, 5}),
        values({1, 0, 2, 0, not_a_number, 0, 0, 0, -inf}),
        values({2, 1, 1, 1, 1, not_a_number, 1, inf, inf})},
       [](const Inputs& in) { return clamp(in[0], in[1], in[2]); },
       [](const Inputs&) {
         return values({1, 1, 1, not_a_number, not_a_number, not_a_number, 1, 0, 5});
       },
       false});
  row.bad = {{"no bound",
              [] { clamp(zeros({2}), std::nullopt, std::nullopt); },
              Bad::value,
              {"clamp", "min"}},
             {"no bound defined",
              [] { clamp(zeros({2}), Tensor(), Tensor()); },
              Bad::value,
              {"clamp:", "min", "max", "defined"}},
             {"undefined x",
              [] { clamp(Tensor(), zeros({2}), Tensor()); },
              Bad::value,
              {"clamp:", "operand 1 of 2", "undefined"}},
             {"dtype of a bound",
              [] { clamp(zeros({2}), zeros({2}), zeros({2}, DType::float64)); },
              Bad::dtype,
              {"clamp:", "float32", "float64", "to("}},
             {"shape of a bound",
              [] { clamp(zeros({2}), zeros({3}), Tensor()); },
              Bad::shape,
              {"clamp:", "(2,)", "(3,)", "broadcast"}}};
  return row;
}

Row where_row() {
  Row row{"where", {}, {}};
  for (const auto& [name, condition, a, b] :
       std::vector<std::tuple<std::string, Shape, Dims, Dims>>{
           {"same shape", {3, 7}, {3, 7}, {3, 7}},
           {"0-d", {}, {}, {}},
           {"condition row", {7}, {3, 7}, {3, 7}},
           {"condition column", {3, 1}, {3, 7}, {7}},
           {"condition the largest", {2, 3, 4}, {4}, {3, 1}},
           {"condition the smallest", {1}, {3, 1}, {1, 4}},
           {"condition 0-d", {}, {3, 5}, {5}},
           {"condition and numbers", {3, 5}, {}, {}},
           {"long rows", {2, 37}, {37}, {2, 1}},
           {"many elements, so that threads share them", {150, 260}, {260}, {150, 260}},
           {"many rows", {150, 1}, {150, 260}, {}},
           {"zero-size", {0, 3}, {3}, {1, 1}}}) {
    const Mask m = mask(condition);
    row.samples.push_back(
        {name,
         {sample_randn(a, 31), sample_randn(b, 32)},
         [m](const Inputs& in) { return where(m, in[0], in[1]); },
         everywhere_masked(m, [](const Numbers& at) { return at[0] != 0 ? at[1] : at[2]; })});
  }
  const Mask m = mask({3, 1});
  row.samples.push_back(
      {"number on the right",
       {sample_randn({3, 5}, 33)},
       [m](const Inputs& in) { return where(m, in[0], -1.5); },
       everywhere_masked(m, [](const Numbers& at) { return at[0] != 0 ? at[1] : -1.5; })});
  row.samples.push_back(
      {"number on the left",
       {sample_randn({5}, 34)},
       [m](const Inputs& in) { return where(m, -inf, in[0]); },
       everywhere_masked(m, [](const Numbers& at) { return at[0] != 0 ? -inf : at[1]; }),
       false});
  row.samples.push_back({"NaN and infinities not chosen",
                         {values({1, not_a_number, inf}), values({not_a_number, 2, 3})},
                         [](const Inputs& in) {
                           return where(Mask({1, 0, 0}), in[0], in[1]);
                         },
                         [](const Inputs&) {
                           return values({1, 2, 3});
                         },
                         false});
  row.bad.push_back({"shapes",
                     [] {
                       where(Mask({1, 0}), zeros({3}), zeros({3}));
                     },
                     Bad::shape,
                     {"where:", "(2,)", "(3,)", "broadcast"}});
  row.bad.push_back({"dtypes",
                     [] {
                       where(Mask({1, 0}), zeros({2}), zeros({2}, DType::float64));
                     },
                     Bad::dtype,
                     {"where:", "float32", "float64"}});
  const Mask some = {1, 0};
  const auto undefined = [&row](const std::string& name, const std::function<void()>& call,
                                const std::string& argument) {
    row.bad.push_back({name, call, Bad::value, {"where: " + argument + " is undefined"}});
  };
  undefined(
      "a undefined", [some] { where(some, Tensor(), zeros({2})); }, "a");
  undefined(
      "b undefined", [some] { where(some, zeros({2}), Tensor()); }, "b");
  undefined(
      "a undefined beside a number", [some] { where(some, Tensor(), 1); }, "a");
  undefined(
      "b undefined beside a number", [some] { where(some, 1, Tensor()); }, "b");
  return row;
}

Row masked_fill_row() {
  Row row{"masked_fill", {}, {}};
  for (const auto& [name, shape, sizes] :
       std::vector<std::tuple<std::string, Shape, Dims>>{{"same shape", {3, 7}, {3, 7}},
                                                         {"0-d", {}, {}},
                                                         {"mask row", {7}, {2, 3, 7}},
                                                         {"mask column", {3, 1}, {2, 3, 7}},
                                                         {"mask 0-d", {}, {2, 3}},
                                                         {"mask larger than x", {2, 3}, {3}},
                                                         {"both ways", {3, 1}, {2, 1, 4}},
                                                         {"mask larger than 0-d", {2, 3}, {}},
                                                         {"zero-size", {0, 3}, {0, 3}}}) {
    const Mask m = mask(shape);
    row.samples.push_back(
        {name + ", value a Tensor",
         {sample_randn(sizes, 41), sample_randn({}, 43)},
         [m](const Inputs& in) { return masked_fill(in[0], m, in[1]); },
         everywhere_masked(m, [](const Numbers& at) { return at[0] != 0 ? at[2] : at[1]; })});
    row.samples.push_back(
        {name,
         {sample_randn(sizes, 41)},
         [m](const Inputs& in) { return masked_fill(in[0], m, 2.5); },
         everywhere_masked(m, [](const Numbers& at) { return at[0] != 0 ? 2.5 : at[1]; })});
  }
  const Mask m = mask({4, 4});
  row.samples.push_back(
      {"minus infinity",
       {sample_randn({4, 4}, 42)},
       [m](const Inputs& in) { return masked_fill(in[0], m, -inf); },
       everywhere_masked(m, [](const Numbers& at) { return at[0] != 0 ? -inf : at[1]; }),
       false});
  row.bad.push_back({"shapes",
                     [] {
                       masked_fill(zeros({2, 3}), Mask({1, 0}), 0);
                     },
                     Bad::shape,
                     {"masked_fill:", "(2, 3)", "(2,)"}});
  const Mask some = {1, 0};
  row.bad.push_back({"value not 0-d",
                     [some] { masked_fill(zeros({2}), some, zeros({1})); },
                     Bad::shape,
                     {"masked_fill:", "value", "(1,)", "0-d", "where()"}});
  row.bad.push_back({"dtype of value",
                     [some] { masked_fill(zeros({2}), some, scalar(1, DType::float64)); },
                     Bad::dtype,
                     {"masked_fill:", "float32", "float64"}});
  row.bad.push_back({"x undefined",
                     [some] { masked_fill(Tensor(), some, 1); },
                     Bad::value,
                     {"masked_fill: x is undefined"}});
  row.bad.push_back({"value undefined",
                     [some] { masked_fill(zeros({2}), some, Tensor()); },
                     Bad::value,
                     {"masked_fill: value is undefined"}});
  return row;
}

// There and back: values that float32 holds exactly are the same.
Row to_row() {
  Row row{"to", {}, {}};
  const auto there_and_back = [](const Inputs& in) {
    const DType other = in[0].dtype() == DType::float32 ? DType::float64 : DType::float32;
    const Tensor there = to(in[0], other);
    return to(there, in[0].dtype());
  };
  for (const auto& [name, sizes] : std::vector<std::pair<std::string, Dims>>{
           {"0-d", {}}, {"3-d", {2, 3, 5}}, {"zero-size", {0, 2}}})
    row.samples.push_back(
        {name,
         {sample_from(to_shape(sizes, "to"), [](std::size_t i) { return 0.125 * double(i) - 1; })},
         there_and_back,
         [](const Inputs& in) { return in[0]; },
         false});
  row.samples.push_back({"special values",
                         {values({inf, -inf, not_a_number, 0.0})},
                         there_and_back,
                         [](const Inputs& in) { return in[0]; },
                         false});
  row.samples.push_back({"same dtype",
                         {sample_randn({3, 4}, 51)},
                         [](const Inputs& in) { return to(in[0], in[0].dtype()); },
                         [](const Inputs& in) { return in[0]; }});
  return row;
}

Row clone_row() {
  Row row{"clone", {}, {}};
  add_unary(
      row, "", [](const Inputs& in) { return clone(in[0]); },
      [](const Numbers& at) { return at[0]; }, {-2, 2}, {inf, not_a_number, 0.0});
  return row;
}

}  // namespace xgrad::testing
