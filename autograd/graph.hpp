#pragma once
// The graph: how ops are recorded.
//
// An op calls record(), which runs the op's forward and, if a gradient may be needed, makes a Node:
// one vertex of the graph, with an edge to the node of each input and the op's backward formula.
// engine.hpp describes how gradients flow back.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include "mode.hpp"
#include "tensor.hpp"
#include "trace.hpp"

namespace xgrad {

class Context;

/// Needs of an op's formula besides its captures.
struct Flags {
  bool broadcasts = false;    ///< the engine sums gradients to the inputs' shapes
  bool saves_output = false;  ///< ctx.output() is used
};

namespace detail {

/// The nodes of an op's inputs, in their order; null where no gradient is needed.  Two fit inside,
/// because few ops have more and a long chain should not pay for them.
class Edges {
 public:
  void assign(std::span<const Tensor> inputs);
  std::size_t size() const { return size_; }
  std::shared_ptr<Node>* begin() { return many_ != nullptr ? many_.get() : few_.data(); }
  std::shared_ptr<Node>* end() { return begin() + size_; }
  const std::shared_ptr<Node>* begin() const {
    return many_ != nullptr ? many_.get() : few_.data();
  }
  const std::shared_ptr<Node>* end() const { return begin() + size_; }
  const std::shared_ptr<Node>& operator[](std::size_t i) const { return begin()[i]; }

 private:
  std::size_t size_ = 0;
  std::array<std::shared_ptr<Node>, 2> few_;
  std::unique_ptr<std::shared_ptr<Node>[]> many_;
};

template <class Backward>
class OpNode;

/// Whether gradients are enabled and one of these inputs requires one.
bool any_requires_grad(std::span<const Tensor> inputs);
/// Makes `node` the node of y, a Tensor with no other handle yet; part of record().
void attach(const Tensor& y, std::shared_ptr<Node> node, std::string_view op,
            std::span<const Tensor> inputs, Flags flags);

/// forward(in), or forward<T>(in) with the element type of in[0]; neither recorded nor observed.
template <class F>
Tensor run_forward(const F& forward, std::span<const Tensor> in) {
  const ModeGuard inside({false, nullptr});
  if constexpr (requires { forward.template operator()<float>(in); })
    return dispatch(in[0].dtype(),
                    [&]<class T>() { return Tensor(forward.template operator()<T>(in)); });
  else
    return forward(in);
}

/// Whether record() checks captures even without an observer, as debug builds do.
inline bool checks_captures = false;
#ifdef NDEBUG
constexpr bool debug_build = false;
#else
constexpr bool debug_build = true;
#endif

/// GraphError if a formula owns a Tensor among the inputs: one that captures [x] does, and one that
/// captures [x = Saved(x)] does not.  `copied` calls its argument while such a copy lives.
void check_captures(std::string_view op, std::span<const Tensor> inputs,
                    const std::function<void(const std::function<void()>&)>& copied);

}  // namespace detail

/// A vertex of the graph: a leaf, or one use of an op.  It owns the values that its formula
/// captured and not its op's output, so an activation that no formula needs is freed in the forward
/// pass.
class Node {
 public:
  using Hook = std::function<Tensor(const Tensor&)>;

  std::string op;  ///< "mul"; "leaf"
  /// 0 for leaves, else 1 + the inputs' largest.  So falling sequence is a topological order, even
  /// of a graph that several threads built.
  std::uint64_t sequence = 0;
  Shape shape;  ///< of the output
  DType dtype = DType::float32;
  bool broadcasts = false;  ///< gradients are summed to the inputs' shapes
  detail::Edges inputs;
  std::shared_ptr<const Value> output;  ///< only if the formula uses it (Flags)
  /// The Tensor whose grad is filled, if this is a leaf's node.  Weak, because a grad with a graph
  /// would own itself otherwise.
  std::weak_ptr<Tensor::Identity> leaf;
  std::vector<std::pair<std::size_t, Hook>> hooks;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node();  ///< a chain of inputs is destroyed in a loop: detail::destroy()
  /// Runs the op's backward: reads ctx.gradient(), the gradient of the op's output, and adds the
  /// gradients of its inputs.  Returns false if there is no formula: in leaves, and once freed.
  virtual bool backward(Context&) { return false; }
  /// Drops formula and captures.  Edges and hooks stay, because another run may pass this node.
  virtual void free();
  /// The node of input i; ValueError if the op has no such input.
  const std::shared_ptr<Node>& input(std::size_t i) const;
  /// DTypeError or ShapeError, naming giver and i, unless this gradient fits the output.
  void check_gradient(const Tensor& gradient, std::string_view giver, std::size_t i) const;

