// A step or a clipping that fails changes nothing.

#include <algorithm>
#include <thread>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/allocations.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "optim/optimizers.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

// Everything that a step may change.
struct State {
  std::vector<Tensor> values, gradients;
  optim::OptimizerState optimizer;

  explicit State(const optim::Optimizer& o) : optimizer(o.state_dict()) {
    for (const Tensor& p : o.params()) {
      values.push_back(p.detach());
      gradients.push_back(p.grad().defined() ? p.grad().detach() : Tensor());
    }
  }
  friend bool operator==(const State& a, const State& b) {
    const auto tensor = [](const auto& x, const auto& y) {
      return x.first == y.first && same_bits(x.second, y.second);
    };
    const auto state = [&](const auto& x, const auto& y) {
      return x.step == y.step && std::ranges::equal(x.tensors, y.tensors, tensor);
    };
    const auto group = [](const auto& x, const auto& y) { return x.options == y.options; };
    return std::ranges::equal(a.values, b.values, same_bits) &&
           std::ranges::equal(a.gradients, b.gradients, same_bits) &&
           std::ranges::equal(a.optimizer.parameters, b.optimizer.parameters, state) &&
           std::ranges::equal(a.optimizer.groups, b.optimizer.groups, group);
  }
};

// Parameters of both dtypes: float32 comes first.
std::vector<Tensor> parameters() {
  std::vector<Tensor> params{reshape(linspace(-1, 1, 300), {15, 20}),
                             reshape(linspace(0, 1, 40).to(DType::float64), {10, 4}),
                             reshape(linspace(1, 2, 20000), {2, 10000})};
  for (Tensor& p : params) {
    p = p.detach().requires_grad_();
    p.set_grad((p * p).detach());
  }
  return params;
}

// Calls f with its k-th allocation failing, for k = 0, 1, ... until f succeeds; a failure must not
// change the state.  On a thread of its own, which has no free blocks.
template <class F>
void check_each_failure(const optim::Optimizer& optimizer, std::size_t least, const F& f) {
  std::size_t failures = 0;
  bool done = false, unchanged = true;
  while (!done) {
    const State before(optimizer);
    std::thread([&] {
      try {
        const FailingAllocation failing(failures);
        f();
        done = true;
      } catch (const std::bad_alloc&) {
        ++failures;
      }
    }).join();
    if (!done)
      unchanged = unchanged && State(optimizer) == before;
    else
      CHECK_FALSE(State(optimizer) == before);
  }
  CHECK(unchanged);
  CHECK(failures >= least);
}

}  // namespace

TEST_CASE("a step that fails for want of memory has changed nothing", "[optim]") {
  for (const OptimizerSample& sample : optimizer_samples()) {
    CAPTURE(sample.name);
    const auto params = parameters(), expected = parameters();
    const auto optimizer = sample.make(params), untroubled = sample.make(expected);
    for (int step = 0; step < 2; ++step) {  // the first makes the buffers
      // Each value is shared and must be copied.
      check_each_failure(*optimizer, params.size(), [&] { optimizer->step(); });
      untroubled->step();
      CHECK(State(*optimizer) == State(*untroubled));
    }
  }
}

TEST_CASE("clipping that fails for want of memory has changed nothing", "[optim]") {
  const auto params = parameters();
  const optim::SGD optimizer(params);
  check_each_failure(optimizer, params.size(), [&] { optim::clip_grad_norm_(params, 0.1); });
  check_each_failure(optimizer, params.size(), [&] { optim::clip_grad_value_(params, 1e-4); });
}

TEST_CASE("a step with a gradient that does not fit has changed nothing", "[optim]") {
  for (const OptimizerSample& sample : optimizer_samples())
    for (const Tensor& other : {zeros({100}), zeros({2, 10000}, DType::float64)}) {
      CAPTURE(sample.name, other.shape().size(), to_string(other.dtype()));
      const auto params = parameters();
      const auto optimizer = sample.make(params);
      optimizer->step();
      params.back().handle()->value = other.handle()->value;  // as nn::to() converts a parameter
      const State before(*optimizer);
      CHECK_THROWS_WITH(optimizer->step(), ContainsSubstring("parameter 2 is ") &&
                                               ContainsSubstring("and its gradient is float32"));
      CHECK(State(*optimizer) == before);
    }
}

TEST_CASE("the gradient of one parameter may be another parameter", "[optim]") {
  Tensor p = ones({3}).requires_grad_(), q = full({3}, 2).requires_grad_();
  p.set_grad(q);
  q.set_grad(ones({3}));
  const Tensor held = q.detach();  // makes the step copy q
  optim::SGD({p}, {.lr = 1}).step();
  CHECK(same_bits(p.detach(), full({3}, -1)));
  optim::SGD({q}, {.lr = 1}).step();
  CHECK(same_bits(q.detach(), ones({3})));
  CHECK(same_bits(held, full({3}, 2)));
}
