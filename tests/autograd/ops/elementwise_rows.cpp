// Rows of the test table: elementwise ops.  Those that choose or copy: clamp_where_rows.cpp;
// activations: activation_rows.cpp; other functions: function_rows.cpp.

#include <cmath>
#include <numbers>

#include "autograd/ops/elementwise_samples.hpp"

namespace xgrad::testing {
namespace {

using Operator = Tensor (*)(const Tensor&, double);
using OperatorOnTheRight = Tensor (*)(double, const Tensor&);

void add_bad_numbers(Row& row, Operator f, OperatorOnTheRight g) {
  row.bad.push_back({"undefined beside a number",
                     [f] { f(Tensor(), 2); },
                     Bad::value,
                     {row.op + ":", "operand 1 of 2", "undefined"}});
  row.bad.push_back({"a number beside undefined",
                     [g] { g(2, Tensor()); },
                     Bad::value,
                     {row.op + ":", "operand 2 of 2", "undefined"}});
}

Row binary(const std::string& op, Binary f, double (*formula)(double, double), const Range& left,
           const Range& right) {
  Row row{op, {}, {}};
  add_binary(row, "", f, formula, left, right);
  add_bad_binary(row, f);
  return row;
}

Row add_row() {
  Row row = binary("add", add, [](double a, double b) { return a + b; }, {-2, 2}, {-2, 2});
  const Binary f = [](const Tensor& a, const Tensor& b) { return add(a, b, -1.5); };
  add_binary(row, "alpha, ", f, [](double a, double b) { return a - 1.5 * b; }, {-2, 2}, {-2, 2});
  add_bad_binary(row, f);
  add_bad_numbers(row, operator+, operator+);
  return row;
}

Row sub_row() {
  Row row = binary("sub", sub, [](double a, double b) { return a - b; }, {-2, 2}, {-2, 2});
  const Binary f = [](const Tensor& a, const Tensor& b) { return sub(a, b, 0.5); };
  add_binary(row, "alpha, ", f, [](double a, double b) { return a - 0.5 * b; }, {-2, 2}, {-2, 2});
  add_bad_binary(row, f);
  add_bad_numbers(row, operator-, operator-);
  return row;
}

Row div_row() {
  const Range right = {-2, 2, {0}, 0.4};
  Row row = binary(
      "div", div, [](double a, double b) { return a / b; }, {-2, 2}, right);
  const Binary truncated = [](const Tensor& a, const Tensor& b) {
    return div(a, b, RoundingMode::trunc);
  };
  const Binary floored = [](const Tensor& a, const Tensor& b) {
    return div(a, b, RoundingMode::floor);
  };
  add_binary(
      row, "trunc, ", truncated, [](double a, double b) { return std::trunc(a / b); }, {-7, 7},
      right);
  add_binary(
      row, "floor, ", floored, [](double a, double b) { return std::floor(a / b); }, {-7, 7},
      right);
  const Tensor a = values({7, -7, 7, -7, 6, -0.5, 0, 1, 1, -1, 0, inf, 5, -5, not_a_number, 1e30}),
               b = values({2, 2, -2, -2, -2, 3, 5, 0.1, 0, 0, 0, 2, inf, inf, 1, -3});
  const auto special = [&](const std::string& name, Binary f, const Numbers& expected) {
    row.samples.push_back({name,
                           {a, b},
                           [f](const Inputs& in) { return f(in[0], in[1]); },
                           [expected](const Inputs&) { return values(expected); },
                           false});
  };
  // 1 / 0.1 rounds to 10, but 10 times the double 0.1 (and the float) is more than 1
  const double tenths = 10, third = -1e30 / 3;
  special(
      "trunc, special values", truncated,
      {3, -3, -3, 3, -3, 0, 0, tenths, inf, -inf, not_a_number, inf, 0, 0, not_a_number, third});
  special("floor, special values", floored,
          {3, -4, -4, 3, -3, -1, 0, tenths - 1, inf, -inf, not_a_number, not_a_number, 0, -1,
           not_a_number, third});
  add_bad_binary(row, truncated);
  add_bad_binary(row, floored);
  add_bad_numbers(row, operator/, operator/);
  return row;
}

Row mul_row() {
  Row row = binary("mul", mul, [](double a, double b) { return a * b; }, {-2, 2}, {-2, 2});
  add_bad_numbers(row, operator*, operator*);
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
        {0.0, 1.0, -1.0, -2.5, inf, not_a_number, 1e-8, 1e8});
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
                         {values({0, 0, 0, 1, -2, -2, -2, inf, not_a_number, 2}),
                          values({0, 1, -1, not_a_number, 3, -2, 0.5, -1, 0, inf})},
                         [](const Inputs& in) { return pow(in[0], in[1]); },
                         everywhere([](const Numbers& at) { return std::pow(at[0], at[1]); }),
                         false});
  for (const double base : {2.0, 0.7, 1.0})
    add_unary(
        row, "number to the power of a Tensor, " + std::to_string(base) + ", ",
        [base](const Inputs& in) { return pow(base, in[0]); },
        [base](const Numbers& at) { return std::pow(base, at[0]); }, {-2, 3},
        {0, inf, -inf, not_a_number});
  add_bad_binary(row, pow);
  return row;
}

Row gelu_row() {
  Row row{"gelu", {}, {}};
  const Numbers special = {0.0, -0.0, 20, -20, 1e4, not_a_number, 1e-20};
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
  const Numbers wide = {0.0, -0.0, 1, -1, inf, -inf, not_a_number, 1e-30, -1e-30, 30, -30};
  const Numbers positive = {0.0, 1, inf, not_a_number, 1e-30, 1e30, -1};
  std::vector<Row> rows = {
      add_row(),
      sub_row(),
      mul_row(),
      div_row(),
      unary_row(
          "neg", neg, [](double x) { return -x; }, {-2, 2}, wide),
      pow_row(),
      unary_row("exp", exp, std::exp, {-2, 2}, wide),
      unary_row("log", log, std::log, {0.2, 5}, positive),
      unary_row("sqrt", sqrt, std::sqrt, {0.2, 5}, positive),
      unary_row(
          "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, {0.2, 5}, positive),
      unary_row("abs", abs, std::abs, {-2, 2, {0}}, wide),
      unary_row("sin", sin, std::sin, {-4, 4}, {0.0, not_a_number, 1e-30, 30, -30, 1000}),
      unary_row("cos", cos, std::cos, {-4, 4}, {0.0, not_a_number, 1e-30, 30, -30, 1000}),
      unary_row("tanh", tanh, std::tanh, {-3, 3}, wide),
      unary_row("erf", erf, std::erf, {-3, 3}, wide),
      unary_row(
          "sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, {-4, 4}, wide),
      unary_row(
          "relu", relu, [](double x) { return x <= 0 ? 0 : x; }, {-2, 2, {0}}, wide),
      gelu_row(),
      unary_row("silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, {-4, 4},
                {0.0, 30, -30, inf, not_a_number}),
      maximum_row(),
      minimum_row(),
      clamp_row(),
      where_row(),
      masked_fill_row(),
      to_row(),
      clone_row(),
  };
  for (auto* const more : {activation_rows, function_rows})
    for (Row& row : more())
      rows.push_back(std::move(row));
  return rows;
}

}  // namespace xgrad::testing
