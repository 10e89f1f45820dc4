#pragma once
// Tensor: a cheap handle on a value and on the node of the graph that made it.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include "buffer.hpp"
#include "error.hpp"

namespace xt {
template <class E>
class xexpression;
}

namespace xgrad {

class Node;
class Tensor;
struct Extremum;
struct GradOptions;
enum class RoundingMode;
struct Slice;

namespace detail {

template <class E>
using value_type_of = std::remove_cv_t<typename std::remove_cvref_t<E>::value_type>;
template <class A, class B>
inline constexpr bool both_bool_or_neither = std::is_same_v<A, bool> == std::is_same_v<B, bool>;
template <class V, class T>
inline constexpr bool integers_or_vectors = std::is_integral_v<V> && both_bool_or_neither<V, T>;
template <class V, class T>
inline constexpr bool integers_or_vectors<std::vector<V>, T> = integers_or_vectors<V, T>;

/// Releases a node.  If this is the last handle, the node is destroyed: at once, or after another
/// node whose destruction on this thread is under way.  Nodes hold nodes in chains of any length,
/// so they are destroyed in a loop, not by recursion.
void destroy(std::shared_ptr<Node> node) noexcept;

/// The elements of a leaf for writing in place, copied first if they are shared.  For optimizers,
/// which write at once and keep no pointer.  Errors as of update().
template <class T>
T* writable_data(Tensor& x);

/// Changes the dtype of leaves and constants behind all their handles, with their grad(): all or,
/// if anything throws, none.  Older graphs no longer reach them.  GraphError on the result of an
/// op.
void convert(std::span<const Tensor> leaves, DType dtype);
}  // namespace detail

/// A backward formula captures this in place of a Tensor: the Tensor's value and its place in the
/// graph at that time, which never change.  So an update() between forward and backward cannot
/// corrupt a gradient.
struct Saved {
  std::shared_ptr<const Value> value;
  std::shared_ptr<Node> node;  ///< null for a constant

  Saved() = default;
  Saved(std::shared_ptr<const Value> v, std::shared_ptr<Node> n)
      : value(std::move(v)), node(std::move(n)) {}
  Saved(const Tensor& x);  ///< empty for an undefined one
  Saved(const Saved&) = default;
  Saved(Saved&&) = default;
  Saved& operator=(const Saved&) = default;
  Saved& operator=(Saved&&) = default;
  ~Saved() {
    if (node.use_count() == 1)
      detail::destroy(std::move(node));
  }
  Tensor tensor() const;
  explicit operator bool() const { return value != nullptr; }
};

template <class N>
concept Arithmetic = std::is_arithmetic_v<N>;
/// The types of a Tensor's elements.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double>;

/// A list of numbers, or of such lists, as written in braces: {{1, 2}, {3, 4}}.
struct Values {
  std::vector<Values> list;
  double number = 0;
  std::int64_t integer = 0;  ///< the same number, exact, if is_integer
  bool is_list = false, is_integer = false;
  template <Arithmetic N>
  Values(N n) : number(static_cast<double>(n)), is_integer(std::is_integral_v<N>) {
    if constexpr (std::is_integral_v<N>)
      integer = static_cast<std::int64_t>(n);
    if constexpr (std::is_unsigned_v<N>)
      is_integer = is_integer && integer >= 0;  // an int64 holds it
  }
  Values(std::initializer_list<Values> l);
};

/// xtensor's containers, views, adaptors and lazy expressions.  Conversions: xtensor.hpp.
template <class E>
concept XtensorExpression =
    std::is_base_of_v<xt::xexpression<std::remove_cvref_t<E>>, std::remove_cvref_t<E>>;
template <class E>
concept XtensorOfElements = XtensorExpression<E> && Element<detail::value_type_of<E>>;
/// Integers for Indices, bools for a Mask.
template <class E, class T>
concept XtensorOfIntegers = XtensorExpression<E> && std::integral<detail::value_type_of<E>> &&
                            detail::both_bool_or_neither<detail::value_type_of<E>, T>;

/// Integers for Indices, bools for a Mask, and vectors of these.
template <class V, class T>
concept IntegersOrVectors = detail::integers_or_vectors<V, T>;

template <class T>
class DiscreteTensor;
class IndexOperand;  // ops/indices.hpp
/// Token ids and positions (int64).
using Indices = DiscreteTensor<std::int64_t>;
/// Truth values: comparisons return them, and where(), masked_fill() and attention take them.
using Mask = DiscreteTensor<bool>;
/// A type that is Mask itself: braces do not convert, so x[{0, 2}] is x[Slice{0, 2}].
template <class M>
concept MaskIndex = std::same_as<M, Mask>;

/// An immutable array of integers or bools, never differentiated.  Copying one copies a handle.
template <class T>
class DiscreteTensor {
 public:
  DiscreteTensor() : DiscreteTensor(Array<T>()) {}
  /// There is no move: a handle that was moved from would be empty.
  DiscreteTensor(const DiscreteTensor&) = default;
  DiscreteTensor& operator=(const DiscreteTensor&) = default;
  DiscreteTensor(Array<T> array) : array_(std::make_shared<const Array<T>>(std::move(array))) {}
  /// {0, 2, 1}, {{0, 1}, {2, 3}}; ShapeError if ragged.
  DiscreteTensor(std::initializer_list<Values> values);
  /// From xtensor: a row-major container that is moved in is not copied; all else is.
  template <XtensorOfIntegers<T> E>
  DiscreteTensor(E&& expression);
  /// A std::vector of integers (for a Mask of bools), or of vectors of such vectors.
  template <class V>
    requires IntegersOrVectors<V, T>
  explicit DiscreteTensor(const std::vector<V>& values);

