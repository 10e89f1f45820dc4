// Rows of the test table: relatives of relu and silu, and what is exact for small numbers.

#include <algorithm>
#include <cmath>

#include "autograd/ops/elementwise_samples.hpp"

namespace xgrad::testing {
namespace {

const Numbers wide = {0.0, -0.0, 1, -1, inf, -inf, not_a_number, 1e-30, -1e-30, 30, -30};

// Numbers so small that what is added to 1, or subtracted from it, would lose them.
Row exact_row(const std::string& op, Unary f, double (*formula)(double), const Range& range,
              const Numbers& special) {
  Row row = unary_row(op, f, formula, range, special);
  add_unary(
      row, "small, ", [f](const Inputs& in) { return f(in[0] * 1e-20) * 1e20; },
      [formula](const Numbers& at) { return formula(at[0] * 1e-20) * 1e20; }, {-2, 2});
  return row;
}

double log_one_plus_exp(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

Row softplus_row() {
  Row row = unary_row(
      "softplus", [](const Tensor& x) { return softplus(x); },
      [](double x) { return x > 20 ? x : log_one_plus_exp(x); }, {-4, 4}, wide);
  struct Case {
    double beta, threshold;
  };
  for (const auto& [beta, threshold] : {Case{2.5, 20}, Case{0.5, 1}, Case{-1.5, 2}})
    add_unary(
        row, "beta " + std::to_string(beta) + ", threshold " + std::to_string(threshold) + ", ",
        [b = beta, t = threshold](const Inputs& in) { return softplus(in[0], b, t); },
        [b = beta, t = threshold](const Numbers& at) {
          return b * at[0] > t ? at[0] : log_one_plus_exp(b * at[0]) / b;
        },
        {-4, 4, {threshold / beta}}, {0.0, 1e-30, 30, -30, inf, not_a_number});
  row.samples.push_back({"at 0, where its parts have kinks",
                         {values({0.0})},
                         [](const Inputs& in) { return softplus(in[0]); },
                         everywhere([](const Numbers& at) { return log_one_plus_exp(at[0]); })});
  return row;
}

Row mish_row() {
  Row row = unary_row("mish", mish, [](double x) { return x * std::tanh(log_one_plus_exp(x)); },
                      {-4, 4}, {0.0, -0.0, 1, -1, inf, not_a_number, 1e-30, 30, -30, 1000});
  row.samples.push_back({"at 0, where its parts have kinks",
                         {values({0.0})},
                         [](const Inputs& in) { return mish(in[0]); },
                         [](const Inputs&) { return values({0.0}); }});
  return row;
}

Row elu_row() {
  Row row = unary_row(
      "elu", [](const Tensor& x) { return elu(x); },
      [](double x) { return x > 0 ? x : std::expm1(x); }, {-4, 4, {0}}, wide);
  add_unary(
      row, "alpha, ", [](const Inputs& in) { return elu(in[0], 0.3); },
      [](const Numbers& at) { return at[0] > 0 ? at[0] : 0.3 * std::expm1(at[0]); }, {-4, 4, {0}});
  row.samples.push_back({"large, where exp is infinite",
                         {values({1000, -1000, 800})},
                         [](const Inputs& in) { return elu(in[0]); },
                         everywhere([](const Numbers& at) { return at[0] > 0 ? at[0] : -1; })});
  return row;
}

Row leaky_relu_row() {
  Row row = unary_row(
      "leaky_relu", [](const Tensor& x) { return leaky_relu(x); },
      [](double x) { return x > 0 ? x : 0.01 * x; }, {-2, 2, {0}}, wide);
  add_unary(
      row, "slope, ", [](const Inputs& in) { return leaky_relu(in[0], -0.5); },
      [](const Numbers& at) { return at[0] > 0 ? at[0] : -0.5 * at[0]; }, {-2, 2, {0}});
  return row;
}

Row hardtanh_row() {
  Row row = unary_row(
      "hardtanh", [](const Tensor& x) { return hardtanh(x); },
      [](double x) { return x < -1  ? -1
                            : x > 1 ? 1
                                    : x; }, {-2, 2, {-1, 1}}, wide);
  add_unary(
      row, "bounds, ", [](const Inputs& in) { return hardtanh(in[0], 0, 6); },
      [](const Numbers& at) { return at[0] < 0   ? 0
                                     : at[0] > 6 ? 6
                                                 : at[0]; }, {-3, 9, {0, 6}},
      {0, 6, not_a_number});
  row.bad.push_back(
      {"bounds", [] { hardtanh(zeros(2), 2, 1); }, Bad::value, {"hardtanh", "min 2", "max 1"}});
  return row;
}

}  // namespace

std::vector<Row> activation_rows() {
  return {
      exact_row("log1p", log1p, std::log1p, {-0.8, 5},
                {0.0, -0.0, -1, -2, inf, not_a_number, 1e30}),
      exact_row("expm1", expm1, std::expm1, {-3, 3},
                {0.0, -0.0, 1, inf, -inf, not_a_number, -30, 30}),
      softplus_row(),
      mish_row(),
      unary_row("logsigmoid", logsigmoid, [](double x) { return -log_one_plus_exp(-x); }, {-4, 4},
                {0.0, -0.0, 1, -1, inf, -inf, not_a_number, 1e-30, 30, -30, 1000, -1000}),
      elu_row(),
      leaky_relu_row(),
      hardtanh_row()};
}

}  // namespace xgrad::testing
