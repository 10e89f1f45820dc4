// Rows of the test table: elementwise ops.

#include <cmath>
#include <limits>
#include <numbers>

#include "op_table.hpp"

namespace xgrad::testing {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using Numbers = std::vector<double>;
using Call = std::function<Tensor(const Inputs&)>;
using Formula = std::function<double(const Numbers&)>;

// ---- the reference: a formula at every element, by plain index arithmetic

// Where element `flat` of an output of shape `out` comes from in an operand that broadcasts to it.
std::size_t source(std::size_t flat, const Shape& out, const Shape& operand) {
  std::size_t at = 0, stride = 1;
  for (std::size_t d = 1; d <= out.size(); ++d) {
    const std::size_t i = flat % out[out.size() - d];
    flat /= out[out.size() - d];
    if (d > operand.size())
      continue;
    const std::size_t size = operand[operand.size() - d];
    at += size == 1 ? 0 : i * stride;
    stride *= size;
  }
  return at;
}

Shape common_shape(const Inputs& in) {
  std::size_t rank = 0;
  for (const Tensor& x : in)
    rank = std::max(rank, x.dim());
  Shape out(rank);
  for (std::size_t d = 1; d <= rank; ++d) {
    out[rank - d] = 1;
    for (const Tensor& x : in)
      if (d <= x.dim() && x.shape()[x.dim() - d] != 1)
        out[rank - d] = x.shape()[x.dim() - d];
  }
  return out;
}

Call everywhere(const Formula& formula) {
  return [formula](const Inputs& in) {
    const Shape out = common_shape(in);
    return sample_from(out, [&](std::size_t i) {
      Numbers at;
      for (const Tensor& x : in)
        at.push_back(x.data<double>()[source(i, out, x.shape())]);
      return formula(at);
    });
  };
}

// ---- samples

Tensor values(const Numbers& numbers) {
  return sample_from(Shape{numbers.size()}, [&](std::size_t i) { return numbers[i]; });
}

// Where samples are drawn from: [low, high), but nowhere closer than `gap` to a kink or a pole.
struct Range {
  double low, high;
  Numbers kinks = {};
  double gap = 0.05;
};

Tensor draw(const Dims& sizes, const Range& range, std::uint64_t seed) {
  const Tensor x = sample_uniform(sizes, range.low, range.high, seed);
  return sample_from(x.shape(), [&](std::size_t i) {
    double v = x.data<double>()[i];
    for (const double kink : range.kinks)
      if (std::abs(v - kink) < range.gap)
        v = kink + (v < kink ? -range.gap : range.gap);
    return v;
  });
}

// One operand: every rank, a length that fills no register evenly, and no elements at all.
void add_unary(Row& row, const std::string& name, const Call& f, const Formula& formula,
               const Range& range, const Numbers& special = {}) {
  const Call reference = everywhere(formula);
  std::uint64_t seed = 1;
  for (const auto& [shape, sizes] :
       std::vector<std::pair<std::string, Dims>>{{"0-d", {}},
                                                 {"one element", {1, 1}},
                                                 {"vector", {37}},
                                                 {"3-d", {2, 3, 5}},
                                                 {"zero-size", {2, 0, 3}}})
    row.samples.push_back({name + shape, {draw(sizes, range, seed++)}, f, reference});
  if (!special.empty())
    row.samples.push_back({name + "special values", {values(special)}, f, reference, false});
}

Row unary(const std::string& op, Tensor (*f)(const Tensor&), double (*formula)(double),
          const Range& range, const Numbers& special) {
  Row row{op, {}, {}};
  add_unary(
      row, "", [f](const Inputs& in) { return f(in[0]); },
      [formula](const Numbers& at) { return formula(at[0]); }, range, special);
  row.bad.push_back({"undefined", [f] { f(Tensor()); }, Bad::value, {"undefined"}});
  return row;
}

// Ways in which two operands broadcast.
const std::vector<std::tuple<std::string, Dims, Dims>> pairs = {
    {"same shape", {3, 7}, {3, 7}},     {"0-d both", {}, {}},
    {"0-d left", {}, {2, 3}},           {"0-d right", {2, 3}, {}},
    {"one element", {1}, {2, 3}},       {"row vector", {4, 5}, {5}},
    {"long row vector", {3, 37}, {37}}, {"row vector left", {5}, {4, 5}},
    {"column vector", {4, 5}, {4, 1}},  {"column vector left", {4, 1}, {4, 19}},
    {"both ways", {3, 1, 4}, {2, 1}},   {"outer", {3, 1}, {1, 4}},
    {"middle", {2, 3, 4}, {2, 1, 4}},   {"outermost", {2, 3, 4}, {2, 1, 1}},
    {"zero-size", {0, 3}, {1, 3}},      {"zero-size by broadcasting", {3, 1}, {3, 0}},
};

void add_binary(Row& row, const std::string& name, Tensor (*f)(const Tensor&, const Tensor&),
                double (*formula)(double, double), const Range& left, const Range& right) {
  std::uint64_t seed = 100;
  for (const auto& [shape, a, b] : pairs) {
    row.samples.push_back(
        {name + shape,
         {draw(a, left, seed), draw(b, right, seed + 1)},
         [f](const Inputs& in) { return f(in[0], in[1]); },
         everywhere([formula](const Numbers& at) { return formula(at[0], at[1]); })});
    seed += 2;
  }
}

void add_bad_binary(Row& row, Tensor (*f)(const Tensor&, const Tensor&)) {
  row.bad.push_back({"shapes",
                     [f] {
                       f(zeros({2, 3}), zeros({4}));
                     },
                     Bad::shape,
                     {row.op + ":", "(2, 3)", "(4,)", "broadcast", "-1"}});
  row.bad.push_back({"inner shapes",
                     [f] {
                       f(zeros({5, 2, 3}), zeros({4, 3}));
                     },
                     Bad::shape,
                     {row.op + ":", "(5, 2, 3)", "(4, 3)", "-2"}});
  row.bad.push_back({"dtypes",
                     [f] { f(zeros({2}), zeros({2}, DType::float64)); },
                     Bad::dtype,
                     {row.op + ":", "float32", "float64", "to("}});
  row.bad.push_back({"undefined", [f] { f(zeros({2}), Tensor()); }, Bad::value, {"undefined"}});
}

Row binary(const std::string& op, Tensor (*f)(const Tensor&, const Tensor&),
           double (*formula)(double, double), const Range& left, const Range& right) {
  Row row{op, {}, {}};
  add_binary(row, "", f, formula, left, right);
  add_bad_binary(row, f);
  return row;
}

// ---- rows that are not like the others

Row mul_row() {
  Row row = binary("mul", mul, [](double a, double b) { return a * b; }, {-2, 2}, {-2, 2});
  const Call square = [](const Inputs& in) { return mul(in[0], in[0]); };
  row.samples.push_back(
      {"of itself", {sample_randn({3, 4}, 8)}, square, everywhere([](const Numbers& at) {
         return at[0] * at[0];
       })});
  row.samples.push_back({"many elements, so that threads share them",
                         {sample_randn({150, 260}, 9), sample_randn({260}, 10)},
                         [](const Inputs& in) { return mul(in[0], in[1]); },
                         everywhere([](const Numbers& at) { return at[0] * at[1]; })});
  return row;
}

Row pow_row() {
  Row row{"pow", {}, {}};
  for (const double e : {2.0, 3.0, 0.5, -0.5, 1.7, -1.0, -2.0, 1.0, 0.0, 4.0})
    add_unary(
        row, "exponent " + std::to_string(e) + ", ",
        [e](const Inputs& in) { return pow(in[0], e); },
        [e](const Numbers& at) { return std::pow(at[0], e); }, {0.3, 2.5},
        {0.0, 1.0, -1.0, -2.5, inf, nan, 1e-8, 1e8});
  for (const double e : {2.0, 3.0, -1.0, -2.0, 5.0})
    add_unary(
        row, "negative base, exponent " + std::to_string(e) + ", ",
        [e](const Inputs& in) { return pow(in[0], e); },
        [e](const Numbers& at) { return std::pow(at[0], e); }, {-2.5, -0.3});
  for (const double e : {1.0, 2.0, 3.0, 4.0})
    row.samples.push_back({"zero base, exponent " + std::to_string(e),
                           {values({0.0, 0.5, 0.0})},
                           [e](const Inputs& in) { return pow(in[0], e); },
                           everywhere([e](const Numbers& at) { return std::pow(at[0], e); })});
  add_binary(row, "Tensor exponent, ", pow, std::pow, {0.3, 2.5}, {-2, 3});
  row.samples.push_back({"Tensor exponent, special values",
                         {values({0, 0, 0, 1, -2, -2, -2, inf, nan, 2}),
                          values({0, 1, -1, nan, 3, -2, 0.5, -1, 0, inf})},
                         [](const Inputs& in) { return pow(in[0], in[1]); },
                         everywhere([](const Numbers& at) { return std::pow(at[0], at[1]); }),
                         false});
  for (const double base : {2.0, 0.7, 1.0})
    add_unary(
        row, "number to the power of a Tensor, " + std::to_string(base) + ", ",
        [base](const Inputs& in) { return pow(base, in[0]); },
        [base](const Numbers& at) { return std::pow(base, at[0]); }, {-2, 3}, {0, inf, -inf, nan});
  add_bad_binary(row, pow);
  return row;
}

Row gelu_row() {
  Row row{"gelu", {}, {}};
  const Numbers special = {0.0, -0.0, 20, -20, 1e4, nan, 1e-20};
  add_unary(
      row, "", [](const Inputs& in) { return gelu(in[0]); },
      [](const Numbers& at) { return at[0] * 0.5 * std::erfc(-at[0] / std::numbers::sqrt2); },
      {-3, 3}, special);
  add_unary(
      row, "tanh form, ", [](const Inputs& in) { return gelu(in[0], Gelu::tanh); },
      [](const Numbers& at) {
        const double x = at[0], u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
        return 0.5 * x * (1 + std::tanh(u));
      },
      {-3, 3}, special);
  return row;
}

Row clamp_row() {
  Row row{"clamp", {}, {}};
  const Numbers special = {-0.5, 0.75, -1, 2, inf, -inf, nan, 0.0};
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
  row.bad.push_back({"no bound", [] { clamp(zeros({2}), {}, {}); }, Bad::value, {"clamp", "min"}});
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
                         {values({1, nan, inf}), values({nan, 2, 3})},
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
                                                         {"zero-size", {0, 3}, {0, 3}}}) {
    const Mask m = mask(shape);
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
  row.bad.push_back({"mask larger than x",
                     [] {
                       masked_fill(zeros({3}), Mask({{1, 0, 1}, {0, 1, 0}}), 0);
                     },
                     Bad::shape,
                     {"masked_fill:", "(3,)", "(2, 3)"}});
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
                         {values({inf, -inf, nan, 0.0})},
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
      [](const Numbers& at) { return at[0]; }, {-2, 2}, {inf, nan, 0.0});
  return row;
}