 private:
  friend void detail::destroy(std::shared_ptr<Node> node) noexcept;
  std::shared_ptr<Node> next_doomed_;  ///< the next node that waits for destruction
};

/// The buffer into which a kernel writes the gradient of an input: data = gradient + beta * data.
template <class T>
struct GradientBuffer {
  T* data;
  T beta;  ///< 0: the memory holds garbage; 1: add to it
};

/// Gives a backward formula the gradient of the output and takes the inputs' gradients.
class Context {
 public:
  class Run;
  Context(Run& run, const std::shared_ptr<Node>& node, Tensor gradient)
      : run_(run), node_(node), gradient_(std::move(gradient)) {}
  const Tensor& gradient() const { return gradient_; }  ///< of the op's output
  Tensor output() const;            ///< the op's output; GraphError unless Flags requested it
  bool needs(std::size_t i) const;  ///< whether the gradient of input i is needed
  bool create_graph() const;        ///< whether this gradient will itself be differentiated
  void add(std::size_t i, Tensor gradient);  ///< adds to the gradient of input i, if needed
  /// The memory of input i's gradient, which a kernel fills before the formula returns; several
  /// buffers of one input may be filled in any order.  GraphError unless needs(i), and
  /// under create_graph; DTypeError if T is not the input's dtype.
  template <class T>
  GradientBuffer<T> buffer(std::size_t i);

 private:
  void add_waiting();  // after the formula has returned

  Run& run_;
  const std::shared_ptr<Node>& node_;
  Tensor gradient_;
  /// By input: buffers that the formula fills, and gradients to add after that.
  std::vector<std::pair<std::size_t, Tensor>> waiting_;
};

/// The node of an op with this backward formula: a callable that takes a Context&, and may be a
/// template of the gradient's element type.
template <class Backward>
class detail::OpNode final : public Node {
 public:
  template <class B>
  explicit OpNode(B&& formula) : formula_(std::forward<B>(formula)) {}
  bool backward(Context& ctx) override {
    if (!formula_.has_value())
      return false;
    const Running running(running_);
    if constexpr (requires { formula_->template operator()<float>(ctx); })
      dispatch(ctx.gradient().dtype(), [&]<class T>() { formula_->template operator()<T>(ctx); });
    else
      (*formula_)(ctx);
    return true;
  }
  void free() override {
    if (running_ == 0)  // a formula may start a run that leads here again
      formula_.reset();
    Node::free();
  }

 private:
  struct Running {
    std::atomic<int>& count;
    explicit Running(std::atomic<int>& c) : count(c) { ++count; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { --count; }
  };
  std::atomic<int> running_{0};
  std::optional<Backward> formula_;  // destroyed before the edges, which keep its captures alive
};

/// Runs an op: calls forward(inputs) and, if a gradient is needed, makes the output's node with
/// `backward` as its formula.  forward returns a Tensor or an Array and is pure, because an
/// observer may call it again; ops inside it are neither recorded nor observed.  Both may be
/// lambdas with a template parameter, []<class T>(...): T is float or double, by the dtype of the
/// first input or of the gradient.  Undefined inputs (an absent bias) are allowed.
template <class F, class B>
Tensor record(std::string_view op, std::span<const Tensor> inputs, F&& forward, B&& backward,
              Flags flags = {}) {
  const detail::Timed timed(op);
  Tensor y = detail::run_forward(forward, inputs);
  if (y.handle().use_count() != 1)  // y is one of the inputs
    y = y.detach();
  Observer* const observer = Mode::current().observer;
  if (detail::any_requires_grad(inputs)) {
    if constexpr (std::is_copy_constructible_v<std::decay_t<B>>)
      if (observer != nullptr || detail::checks_captures || detail::debug_build) [[unlikely]]
        detail::check_captures(op, inputs, [&backward](const std::function<void()>& meanwhile) {
          [[maybe_unused]] const std::decay_t<B> copy = backward;
          meanwhile();
        });
    detail::attach(y,
                   detail::make_pooled<detail::OpNode<std::decay_t<B>>>(std::forward<B>(backward)),
                   op, inputs, flags);
  }
  if (observer != nullptr) [[unlikely]]
    observer->on_forward(op, inputs, y, Forward([forward](std::span<const Tensor> in) {
                           return detail::run_forward(forward, in);
                         }));
  return y;
}
template <class F, class B>
Tensor record(std::string_view op, std::initializer_list<Tensor> inputs, F&& forward, B&& backward,
              Flags flags = {}) {
  return record(op, std::span(inputs.begin(), inputs.size()), std::forward<F>(forward),
                std::forward<B>(backward), flags);
}

}  // namespace xgrad
