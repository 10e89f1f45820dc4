#include "tensor.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <new>
#include <numeric>
#include "engine.hpp"
#include "fail.hpp"
#include "kernels/copy.hpp"
#include "kernels/gemm.hpp"
#include "mode.hpp"
#include "ops.hpp"

namespace xgrad {

// ---- the value ----

void Tensor::undefined() {
  throw ValueError(
      "this Tensor is undefined: it was default-constructed, or is a gradient that nothing has "
      "filled");
}

void Tensor::wrong_dtype(DType asked) const {
  fail<DTypeError>("array: this Tensor is {}, not {}; convert it with to()", to_string(dtype()),
                   to_string(asked));
}

double Tensor::item() const {
  check<ShapeError>(numel() == 1, "item: a Tensor of shape {} has {} elements, not one",
                    to_string(shape()), numel());
  return dispatch(dtype(), [&]<class T>() { return static_cast<double>(*data<T>()); });
}

void Tensor::check_updatable() const {
  check<GraphError>(is_leaf(),
                    "update: this Tensor is the result of '{}'; update a leaf, or a detach() of it",
                    requires_grad() ? identity().node->op : "");
}

void Tensor::set_value(std::shared_ptr<const Value> value) {
  check_updatable();
  check<ValueError>(value != nullptr, "update: there is no new value");
  if (value->shape != shape())
    fail<ShapeError>("update: the new value has shape {} but this Tensor has shape {}",
                     to_string(value->shape), to_string(shape()));
  if (value->dtype != dtype())
    fail<DTypeError>("update: the new value is {} but this Tensor is {}", to_string(value->dtype),
                     to_string(dtype()));
  identity_->value = std::move(value);
}

// The owner of a Value's memory may hold a Tensor whose memory has another owner, and so on.  The
// rest of a long chain is queued in a list, because recursion would overflow the stack.
Value::~Value() {
  drop_bfloat16();
  constexpr int deepest = 100;
  static thread_local constinit int depth = 0;
  static thread_local constinit std::vector<std::shared_ptr<void>>* waiting = nullptr;
  if (depth == deepest)
    try {
      waiting->push_back(std::move(memory));
      return;
    } catch (const std::bad_alloc&) {  // destroyed at once, then
    }
  if (++depth > 1) {
    memory.reset();
  } else {
    std::vector<std::shared_ptr<void>> rest;
    waiting = &rest;
    memory.reset();
    while (!rest.empty()) {
      const std::shared_ptr<void> next = std::move(rest.back());
      rest.pop_back();
    }
    waiting = nullptr;
  }
  --depth;
}

const std::uint16_t* Value::bfloat16() const {
  if (const std::uint16_t* const made = bfloat16_.load(std::memory_order_acquire))
    return made;
  auto n = static_cast<std::size_t>(xgrad::numel(shape));
  std::uint16_t* const mine = Allocator<std::uint16_t>().allocate(n);
  kernels::round_to_bfloat16(n, data<float>(), mine);
  std::uint16_t* first = nullptr;
  if (bfloat16_.compare_exchange_strong(first, mine, std::memory_order_acq_rel))
    return mine;
  Allocator<std::uint16_t>().deallocate(mine, n);  // another thread was faster
  return first;
}

void Value::drop_bfloat16() const {
  if (std::uint16_t* const old = bfloat16_.exchange(nullptr, std::memory_order_acq_rel))
    Allocator<std::uint16_t>().deallocate(old, static_cast<std::size_t>(xgrad::numel(shape)));
}

void detail::make_sole_owner(std::shared_ptr<const Value>& value) {
  if (!detail::is_sole_owner(value))
    value = dispatch(value->dtype, [&]<class T>() {
      return detail::make_pooled<Value>(copy_of(value->data<T>(), value->shape));
    });
}

template <class T>
T* detail::writable_data(Tensor& x) {
  x.check_updatable();
  x.data<T>();  // checks the dtype
  detail::make_sole_owner(x.handle()->value);
  return x.handle()->value->writable_data<T>();
}
template float* detail::writable_data<float>(Tensor&);
template double* detail::writable_data<double>(Tensor&);

template <class T>
static Array<T> adopt(std::shared_ptr<T> memory, const Dims& sizes, std::size_t elements,
                      const char* from) {
  const Shape shape = to_shape(sizes, from);
  if (std::cmp_not_equal(numel(shape), elements))
    fail<ShapeError>("{}: {} elements for sizes {}, which make {}", from, elements,
                     to_string(shape), numel(shape));
  return elements == 0 ? empty_array<T>(shape) : Array<T>(std::move(memory), shape);
}

template <class E>
Tensor::Tensor(std::vector<E> elements, const Dims& sizes) {
  const auto owner = std::make_shared<std::vector<E>>(std::move(elements));
  *this = adopt(std::shared_ptr<E>(owner, owner->data()), sizes, owner->size(), "Tensor");
}
template Tensor::Tensor(std::vector<float>, const Dims&);
template Tensor::Tensor(std::vector<double>, const Dims&);

template <class T>
static Tensor blob(std::shared_ptr<T> data, const Dims& sizes) {
  const std::size_t n = numel(to_shape(sizes, "from_blob"));
  check<ValueError>(data != nullptr || n == 0, "from_blob: a null pointer for {} elements", n);
  check<ValueError>(reinterpret_cast<std::uintptr_t>(data.get()) % alignof(T) == 0,
                    "from_blob: the address is not a multiple of {}, as a {}'s must be", alignof(T),
                    to_string(dtype_of<T>));
  return adopt(std::move(data), sizes, n, "from_blob");
}
Tensor from_blob(std::shared_ptr<float> data, const Dims& sizes) {
  return blob(std::move(data), sizes);
}
Tensor from_blob(std::shared_ptr<double> data, const Dims& sizes) {
  return blob(std::move(data), sizes);
}

// ---- the graph ----

void Tensor::Identity::let_go() noexcept {
  detail::destroy(std::move(node));
  detail::destroy(std::move(frozen));
  while (grad.use_count() == 1)  // a loop, because gradients may form a chain
    grad = std::move(grad->grad);
}

bool Tensor::is_leaf() const {
  return identity().node == nullptr || identity().node->sequence == 0;
}

static std::shared_ptr<Node> leaf_node(const std::shared_ptr<Tensor::Identity>& identity,
                                       DType dtype) {
  auto node = detail::make_pooled<Node>();
  node->op = "leaf";
  node->shape = identity->value->shape;
  node->dtype = dtype;
  node->leaf = identity;
  return node;
}

Tensor& Tensor::requires_grad_(bool on) {
  check<GraphError>(is_leaf(),
                    "requires_grad_: this Tensor is the result of '{}'; only a leaf can change",
                    requires_grad() ? identity().node->op : "");
  if (!requires_grad() && identity_->frozen == nullptr)
    identity_->frozen = leaf_node(identity_, dtype());
  if (on != requires_grad())
    std::swap(identity_->node, identity_->frozen);
  return *this;
}

void detail::convert(std::span<const Tensor> leaves, DType dtype) {
  struct Converted {
    std::shared_ptr<const Value> value;
    std::shared_ptr<Node> node;
    std::shared_ptr<Tensor::Identity> grad;
  };
  std::map<std::shared_ptr<Tensor::Identity>, Converted> all;
  for (const Tensor& x : leaves) {
    check<GraphError>(x.is_leaf(), "to: a Tensor of shape {} is the result of '{}', not a leaf",
                      to_string(x.shape()), x.requires_grad() ? x.identity().node->op : "");
    const auto& identity = x.handle();
    if (x.dtype() == dtype || all.contains(identity))
      continue;
    Converted& to = all[identity];
    to.value = x.detach().to(dtype).identity().value;
    if (identity->node != nullptr || identity->frozen != nullptr)
      to.node = leaf_node(identity, dtype);
    if (identity->grad != nullptr)
      to.grad = x.grad().detach().to(dtype).handle();
  }
  for (auto& [identity, to] : all) {
    auto& node = identity->node != nullptr ? identity->node : identity->frozen;
    if (node != nullptr)
      to.node->hooks = std::move(node->hooks);
    node = std::move(to.node);
    identity->value = std::move(to.value);
    identity->grad = std::move(to.grad);
  }
}

void Tensor::set_grad(const Tensor& gradient) {
  if (gradient.defined() && (gradient.shape() != shape() || gradient.dtype() != dtype()))
    fail<ShapeError>("set_grad: a {} gradient of shape {} for a {} Tensor of shape {}",
                     to_string(gradient.dtype()), to_string(gradient.shape()), to_string(dtype()),
                     to_string(shape()));
  check<ValueError>(!gradient.defined() || gradient.identity_ != identity_,
                    "set_grad: a Tensor cannot be its own gradient; give it a detach()");
  identity();
  identity_->grad = gradient.identity_;
}

void Tensor::retain_grad() {
  check<GraphError>(requires_grad(), "retain_grad: this Tensor does not require a gradient");
  if (!is_leaf())  // a leaf keeps its gradient anyway
    identity_->node->leaf = identity_;
}

std::size_t Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) {
  check<GraphError>(requires_grad(), "register_hook: this Tensor does not require a gradient");
  check<ValueError>(hook != nullptr, "register_hook: there is no function to call");
  auto& hooks = identity_->node->hooks;
  static std::atomic<std::size_t> next_id{0};  // never reused, so an old id removes nothing
  const std::size_t id = next_id++;
  hooks.emplace_back(id, std::move(hook));
  return id;
}

