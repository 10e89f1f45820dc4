#include <cmath>
#include <iterator>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/attention.hpp>

#include "autograd/check/verdict_cases.hpp"
#include "helpers/tensors.hpp"

namespace xgrad::testing {
namespace {

using Inputs = std::vector<Tensor>;

class Composer {
 public:
  explicit Composer(std::uint64_t seed) : generator_(seed) {}

  Awkward make() {
    Inputs inputs;
    for (int i = 0; i < 3; ++i) {
      Tensor x = randn({3, 4}, generator_, DType::float64);
      const double scale = std::pow(10.0, pick(3) == 0 ? pick(13) - 6 : 0);
      x = x * scale;
      if (pick(4) == 0)  // ties
        for (const Size j : {2, 3, 7})
          set_element(x, j, numbers(x)[1]);
      if (pick(4) == 0)  // at kinks
        for (const Size j : {0, 5, 6})
          set_element(x, j, 0);
      inputs.push_back(x.detach());
    }
    std::vector<int> steps;
    for (std::size_t n = 2 + pick(5); n > 0; --n) {
      steps.push_back(pick(static_cast<int>(std::size(ops))));
      steps.push_back(pick(8));
    }
    return {"", [steps](const Inputs& in) { return run(steps, in); }, inputs};
  }

 private:
  int pick(int n) { return static_cast<int>(generator_.uniform_double() * n); }

  // Ops of (3, 4), (3, 4) -> (3, 4).
  using Op = Tensor (*)(const Tensor&, const Tensor&);
  static constexpr Op ops[] = {
      [](const Tensor& x, const Tensor&) { return relu(x); },
      [](const Tensor& x, const Tensor&) { return abs(x); },
      [](const Tensor& x, const Tensor&) { return gelu(x); },
      [](const Tensor& x, const Tensor&) { return tanh(x); },
      [](const Tensor& x, const Tensor&) { return sigmoid(x); },
      [](const Tensor& x, const Tensor&) { return exp(x); },
      [](const Tensor& x, const Tensor&) { return log(x); },
      [](const Tensor& x, const Tensor&) { return sqrt(x); },
      [](const Tensor& x, const Tensor&) { return rsqrt(x); },
      [](const Tensor& x, const Tensor&) { return sin(x); },
      [](const Tensor& x, const Tensor&) { return silu(x); },
      [](const Tensor& x, const Tensor&) { return softplus(x); },
      [](const Tensor& x, const Tensor&) { return mish(x); },
      [](const Tensor& x, const Tensor&) { return elu(x); },
      [](const Tensor& x, const Tensor&) { return leaky_relu(x); },
      [](const Tensor& x, const Tensor&) { return hardtanh(x); },
      [](const Tensor& x, const Tensor&) { return clamp(x, -0.5, 0.5); },
      [](const Tensor& x, const Tensor& y) { return maximum(x, y); },
      [](const Tensor& x, const Tensor& y) { return minimum(x, y); },
      [](const Tensor& x, const Tensor& y) { return x * y; },
      [](const Tensor& x, const Tensor& y) { return x / y; },
      [](const Tensor& x, const Tensor& y) { return x + y; },
      [](const Tensor& x, const Tensor& y) { return x - y; },
      [](const Tensor& x, const Tensor&) { return pow(x, 2); },
      [](const Tensor& x, const Tensor&) { return softmax(x, -1); },
      [](const Tensor& x, const Tensor&) { return log_softmax(x, 0); },
      [](const Tensor& x, const Tensor&) { return layer_norm(x, {4}); },
      [](const Tensor& x, const Tensor&) { return rms_norm(x, {4}); },
      [](const Tensor& x, const Tensor&) { return x - amax(x, {-1}, true); },
      [](const Tensor& x, const Tensor&) { return x + logsumexp(x, {0}, true); },
      [](const Tensor& x, const Tensor&) { return cumsum(x, 1); },
      [](const Tensor& x, const Tensor& y) { return matmul(matmul(x, transpose(y, 0, 1)), x); },
      [](const Tensor& x, const Tensor&) { return masked_fill(x, nn::future(3, 4), -1e9); },
      [](const Tensor& x, const Tensor&) {
        return softmax(masked_fill(x, nn::future(3, 4), -inf), -1);
      },
      [](const Tensor& x, const Tensor&) { return x / vector_norm(x, 2, {-1}, true); },
      [](const Tensor& x, const Tensor&) { return x * var(x, {0}, 1, true); },
      [](const Tensor& x, const Tensor&) { return topk(x, 4).values; },
      [](const Tensor& x, const Tensor&) { return flip(x, {0}) * x; },
      [](const Tensor& x, const Tensor& y) { return x * mean(y, {1}, true); },
      [](const Tensor& x, const Tensor&) { return tril(x) * 1e3; },
  };
  static Tensor run(const std::vector<int>& steps, const Inputs& in) {
    Inputs values = in;
    for (std::size_t i = 0; i < steps.size(); i += 2) {
      const std::size_t n = values.size();
      values.push_back(ops[steps[i]](values[n - 1 - static_cast<std::size_t>(steps[i + 1]) % 2],
                                     values[static_cast<std::size_t>(steps[i + 1]) % n]));
    }
    return values.back();
  }

  Generator generator_;
};

}  // namespace

Awkward random_composition(std::uint64_t seed) { return Composer(seed).make(); }

}  // namespace xgrad::testing
