// Optimizers step by step, schedules and gradient clipping compared with PyTorch's.  The samples
// are in table_optimizers.py; optimizers.py describes the names in the files of numbers.

#include <fmt/format.h>

#include <limits>
#include <xgrad/xgrad.hpp>

#include "golden/file.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "optim/optimizers.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

constexpr Size steps_of_a_row = 20;
constexpr std::pair<const char*, DType> dtypes[] = {{"f64", DType::float64},
                                                    {"f32", DType::float32}};

// ---- the samples ----

struct ScheduleSample {
  const char* name;
  optim::Schedule (*make)();
};

struct ClipSample {
  const char* name;
  double (*clip)(const Parameters& p);  // returns the norm, or 0 if there is none
};

namespace table {
using namespace xgrad::optim;
constexpr double inf = std::numeric_limits<double>::infinity();
Parameters others(const Parameters& p) { return {p.begin() + 1, p.end()}; }
#define MAKE(...) \
  [](const Parameters& p) { return std::unique_ptr<Optimizer>(new auto(__VA_ARGS__)); }
#define RATE(...) []() -> Schedule { return __VA_ARGS__; }
#define CLIP(...) [](const Parameters& p) -> double { return __VA_ARGS__; }
#include "golden/generated/optimizers.inc"
#undef MAKE
#undef RATE
#undef CLIP
}  // namespace table

// ---- how they run ----

// resumed: after ten steps another optimizer continues from the state of the first.
void train(const GoldenFile& file, const OptimizerSample& sample, bool resumed = false) {
  const optim::Schedule rate = optim::warmup_cosine({0.1, 0.01, 4, 16});
  const std::string keys[] = {"a", "b"};
  for (const auto& [label, dtype] : dtypes) {
    const auto name = [&, label = label](std::size_t k) {
      return fmt::format("{}/{}/{}", sample.name, label, keys[k]);
    };
    const auto shaped = [&, dtype = dtype](const Tensor& x, std::size_t k) {
      return reshape(x.to(dtype), select(file.tensor(name(k)), 0, 0).shape());
    };
    const auto at = [&](const std::string& what, std::size_t k, Size t) {
      return shaped(select(file.tensor("inputs/" + what + keys[k]), 0, t % steps_of_a_row), k);
    };
    Parameters p;
    for (const std::size_t k : {0, 1})
      p.push_back(shaped(file.tensor("inputs/start/" + keys[k]), k).clone().requires_grad_());
    auto optimizer = sample.make(p);
    std::vector<Tensor> after[2];
    for (Size t = 0; t < file.tensor(name(0)).size(0); ++t) {
      if (resumed && t == 10) {
        auto another = sample.make(p);
        another->set_learning_rate(7);
        another->load_state_dict(optimizer->state_dict());
        optimizer = std::move(another);
      }
      if (sample.scheduled)
        optimizer->set_learning_rate(rate(static_cast<std::size_t>(t)));
      optimizer->zero_grad();
      for (const std::size_t k : {0, 1})
        if (k == 0 || !sample.pauses || (t != 0 && t != 1 && t != 7))
          p[k].set_grad(at("target/", k, t) * p[k].detach() - at("pull/", k, t));
      optimizer->step();
      for (const std::size_t k : {0, 1})
        after[k].push_back(p[k].detach().clone());
    }
    for (const std::size_t k : {0, 1})
      file.check(name(k), stack(after[k]));
  }
}

void run(const GoldenFile& file, const ScheduleSample& sample) {
  const optim::Schedule rate = sample.make();
  std::vector<Tensor> rates;
  for (Size t = 0; t < steps_of_a_row; ++t)
    rates.push_back(scalar(rate(static_cast<std::size_t>(t)), DType::float64));
  file.check(std::string(sample.name) + "/rates", stack(rates));
}

// Changes the gradients of three parameters; a fourth has none.
void run(const GoldenFile& file, const ClipSample& sample) {
  for (const auto& [label, dtype] : dtypes) {
    Parameters p;
    for (const int k : {0, 1, 2}) {
      const Tensor& gradient = file.tensor(fmt::format("inputs/gradient/{}", k));
      p.push_back(zeros(gradient.shape(), dtype).requires_grad_());
      p.back().set_grad(gradient.to(dtype).clone());
    }
    p.push_back(zeros({2}, dtype).requires_grad_());
    const double norm = sample.clip(p);
    const auto compare = [&, label = label](const std::string& what, const Tensor& ours) {
      file.check(fmt::format("{}/{}/{}", sample.name, label, what), ours);
    };
    if (file.contains(fmt::format("{}/{}/norm", sample.name, label)))
      compare("norm", scalar(norm, dtype));
    for (const std::size_t k : {0, 1, 2})
      compare(std::to_string(k), p[k].grad());
    CHECK_FALSE(p[3].grad().defined());
  }
}

}  // namespace

std::span<const OptimizerSample> xgrad::testing::optimizer_samples() { return table::samples; }

TEST_CASE("golden optimizers: every step, rate and clipped gradient is PyTorch's",
          "[optim][golden]") {
  const GoldenFile file("optimizers");
  for (const OptimizerSample& sample : table::samples)
    train(file, sample);
  for (const ScheduleSample& sample : table::schedules)
    run(file, sample);
  for (const ClipSample& sample : table::clips)
    run(file, sample);
  CHECK(file.unused() == std::vector<std::string>{});
}

TEST_CASE("golden optimizers: each goes on from its state, saved after ten steps",
          "[optim][golden]") {
  const GoldenFile file("optimizers");
  for (const OptimizerSample& sample : table::samples)
    train(file, sample, true);
}

TEST_CASE("every optimizer that optim/ declares is in the table", "[optim][golden]") {
  std::set<std::string> in_table;
  for (const OptimizerSample& sample : table::samples) {
    const std::string name = sample.name;
    in_table.insert(name.substr(0, name.find('/')));
  }
  CHECK(in_table == declared_optimizers());
}