void Tensor::remove_hook(std::size_t id) {
  const auto& node = requires_grad() ? identity_->node : identity_->frozen;
  if (node == nullptr)
    return;
  auto& hooks = node->hooks;
  const auto at = std::ranges::find(hooks, id, &std::pair<std::size_t, Node::Hook>::first);
  if (at == hooks.end())
    return;
  const auto removed = std::move(*at);  // destroying the hook may run any code, so it comes last
  hooks.erase(at);
}

void Tensor::backward() const { xgrad::backward({*this}); }
void Tensor::backward(const Tensor& gradient) const {
  xgrad::backward({*this}, {.grad_outputs = {gradient}});
}
void Tensor::backward(const GradOptions& options) const { xgrad::backward({*this}, options); }

// ---- from braces ----

Values::Values(std::initializer_list<Values> l) : list(l), is_list(true) {}

namespace {

// The shape of nested braces, from the first element of each list.
Shape shape_of(const Values& values) {
  Shape shape;
  for (const Values* v = &values; v->is_list; v = &v->list.front()) {
    shape.push_back(v->list.size());
    if (v->list.empty())
      break;
  }
  return shape;
}

// Appends the numbers in row-major order.  Throws if a list's length differs from the shape's.
template <class T>
void flatten_into(const char* op, const Values& values, const Shape& shape, std::size_t depth,
                  T*& out) {
  if (values.is_list != (depth < shape.size()))
    fail<ShapeError>("{}: ragged braces: a number next to a list at depth {}", op, depth);
  if (!values.is_list) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      const double number = values.number;
      if (!values.is_integer && (number != std::floor(number) || std::abs(number) > 0x1p53))
        fail<ValueError>("{}: {} is not an integer that an int64 holds exactly", op, number);
      *out++ = values.is_integer ? values.integer : static_cast<T>(number);
    } else {
      *out++ = static_cast<T>(values.number);
    }
    return;
  }
  if (std::cmp_not_equal(values.list.size(), shape[depth]))
    fail<ShapeError>("{}: ragged braces: a list of {} next to a list of {} at depth {}", op,
                     values.list.size(), shape[depth], depth);
  for (const Values& v : values.list)
    flatten_into(op, v, shape, depth + 1, out);
}

