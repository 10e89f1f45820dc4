#include "autograd/ops/derivative_orders.hpp"

#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/sanitizers.hpp>

#include "helpers/tensors.hpp"

namespace xgrad::testing {
namespace {

// Larger Jacobians are checked by products with random vectors.
constexpr std::size_t most_in_full = 200'000;

// <w, gradient of <v, f>> for fixed v and w: its second derivative contains third ones of f.
std::function<Tensor(const Inputs&)> slope(const std::function<Tensor(const Inputs&)>& f) {
  return [f](const Inputs& in) {
    const ModeGuard enabled({true, nullptr});
    const Tensor y = f(in);
    Inputs xs;
    for (const Tensor& x : in)
      if (x.defined() && x.requires_grad())
        xs.push_back(x);
    Tensor total = zeros({}, DType::float64);
    if (!y.requires_grad())
      return total;
    const auto gs =
        grad({y}, xs,
             {.grad_outputs = {normal(y.shape(), 5)}, .create_graph = true, .allow_unused = true});
    for (std::size_t i = 0; i < gs.size(); ++i)
      if (gs[i].defined())
        total = total + sum(gs[i] * normal(gs[i].shape(), 6 + i));
    return total;
  };
}

}  // namespace

std::optional<Differentiated> differentiated(const OpSample& sample) {
  Differentiated d{.inputs = {}, .f = sample.f};
  Size elements = 0;
  for (const Tensor& x : sample.inputs) {
    d.inputs.push_back(clone(x).requires_grad_());
    elements += x.numel();
  }
  if (!sample.differences || elements == 0 || elements > 2000)
    return {};
  return d;
}

GradcheckReport check_order(int order, const Differentiated& d, bool fast) {
  std::size_t elements = 0;
  for (const Tensor& x : d.inputs)
    elements += x.defined() ? x.numel() : 0;
  const std::size_t rows = order == 1 ? d.f(d.inputs).numel() : elements;
  const bool in_full =
      !XGRAD_SANITIZER && elements * rows <= most_in_full;  // (sanitizers check memory alone)
  const GradcheckOptions options{.eps = order < 3 ? 1e-6 : d.third_eps,
                                 .fast_mode = fast || !in_full};
  return order == 1   ? gradcheck(d.f, d.inputs, options)
         : order == 2 ? gradgradcheck(d.f, d.inputs, options)
                      : gradgradcheck(slope(d.f), d.inputs, options);
}

}  // namespace xgrad::testing
