// gradcheck_attention with a softmax whose gradient is wrong: it has to end with 1.

#include <xgrad/xgrad.hpp>

namespace {

xgrad::Tensor wrong_softmax(const xgrad::Tensor& x, std::int64_t dim) {
  using namespace xgrad;
  return record(
      "wrong_softmax", {x},
      [dim](std::span<const Tensor> in) { return xgrad::softmax(in[0], dim); },
      [y = Saved(xgrad::softmax(x, dim).detach())](Context& ctx) {
        ctx.add(0, ctx.gradient() * y.tensor());  // the second term is forgotten
      });
}

}  // namespace

#define softmax wrong_softmax
#include "../../examples/gradcheck_attention/gradcheck_attention.cpp"