// The left operand holds multiples of 0.1 and the right one numbers between them: no ties, but in
// the last sample.
Row extremum(const std::string& op, Tensor (*f)(const Tensor&, const Tensor&),
             double (*formula)(double, double)) {
  Row row{op, {}, {}};
  std::uint64_t seed = 300;
  for (const auto& [shape, a, b] : pairs) {
    const auto snap = [](const Tensor& x, double offset) {
      return sample_from(x.shape(), [&](std::size_t i) {
        return std::round(10 * x.data<double>()[i]) / 10 + offset;
      });
    };
    row.samples.push_back(
        {shape,
         {snap(sample_randn(a, seed), 0), snap(sample_randn(b, seed + 1), 0.05)},
         [f](const Inputs& in) { return f(in[0], in[1]); },
         everywhere([formula](const Numbers& at) { return formula(at[0], at[1]); })});
    seed += 2;
  }
  row.samples.push_back(
      {"ties, NaN and infinities",
       {values({1, nan, 2, inf, -inf, 0.5, nan}), values({1, 2, nan, 1, 1, 0.5, nan})},
       [f](const Inputs& in) { return f(in[0], in[1]); },
       everywhere([formula](const Numbers& at) { return formula(at[0], at[1]); }),
       false});
  add_bad_binary(row, f);
  return row;
}

}  // namespace

