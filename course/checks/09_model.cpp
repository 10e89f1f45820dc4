// Stage 9: a block, a model, Adam by hand
// Hint 1: m and v are running means: the old one times beta, the new value times 1 - beta.
// Hint 2: They begin at 0 and are too small at first: divide by 1 - beta^t.
// Hint 3: p - lr m̂ / (√v̂ + eps): eps stands outside of the root.
// Next: course/pages/10_training.md; optim/optimizers.hpp

#include <cmath>

#include "../checks.hpp"

#include "exercises/09_model.cpp"

namespace learn {

using namespace xgrad;
using exercise::Adam;

namespace {

// Kingma and Ba, 2015, as torch.optim.Adam.
Adam adam(const Adam& a, const Tensor& g, int t) {
  using namespace exercise;
  const Tensor m = a.m * beta1 + g * (1 - beta1), v = a.v * beta2 + g * g * (1 - beta2);
  const Tensor m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
  return {a.p - m_hat / (sqrt(v_hat) + exercise::eps) * lr, m, v};
}

void check_part(const std::string& name, int t, const Tensor& yours, const Tensor& right) {
  expect(yours.defined() && yours.shape() == right.shape(),
         "my_adam: {} no longer has the shape {}", name, to_string(right.shape()));
  for (Size i = 0; i < right.numel(); ++i) {
    const double a = yours.data<double>()[i], b = right.data<double>()[i];
    const auto [yours_is, right_is] = numbers(a, b);
    std::string why;
    if (name == "p")
      why =
          "\n\nm and v are right, so it is the step itself: the correction of both for the steps "
          "t so far, the root, eps, lr.";
    else if (std::abs(a) > 0 && b != 0)
      why = fmt::format(": {} times that", number(a / b));
    expect(std::abs(a - b) <= 1e-9 * std::abs(b) + 1e-15,
           "my_adam: in step t = {}, {}[{}] is {}, and yours is {}{}", t, name, i, right_is,
           yours_is, why);
  }
}

}  // namespace

TEST_CASE("my_adam") {
  using exercise::random;
  for (const Dims& shape : {Dims{5}, Dims{3, 2, 5}}) {
    // One gradient is large, two are 0: v of one shrinks, that of the other has always been 0.
    const Tensor gathered = tensor({1, 1, 1, 1, 0}, DType::float64);
    const Tensor p = random(shape, 1).detach(), m = (random(shape, 2) * gathered).detach(),
                 v = (pow(random(shape, 3, 1e-4), 2) * gathered).detach();
    const Tensor factors = tensor({1e-4, -1e-4, 2.0, 0.0, 0.0}, DType::float64);
    const Tensor g = (random(shape, 4) * factors).detach();
    for (const int t : {1, 2, 100, 1000}) {
      const double gathers = t == 1 ? 0 : 1;  // the state of the first step is 0
      const Adam right = adam({p, m * gathers, v * gathers}, g, t);
      const Tensor given = g.clone();
      const Adam yours = my_adam({p.clone(), m * gathers, v * gathers}, given, t);
      expect(same(given, g), "my_adam: g has other numbers after the call: make a new Tensor");
      check_part("m", t, yours.m, right.m);
      check_part("v", t, yours.v, right.v);
      check_part("p", t, yours.p, right.p);
    }
  }
}

}  // namespace learn
