#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/rules.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad {

XGRAD_RULE(dropout, "a ⊙ kept / (1 - p)", {"g ⊙ kept / (1 - p)"},
           "Dropped elements get 0; the others are scaled as in the forward pass.");
Tensor dropout(const Tensor& x, double p, bool training) {
  return dropout(x, p, training, default_generator());
}

Tensor dropout(const Tensor& x, double p, bool training, Generator& generator) {
  check<ValueError>(p >= 0 && p <= 1, "dropout: p {} is not between 0 and 1", p);
  if (!training || p == 0 || x.numel() == 0)
    return x;
  const Saved scales = detail::compute("dropout", std::array{x}, [&]<class T>() {
    auto drawn = empty_array<T>(x.shape());
    fill_dropout(std::span(drawn.data(), drawn.size()), p, generator,
                 x.dim() > 0 ? x.shape().front() : 0);
    return Tensor(std::move(drawn));
  });
  return record(
      "dropout", {x}, [scales](std::span<const Tensor> in) { return mul(in[0], scales.tensor()); },
      [scales](Context& ctx) { ctx.add(0, mul(ctx.gradient(), scales.tensor())); });
}

}  // namespace xgrad
