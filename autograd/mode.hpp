#pragma once
// The mode of the current thread: whether ops are recorded in a graph, the observer that is told of
// them, whether fused ops run as compositions, and whether products round their operands.

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include "tensor.hpp"

namespace xgrad {

/// An op's forward: a pure function of the inputs, which may be called again with other values.
using Forward = std::function<Tensor(std::span<const Tensor>)>;

/// Is told of each op that runs: see trace.hpp.
struct Observer {
  virtual ~Observer() = default;
  virtual void on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                          const Forward& forward) = 0;
  /// Gets the gradient of a node's output, after its hooks and before its formula runs.
  virtual void on_gradient(const Node& /*node*/, const Tensor& /*gradient*/) {}
  /// Called after node's formula, for each input that has a gradient by then.
  virtual void on_backward(const Node& /*node*/, std::size_t /*input*/,
                           const Tensor& /*gradient*/) {}
  /// Called by named(), trace.hpp.
  virtual void on_name(const Tensor& /*x*/, std::string_view /*name*/) {}
};

/// The state of the current thread.  A ModeGuard restores the previous state when it is destroyed.
struct Mode {
  bool grad_enabled = true;
  Observer* observer = nullptr;
  bool decompose = false;  ///< see Decompose
  bool autocast = false;   ///< see Autocast
  /// This mode with another value of one field.
  Mode with(bool Mode::* field, bool value) const {
    Mode mode = *this;
    mode.*field = value;
    return mode;
  }
  static Mode& current() {
    static thread_local constinit Mode mode{};
    return mode;
  }
};
class ModeGuard {
 public:
  explicit ModeGuard(Mode mode) : before_(std::exchange(Mode::current(), mode)) {}
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;
  ~ModeGuard() { Mode::current() = before_; }

 private:
  Mode before_;
};

/// While one lives, ops on this thread record no graph (torch.no_grad).
struct NoGrad : ModeGuard {
  NoGrad() : ModeGuard(Mode::current().with(&Mode::grad_enabled, false)) {}
};

/// While one lives, ops on this thread record graphs again, within a NoGrad or a backward formula
/// (torch.enable_grad).
struct EnableGrad : ModeGuard {
  EnableGrad() : ModeGuard(Mode::current().with(&Mode::grad_enabled, true)) {}
};

/// While one lives, fused ops on this thread (attention, norms, gelu, cross_entropy) run as
/// compositions, in a Scope of their name.  A Trace then sees their intermediates.
struct Decompose : ModeGuard {
  Decompose() : ModeGuard(Mode::current().with(&Mode::decompose, true)) {}
};

/// While one lives, products of float32 Tensors on this thread (matmul, linear, bmm, einsum, both
/// of attention) round their operands to bfloat16, to the nearest, ties to even, and sum in
/// float32:
///
///   c = bf16(a) bf16(b),  da = bf16(dc) bf16(b)ᵀ,  db = bf16(a)ᵀ bf16(dc)
///
/// Backward products round if the op was recorded under an Autocast, wherever backward() runs.
/// Biases, other ops and float64 are not rounded.  Unlike torch.autocast("cpu", torch.bfloat16),
/// results are float32.  bfloat16_name(), threads.hpp, tells whether this is faster.
struct Autocast : ModeGuard {
  explicit Autocast(bool enabled = true)
      : ModeGuard(Mode::current().with(&Mode::autocast, enabled)) {}
};

}  // namespace xgrad