template <class T>
Array<T> to_array(const char* op, const Values& values) {
  auto a = empty_array<T>(shape_of(values));
  T* out = a.data();
  flatten_into(op, values, a.shape(), 0, out);
  return a;
}

template <class T>
constexpr const char* name_of = std::is_same_v<T, bool> ? "Mask" : "Indices";

}  // namespace

template <class T>
DiscreteTensor<T>::DiscreteTensor(std::initializer_list<Values> values)
    : DiscreteTensor(to_array<T>(name_of<T>, Values(values))) {}

template <class T>
T DiscreteTensor<T>::item() const {
  check<ShapeError>(numel() == 1, "item: {} of shape {} has {} elements, not one", name_of<T>,
                    to_string(shape()), numel());
  return *data();
}

template class DiscreteTensor<std::int64_t>;
template class DiscreteTensor<bool>;

Tensor tensor(const Values& values, DType dtype) {
  return dispatch(dtype, [&]<class T>() { return Tensor(to_array<T>("tensor", values)); });
}

void detail::count_nested(Shape& shape, std::size_t size, std::size_t depth) {
  if (depth == shape.size())
    shape.push_back(size);
  else if (shape[depth] != size)
    fail<ShapeError>("tensor: ragged vectors: one of {} next to one of {} at depth {}", size,
                     shape[depth], depth);
}

Tensor detail::tensor_of(const std::vector<double>& numbers, const Shape& shape, DType dtype) {
  return dispatch(dtype, [&]<class T>() {
    auto a = empty_array<T>(shape);
    std::ranges::transform(numbers, a.data(), [](double v) { return static_cast<T>(v); });
    return Tensor(std::move(a));
  });
}

// ---- from a rule ----

static Tensor filled(const Shape& shape, double value, DType dtype) {
  return dispatch(dtype, [&]<class T>() {
    auto a = empty_array<T>(shape);
    kernels::fill(a.data(), a.size(), static_cast<T>(value));
    return Tensor(std::move(a));
  });
}

// Element i is f(i), rounded from double.
template <class F>
static Tensor generated(std::size_t n, DType dtype, const F& f) {
  return dispatch(dtype, [&]<class T>() {
    auto a = empty_array<T>(Shape{n});
    for (std::size_t i = 0; i < n; ++i)
      a.data()[i] = static_cast<T>(f(i));
    return Tensor(std::move(a));
  });
}

