// Optimizers step by step, schedules and gradient clipping against PyTorch's, by the cases of
// golden/optimizers.py, which says what each name in the file means.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/optim/clip.hpp>
#include <xgrad/optim/schedule.hpp>

#include "golden/file.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "optim/optimizers.hpp"

using namespace xgrad;
using namespace xgrad::testing;
using namespace xgrad::optim;

namespace {

constexpr std::size_t steps = 20;
constexpr std::pair<const char*, DType> dtypes[] = {{"f64", DType::float64},
                                                    {"f32", DType::float32}};

struct OptimizerCases {
  const GoldenFile& file;
  std::vector<GoldenComparison> found = {};

  void compare(const std::string& name, const Tensor& ours) {
    found.push_back(compare_golden(name, ours, file.tensor(name)));
  }
};

// ---- optimizers ----

struct Training {
  /// Before step t.
  std::function<void(Optimizer&, std::size_t t)> change = [](Optimizer&, std::size_t) {};
  std::vector<std::size_t> without_b = {};  ///< steps in which b has no gradient
  std::size_t steps = ::steps;
  std::vector<Dims> shapes = {};  ///< of a and b, if not their own
};

// make(a, b) returns an optimizer of the two parameters.
template <class Make>
void train(OptimizerCases& cases, const std::string& name, const Make& make,
           const Training& training = {}) {
  for (const auto& [label, dtype] : dtypes) {
    const std::string keys[] = {"a", "b"};
    std::vector<Tensor> parameters;
    const auto shaped = [&](const Tensor& x, std::size_t k) {
      return training.shapes.empty() ? x : reshape(x, training.shapes[k]);
    };
    for (std::size_t k = 0; k < 2; ++k) {
      const Tensor start = shaped(cases.file.tensor("start/" + keys[k]), k);
      parameters.push_back(Tensor(start.to(dtype).clone()).requires_grad_());
    }
    const auto optimizer = make(parameters[0], parameters[1]);
    std::vector<Tensor> after[2];
    for (std::size_t t = 0; t < training.steps; ++t) {
      training.change(*optimizer, t);
      optimizer->zero_grad();
      for (std::size_t k = 0; k < 2; ++k) {
        const auto at = [&, dtype = dtype](const char* what) {
          const Tensor& all = cases.file.tensor(what + keys[k]);
          return shaped(select(all, 0, static_cast<std::int64_t>(t % steps)).to(dtype), k);
        };
        const bool skip = k == 1 && std::ranges::count(training.without_b, t) != 0;
        if (!skip)
          parameters[k].set_grad(at("target/") * parameters[k].detach() - at("pull/"));
      }
      optimizer->step();
      for (std::size_t k = 0; k < 2; ++k)
        after[k].push_back(parameters[k].detach().clone());
    }
    for (std::size_t k = 0; k < 2; ++k)
      cases.compare(fmt::format("{}/{}/{}", name, label, keys[k]), stack(after[k]));
  }
}

const Training missing_gradients{.without_b = {0, 1, 7}};

Training on_schedule() {
  const Schedule rate = warmup_cosine(
      {.learning_rate = 0.1, .min_lr = 0.01, .warmup_iters = 4, .lr_decay_iters = 16});
  return {.change = [rate](Optimizer& optimizer, std::size_t t) {
    optimizer.set_learning_rate(rate(t));
  }};
}

void add_sgd(OptimizerCases& cases) {
  const auto sgd = [&](const std::string& name, const SGDOptions& options,
                       const Training& training = {}) {
    train(
        cases, "SGD/" + name,
        [&](const Tensor& a, const Tensor& b) {
          return std::make_unique<SGD>(std::vector{a, b}, options);
        },
        training);
  };
  sgd("plain", {.lr = 0.1});
  sgd("weight_decay", {.lr = 0.1, .weight_decay = 0.3});
  sgd("momentum", {.lr = 0.05, .momentum = 0.9});
  sgd("momentum_weight_decay", {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1});
  sgd("dampening", {.lr = 0.05, .momentum = 0.9, .dampening = 0.4});
  sgd("nesterov", {.lr = 0.05, .momentum = 0.9, .nesterov = true});
  sgd("nesterov_weight_decay",
      {.lr = 0.05, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true});
  sgd("missing_gradients", {.lr = 0.05, .momentum = 0.9, .dampening = 0.2}, missing_gradients);
  sgd("schedule", {.lr = 1, .momentum = 0.9}, on_schedule());
  train(cases, "SGD/groups", [](const Tensor& a, const Tensor& b) {
    return std::make_unique<SGD>(std::vector<ParamGroup<SGDOptions>>{
        {{a}, {.lr = 0.1, .weight_decay = 0.2}}, {{b}, {.lr = 0.03, .momentum = 0.5}}});
  });
}

template <class Kind, class Options>
void add_adam(OptimizerCases& cases, const std::string& kind) {
  const auto adam = [&](const std::string& name, const Options& options,
                        const Training& training = {}) {
    train(
        cases, kind + "/" + name,
        [&](const Tensor& a, const Tensor& b) {
          return std::make_unique<Kind>(std::vector{a, b}, options);
        },
        training);
  };
  adam("defaults", {});
  adam("rate", {.lr = 0.1});
  adam("betas", {.lr = 0.05, .betas = {0.8, 0.95}});
  adam("betas_0", {.lr = 0.05, .betas = {0, 0}});
  adam("eps", {.lr = 0.05, .eps = 0.1});
  adam("weight_decay", {.lr = 0.05, .weight_decay = 0.3});
  adam("missing_gradients", {.lr = 0.05}, missing_gradients);
  adam("schedule", {.lr = 1, .weight_decay = 0.1}, on_schedule());
  train(cases, kind + "/groups", [](const Tensor& a, const Tensor& b) {
    return std::make_unique<Kind>(std::vector<ParamGroup<Options>>{
        {{a}, {.lr = 0.03, .weight_decay = 0.2}},
        {{b}, {.lr = 0.2, .betas = {0.5, 0.9}, .weight_decay = 0}}});
  });
}

void add_more(OptimizerCases& cases) {
  const auto add = [&]<class Options>(const std::string& name, const Options& options,
                                      Training training = {}) {
    training.steps = 50;
    train(
        cases, name,
        [&](const Tensor& a, const Tensor& b) {
          return std::make_unique<OptimizerOf<Options>>(std::vector{a, b}, options);
        },
        training);
  };
  add("RMSprop/plain", RMSpropOptions{});
  add("RMSprop/options", RMSpropOptions{.lr = 0.03, .alpha = 0.9, .eps = 1e-3, .weight_decay = 0.1},
      missing_gradients);
  add("RMSprop/momentum", RMSpropOptions{.lr = 0.02, .weight_decay = 0.1, .momentum = 0.8},
      missing_gradients);
  add("Adagrad/plain", AdagradOptions{});
  add("Adagrad/options",
      AdagradOptions{.lr = 0.2,
                     .lr_decay = 0.1,
                     .weight_decay = 0.1,
                     .initial_accumulator_value = 0.5,
                     .eps = 1e-3},
      missing_gradients);
  add("Lion/plain", LionOptions{});
  add("Lion/options", LionOptions{.lr = 0.02, .betas = {0.8, 0.95}, .weight_decay = 0.3},
      missing_gradients);
  add("Muon/plain", MuonOptions{}, {.shapes = {{5, 3}, {2, 2}}});
  add("Muon/wide", MuonOptions{.lr = 0.05}, {.shapes = {{3, 5}, {1, 4}}});
  add("Muon/options",
      MuonOptions{.lr = 0.03, .weight_decay = 0.5, .momentum = 0.8, .nesterov = false, .eps = 1e-2},
      {.without_b = missing_gradients.without_b, .shapes = {{5, 3}, {2, 2}}});
}

// ---- schedules ----

void add_schedules(OptimizerCases& cases) {
  const auto rates = [&](const std::string& name, const Schedule& schedule, std::size_t stride = 1,
                         std::size_t first = 0) {
    std::vector<Tensor> values;
    for (std::size_t t = 0; t < steps; ++t)
      values.push_back(scalar(schedule(stride * t + first), DType::float64));
    cases.compare(name, stack(values));
  };
  rates("constant/0.3", constant(0.3));
  rates("step_decay/7", step_decay(0.3, 7));
  rates("step_decay/3", step_decay(0.3, 3, 0.7));
  rates("step_decay/1", step_decay(0.3, 1, 0.9));
  rates("exponential/0.9", exponential(0.3, 0.9));
  rates("exponential/1.1", exponential(0.3, 1.1));
  const auto cosine = [](double rate, double min_lr, std::size_t warmup, std::size_t decay) {
    return warmup_cosine({rate, min_lr, warmup, decay});
  };
  rates("warmup_cosine/5_15", cosine(0.3, 0.03, 5, 15));
  rates("warmup_cosine/0_19", cosine(0.3, 0, 0, 19));
  rates("warmup_cosine/19_100", cosine(0.3, 0.03, 19, 100));
  rates("warmup_cosine/100_2000", cosine(1e-3, 1e-4, 100, 2000), 10, 7);
}

// ---- clipping ----

// clip(parameters) changes the gradients of three parameters; a fourth has none.
template <class Clip>
void add_clip(OptimizerCases& cases, const std::string& name, const Clip& clip) {
  for (const auto& [label, dtype] : dtypes) {
    std::vector<Tensor> parameters;
    for (const int k : {0, 1, 2}) {
      const Tensor& gradient = cases.file.tensor(fmt::format("clip/gradient/{}", k));
      parameters.push_back(zeros(gradient.shape(), dtype).requires_grad_());
      parameters.back().set_grad(gradient.to(dtype).clone());
    }
    parameters.push_back(zeros({2}, dtype).requires_grad_());
    const auto of = [&, label = label](const std::string& value) {
      return fmt::format("{}/{}/{}", name, label, value);
    };
    if (const std::optional<double> norm = clip(parameters); norm.has_value())
      cases.compare(of("norm"), scalar(*norm, dtype));
    for (const std::size_t k : {0, 1, 2})
      cases.compare(of(std::to_string(k)), parameters[k].grad());
    CHECK_FALSE(parameters[3].grad().defined());
  }
}

void add_clipping(OptimizerCases& cases) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double norm_type : {2.0, 1.0, 3.0, infinity, 0.5})
    for (const double max_norm : {1.0, 1000.0, 0.0})
      add_clip(
          cases, fmt::format("clip_grad_norm/{:g}_{:g}", norm_type, max_norm),
          [&](const std::vector<Tensor>& parameters) {
            return std::optional(clip_grad_norm(parameters, max_norm, {.norm_type = norm_type}));
          });
  for (const double limit : {1.0, 0.25, 0.0})
    add_clip(cases, fmt::format("clip_grad_value/{:g}", limit),
             [&](const std::vector<Tensor>& parameters) -> std::optional<double> {
               clip_grad_value(parameters, limit);
               return std::nullopt;
             });
}

