#pragma once
// Tensor: a cheap handle on a value and on the node of the graph that made it.

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include <xgrad/autograd/array.hpp>

namespace xgrad {

class Node;
class Tensor;
struct GradOptions;
struct Slice;

/// What a Tensor's value is kept in: an array of either dtype.  Shared between handles, and never
/// changed while shared.
struct Storage {
  std::variant<Array<float>, Array<double>> data;

  template <class T>
  explicit Storage(Array<T> array) : data(std::move(array)) {}
  DType dtype() const { return static_cast<DType>(data.index()); }
  const Shape& shape() const {
    const auto* const f = std::get_if<0>(&data);
    return f != nullptr ? f->shape() : std::get_if<1>(&data)->shape();
  }
  template <class T>
  Array<T>& get() {
    return std::get<Array<T>>(data);
  }
  template <class T>
  const Array<T>& get() const {
    return std::get<Array<T>>(data);
  }
};

/// What a backward formula captures of a Tensor: its value and its place in the graph.  Unlike a
/// Tensor's, these never change, so an update() between forward and backward cannot corrupt a
/// gradient.
struct Saved {
  std::shared_ptr<const Storage> value;
  std::shared_ptr<Node> node;  ///< null for a constant

  Saved() = default;
  Saved(std::shared_ptr<const Storage> v, std::shared_ptr<Node> n)
      : value(std::move(v)), node(std::move(n)) {}
  Saved(const Tensor& x);
  Tensor tensor() const;
  explicit operator bool() const { return value != nullptr; }
};

/// A list of numbers, or of such lists, as written in braces: {{1, 2}, {3, 4}}.
struct Values {
  std::vector<Values> list;
  double number = 0;
  bool is_list = false;
  template <class N>
  requires std::is_arithmetic_v<N> Values(N n) : number(static_cast<double>(n)) {}
  Values(std::initializer_list<Values> l) : list(l), is_list(true) {}
};

/// An immutable array of things that are never differentiated.  Copying one copies a handle.
template <class T>
class Plain {
 public:
  Plain() : Plain(Array<T>::from_shape(Shape{0})) {}
  Plain(Array<T> array) : array_(std::make_shared<const Array<T>>(std::move(array))) {}
  Plain(
      std::initializer_list<Values> values);  ///< {0, 2, 1}, {{0, 1}, {2, 3}}; ShapeError if ragged
  template <class E>
  requires(!std::same_as<E, Array<T>>) Plain(const xt::xexpression<E>& expression)
      : Plain(Array<T>(expression)) {}

  const Array<T>& array() const& { return *array_; }
  Array<T> array() && { return *array_; }
  const Shape& shape() const { return array_->shape(); }
  std::size_t dim() const { return array_->dimension(); }
  std::size_t size(std::int64_t d) const { return shape()[normalize_dim(d, dim(), "size")]; }
  std::size_t numel() const { return array_->size(); }
  const T* data() const { return array_->data(); }
  T item() const;  ///< the only element; ShapeError if there are more or none

 private:
  std::shared_ptr<const Array<T>> array_;
};

/// Token ids and positions (int64).
using Indices = Plain<std::int64_t>;
/// Truth values: what comparisons return, and what where(), masked_fill() and attention take.
using Mask = Plain<bool>;

/// A multidimensional array of float32 or float64 that remembers how it was computed.
///
/// Copying a Tensor copies a handle: both see the same value and the same gradient.  `a += b` and
/// `a = a + b` make the handle `a` name a new Tensor and leave other handles on the old one alone;
/// update() is the one way to change a value.
class Tensor {
 public:
  struct Impl {
    std::shared_ptr<const Storage> value;
    std::shared_ptr<Node> node;  ///< null: a constant
    std::shared_ptr<Impl> grad;  ///< of leaves, and of others after retain_grad()
  };

  Tensor() = default;  ///< undefined: no value
  template <class T>
  requires std::same_as<T, float> || std::same_as<T, double> Tensor(Array<T> array)
      : Tensor(make_pooled<Storage>(std::move(array)), nullptr) {}
  Tensor(std::shared_ptr<const Storage> value, std::shared_ptr<Node> node)
      : impl_(make_pooled<Impl>(Impl{std::move(value), std::move(node), nullptr})) {}
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_ != nullptr; }
  const Shape& shape() const { return impl().value->shape(); }
  DType dtype() const { return impl().value->dtype(); }
  std::size_t dim() const { return shape().size(); }
  std::size_t size(std::int64_t d) const { return shape()[normalize_dim(d, dim(), "size")]; }
  std::size_t numel() const { return xgrad::numel(shape()); }