Tensor zeros(const Dims& sizes, DType dtype) { return filled(to_shape(sizes, "zeros"), 0, dtype); }
Tensor ones(const Dims& sizes, DType dtype) { return filled(to_shape(sizes, "ones"), 1, dtype); }
Tensor full(const Dims& sizes, double value, DType dtype) {
  return filled(to_shape(sizes, "full"), value, dtype);
}
Tensor zeros_like(const Tensor& x) { return filled(x.shape(), 0, x.dtype()); }
Tensor ones_like(const Tensor& x) { return filled(x.shape(), 1, x.dtype()); }
Tensor full_like(const Tensor& x, double value) { return filled(x.shape(), value, x.dtype()); }

Tensor eye(Dim n, DType dtype) { return eye(n, n, dtype); }

Tensor eye(Dim n, Dim m, DType dtype) {
  const Shape shape = to_shape({n, m}, "eye");
  return dispatch(dtype, [&]<class T>() {
    auto a = empty_array<T>(shape);
    kernels::fill(a.data(), a.size(), T(0));
    for (Size i = 0; i < std::min(n, m); ++i)
      a.data()[i * m + i] = 1;
    return Tensor(std::move(a));
  });
}

Tensor arange(double start, double end, double step, DType dtype) {
  check<ValueError>(step != 0, "arange: step is 0");
  const double n = std::ceil((end - start) / step);
  if (!(n < 1e15))
    fail<ValueError>("arange: {} to {} in steps of {} has no end", start, end, step);
  if (n < 0)
    fail<ValueError>("arange: steps of {} lead from {} away from {}", step, start, end);
  return generated(to_size(static_cast<Size>(n)), dtype,
                   [=](std::size_t i) { return start + step * static_cast<double>(i); });
}

Tensor arange(double start, double end, DType dtype) { return arange(start, end, 1, dtype); }
Tensor arange(double end, DType dtype) { return arange(0, end, dtype); }

Tensor linspace(double start, double end, Dim size, DType dtype) {
  check<ValueError>(size >= 0, "linspace: steps is {}; it must not be negative", size);
  const std::size_t steps = to_size(size);
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  // Computed from the nearer end, so that both ends are exact.
  return generated(steps, dtype, [=](std::size_t i) {
    return i < (steps + 1) / 2 ? start + step * static_cast<double>(i)
                               : end - step * static_cast<double>(steps - 1 - i);
  });
}

template <class T>
static Array<T> repeated(const Shape& shape, T value) {
  auto a = empty_array<T>(shape);
  std::ranges::fill(a, value);
  return a;
}
Indices full_indices(const Dims& sizes, Dim value) {
  return repeated(to_shape(sizes, "full_indices"), value.value);
}
Mask full_mask(const Dims& sizes, bool value) {
  return repeated(to_shape(sizes, "full_mask"), value);
}

Indices arange_indices(Dim start, Dim end) {
  check<ValueError>(start <= end, "arange_indices: start {} is above end {}", start, end);
  const Dim n = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(start);
  auto a = empty_array<std::int64_t>(to_shape({n}, "arange_indices"));
  std::iota(a.data(), a.data() + a.size(), start.value);
  return a;
}

Indices arange_indices(Dim end) { return arange_indices(0, end); }

Tensor scalar(double value, DType dtype) { return filled(Shape{}, value, dtype); }

// ---- members that are functions of ops.hpp ----

#include "members_defined.inc"

template <class X>
static X matrix_transpose(const X& x) {
  if (x.dim() > 2)
    fail<ShapeError>("t: x {} has more than two dimensions; transpose() and permute() take any",
                     to_string(x.shape()));
  return x.dim() == 2 ? transpose(x, 0, 1) : x;
}
Tensor Tensor::t() const { return matrix_transpose(*this); }
Tensor Tensor::mT() const {
  if (dim() < 2)
    fail<ShapeError>("mT: x {} has no last two dimensions to exchange", to_string(shape()));
  return transpose(-2, -1);
}
template <>
Indices Indices::t() const {
  return matrix_transpose(*this);
}
template <>
Mask Mask::t() const {
  return matrix_transpose(*this);
}
Tensor Tensor::operator-() const { return neg(); }
Tensor Tensor::operator[](Dim index) const { return select(0, index); }
Tensor Tensor::operator[](const Slice& part) const {
  return slice(0, part.start, part.end, part.step);
}

void Tensor::copy_(const Tensor& from) {
  check_updatable();
  check<ValueError>(from.defined(), "copy_: the Tensor to copy from is undefined");
  const ModeGuard unseen({false, nullptr});  // nor traced: it is no step of the computation
  const Tensor value = from.to(dtype());
  set_value((value.shape() == shape() ? value : xgrad::expand(value, shape())).identity().value);
}
void Tensor::fill_(double number) { copy_(scalar(number, dtype())); }

}  // namespace xgrad
