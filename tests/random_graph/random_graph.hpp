#pragma once
// Random programs that attack the engine.
//
// A Program is a list of steps over a file of registers: first the inputs, then the result of each
// step.  Two interpreters execute it: run(), with Tensors and the ops of the catalogue, and
// reference_*(), with plain loops over vectors of dual numbers (forward mode), which does not use
// Tensors, graphs or backward formulas.

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::testing {

/// Random choices: the same for a seed with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// Choices from these bytes, one or two at a time, until they run out.  They must outlive this.
  explicit Random(std::string_view bytes) : bytes_(bytes) {}

  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>((bytes_.empty() ? engine_() : byte()) % n);
  }
  double uniform(double low, double high) {
    std::uint64_t bits = 0;
    if (bytes_.size() < 2) {
      bits = engine_() >> 11;
    } else {
      bits = byte() << 45;
      bits |= byte() << 37;
    }
    return low + (high - low) * (static_cast<double>(bits) * 0x1p-53);
  }
  bool chance(double p) { return uniform(0, 1) < p; }

 private:
  std::uint64_t byte() {
    const auto first = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return first;
  }

  std::mt19937_64 engine_;
  std::string_view bytes_;
};

// The ops of a program, with names that to_string() prints.
// clang-format off
#define XGRAD_RANDOM_GRAPH_OPS(X) \
  /* of one operand, elementwise */ \
  X(neg) X(tanh) X(sin) X(cos) X(sigmoid) X(erf) X(gelu) X(gelu_tanh) X(silu) X(relu) X(abs) \
  X(clamp) X(masked_fill) X(affine) X(exp_minus_square) X(log_one_plus_square) \
  X(sqrt_one_plus_square) X(rsqrt_one_plus_square) X(pow_one_plus_square) X(clone) X(view) \
  /* of two, which broadcast */ \
  X(add) X(sub) X(mul) X(div_one_plus_square) X(maximum) X(minimum) X(where) \
  /* along dimensions */ \
  X(sum) X(mean) X(var) X(logsumexp) X(vector_norm) X(amax) X(prod) X(softmax) X(log_softmax) \
  X(cumsum) X(layer_norm) \
  /* moving elements */ \
  X(reshape) X(permute) X(flip) X(expand) X(slice) X(select) X(index_select) X(tril) X(split) \
  X(cat) X(stack) \
  /* products */ \
  X(matmul) X(linear)
// clang-format on

#define X(name) name,
enum class Op { XGRAD_RANDOM_GRAPH_OPS(X) count };
#undef X
const char* to_string(Op op);

/// How gradients pass through a step.
enum class Flow {
  differentiable,
  detached,  ///< the result is detached
  no_grad    ///< the op runs under NoGrad
};

/// One use of an op.  The meaning of `numbers`, `mask` and `factor` depends on the op.
struct Step {
  Op op;
  std::vector<std::size_t> in = {};  ///< registers
  std::vector<std::int64_t> numbers = {};
  bool keepdim = false;
  std::vector<bool> mask = {};
  double factor = 0;
  Flow flow = Flow::differentiable;
  double gradient_scale = 1;  ///< of a hook on the result
  Shape shape = {};           ///< of the result
};

struct Input {
  Shape shape;
  std::vector<double> values;
  bool requires_grad;
};

struct Root {
  std::size_t at;  ///< register
  std::vector<double> cotangent;
};

struct Program {
  std::vector<Input> inputs;
  std::vector<Step> steps;
  std::vector<Root> roots;  ///< a register may be root more than once

  std::size_t registers() const { return inputs.size() + steps.size(); }
  const Shape& shape(std::size_t at) const;
};

struct ProgramOptions {
  std::size_t most_steps = 24;
  double constants = 0;  ///< probability that a step is detached or runs under NoGrad
};
/// Smooth at its inputs: no value is near a kink of an op that uses it.  At least one root is the
/// result of a step that depends on an input with requires_grad.
Program random_program(Random& random, const ProgramOptions& options = {});
Program random_program(std::uint64_t seed, const ProgramOptions& options = {});
/// One line for each input, step and root.
std::string to_string(const Program& program);

/// The registers that require a gradient, and those that a root's gradient reaches: by the
/// program's structure alone.
std::vector<bool> differentiable(const Program& program);
std::vector<bool> reached(const Program& program);

// ---- with Tensors (run.cpp) ----

Tensor tensor_of(const Shape& shape, const std::vector<double>& values);
/// The inputs; those with requires_grad as leaves.
std::vector<Tensor> tensors(const Program& program);
/// All registers.  The result of `after` replaces that of a step.
using After = std::function<Tensor(std::size_t at, const Tensor& result)>;
std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs,
                        const After& after = {});
/// One step, given all registers before it.
Tensor run_step(const Step& step, const std::vector<Tensor>& registers);

// ---- by plain loops (reference.cpp) ----

using Doubles = std::vector<double>;
/// The shape and the values of all registers.
struct Plane {
  Shape shape;
  Doubles values;
};
std::vector<Plane> reference_values(const Program& program);
/// The same for one step, given all registers before it.
Plane reference_step(const Step& step, const std::vector<Plane>& registers);
/// d L / d register, where L = sum over the roots of <cotangent, root>: one run of the program for
/// each element of the register.
Doubles reference_gradient(const Program& program, std::size_t at);
/// d² L / d input d direction: how the gradient of the input changes along a direction in the space
/// of all inputs, one vector for each.
Doubles reference_second(const Program& program, std::size_t input,
                         const std::vector<Doubles>& direction);

}  // namespace xgrad::testing
