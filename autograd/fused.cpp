#include "fused.hpp"

#include <vector>
#include "engine.hpp"
#include "kernels/elementwise.hpp"

namespace xgrad::detail {

namespace {

// Forwards the ops of the derivative to the observer, and hides the nested run.
struct ForwardsOnly final : Observer {
  Observer* to;
  explicit ForwardsOnly(Observer* observer) : to(observer) {}
  void on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                  const Forward& forward) override {
    to->on_forward(op, inputs, output, forward);
  }
};

}  // namespace

bool all_finite(const Tensor& x) {
  return dispatch(x.dtype(),
                  [&]<class T>() { return kernels::all_finite(x.numel(), x.data<T>()); });
}

void differentiate(Context& ctx, std::span<const Saved> saved,
                   const std::function<Tensor(std::span<const Tensor>)>& composition) {
  const auto same = [](std::span<const Tensor> in) { return in[0]; };
  const auto pass = [](Context& s) { s.add(0, s.gradient()); };
  std::vector<Tensor> inputs, wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    inputs.push_back(saved[i].tensor());
    if (saved[i] && ctx.needs(i)) {
      const ModeGuard unseen({true, nullptr});
      wanted.push_back(inputs.back() = record("view", {inputs.back()}, same, pass));
      places.push_back(i);
    }
  }
  Observer* const observer = Mode::current().observer;
  ForwardsOnly forwards(observer);
  const ModeGuard mode({true, observer == nullptr ? nullptr : &forwards});
  const auto gradients = grad(
      {composition(inputs)}, wanted,
      {.grad_outputs = {ctx.gradient()}, .create_graph = ctx.create_graph(), .allow_unused = true});
  for (std::size_t k = 0; k < places.size(); ++k)
    if (gradients[k].defined())
      ctx.add(places[k], gradients[k]);
}

}  // namespace xgrad::detail