  auto array() const;  ///< an xtensor expression that shares the memory (xtensor.hpp)
  const Shape& shape() const { return array_->shape(); }
  Size dim() const { return static_cast<Size>(shape().size()); }
  Size size(Dim d) const { return shape()[normalize_dim(d, dim(), "size")]; }
  Size numel() const { return static_cast<Size>(array_->size()); }
  /// Not from a temporary, whose elements would be gone: name it first.
  const T* data() const& { return array_->data(); }
  const T* data() const&& = delete;
  T item() const;  ///< the only element; ShapeError if there are more or none

  // ---- as members of Tensor: scripts/members makes these from ops/indices.hpp ----
#include "discrete_members_declared.inc"
  DiscreteTensor t() const;
  DiscreteTensor operator[](Dim index) const;
  DiscreteTensor operator[](const Slice& slice) const;
  DiscreteTensor operator[](const MaskIndex auto& mask) const;

  /// The elements from `offset` on, as many as `shape` has, on the same memory.
  DiscreteTensor contiguous_view(std::size_t offset, const Shape& shape) const {
    return Array<T>(std::shared_ptr<T>(array_, const_cast<T*>(data()) + offset), shape);
  }

 private:
  std::shared_ptr<const Array<T>> array_;
};

/// A multidimensional array of float32 or float64 that remembers how it was computed.
///
/// Copying a Tensor copies a handle: both see the same value and the same gradient.  `a += b` and
/// `a = a + b` let the handle `a` refer to a new Tensor and do not affect other handles; update(),
/// copy_() and fill_() change the value.
class Tensor {
 public:
  /// The state that all handles on one Tensor share.
  struct Identity {
    std::shared_ptr<const Value> value;
    std::shared_ptr<Node> node;      ///< null: a constant
    std::shared_ptr<Identity> grad;  ///< of leaves, and of others after retain_grad()
    std::shared_ptr<Node> frozen;    ///< a leaf's node after requires_grad_(false)

    Identity(std::shared_ptr<const Value> v, std::shared_ptr<Node> n)
        : value(std::move(v)), node(std::move(n)) {}
    Identity(const Identity&) = delete;
    Identity& operator=(const Identity&) = delete;
    ~Identity() {
      if (node.use_count() == 1 || grad != nullptr || frozen != nullptr)
        let_go();
    }

   private:
    void let_go() noexcept;
  };

