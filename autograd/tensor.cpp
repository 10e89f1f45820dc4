#include <xgrad/autograd/tensor.hpp>

#include <algorithm>
#include <xgrad/autograd/check.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

// ---- the value ----------------------------------------------------------------------------------------------------------

void Tensor::undefined() {
  throw ValueError("this Tensor is undefined: it was default-constructed, or is a gradient that nothing has filled");
}

void Tensor::wrong_dtype(DType asked) const {
  fail<DTypeError>("array: this Tensor is {}, not {}; convert it with to()", to_string(dtype()), to_string(asked));
}

double Tensor::item() const {
  check<ShapeError>(numel() == 1, "item: a Tensor of shape {} has {} elements, not one", to_string(shape()), numel());
  return dispatch(dtype(), [&]<class T>() { return static_cast<double>(*data<T>()); });
}

void Tensor::check_updated() const {
  if (requires_grad() && shape() != impl().node->shape)
    fail<ShapeError>("update: the new value has shape {} but this Tensor has shape {}", to_string(shape()),
                     to_string(impl().node->shape));
}

// Under copy-on-write the storage may be changed only if this handle's Impl is the only one that holds it.
Storage& Tensor::writable() {
  check<GraphError>(is_leaf(), "update: this Tensor is the result of '{}'; update a leaf, or a detach() of it",
                    requires_grad() ? impl().node->op : "");
  auto& value = impl_->value;
  if (value.use_count() > 1)
    value = std::make_shared<const Storage>(*value);
  return const_cast<Storage&>(*value);
}

// ---- the graph ----------------------------------------------------------------------------------------------------------

bool Tensor::is_leaf() const { return impl().node == nullptr || impl().node->sequence == 0; }

Tensor& Tensor::requires_grad_(bool on) {
  check<GraphError>(is_leaf(), "requires_grad_: this Tensor is the result of '{}'; only a leaf can change",
                    requires_grad() ? impl().node->op : "");
  if (on == requires_grad())
    return *this;
  impl_->node = nullptr;
  if (on) {
    impl_->node = std::make_shared<Node>();
    impl_->node->op = "leaf";
    impl_->node->shape = shape();
    impl_->node->dtype = dtype();
    impl_->node->keeper = impl_;
  }
  return *this;
}

void Tensor::set_grad(const Tensor& gradient) {
  if (gradient.defined() && (gradient.shape() != shape() || gradient.dtype() != dtype()))
    fail<ShapeError>("set_grad: a {} gradient of shape {} for a {} Tensor of shape {}", to_string(gradient.dtype()),
                     to_string(gradient.shape()), to_string(dtype()), to_string(shape()));
  impl();
  impl_->grad = gradient.impl_;
}

void Tensor::retain_grad() {
  check<GraphError>(requires_grad(), "retain_grad: this Tensor does not require a gradient");
  impl_->node->keeper = impl_;
}

std::size_t Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) {
  check<GraphError>(requires_grad(), "register_hook: this Tensor does not require a gradient");
  auto& hooks = impl_->node->hooks;
  const std::size_t id = hooks.empty() ? 0 : hooks.back().first + 1;
  hooks.emplace_back(id, std::move(hook));
  return id;
}

void Tensor::remove_hook(std::size_t id) {
  if (requires_grad())
    std::erase_if(impl_->node->hooks, [id](const auto& entry) { return entry.first == id; });
}

void Tensor::backward() const { xgrad::backward({*this}); }
void Tensor::backward(const Tensor& gradient) const { xgrad::backward({*this}, {.grad_outputs = {gradient}}); }
void Tensor::backward(const GradOptions& options) const { xgrad::backward({*this}, options); }
Tensor scalar(double value, DType dtype) {
  return dispatch(dtype, [&]<class T>() {
    auto a = empty_array<T>(Shape{});
    *a.data() = static_cast<T>(value);
    return Tensor(std::move(a));
  });
}
Tensor ones_like(const Tensor& x) { return scalar(1.0, x.dtype()); }
Tensor sum_to(const Tensor& x, const Shape&) { return x; }
}
namespace xgrad { Tensor Tensor::operator-() const { return neg(*this); } }