std::vector<GoldenComparison> run_optimizers(const GoldenFile& file) {
  OptimizerCases cases{file};
  add_sgd(cases);
  add_adam<Adam, AdamOptions>(cases, "Adam");
  add_adam<AdamW, AdamWOptions>(cases, "AdamW");
  train(cases, "AdamW/no_decay", [](const Tensor& a, const Tensor& b) {
    return std::make_unique<AdamW>(std::vector{a, b}, AdamWOptions{.lr = 0.05, .weight_decay = 0});
  });
  add_more(cases);
  add_schedules(cases);
  add_clipping(cases);
  return std::move(cases.found);
}

}  // namespace

TEST_CASE("golden optimizers: every step, rate and clipped gradient is PyTorch's",
          "[optim][golden]") {
  const GoldenFile file("optimizers");
  const std::vector<GoldenComparison> comparisons = run_optimizers(file);
  check_golden(comparisons);
  CHECK(file.unused().empty());
  for (const std::string& name : declared_optimizers()) {
    INFO(name << " has no case in golden/optimizers.py");
    CHECK(std::ranges::any_of(
        comparisons, [&](const GoldenComparison& c) { return c.name.starts_with(name + "/"); }));
  }
}

TEST_CASE("golden optimizers: summary", "[.golden-summary]") {
  print_golden_summary("optimizers", run_optimizers(GoldenFile("optimizers")));
}
