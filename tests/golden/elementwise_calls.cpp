// The calls of tests/golden/cases_elementwise.py.

#include <limits>

#include "golden/ops.hpp"

namespace xgrad::testing {
namespace {

using In = GoldenInputs;
using Unary = Tensor(const Tensor&);
using Binary = Tensor(const Tensor&, const Tensor&);

void add_binary(GoldenCalls& calls) {
  const auto add_op = [&](const std::string& op, Binary* f) {
    calls.add(op,
              {"same shape", "row", "row on the left", "column and row", "0-d", "0-d and 2-d",
               "size 1", "zero-size", "zero-size and size 1"},
              [f](const In& in) { return f(in[0], in[1]); });
  };
  add_op("add", add);
  add_op("sub", sub);
  add_op("mul", mul);
  add_op("div", div);
  for (const std::string sample : {"same shape", "row", "row on the left", "column and row", "0-d",
                                   "0-d and 2-d", "size 1", "zero-size", "zero-size and size 1"}) {
    calls.add("add", {"alpha, " + sample}, [](const In& in) { return add(in[0], in[1], -1.5); });
    calls.add("sub", {"alpha, " + sample}, [](const In& in) { return sub(in[0], in[1], -1.5); });
  }
  for (const std::string sample : {"same shape", "row", "0-d", "zero-size", "signs"}) {
    calls.add("div", {"trunc, " + sample},
              [](const In& in) { return div(in[0], in[1], RoundingMode::trunc); });
    calls.add("div", {"floor, " + sample},
              [](const In& in) { return div(in[0], in[1], RoundingMode::floor); });
  }
  add_op("pow", pow);
  add_op("logaddexp", logaddexp);
  calls.add("logaddexp", {"large numbers"}, [](const In& in) { return logaddexp(in[0], in[1]); });
  for (const auto& [text, weight] : std::vector<std::pair<std::string, double>>{
           {"0.25", 0.25}, {"0.75", 0.75}, {"1", 1}, {"-0.5", -0.5}})
    calls.add("lerp", {"weight " + text},
              [w = weight](const In& in) { return lerp(in[0], in[1], w); });
  calls.add("lerp", {"a Tensor"}, [](const In& in) { return lerp(in[0], in[1], in[2]); });
  calls.add("addcmul", {"broadcast"}, [](const In& in) { return addcmul(in[0], in[1], in[2]); });
  calls.add("addcmul", {"value"}, [](const In& in) { return addcmul(in[0], in[1], in[2], -1.5); });
  calls.add("maximum", {"a number"}, [](const In& in) { return maximum(in[0], 0.5); });
  calls.add("minimum", {"a number"}, [](const In& in) { return minimum(in[0], 0.5); });
  add_op("maximum", maximum);
  add_op("minimum", minimum);

  const std::string right = "number on the right", left = "number on the left";
  calls.add("add", {right}, [](const In& in) { return in[0] + 2.5; });
  calls.add("sub", {right}, [](const In& in) { return in[0] - 2.5; });
  calls.add("mul", {right}, [](const In& in) { return in[0] * 2.5; });
  calls.add("div", {right}, [](const In& in) { return in[0] / 2.5; });
  calls.add("add", {left}, [](const In& in) { return -1.5 + in[0]; });
  calls.add("sub", {left}, [](const In& in) { return -1.5 - in[0]; });
  calls.add("mul", {left}, [](const In& in) { return -1.5 * in[0]; });
  calls.add("div", {left}, [](const In& in) { return -1.5 / in[0]; });
  calls.add("add", {"of itself"}, [](const In& in) { return in[0] + in[0]; });
  calls.add("sub", {"of itself"}, [](const In& in) { return in[0] - in[0]; });
  calls.add("mul", {"of itself"}, [](const In& in) { return in[0] * in[0]; });
  calls.add("maximum", {"ties"}, [](const In& in) { return maximum(in[0], in[1]); });
  calls.add("minimum", {"ties"}, [](const In& in) { return minimum(in[0], in[1]); });
}

void add_unary(GoldenCalls& calls) {
  const std::string wide = "small and large", kink = "at 0";
  const auto add_op = [&](const std::string& op, const GoldenCall& call) {
    calls.add(op, {"3-d", "0-d", "size 1", "zero-size"}, call);
  };
  const auto add_function = [&](const std::string& op, Unary* f) {
    add_op(op, [f](const In& in) { return f(in[0]); });
  };
  const auto add_wide = [&](const std::string& op, Unary* f) {
    add_function(op, f);
    calls.add(op, {wide}, [f](const In& in) { return f(in[0]); });
  };
  add_function("neg", neg);
  add_function("exp", exp);
  add_function("log", log);
  add_function("sqrt", sqrt);
  add_function("rsqrt", rsqrt);
  add_function("abs", abs);
  add_function("relu", relu);
  add_function("clone", clone);
  add_wide("sin", sin);
  add_wide("cos", cos);
  add_wide("tanh", tanh);
  add_wide("erf", erf);
  add_wide("sigmoid", sigmoid);
  add_wide("silu", silu);
  add_function("expm1", expm1);
  add_function("log1p", log1p);
  for (const auto& [op, f] :
       std::vector<std::pair<std::string, Unary*>>{{"square", square},
                                                   {"reciprocal", reciprocal},
                                                   {"log2", log2},
                                                   {"log10", log10},
                                                   {"tan", tan},
                                                   {"atan", atan},
                                                   {"sinh", sinh},
                                                   {"cosh", cosh},
                                                   {"asinh", asinh},
                                                   {"sign", sign},
                                                   {"floor", floor},
                                                   {"ceil", ceil},
                                                   {"round", round},
                                                   {"hardsigmoid", hardsigmoid}})
    add_function(op, f);
  for (const auto& [op, f] : std::vector<std::pair<std::string, Unary*>>{
           {"sign", sign}, {"floor", floor}, {"ceil", ceil}, {"round", round}})
    calls.add(op, {"at the steps"}, [f = f](const In& in) { return f(in[0]); });
  calls.add("hardsigmoid", {"at the bounds"}, [](const In& in) { return hardsigmoid(in[0]); });
  add_wide("mish", mish);
  add_wide("logsigmoid", logsigmoid);
  add_op("softplus", [](const In& in) { return softplus(in[0]); });
  calls.add("softplus", {wide}, [](const In& in) { return softplus(in[0]); });
  calls.add("softplus", {"beta"}, [](const In& in) { return softplus(in[0], 2.5); });
  calls.add("softplus", {"threshold"}, [](const In& in) { return softplus(in[0], 0.5, 1); });
  add_op("elu", [](const In& in) { return elu(in[0]); });
  calls.add("elu", {kink}, [](const In& in) { return elu(in[0]); });
  calls.add("elu", {"alpha"}, [](const In& in) { return elu(in[0], 0.5); });
  add_op("leaky_relu", [](const In& in) { return leaky_relu(in[0]); });
  calls.add("leaky_relu", {kink}, [](const In& in) { return leaky_relu(in[0]); });
  calls.add("leaky_relu", {"slope"}, [](const In& in) { return leaky_relu(in[0], -0.5); });
  add_op("hardtanh", [](const In& in) { return hardtanh(in[0]); });
  calls.add("hardtanh", {"at the bounds"}, [](const In& in) { return hardtanh(in[0]); });
  calls.add("hardtanh", {"bounds"}, [](const In& in) { return hardtanh(in[0], -0.25, 2); });
  add_op("gelu", [](const In& in) { return gelu(in[0]); });
  calls.add("gelu", {wide}, [](const In& in) { return gelu(in[0]); });
  calls.add("gelu", {"tanh, 3-d", "tanh, 0-d", "tanh, size 1", "tanh, zero-size", "tanh, " + wide},
            [](const In& in) { return gelu(in[0], Gelu::tanh); });
  calls.add("abs", {kink}, [](const In& in) { return abs(in[0]); });
  calls.add("relu", {kink}, [](const In& in) { return relu(in[0]); });

  const auto add_powers = [&](const std::string& sample,
                              std::initializer_list<std::pair<std::string, double>> exponents) {
    for (const auto& [text, exponent] : exponents)
      calls.add("pow", {sample + text}, [e = exponent](const In& in) { return pow(in[0], e); });
  };
  add_powers("exponent ", {{"2", 2}, {"3", 3}, {"0.5", 0.5}, {"-1", -1}, {"0", 0}, {"1", 1}});
  add_powers("exponent ", {{"-2.5", -2.5}});
  add_powers("of either sign, exponent ", {{"2", 2}, {"3", 3}, {"-1", -1}, {"-2", -2}});
  add_powers("base 0, exponent ", {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}});
  calls.add("pow", {"number 2 as base"}, [](const In& in) { return pow(2, in[0]); });
  calls.add("pow", {"number 0.5 as base"}, [](const In& in) { return pow(0.5, in[0]); });
  calls.add("pow", {"number 1 as base"}, [](const In& in) { return pow(1, in[0]); });
  calls.add("pow", {"base 0, Tensor exponent"}, [](const In& in) { return pow(in[0], in[1]); });