  Tensor() = default;  ///< undefined: no value
  template <Element T>
  Tensor(Array<T>&& array) : Tensor(detail::make_pooled<Value>(std::move(array)), nullptr) {}
  /// From xtensor: a row-major container that is moved in is not copied; all else is.  For elements
  /// other than float and double use xt::cast<float>(...), or Indices and Mask.  Needs xtensor.hpp.
  template <XtensorOfElements E>
  Tensor(E&& expression);
  /// A std::vector's elements, not copied if it is moved in; 1-d unless sizes are given.
  template <Element T>
  explicit Tensor(std::vector<T> elements) {
    const Dims size(elements.size());  // before they move: the order of evaluation is open
    *this = Tensor(std::move(elements), size);
  }
  template <class T>
  Tensor(std::vector<T> elements, const Dims& sizes);
  Tensor(std::shared_ptr<const Value> value, std::shared_ptr<Node> node)
      : identity_(detail::make_pooled<Identity>(std::move(value), std::move(node))) {}
  explicit Tensor(std::shared_ptr<Identity> identity) : identity_(std::move(identity)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  Tensor& operator=(const Tensor&) && = delete;  ///< `t[0] = x` would not change t

  bool defined() const { return identity_ != nullptr; }
  const Shape& shape() const { return identity().value->shape; }
  DType dtype() const { return identity().value->dtype; }
  Size dim() const { return static_cast<Size>(shape().size()); }
  Size size(Dim d) const { return shape()[normalize_dim(d, dim(), "size")]; }
  Size numel() const { return xgrad::numel(shape()); }

  /// The value as a read-only xtensor expression on the same memory: it can be indexed, viewed,
  /// reduced and assigned to an array, and later updates do not change it.  DTypeError if T is not
  /// the dtype.  Needs xtensor.hpp.
  template <class T>
  auto array() const;
  /// The elements, row-major; valid until the next update().  DTypeError if T is not the dtype.
  /// Not from a temporary, whose elements would be destroyed: name the Tensor first.
  template <class T>
  const T* data() const& {
    const Value& value = *identity().value;
    if (value.dtype != dtype_of<T>)
      wrong_dtype(dtype_of<T>);
    return value.data<T>();
  }
  template <class T>
  const T* data() const&& = delete;
  /// The only element, as a double.  ShapeError if there are more or none.
  double item() const;

  // ---- the graph ----
  bool requires_grad() const { return identity().node != nullptr; }
  bool is_leaf() const;
  /// Makes a constant a leaf that accumulates gradients, or a leaf a frozen constant.  A leaf that
  /// becomes a constant and a leaf again is the same leaf, with its hooks, also in older graphs;
  /// while it is a constant, they do not change its grad().  GraphError on the result of an op.
  Tensor& requires_grad_(bool on = true);
  /// Whether requires_grad_(false) was called: a parameter that is not trained on purpose.
  bool is_frozen() const { return identity().frozen != nullptr; }
  /// The accumulated gradient; undefined if there is none.
  Tensor grad() const { return Tensor(identity().grad); }
  void set_grad(const Tensor& gradient);  ///< an undefined one clears it
  void zero_grad() { set_grad({}); }      ///< as PyTorch's set_to_none
  void retain_grad();                     ///< makes backward() fill grad() of the result of an op
  /// Calls hook with this Tensor's complete gradient in every run; its result, if defined, replaces
  /// the gradient.  Returns an id for remove_hook().
  std::size_t register_hook(std::function<Tensor(const Tensor&)> hook);
  void remove_hook(std::size_t id);
  /// Adds d this / d leaf to the grad() of every leaf.  Unless this has one element, its own
  /// gradient is required.
  void backward() const;
  void backward(const Tensor& gradient) const;
  void backward(const GradOptions& options) const;

  Tensor detach() const { return Tensor(identity().value, nullptr); }  ///< the same value, no graph

  /// Changes the value: calls f with a copy, an `xt::xarray<float>&` or `xt::xarray<double>&`,
  /// which then becomes the value.  Graphs and Tensors that share the value keep the old one.
  /// ShapeError if f changed the shape; if anything throws, the value is as before.  GraphError on
  /// the result of an op that requires a gradient, because the graph describes the old value.
  /// Needs xtensor.hpp.
  template <class F>
  void update(F&& f);
  /// Changes the value to another Tensor's, broadcast and converted as by PyTorch's copy_(), or to
  /// one number.  Needs no xtensor.hpp.
  void copy_(const Tensor& from);
  void fill_(double number);
  void zero_() { fill_(0); }
  /// Changes the value to an array of the same dtype and shape.
  void set_value(std::shared_ptr<const Value> value);
  void check_updatable() const;  ///< GraphError unless this is a leaf

  // ---- ops as members, x.softmax(-1): scripts/members makes these from ops.hpp ----
#include "members_declared.inc"
  Tensor t() const;  ///< the transpose of a matrix; x itself if it has fewer dimensions
  Tensor T() const { return t(); }
  Tensor mT() const;  ///< transpose(-2, -1): of each matrix; ShapeError if there is none
  Tensor operator-() const;
  Tensor operator[](Dim index) const;           ///< select(0, index)
  Tensor operator[](const Slice& slice) const;  ///< x[Slice{0, 2}] is Python's x[0:2]
  /// The elements at which the mask, of the first dimensions' sizes, is true: (n, the other sizes).
  Tensor operator[](const MaskIndex auto& mask) const;

  const std::shared_ptr<Identity>& handle() const { return identity_; }
  const Identity& identity() const {
    if (identity_ == nullptr)
      undefined();
    return *identity_;
  }

 private:
  [[noreturn]] static void undefined();
  [[noreturn]] void wrong_dtype(DType asked) const;

  std::shared_ptr<Identity> identity_;
};

inline Saved::Saved(const Tensor& x) {
  if (x.defined())
    *this = {x.identity().value, x.identity().node};
}
inline Tensor Saved::tensor() const { return value == nullptr ? Tensor() : Tensor(value, node); }

}  // namespace xgrad
