// Rows of the test table: elementwise ops.  Those that choose or copy: choice_rows.cpp.

#include <cmath>
#include <numbers>

#include "autograd/ops/elementwise_samples.hpp"

namespace xgrad::testing {
namespace {

Row unary(const std::string& op, Unary f, double (*formula)(double), const Range& range,
          const Numbers& special) {
  Row row{op, {}, {}};
  add_unary(
      row, "", [f](const Inputs& in) { return f(in[0]); },
      [formula](const Numbers& at) { return formula(at[0]); }, range, special);
  row.bad.push_back({"undefined", [f] { f(Tensor()); }, Bad::value, {"undefined"}});
  return row;
}

Row binary(const std::string& op, Binary f, double (*formula)(double, double), const Range& left,
           const Range& right) {
  Row row{op, {}, {}};
  add_binary(row, "", f, formula, left, right);
  add_bad_binary(row, f);
  return row;
}

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
      maximum_row(),
      minimum_row(),
      clamp_row(),
      where_row(),
      masked_fill_row(),
      to_row(),
      clone_row(),
  };
}

}  // namespace xgrad::testing