std::vector<Row> elementwise_rows() {
  const Numbers wide = {0.0, -0.0, 1, -1, inf, -inf, nan, 1e-30, -1e-30, 30, -30};
  const Numbers positive = {0.0, 1, inf, nan, 1e-30, 1e30, -1};
  return {
      binary("add", add, [](double a, double b) { return a + b; }, {-2, 2}, {-2, 2}),
      binary("sub", sub, [](double a, double b) { return a - b; }, {-2, 2}, {-2, 2}),
      mul_row(),
      binary("div", div, [](double a, double b) { return a / b; }, {-2, 2}, {-2, 2, {0}, 0.4}),
      unary(
          "neg", neg, [](double x) { return -x; }, {-2, 2}, wide),
      pow_row(),
      unary("exp", exp, std::exp, {-2, 2}, wide),
      unary("log", log, std::log, {0.2, 5}, positive),
      unary("sqrt", sqrt, std::sqrt, {0.2, 5}, positive),
      unary(
          "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, {0.2, 5}, positive),
      unary("abs", abs, std::abs, {-2, 2, {0}}, wide),
      unary("sin", sin, std::sin, {-4, 4}, {0.0, nan, 1e-30, 30, -30, 1000}),
      unary("cos", cos, std::cos, {-4, 4}, {0.0, nan, 1e-30, 30, -30, 1000}),
      unary("tanh", tanh, std::tanh, {-3, 3}, wide),
      unary("erf", erf, std::erf, {-3, 3}, wide),
      unary(
          "sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, {-4, 4}, wide),
      unary(
          "relu", relu, [](double x) { return x <= 0 ? 0 : x; }, {-2, 2, {0}}, wide),
      gelu_row(),
      unary("silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, {-4, 4},
            {0.0, 30, -30, inf, nan}),
      extremum("maximum", maximum,
               [](double a, double b) { return a != a || b != b ? nan : std::max(a, b); }),
      extremum("minimum", minimum,
               [](double a, double b) { return a != a || b != b ? nan : std::min(a, b); }),
      clamp_row(),
      where_row(),
      masked_fill_row(),
      to_row(),
      clone_row(),
  };
}

}  // namespace xgrad::testing
