// Rows of the test table: losses that compare element by element.

#include <cmath>

#include "autograd/ops/elementwise_samples.hpp"

namespace xgrad::testing {
namespace {

using Loss = std::function<Tensor(const Inputs&, Reduction)>;

// Of x and target, and of what else `loss` is given; the formula is of one element of each.
void add_losses(Row& row, const std::string& name, const std::vector<Tensor>& inputs,
                const Loss& loss, const Formula& formula, bool differentiable = true) {
  for (const auto& [text, reduction] : std::vector<std::pair<std::string, Reduction>>{
           {"none", Reduction::none}, {"mean", Reduction::mean}, {"sum", Reduction::sum}})
    row.samples.push_back({name + ", " + text, inputs,
                           [loss, r = reduction](const Inputs& in) { return loss(in, r); },
                           [formula, r = reduction](const Inputs& in) {
                             const Tensor each = everywhere(formula)(in);
                             double sum = 0;
                             for (Size i = 0; i < each.numel(); ++i)
                               sum += each.data<double>()[i];
                             if (r == Reduction::none)
                               return each;
                             const auto n = static_cast<double>(each.numel());
                             return scalar(r == Reduction::mean ? sum / n : sum, DType::float64);
                           },
                           differentiable});
}

// The row of a loss of x and target, which are drawn by f(sizes, seed).
template <class X, class T>
Row pointwise(const std::string& op, const Loss& loss, const Formula& formula, const X& x,
              const T& target) {
  Row row{op, {}, {}};
  for (const auto& [name, sizes] : std::vector<std::pair<std::string, Dims>>{
           {"matrix", {3, 5}}, {"0-d", {}}, {"no elements", {0, 5}}, {"a register and some", {21}}})
    add_losses(row, name, {x(sizes, 1), target(sizes, 2)}, loss, formula);
  row.bad.push_back({"shapes that would broadcast",
                     [loss] {
                       loss({full({4, 1}, 0.5), full({4}, 0.5)}, Reduction::mean);
                     },
                     Bad::shape,
                     {op, "(4, 1)", "(4,)", "expand"}});
  row.bad.push_back({"dtypes",
                     [loss] {
                       loss({full({4}, 0.5), full({4}, 0.5, DType::float64)}, Reduction::mean);
                     },
                     Bad::dtype,
                     {op, "float32", "float64"}});
  return row;
}

Tensor between_0_and_1(const Dims& sizes, std::uint64_t seed) {
  return sample_uniform(sizes, 0.05, 0.95, seed);
}

Row distance_row(const std::string& op, const Loss& loss, double (*formula)(double)) {
  return pointwise(
      op, loss, [formula](const Numbers& at) { return formula(at[0] - at[1]); }, sample_randn,
      [](const Dims& sizes, std::uint64_t seed) { return 1.3 * sample_randn(sizes, seed); });
}

double huber_formula(double d, double delta) {
  return std::abs(d) < delta ? d * d / 2 : delta * (std::abs(d) - delta / 2);
}

Row huber_row() {
  Row row = distance_row(
      "huber_loss", [](const Inputs& in, Reduction r) { return huber_loss(in[0], in[1], {r}); },
      [](double d) { return huber_formula(d, 1); });
  add_losses(
      row, "delta", {sample_randn({3, 5}, 3), sample_randn({3, 5}, 4)},
      [](const Inputs& in, Reduction r) {
        return huber_loss(in[0], in[1], {r, 0.5});
      },
      [](const Numbers& at) { return huber_formula(at[0] - at[1], 0.5); });
  row.bad.push_back({"delta",
                     [] { huber_loss(zeros(2), zeros(2), {.delta = 0}); },
                     Bad::value,
                     {"huber_loss: delta is 0"}});
  return row;
}

Row smooth_l1_row() {
  Row row = distance_row(
      "smooth_l1_loss",
      [](const Inputs& in, Reduction r) { return smooth_l1_loss(in[0], in[1], {r}); },
      [](double d) { return huber_formula(d, 1); });
  for (const double beta : {0.5, 0.0})
    add_losses(
        row, "beta " + std::to_string(beta), {sample_randn({3, 5}, 3), sample_randn({3, 5}, 4)},
        [beta](const Inputs& in, Reduction r) {
          return smooth_l1_loss(in[0], in[1], {r, beta});
        },
        [beta](const Numbers& at) {
          const double d = at[0] - at[1];
          return beta == 0 ? std::abs(d) : huber_formula(d, beta) / beta;
        });
  row.bad.push_back({"beta",
                     [] { smooth_l1_loss(zeros(2), zeros(2), {.beta = -1}); },
                     Bad::value,
                     {"smooth_l1_loss: beta is -1"}});
  return row;
}

Row kl_div_row() {
  const Formula formula = [](const Numbers& at) {
    return at[1] == 0 ? 0 : at[1] * (std::log(at[1]) - at[0]);
  };
  const auto loss = [](const Inputs& in, Reduction r) { return kl_div(in[0], in[1], {r}); };
  Row row = pointwise("kl_div", loss, formula, sample_randn, between_0_and_1);
  add_losses(row, "a target of 0", {values({-1, -2, -0.5}), values({0, 0.25, 0.75})}, loss, formula,
             false);
  add_losses(
      row, "log_target", {sample_randn({3, 5}, 3), sample_randn({3, 5}, 4)},
      [](const Inputs& in, Reduction r) {
        return kl_div(in[0], in[1], {r, true});
      },
      [](const Numbers& at) { return std::exp(at[1]) * (at[1] - at[0]); });
  return row;
}

Row binary_cross_entropy_row() {
  const Formula formula = [](const Numbers& at) {
    const double weight = at.size() > 2 ? at[2] : 1;
    return -weight * (at[1] * std::max(std::log(at[0]), -100.) +
                      (1 - at[1]) * std::max(std::log1p(-at[0]), -100.));
  };
  const auto loss = [](const Inputs& in, Reduction r) {
    return binary_cross_entropy(in[0], in[1], {.reduction = r});
  };
  const auto weighted = [](const Inputs& in, Reduction r) {
    return binary_cross_entropy(in[0], in[1], {.weight = in[2], .reduction = r});
  };
  Row row = pointwise("binary_cross_entropy", loss, formula, between_0_and_1, between_0_and_1);
  add_losses(
      row, "weight",
      {between_0_and_1({3, 5}, 1), between_0_and_1({3, 5}, 2), sample_uniform({5}, 0.5, 2, 3)},
      weighted, formula);
  add_losses(row, "certain", {values({0, 0, 1, 1, 0.5}), values({0, 1, 0, 1, 1})}, loss, formula,
             false);
  const auto bad = [&row](const std::string& name, const std::function<void()>& call,
                          const std::vector<std::string>& fragments) {
    row.bad.push_back({name, call, Bad::value, fragments});
  };
  bad("not a probability", [] { binary_cross_entropy(full(2, 1.5), zeros(2)); },
      {"[0, 1]", "logits"});
  bad("NaN", [] { binary_cross_entropy(full(2, not_a_number), zeros(2)); }, {"[0, 1]"});
  bad("pos_weight", [] { binary_cross_entropy(zeros(2), zeros(2), {.pos_weight = ones(2)}); },
      {"pos_weight is for binary_cross_entropy_with_logits"});
  return row;
}

Row with_logits_row() {
  const Formula formula = [](const Numbers& at) {
    const double weight = at.size() > 2 ? at[2] : 1, pos_weight = at.size() > 3 ? at[3] : 1;
    const auto log_sigmoid = [](double x) {
      return std::min(x, 0.) - std::log1p(std::exp(-std::abs(x)));
    };
    return -weight * (pos_weight * at[1] * log_sigmoid(at[0]) + (1 - at[1]) * log_sigmoid(-at[0]));
  };
  const auto loss = [](const Inputs& in, Reduction r) {
    return binary_cross_entropy_with_logits(in[0], in[1], {.reduction = r});
  };
  Row row =
      pointwise("binary_cross_entropy_with_logits", loss, formula, sample_randn, between_0_and_1);
  const std::vector<Tensor> inputs = {sample_randn({3, 5}, 1), between_0_and_1({3, 5}, 2),
                                      sample_uniform({3, 1}, 0.5, 2, 3),
                                      sample_uniform({5}, 0.5, 2, 4)};
  add_losses(
      row, "weight", {inputs[0], inputs[1], inputs[2]},
      [](const Inputs& in, Reduction r) {
        return binary_cross_entropy_with_logits(in[0], in[1], {.weight = in[2], .reduction = r});
      },
      formula);
  add_losses(
      row, "weight and pos_weight", inputs,
      [](const Inputs& in, Reduction r) {
        return binary_cross_entropy_with_logits(
            in[0], in[1], {.weight = in[2], .reduction = r, .pos_weight = in[3]});
      },
      formula);
  add_losses(row, "large", {values({800, -800, 90, -90}), values({1, 0, 0.5, 0.25})}, loss,
             formula);
  return row;
}

}  // namespace

std::vector<Row> pointwise_loss_rows() {
  return {distance_row(
              "l1_loss", [](const Inputs& in, Reduction r) { return l1_loss(in[0], in[1], r); },
              [](double d) { return std::abs(d); }),
          huber_row(),
          smooth_l1_row(),
          kl_div_row(),
          binary_cross_entropy_row(),
          with_logits_row()};
}

}  // namespace xgrad::testing