  calls.add("to", {"float64"}, [](const In& in) { return to(in[0], DType::float64); });
  calls.add("to", {"float32", "zero-size"}, [](const In& in) { return to(in[0], DType::float32); });
  calls.add("to", {"float32, squared, and back"}, [](const In& in) {
    return to(to(in[0], DType::float32) * to(in[0], DType::float32), DType::float64);
  });
}

void add_choices(GoldenCalls& calls) {
  calls.add("clamp", {"both", "both, at the bounds", "0-d", "zero-size"},
            [](const In& in) { return clamp(in[0], -0.5, 0.75); });
  calls.add("clamp", {"min", "min, at the bounds"},
            [](const In& in) { return clamp(in[0], -0.5, {}); });
  calls.add("clamp", {"max", "max, at the bounds"},
            [](const In& in) { return clamp(in[0], {}, 0.75); });
  calls.add("clamp", {"min above max", "min above max, at the bounds"},
            [](const In& in) { return clamp(in[0], 0.75, -0.5); });
  calls.add(
      "clamp",
      {"Tensors", "Tensors, ties", "Tensors, row and column", "Tensors, 0-d", "Tensors, zero-size"},
      [](const In& in) { return clamp(in[0], in[1], in[2]); });
  calls.add("clamp", {"min, a Tensor", "min, a Tensor, ties"},
            [](const In& in) { return clamp(in[0], in[1], Tensor()); });
  calls.add("clamp", {"max, a Tensor", "max, a Tensor, ties"},
            [](const In& in) { return clamp(in[0], Tensor(), in[1]); });
  calls.add("where",
            {"condition row", "condition column", "condition the largest", "0-d", "zero-size"},
            [](const In& in) { return where(in.masks[0], in[0], in[1]); });
  calls.add("where", {"number on the right"},
            [](const In& in) { return where(in.masks[0], in[0], 0.5); });
  calls.add("where", {"number on the left"},
            [](const In& in) { return where(in.masks[0], 0.5, in[0]); });
  calls.add("masked_fill", {"row", "column", "0-d", "mask 0-d", "zero-size", "mask larger"},
            [](const In& in) { return masked_fill(in[0], in.masks[0], 0.5); });
  calls.add("masked_fill",
            {"value a Tensor, row", "value a Tensor, 0-d", "value a Tensor, mask larger",
             "value a Tensor, zero-size"},
            [](const In& in) { return masked_fill(in[0], in.masks[0], in[1]); });
  calls.add("masked_fill", {"minus infinity"}, [](const In& in) {
    return masked_fill(in[0], in.masks[0], -std::numeric_limits<double>::infinity());
  });
}

void add_comparisons(GoldenCalls& calls) {
  calls.add("eq", {"row"}, [](const In& in) { return in[0] == in[1]; });
  calls.add("ne", {"row"}, [](const In& in) { return in[0] != in[1]; });
  calls.add("lt", {"row"}, [](const In& in) { return in[0] < in[1]; });
  calls.add("le", {"row"}, [](const In& in) { return in[0] <= in[1]; });
  calls.add("gt", {"row"}, [](const In& in) { return in[0] > in[1]; });
  calls.add("ge", {"row"}, [](const In& in) { return in[0] >= in[1]; });
  calls.add("eq", {"number"}, [](const In& in) { return in[0] == 2.0; });
  calls.add("ne", {"number"}, [](const In& in) { return in[0] != 2.0; });
  calls.add("lt", {"number"}, [](const In& in) { return in[0] < 2.0; });
  calls.add("le", {"number"}, [](const In& in) { return in[0] <= 2.0; });
  calls.add("gt", {"number"}, [](const In& in) { return in[0] > 2.0; });
  calls.add("ge", {"number"}, [](const In& in) { return in[0] >= 2.0; });
  calls.add("isfinite", {"1-d"}, [](const In& in) { return isfinite(in[0]); });
  calls.add("isinf", {"1-d"}, [](const In& in) { return isinf(in[0]); });
  calls.add("isnan", {"1-d"}, [](const In& in) { return isnan(in[0]); });
  calls.add("argsort", {"ties, descending False"}, [](const In& in) { return argsort(in[0], 1); });
  calls.add("argsort", {"ties, descending True"},
            [](const In& in) { return argsort(in[0], 1, true); });
  calls.add("argmax", {"all", "0-d", "ties"}, [](const In& in) { return argmax(in[0]); });
  calls.add("argmin", {"all", "0-d", "ties"}, [](const In& in) { return argmin(in[0]); });
  calls.add("argmax", {"dim 0"}, [](const In& in) { return argmax(in[0], 0); });
  calls.add("argmin", {"dim 0"}, [](const In& in) { return argmin(in[0], 0); });
  calls.add("argmax", {"dim -1, keepdim"}, [](const In& in) { return argmax(in[0], -1, true); });
  calls.add("argmin", {"dim -1, keepdim"}, [](const In& in) { return argmin(in[0], -1, true); });
  calls.add("argmax", {"ties, dim 1"}, [](const In& in) { return argmax(in[0], 1); });
  calls.add("argmin", {"ties, dim 1"}, [](const In& in) { return argmin(in[0], 1); });
}

}  // namespace

void add_elementwise_calls(GoldenCalls& calls) {
  add_binary(calls);
  add_unary(calls);
  add_choices(calls);
  add_comparisons(calls);
}

}  // namespace xgrad::testing
