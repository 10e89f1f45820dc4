#include <xgrad/autograd/accumulate.hpp>

#include <mutex>
#include <xgrad/autograd/fork.hpp>
#include <xgrad/autograd/kernels/elementwise.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

// A sum that a parent process was in the middle of at a fork() stays as it is in the child.
static std::mutex mutex;
static const detail::RenewedInChild<mutex> renewed;

static void add_in_place(const Value& sum, const Tensor& gradient) {
  dispatch(sum.dtype, [&]<class T>() {
    kernels::add_to(sum.writable_data<T>(), gradient.data<T>(), gradient.numel());
  });
}

static bool is_sole_owner(const std::shared_ptr<Tensor::Impl>& x) {
  return is_only_handle(x) && is_sole_owner(x->value);
}

bool is_sole_owner(const Tensor& x) { return is_sole_owner(x.handle()); }

void take_own_handle(Tensor& x) {
  if (!x.defined())
    return;
  const auto& [value, node, grad, frozen] = x.impl();
  if (!is_only_handle(x.handle()) || node != nullptr || grad != nullptr || frozen != nullptr)
    x = {value, node};
}

void accumulate(Tensor& sum, Tensor gradient) {
  const bool graph = Mode::current().grad_enabled;
  if (sum.defined() && !graph && is_sole_owner(sum))
    add_in_place(*sum.impl().value, gradient);
  else if (sum.defined())
    sum = add(sum, gradient);
  else if (gradient.requires_grad() && !graph)
    sum = gradient.detach();
  else
    take_own_handle(sum = std::move(gradient));
}

void accumulate_grads(
    const std::vector<std::pair<std::shared_ptr<Tensor::Impl>, Tensor>>& gradients, bool graph) {
  const ModeGuard mode({graph, graph ? Mode::current().observer : nullptr});
  const std::size_t n = gradients.size();
  // Since then a hook may have made the Tensor a constant, or converted it.
  const auto left_alone = [&gradients](std::size_t i) {
    const auto& [tensor, gradient] = gradients[i];
    return tensor->node == nullptr || tensor->value->dtype != gradient.dtype();
  };
  std::vector<std::shared_ptr<Tensor::Impl>> before(n), after(n);  // both null: added to in place
  for (std::unique_lock lock(mutex);; lock.lock()) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto& grad = gradients[i].first->grad;
      const bool in_place = !graph && grad != nullptr && grad->node == nullptr &&
                            grad->value->dtype == gradients[i].second.dtype() &&
                            is_sole_owner(grad);
      before[i] = in_place ? nullptr : grad;
    }
    if (graph)  // add() may call an observer, which may do anything
      lock.unlock();
    for (std::size_t i = 0; i < n; ++i) {
      const auto& [tensor, gradient] = gradients[i];
      if (left_alone(i))
        continue;
      if (Tensor sum(before[i]); sum.defined() || graph || tensor->grad == nullptr) {
        accumulate(sum, gradient);
        after[i] = sum.handle();
      }
    }
    if (graph) {
      lock.lock();
      bool changed = false;  // by another thread, or by the observer: what was added up is old
      for (std::size_t i = 0; i < n; ++i)
        changed = changed || gradients[i].first->grad != before[i];
      if (changed) {
        lock.unlock();
        continue;
      }
    }
    // Nothing throws from here on.  Old gradients die after the lock is gone.
    for (std::size_t i = 0; i < n; ++i)
      if (after[i] != nullptr)
        gradients[i].first->grad = std::move(after[i]);
      else if (!left_alone(i))
        add_in_place(*gradients[i].first->grad->value, gradients[i].second);
    return;
  }
}

}  // namespace xgrad
