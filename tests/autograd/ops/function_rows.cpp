// Rows of the test table: the elementwise ops of ops/functions.cpp.

#include <algorithm>
#include <cmath>

#include "autograd/ops/elementwise_samples.hpp"

namespace xgrad::testing {
namespace {

const Numbers wide = {0.0, -0.0, 1, -1, inf, -inf, not_a_number, 1e-30, -1e-30, 30, -30};

Row logaddexp_row() {
  const auto formula = [](double a, double b) {
    return a == b ? a + std::log(2) : std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  };
  Row row{"logaddexp", {}, {}};
  add_binary(row, "", logaddexp, formula, {-3, 3}, {-3, 3});
  row.samples.push_back({"large numbers",
                         {values({800, -800, 800, 0}), values({799, -801, -800, 0})},
                         [](const Inputs& in) { return logaddexp(in[0], in[1]); },
                         everywhere(formula)});
  row.samples.push_back(
      {"infinities and NaN",
       {values({inf, -inf, inf, -inf, 1, not_a_number}),
        values({inf, -inf, -inf, 2, not_a_number, inf})},
       [](const Inputs& in) { return logaddexp(in[0], in[1]); },
       everywhere([=](const Numbers& at) {
         return at[0] != at[0] ? at[0] : at[1] != at[1] ? at[1] : formula(at[0], at[1]);
       }),
       false});
  add_bad_binary(row, logaddexp);
  return row;
}

// Three operands that broadcast, and a form with a number.
Row ternary(const std::string& op, const Call& f, const Formula& formula, const Call& numbered,
            const Formula& of_two) {
  Row row{op, {}, {}};
  for (const auto& [name, a, b, c] : std::vector<std::tuple<std::string, Dims, Dims, Dims>>{
           {"one shape", {3, 7}, {3, 7}, {3, 7}},
           {"rows and columns", {4, 1}, {5}, {2, 1, 5}},
           {"0-d", {}, {}, {}},
           {"0-d and a vector", {37}, {}, {37}},
           {"zero-size", {0, 3}, {3}, {1, 3}}})
    row.samples.push_back({name,
                           {sample_randn(a, 1), sample_randn(b, 2), sample_randn(c, 3)},
                           f,
                           everywhere(formula)});
  row.samples.push_back({"a number",
                         {sample_randn({3, 4}, 1), sample_randn({4}, 2), sample_randn({3, 1}, 3)},
                         numbered,
                         everywhere(of_two)});
  row.bad.push_back({"shapes",
                     [f] {
                       f({zeros({2, 3}), zeros({4}), zeros({})});
                     },
                     Bad::shape,
                     {op + ":", "(2, 3)", "(4,)"}});
  row.bad.push_back({"dtypes",
                     [f] {
                       f({zeros({2}), zeros({2}), zeros({2}, DType::float64)});
                     },
                     Bad::dtype,
                     {op + ":", "float32", "float64"}});
  return row;
}

}  // namespace

std::vector<Row> function_rows() {
  const Numbers positive = {0.0, 1, inf, not_a_number, 1e-30, 1e30, -1, 8, 1000};
  const Numbers angles = {0.0, not_a_number, 1e-30, 30, -30, 1000};
  const Range whole = {-3, 3, {-3, -2, -1, 0, 1, 2, 3}},
              half = {-3, 3, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}};
  Row hard{"hardsigmoid", {}, {}};
  add_unary(
      hard, "", [](const Inputs& in) { return hardsigmoid(in[0]); },
      [](const Numbers& at) {
        return std::isnan(at[0]) ? at[0] : std::clamp(at[0] / 6 + 0.5, 0., 1.);
      },
      {-5, 5, {-3, 3}}, wide);
  return {
      unary_row(
          "square", square, [](double x) { return x * x; }, {-2, 2}, wide),
      unary_row(
          "reciprocal", reciprocal, [](double x) { return 1 / x; }, {-2, 2, {0}, 0.4}, wide),
      unary_row("log2", log2, std::log2, {0.2, 5}, positive),
      unary_row("log10", log10, std::log10, {0.2, 5}, positive),
      unary_row("tan", tan, std::tan, {-1.2, 1.2}, angles),
      unary_row("atan", atan, std::atan, {-4, 4}, wide),
      unary_row("sinh", sinh, std::sinh, {-3, 3}, wide),
      unary_row("cosh", cosh, std::cosh, {-3, 3}, wide),
      unary_row("asinh", asinh, std::asinh, {-4, 4}, wide),
      unary_row(
          "sign", sign, [](double x) { return x > 0   ? 1.
                                              : x < 0 ? -1.
                                                      : 0.; }, {-2, 2, {0}}, wide),
      unary_row("floor", floor, std::floor, whole, wide),
      unary_row("ceil", ceil, std::ceil, whole, wide),
      unary_row("round", round, std::nearbyint, half,
                {0.5, 1.5, -0.5, -2.5, 1e30, inf, not_a_number}),
      hard,
      logaddexp_row(),
      ternary(
          "lerp", [](const Inputs& in) { return lerp(in[0], in[1], in[2]); },
          [](const Numbers& at) { return at[0] + at[2] * (at[1] - at[0]); },
          [](const Inputs& in) { return lerp(in[0], in[1] * in[2], 0.75); },
          [](const Numbers& at) { return at[0] + 0.75 * (at[1] * at[2] - at[0]); }),
      ternary(
          "addcmul", [](const Inputs& in) { return addcmul(in[0], in[1], in[2]); },
          [](const Numbers& at) { return at[0] + at[1] * at[2]; },
          [](const Inputs& in) { return addcmul(in[0], in[1], in[2], -1.5); },
          [](const Numbers& at) { return at[0] - 1.5 * at[1] * at[2]; }),
  };
}

}  // namespace xgrad::testing
