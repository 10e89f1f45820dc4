#pragma once
// The engine: how a graph is recorded and how gradients flow back through it.
//
// An op calls record(), which runs the op's forward and, if a gradient may be wanted, makes a Node: one vertex of the
// graph, with an edge to the node of each input and the op's backward formula.  backward() and grad() start from the
// outputs and hand each node the complete gradient of its output; the node's formula hands gradients on to its inputs.
//
// The order of work comes from a number.  A node's sequence is 1 + the largest of its inputs', so every node that uses a
// value has a larger one than the node that made it, and taking nodes by falling sequence is a topological order.
// Leaves have 0 and come last.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

class Sink;

/// An op's backward: reads sink.gradient(), the gradient of the op's output, and adds the gradients of its inputs.
using Backward = std::function<void(Sink&)>;
/// A vertex of the graph: a leaf, or one use of an op.  It does not own its op's output, only what its formula captured,
/// so an activation that no formula needs is freed in the forward pass.
class Node {
 public:
  std::string op;              ///< "mul"; "leaf"
  std::uint64_t sequence = 0;  ///< 0 for leaves, else 1 + the largest of the inputs'
  Shape shape;                 ///< of the output
  DType dtype = DType::float32;
  std::vector<std::shared_ptr<Node>> inputs;  ///< null where no gradient is wanted
  Backward backward;                          ///< empty in leaves and once freed
  std::shared_ptr<const Storage> output;      ///< only for formulas that ask for it (Flags::saves_output)
  bool broadcasts = false;                    ///< gradients are summed to the inputs' shapes
  std::weak_ptr<Tensor::Impl> keeper;         ///< whose grad is filled; weak, or a gradient with a graph would own itself
  std::vector<std::pair<std::size_t, std::function<Tensor(const Tensor&)>>> hooks;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() { release(); }
  /// Drops the formula and the edges.  What dies with them dies by a loop, not by recursion, however long the chain.
  void release() noexcept;
};

/// What an op's formula needs besides its captures.
struct Flags {
  bool broadcasts = false;    ///< the engine sums gradients to the inputs' shapes
  bool saves_output = false;  ///< sink.output() is wanted
};

/// Where a kernel writes the gradient of an input: data = gradient + beta * data.
template <class T>
struct Buffer {
  T* data;
  T beta;  ///< 0: what is there is garbage; 1: add to it
};

/// What a backward formula reads from and writes to.
class Sink {
 public:
  class Run;
  Sink(Run& run, const std::shared_ptr<Node>& node, Tensor gradient)
      : run_(run), node_(node), gradient_(std::move(gradient)) {}
  const Tensor& gradient() const { return gradient_; }        ///< of the op's output
  Tensor output() const { return {node_->output, node_}; }    ///< the op's output, if it was saved
  bool needs(std::size_t i) const;                            ///< whether input i wants a gradient
  bool create_graph() const;                                  ///< whether this gradient will itself be differentiated
  void add(std::size_t i, const Tensor& gradient);            ///< adds to the gradient of input i
  template <class T>
  Buffer<T> buffer(std::size_t i);  ///< for kernels that accumulate; not under create_graph

 private:
  Run& run_;
  const std::shared_ptr<Node>& node_;
  Tensor gradient_;
};

/// Runs an op: calls forward(inputs), and if a gradient is wanted makes the output's node, with `backward` as its formula.
/// Undefined inputs (an absent bias) are allowed.  forward returns a Tensor or an Array; what it does inside is neither
/// recorded nor observed.
template <class F, class B>
Tensor record(std::string_view op, std::vector<Tensor> inputs, F&& forward, B&& backward,
              Flags flags = {});

/// Options of grad() and backward(); the names are PyTorch's.
struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  ///< one for each output; may be left out for outputs of one element
  bool create_graph = false;              ///< gradients can be differentiated again
  bool retain_graph = false;              ///< keep the graph for another run; create_graph implies it
  bool allow_unused = false;              ///< grad(): an input that no output depends on gets an undefined gradient
};

/// The gradients of sum(outputs * grad_outputs) for each input, leaf or not.  Touches no grad() of any Tensor
/// (torch.autograd.grad).  GraphError if an output has no graph, the graph was freed, or an input is unused.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});

/// Adds the gradients of sum(outputs * grad_outputs) to the grad() of all leaves (torch.autograd.backward).
/// If anything throws on the way, no grad() has changed.
void backward(const std::vector<Tensor>& outputs, const GradOptions& options = {});

// ---- implementation of the template -------------------------------------------------------------------------------

/// Gives a fresh Tensor with this value a node; part of record().
Tensor attach(Tensor value, std::string_view op, const std::vector<Tensor>& inputs, Backward backward,
              Flags flags);
/// Whether a gradient is enabled and one of these wants it.
bool any_requires_grad(std::span<const Tensor> inputs);

template <class F, class B>
Tensor record(std::string_view op, std::vector<Tensor> inputs, F&& forward, B&& backward,
              Flags flags) {
  const auto run = [&forward](std::span<const Tensor> in) {
    const ModeGuard inside({false, nullptr});
    return Tensor(forward(in));
  };
  Tensor y = run(inputs);
  if (any_requires_grad(inputs))
    y = attach(std::move(y), op, inputs, std::forward<B>(backward), flags);
  if (Observer* const observer = Mode::current().observer; observer != nullptr) [[unlikely]]
    observer->on_forward(op, inputs, y, Forward([forward](std::span<const Tensor> in) {
                           const ModeGuard inside({false, nullptr});
                           return Tensor(forward(in));
                         }));
  return y;
}

}  // namespace xgrad
