#pragma once
// The graph: how ops are recorded.
//
// An op calls record(), which runs the op's forward and, if a gradient may be wanted, makes a Node:
// one vertex of the graph, with an edge to the node of each input and the op's backward formula.
// How gradients flow back: engine.hpp.

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
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad {

class Context;

/// The nodes of an op's inputs, in their order; null where no gradient is wanted.  Two fit inside,
/// for few ops have more and a long chain should not pay for them.
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

/// A vertex of the graph: a leaf, or one use of an op.  It does not own its op's output, only what
/// its formula captured, so an activation that no formula needs is freed in the forward pass.
class Node {
 public:
  using Hook = std::function<Tensor(const Tensor&)>;

  std::string op;  ///< "mul"; "leaf"
  /// 0 for leaves, else 1 + the largest of the inputs': by falling sequence is a topological order,
  /// also of a graph that was built on several threads.
  std::uint64_t sequence = 0;
  Shape shape;  ///< of the output
  DType dtype = DType::float32;
  bool broadcasts = false;  ///< gradients are summed to the inputs' shapes
  Edges inputs;
  std::shared_ptr<const Value> output;  ///< only if the formula asks for it (Flags)
  /// The Tensor whose grad is filled, if this is a leaf's node.  Weak, because a grad that has a
  /// graph would keep itself alive.
  std::weak_ptr<Tensor::Impl> leaf;
  std::vector<std::pair<std::size_t, Hook>> hooks;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node();  ///< inputs that die with this one: see detail::destroy()
  /// Runs the op's backward: reads ctx.gradient(), the gradient of the op's output, and adds the
  /// gradients of its inputs.  False if there is none: in leaves, and once freed.
  virtual bool backward(Context&) { return false; }
  /// Drops formula and captures.  Edges and hooks stay: another run may find its way here.
  virtual void free();
  /// The node of input i; ValueError if the op has no such input.
  const std::shared_ptr<Node>& input(std::size_t i) const;
  /// DTypeError or ShapeError, naming giver and i, unless this gradient fits the output.
  void check_gradient(const Tensor& gradient, std::string_view giver, std::size_t i) const;

 private:
  friend void detail::destroy(std::shared_ptr<Node> node) noexcept;
  std::shared_ptr<Node> next_doomed_;  ///< of those that wait to be destroyed
};

/// Where a kernel writes the gradient of an input: data = gradient + beta * data.
template <class T>
struct GradientBuffer {
  T* data;
  T beta;  ///< 0: the memory holds garbage; 1: add to it
};

/// A backward formula reads the gradient of the output from it, and writes the inputs' to it.
class Context {
 public:
  class Run;
  Context(Run& run, const std::shared_ptr<Node>& node, Tensor gradient)
      : run_(run), node_(node), gradient_(std::move(gradient)) {}
  const Tensor& gradient() const { return gradient_; }  ///< of the op's output
  Tensor output() const;            ///< the op's output; GraphError unless Flags asked for it
  bool needs(std::size_t i) const;  ///< whether a gradient of input i is wanted
  bool create_graph() const;        ///< whether this gradient will itself be differentiated
  void add(std::size_t i, Tensor gradient);  ///< adds to the gradient of input i, if wanted
  /// The same for kernels that accumulate: what is written until the formula returns counts, in
  /// whatever order several buffers of one input are written.  GraphError unless needs(i), and
  /// under create_graph; DTypeError if T is not the input's dtype.
  template <class T>
  GradientBuffer<T> buffer(std::size_t i);

 private:
  void add_waiting();  // when the formula has returned

  Run& run_;
  const std::shared_ptr<Node>& node_;
  Tensor gradient_;
  /// Buffers that the formula fills, and what it adds after that, by input.
  std::vector<std::pair<std::size_t, Tensor>> waiting_;
};

/// The node of an op with this backward formula: a callable that takes a Context&, and may be a
/// template of the gradient's element type.
template <class Backward>
class OpNode final : public Node {
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
  std::optional<Backward> formula_;  // dies before the edges, which keep what it captured alive
};

/// Whether there are kernels beside the ops that they fuse: not with XGRAD_NO_KERNELS.
#ifdef XGRAD_NO_KERNELS
inline constexpr bool has_kernels = false;
#else
inline constexpr bool has_kernels = true;
#endif

/// The part of a formula that has two forms: ops() under create_graph, where gradients are Tensors
/// with a graph; else kernel<T>(), of the gradient's element type, which may write to buffers.
template <class Ops, class Kernel>
void ops_or_kernel(const Context& ctx, const Ops& ops, const Kernel& kernel) {
  if (!has_kernels || ctx.create_graph())
    ops();
  else
    dispatch(ctx.gradient().dtype(), kernel);
}

/// An op's formula may need these besides its captures.
struct Flags {
  bool broadcasts = false;    ///< the engine sums gradients to the inputs' shapes
  bool saves_output = false;  ///< ctx.output() is wanted
};

/// Whether gradients are enabled and one of these requires one.
bool any_requires_grad(std::span<const Tensor> inputs);
/// Makes `node` that of y, a Tensor that nobody else holds yet; part of record().
void attach(const Tensor& y, std::shared_ptr<Node> node, std::string_view op,
            std::span<const Tensor> inputs, Flags flags);

/// The nodes of grad()'s inputs; GraphError if one requires no gradient.
std::vector<std::shared_ptr<Node>> target_nodes(const std::vector<Tensor>& inputs);

/// Throws unless gradients can flow from these outputs; `gradients` as in GradOptions.
void check_outputs(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
                   const char* caller);

namespace detail {

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

/// Whether record() checks captures without an observer, too, as debug builds do.
inline bool checks_captures = false;
#ifdef NDEBUG
constexpr bool debug_build = false;
#else
constexpr bool debug_build = true;
#endif

/// GraphError if a copy of a formula is one more owner of a Tensor among the inputs, as [x] is and
/// [x = Saved(x)] is not.  `copied` calls its argument while such a copy lives.
void check_captures(std::string_view op, std::span<const Tensor> inputs,
                    const std::function<void(const std::function<void()>&)>& copied);

}  // namespace detail

/// Runs an op: calls forward(inputs), and if a gradient is wanted makes the output's node, with
/// `backward` as its formula. forward returns a Tensor or an Array and is a pure function, for an
/// observer may call it again; what it does inside is neither recorded nor observed.  Both may be
/// lambdas with a template parameter, []<class T>(...): then T is float or double, by the dtype of
/// the first input and of the gradient.  Undefined inputs (an absent bias) are allowed.
template <class F, class B>
Tensor record(std::string_view op, std::span<const Tensor> inputs, F&& forward, B&& backward,
              Flags flags = {}) {
  const detail::Timed timed(op);
  Tensor y = detail::run_forward(forward, inputs);
  if (y.handle().use_count() != 1)  // an input itself
    y = y.detach();
  Observer* const observer = Mode::current().observer;
  if (any_requires_grad(inputs)) {
    if constexpr (std::is_copy_constructible_v<std::decay_t<B>>)
      if (observer != nullptr || detail::checks_captures || detail::debug_build) [[unlikely]]
        detail::check_captures(op, inputs, [&backward](const std::function<void()>& meanwhile) {
          [[maybe_unused]] const std::decay_t<B> copy = backward;
          meanwhile();
        });
    attach(y, make_pooled<OpNode<std::decay_t<B>>>(std::forward<B>(backward)), op, inputs, flags);
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

// A fused op is a composition of ops, and kernels that compute the same in one pass.
//
// - In an ordinary run the kernels run: forward<T>(inputs) and backward<T>(ctx, saved inputs).  A
//   gradient that is not finite is the composition's: inf - inf depends on the order of sums.
// - Under create_graph the derivative is that of the composition, at the saved inputs.
// - Under Decompose the composition itself is recorded, in a Scope of the op's name.
//
// So a derivative is written once, and beside it what makes it fast.  The composition is a function
// of its inputs alone, as a forward is.  Without kernels (CMake's XGRAD_KERNELS=OFF) it is all
// there is.

namespace detail {

/// Whether no element is NaN or infinite.
bool all_finite(const Tensor& x);

/// Adds the gradients of the composition at the saved inputs.  They have a graph if that of the run
/// is wanted.  Two inputs that are one node are differentiated apart.
void differentiate(Context& ctx, std::span<const Saved> saved,
                   const std::function<Tensor(std::span<const Tensor>)>& composition);

}  // namespace detail

/// Inputs may be undefined, but not the first.
template <std::size_t N, class C, class F, class B>
Tensor fused(const char* op, const std::array<Tensor, N>& inputs, const C& composition,
             const F& forward, const B& backward) {
  if (Mode::current().decompose) {
    const Scope scope(op);
    return composition(std::span<const Tensor>(inputs));
  }
  std::array<Saved, N> saved;
  std::ranges::copy(inputs, saved.begin());
  const auto formula = [saved = std::move(saved), composition, backward](Context& ctx) {
    const auto by_ops = [&] { detail::differentiate(ctx, saved, composition); };
    ops_or_kernel(ctx, by_ops, [&]<class T>() {
      if (detail::all_finite(ctx.gradient()))
        backward.template operator()<T>(ctx, saved);
      else
        by_ops();
    });
  };
  if constexpr (has_kernels)
    return record(op, std::span(inputs), forward, formula);
  else
    return record(op, std::span(inputs), composition, formula);
}

}  // namespace xgrad
