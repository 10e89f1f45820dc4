// Runs a random program with Tensors.

#include <algorithm>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

#include "random_graph/random_graph.hpp"

namespace xgrad::testing {
namespace {

Mask mask_of(const std::vector<bool>& values, const Shape& shape) {
  auto a = empty_array<bool>(shape);
  std::copy(values.begin(), values.end(), a.begin());
  return Mask(std::move(a));
}

Tensor apply(const Step& step, const std::vector<Tensor>& registers) {
  const Tensor& x = registers[step.in[0]];
  const Dims dims = step.numbers;
  const auto other = [&]() -> const Tensor& { return registers[step.in[1]]; };
  const auto number = [&](std::size_t i) { return step.numbers[i]; };
  const auto all = [&] {
    std::vector<Tensor> xs;
    for (const std::size_t at : step.in)
      xs.push_back(registers[at]);
    return xs;
  };
  switch (step.op) {
    case Op::neg:
      return -x;
    case Op::tanh:
      return tanh(x);
    case Op::sin:
      return sin(x);
    case Op::cos:
      return cos(x);
    case Op::sigmoid:
      return sigmoid(x);
    case Op::erf:
      return erf(x);
    case Op::gelu:
      return gelu(x);
    case Op::gelu_tanh:
      return gelu(x, Gelu::tanh);
    case Op::silu:
      return silu(x);
    case Op::relu:
      return relu(x);
    case Op::abs:
      return abs(x);
    case Op::clamp:
      return clamp(x, -step.factor, step.factor);
    case Op::masked_fill:
      return masked_fill(x, mask_of(step.mask, x.shape()), step.factor);
    case Op::affine:
      return x * step.factor + 0.25;
    case Op::exp_minus_square:
      return exp(-(x * x));
    case Op::log_one_plus_square:
      return log(1.0 + x * x);
    case Op::sqrt_one_plus_square:
      return sqrt(1.0 + x * x);
    case Op::rsqrt_one_plus_square:
      return rsqrt(1.0 + x * x);
    case Op::pow_one_plus_square:
      return pow(1.0 + x * x, step.factor);
    case Op::clone:
      return clone(x);
    case Op::view:
      return reshape(x, x.shape());
    case Op::add:
      return x + other();
    case Op::sub:
      return x - other();
    case Op::mul:
      return x * other();
    case Op::div_one_plus_square:
      return x / (1.0 + other() * other());
    case Op::maximum:
      return maximum(x, other());
    case Op::minimum:
      return minimum(x, other());
    case Op::where:
      return where(mask_of(step.mask, broadcast_shapes(x.shape(), other().shape(), "where")), x,
                   other());
    case Op::sum:
      return dims.empty() ? sum(x) : sum(x, dims, step.keepdim);
    case Op::mean:
      return dims.empty() ? mean(x) : mean(x, dims, step.keepdim);
    case Op::var:
      return var(x, dims, true, step.keepdim);
    case Op::logsumexp:
      return logsumexp(x, dims, step.keepdim);
    case Op::vector_norm:
      return vector_norm(x, 2, dims, step.keepdim);
    case Op::amax:
      return dims.empty()       ? max(x)
             : dims.size() == 1 ? max(x, dims[0], step.keepdim).values
                                : amax(x, dims, step.keepdim);
    case Op::prod:
      return prod(x, number(0), step.keepdim);
    case Op::softmax:
      return softmax(x, number(0));
    case Op::log_softmax:
      return log_softmax(x, number(0));
    case Op::cumsum:
      return cumsum(x, number(0));
    case Op::layer_norm:
      return layer_norm(x, {x.size(-1)}, {}, {}, 0.1);
    case Op::reshape:
      return reshape(x, dims);
    case Op::permute:
      return permute(x, dims);
    case Op::flip:
      return dims.empty() ? x * 1.0 : flip(x, dims);
    case Op::expand:
      return expand(x, dims);
    case Op::slice:
      return slice(x, number(0), number(1), number(1) + (number(2) - 1) * number(3) + 1, number(3));
    case Op::select:
      return select(x, number(0), number(1));
    case Op::index_select: {
      auto index = empty_array<std::int64_t>(Shape{step.numbers.size() - 1});
      std::copy(step.numbers.begin() + 1, step.numbers.end(), index.begin());
      return index_select(x, number(0), Indices(std::move(index)));
    }
    case Op::tril:
      return tril(x);
    case Op::split: {
      const auto parts = split(x, static_cast<std::size_t>(number(1)), number(0));
      return parts[0] + 0.5 * parts[1];
    }
    case Op::cat:
      return cat(all(), number(0));
    case Op::stack:
      return stack(all(), number(0));
    case Op::matmul:
      return matmul(x, other());
    case Op::linear:
      return linear(x, other(), registers[step.in[2]]);
    case Op::count:
      break;
  }
  return {};
}

}  // namespace

Tensor tensor_of(const Shape& shape, const Doubles& values) {
  auto a = empty_array<double>(shape);
  std::copy(values.begin(), values.end(), a.begin());
  return Tensor(std::move(a));
}

std::vector<Tensor> tensors(const Program& program) {
  std::vector<Tensor> inputs;
  for (const Input& input : program.inputs)
    inputs.push_back(tensor_of(input.shape, input.values).requires_grad_(input.requires_grad));
  return inputs;
}

Tensor run_step(const Step& step, const std::vector<Tensor>& registers) {
  if (step.flow == Flow::no_grad) {
    const NoGrad no_grad;
    return apply(step, registers);
  }
  const Tensor y = apply(step, registers);
  return step.flow == Flow::detached ? y.detach() : y;
}

std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs,
                        const After& after) {
  std::vector<Tensor> registers = inputs;
  for (const Step& step : program.steps) {
    const Tensor y = run_step(step, registers);
    registers.push_back(after ? after(registers.size(), y) : y);
  }
  return registers;
}

}  // namespace xgrad::testing