  /// The value as an xtensor array; good until the next update().  DTypeError if T is not the
  /// dtype.  Not from a temporary, whose array would be gone: name the Tensor first.
  template <class T>
  const Array<T>& array() const& {
    const auto* const a = std::get_if<Array<T>>(&impl().value->data);
    if (a == nullptr)
      wrong_dtype(dtype_of<T>);
    return *a;
  }
  template <class T>
  const Array<T>& array() const&& = delete;
  template <class T>
  const T* data() const {
    return array<T>().data();
  }
  /// The only element, as a double.  ShapeError if there are more or none.
  double item() const;

  // ---- the graph ----
  bool requires_grad() const { return impl().node != nullptr; }
  bool is_leaf() const;
  /// Makes a constant a leaf that gathers gradients, or a leaf a constant.  GraphError on the
  /// result of an op.
  Tensor& requires_grad_(bool on = true);
  /// The gathered gradient; undefined if there is none.
  Tensor grad() const { return Tensor(impl().grad); }
  void set_grad(const Tensor& gradient);  ///< an undefined one clears it
  void zero_grad() { set_grad({}); }      ///< as PyTorch's set_to_none
  void retain_grad();                     ///< makes backward() fill grad() of the result of an op
  /// Calls hook with this Tensor's complete gradient in every run; what it returns, if defined,
  /// replaces the gradient. Returns what remove_hook() takes.
  std::size_t register_hook(std::function<Tensor(const Tensor&)> hook);
  void remove_hook(std::size_t id);
  /// Adds d this / d leaf to the grad() of every leaf.  A Tensor of several elements needs the
  /// gradient of its own.
  void backward() const;
  void backward(const Tensor& gradient) const;
  void backward(const GradOptions& options) const;

  Tensor detach() const { return Tensor(impl().value, nullptr); }  ///< the same value, no graph
  Tensor clone() const;                                            ///< a copy; differentiable
  Tensor to(DType dtype) const;                                    ///< converted; differentiable

  /// Changes the value: f is called with the array, an `Array<float>&` or `Array<double>&`, and
  /// must keep its shape.  The array is copied first if a graph or another Tensor still holds it.
  /// GraphError on the result of an op that requires a gradient, because its value would no longer
  /// be what its graph says.
  template <class F>
  void update(F&& f) {
    std::visit([&](auto& a) { f(a); }, writable().data);
    check_updated();
  }

  // ---- ops as members: the same as the functions in ops.hpp ----
  Tensor operator-() const;
  Tensor pow(double exponent) const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor abs() const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor clamp(std::optional<double> min, std::optional<double> max) const;
  Tensor clamp(const Tensor& min, const Tensor& max) const;
  Tensor sum() const;
  Tensor sum(const Dims& dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(const Dims& dims, bool keepdim = false) const;
  Tensor var(const Dims& dims, double correction = 1, bool keepdim = false) const;
  Tensor std(const Dims& dims, double correction = 1, bool keepdim = false) const;
  Tensor amax(const Dims& dims, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  Tensor norm() const;
  Tensor matmul(const Tensor& other) const;
  Tensor reshape(const Dims& sizes) const;
  Tensor view(const Dims& sizes) const;
  Tensor flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1) const;
  Tensor permute(const Dims& dims) const;
  Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
  Tensor t() const;
  Tensor squeeze() const;
  Tensor squeeze(const Dims& dims) const;
  Tensor unsqueeze(std::int64_t dim) const;
  Tensor expand(const Dims& sizes) const;
  std::vector<Tensor> split(std::size_t split_size, std::int64_t dim = 0) const;
  std::vector<Tensor> chunk(std::size_t chunks, std::int64_t dim = 0) const;
  Tensor narrow(std::int64_t dim, std::int64_t start, Dim length) const;
  Tensor select(std::int64_t dim, std::int64_t index) const;
  Tensor masked_fill(const Mask& mask, double value) const;
  Tensor masked_fill(const Mask& mask, const Tensor& value) const;
  Tensor cumsum(std::int64_t dim) const;
  Tensor softmax(std::int64_t dim) const;
  Tensor log_softmax(std::int64_t dim) const;
  Indices argmax() const;
  Indices argmax(std::int64_t dim, bool keepdim = false) const;
  Tensor operator[](std::int64_t index) const;  ///< select(0, index)
  Tensor operator[](const Slice& slice) const;  ///< x[Slice{0, 2}] is Python's x[0:2]

  const std::shared_ptr<Impl>& handle() const { return impl_; }
  const Impl& impl() const {
    if (impl_ == nullptr)
      undefined();
    return *impl_;
  }

 private:
  [[noreturn]] static void undefined();
  [[noreturn]] void wrong_dtype(DType asked) const;
  Storage& writable();
  void check_updated() const;

  std::shared_ptr<Impl> impl_;
};

inline Saved::Saved(const Tensor& x) : value(x.impl().value), node(x.impl().node) {}
inline Tensor Saved::tensor() const { return Tensor(value, node); }

}  // namespace xgrad
