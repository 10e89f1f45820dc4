// Runs a random program by plain loops over dual numbers: slow, and independent of Tensors.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "random_graph/cells.hpp"
#include "random_graph/random_graph.hpp"

namespace xgrad::testing {
namespace {

template <class T>
Cells<T> evaluate(const Step& step, const std::vector<Cells<T>>& registers) {
  const Cells<T>& x = registers[step.in[0]];
  const std::size_t rank = x.shape.size();
  const T one = 1.0, half = 0.5;
  const auto plus_one = [one](const T& a) { return one + a * a; };
  const auto sigmoid = [one](const T& a) { return one / (one + exp(-a)); };
  const auto choose_mask = [&](const T& a, const T& b, std::size_t i) {
    return step.mask[i] ? a : b;
  };
  const auto second = [&]() -> const Cells<T>& { return registers[step.in[1]]; };
  switch (step.op) {
    case Op::neg:
      return each(x, [](const T& a) { return -a; });
    case Op::tanh:
      return each(x, [](const T& a) { return tanh(a); });
    case Op::sin:
      return each(x, [](const T& a) { return sin(a); });
    case Op::cos:
      return each(x, [](const T& a) { return cos(a); });
    case Op::sigmoid:
      return each(x, sigmoid);
    case Op::erf:
      return each(x, [](const T& a) { return erf(a); });
    case Op::gelu:
      return each(
          x, [&](const T& a) { return a * half * (one + erf(a * T(1 / std::numbers::sqrt2))); });
    case Op::gelu_tanh:
      return each(x, [&](const T& a) {
        const T u = T(std::sqrt(2 / std::numbers::pi)) * (a + T(0.044715) * a * a * a);
        return half * a * (one + tanh(u));
      });
    case Op::silu:
      return each(x, [&](const T& a) { return a * sigmoid(a); });
    case Op::relu:
      return each(x, [](const T& a) { return primal(a) > 0 ? a : T(0.0); });
    case Op::abs:
      return each(x, [](const T& a) { return primal(a) > 0 ? a : -a; });
    case Op::clamp:
      return each(x, [&](const T& a) {
        return std::abs(primal(a)) <= step.factor ? a
                                                  : T(primal(a) > 0 ? step.factor : -step.factor);
      });
    case Op::masked_fill: {
      std::size_t i = 0;
      return each(x, [&](const T& a) { return step.mask[i++] ? T(step.factor) : a; });
    }
    case Op::affine:
      return each(x, [&](const T& a) { return a * T(step.factor) + T(0.25); });
    case Op::exp_minus_square:
      return each(x, [](const T& a) { return exp(-(a * a)); });
    case Op::log_one_plus_square:
      return each(x, [&](const T& a) { return log(plus_one(a)); });
    case Op::sqrt_one_plus_square:
      return each(x, [&](const T& a) { return sqrt(plus_one(a)); });
    case Op::rsqrt_one_plus_square:
      return each(x, [&](const T& a) { return one / sqrt(plus_one(a)); });
    case Op::pow_one_plus_square:
      return each(x, [&](const T& a) { return exp(T(step.factor) * log(plus_one(a))); });
    case Op::clone:
    case Op::view:
      return x;
    case Op::add:
      return each_pair(x, second(), [](const T& a, const T& b, auto) { return a + b; });
    case Op::sub:
      return each_pair(x, second(), [](const T& a, const T& b, auto) { return a - b; });
    case Op::mul:
      return each_pair(x, second(), [](const T& a, const T& b, auto) { return a * b; });
    case Op::div_one_plus_square:
      return each_pair(x, second(), [&](const T& a, const T& b, auto) { return a / plus_one(b); });
    case Op::maximum:
      return each_pair(x, second(),
                       [](const T& a, const T& b, auto) { return primal(a) > primal(b) ? a : b; });
    case Op::minimum:
      return each_pair(x, second(),
                       [](const T& a, const T& b, auto) { return primal(a) < primal(b) ? a : b; });
    case Op::where:
      return each_pair(x, second(), choose_mask);
    case Op::sum:
      return reduced(x, step, [](const auto& g) { return total(g); });
    case Op::mean:
      return reduced(x, step, [](const auto& g) { return average(g); });
    case Op::var:
      return reduced(x, step, [](const auto& g) {
        return squares_about(g, average(g)) / T(static_cast<double>(g.size() - 1));
      });
    case Op::logsumexp:
      return reduced(x, step, [](const auto& g) { return log(sum_of_exp(g)); });
    case Op::vector_norm:
      return reduced(x, step, [](const auto& g) { return sqrt(squares_about(g, T(0.0))); });
    case Op::amax:
      return reduced(x, step, [](const auto& g) {
        return *std::max_element(g.begin(), g.end(),
                                 [](const T& a, const T& b) { return primal(a) < primal(b); });
      });
    case Op::prod:
      return reduced(x, step, [](const auto& g) {
        return std::accumulate(g.begin(), g.end(), T(1.0),
                               [](const T& a, const T& b) { return a * b; });
      });
    case Op::softmax:
      return rowwise(x, step, [](std::vector<T> row) {
        const T sum = sum_of_exp(row);
        for (T& a : row)
          a = exp(a) / sum;
        return row;
      });
    case Op::log_softmax:
      return rowwise(x, step, [](std::vector<T> row) {
        const T sum = log(sum_of_exp(row));
        for (T& a : row)
          a = a - sum;
        return row;
      });
    case Op::cumsum:
      return rowwise(x, step, [](std::vector<T> row) {
        for (std::size_t k = 1; k < row.size(); ++k)
          row[k] = row[k - 1] + row[k];
        return row;
      });
    case Op::layer_norm:
      return rowwise(x, step, [](std::vector<T> row) {
        const T centre = average(row), n = static_cast<double>(row.size());
        const T deviation = sqrt(squares_about(row, centre) / n + T(0.1));
        for (T& a : row)
          a = (a - centre) / deviation;
        return row;
      });
    case Op::reshape: {
      Cells<T> y = x;
      y.shape = Shape(step.numbers.begin(), step.numbers.end());
      return y;
    }
    case Op::permute: {
      Shape shape(rank, 0);
      for (std::size_t d = 0; d < rank; ++d)
        shape[d] = x.shape[dimension(step.numbers[d], rank)];
      return moved(x, shape, [&](const Position& p) {
        Position q(rank);
        for (std::size_t d = 0; d < rank; ++d)
          q[dimension(step.numbers[d], rank)] = p[d];
        return q;
      });
    }
    case Op::flip:
      return moved(x, x.shape, [&](Position p) {
        for (const std::int64_t dim : step.numbers)
          p[dimension(dim, rank)] = x.shape[dimension(dim, rank)] - 1 - p[dimension(dim, rank)];
        return p;
      });
    case Op::expand: {
      const Shape shape(step.numbers.begin(), step.numbers.end());
      return moved(x, shape, [&](const Position& p) {
        return position(broadcast_from(p, x.shape), x.shape);
      });
    }
    case Op::slice: {  // dim, start, length, step
      const std::size_t dim = dimension(step.numbers[0], rank);
      Shape shape = x.shape;
      shape[dim] = static_cast<std::size_t>(step.numbers[2]);
      return moved(x, shape, [&](Position p) {
        p[dim] = static_cast<std::size_t>(step.numbers[1]) +
                 p[dim] * static_cast<std::size_t>(step.numbers[3]);
        return p;
      });
    }
    case Op::select: {  // dim, index
      const auto dim = static_cast<std::ptrdiff_t>(dimension(step.numbers[0], rank));
      Shape shape = x.shape;
      shape.erase(shape.begin() + dim);
      return moved(x, shape, [&](Position p) {
        p.insert(p.begin() + dim, static_cast<std::size_t>(step.numbers[1]));
        return p;
      });
    }
    case Op::index_select: {  // dim, then the indices
      const std::size_t dim = dimension(step.numbers[0], rank);
      Shape shape = x.shape;
      shape[dim] = step.numbers.size() - 1;
      return moved(x, shape, [&](Position p) {
        p[dim] = static_cast<std::size_t>(step.numbers[p[dim] + 1]);
        return p;
      });
    }
    case Op::tril: {
      std::size_t i = 0;
      return each(x, [&](const T& a) {
        const Position p = position(i++, x.shape);
        return p[rank - 1] <= p[rank - 2] ? a : T(0.0);
      });
    }
    case Op::split: {  // dim, size of the first part; the sum of the first and half of the rest
      const std::size_t dim = dimension(step.numbers[0], rank);
      const auto first = static_cast<std::size_t>(step.numbers[1]);
      Shape shape = x.shape;
      shape[dim] = first;
      Cells<T> y = moved(x, shape, [](const Position& p) { return p; });
      for (std::size_t i = 0; i < y.at.size(); ++i) {
        Position p = position(i, shape);
        p[dim] += first;
        y.at[i] = y.at[i] + half * x.at[flat(p, x.shape)];
      }
      return y;
    }
    case Op::cat:
    case Op::stack: {
      std::vector<Cells<T>> copies;
      for (const std::size_t at : step.in)
        copies.push_back(registers[at]);
      const bool adds = step.op == Op::stack;
      const std::size_t dim = dimension(step.numbers[0], rank + (adds ? 1 : 0));
      std::vector<const Cells<T>*> parts;
      for (Cells<T>& part : copies) {
        if (adds)
          part.shape.insert(part.shape.begin() + static_cast<std::ptrdiff_t>(dim), 1);
        parts.push_back(&part);
      }
      return joined(parts, dim);
    }
    case Op::matmul:
      return product(x, second());
    case Op::linear: {
      const Cells<T>& w = second();
      const Cells<T> turned = moved(w, Shape{w.shape[1], w.shape[0]},
                                    [](const Position& p) { return Position{p[1], p[0]}; });
      return each_pair(product(x, turned), registers[step.in[2]],
                       [](const T& a, const T& b, auto) { return a + b; });
    }
    case Op::count:
      break;
  }
  return {};
}

// Applies the step's flow and its hook to the result.
template <class T>
void adjust(const Step& step, Cells<T>& y) {
  for (T& a : y.at) {
    if (step.flow != Flow::differentiable)
      a = T(primal(a));
    if (step.gradient_scale != 1)
      a = with_slope_scaled(a, step.gradient_scale);
  }
}

template <class T>
std::vector<Cells<T>> start(const Program& program) {
  std::vector<Cells<T>> registers;
  for (const Input& input : program.inputs)
    registers.push_back({input.shape, {input.values.begin(), input.values.end()}});
  return registers;
}

// L, with `seed` called on each register as it is made.
template <class T, class F>
T objective(const Program& program, const F& seed) {
  auto registers = start<T>(program);
  for (std::size_t at = 0; at < program.registers(); ++at) {
    if (at >= program.inputs.size()) {
      const Step& step = program.steps[at - program.inputs.size()];
      registers.push_back(evaluate(step, registers));
      adjust(step, registers.back());
    }
    seed(at, registers[at].at);
  }
  T sum = 0.0;
  for (const Root& root : program.roots)
    for (std::size_t i = 0; i < root.cotangent.size(); ++i)
      sum = sum + T(root.cotangent[i]) * registers[root.at].at[i];
  return sum;
}

}  // namespace

std::vector<Plane> reference_values(const Program& program) {
  std::vector<Plane> registers;
  for (const Input& input : program.inputs)
    registers.push_back({input.shape, input.values});
  for (const Step& step : program.steps)
    registers.push_back(reference_step(step, registers));
  return registers;
}

Plane reference_step(const Step& step, const std::vector<Plane>& registers) {
  std::vector<Cells<double>> cells;
  for (const Plane& plane : registers)
    cells.push_back({plane.shape, plane.values});
  const Cells<double> y = evaluate(step, cells);
  return {y.shape, y.at};
}

Doubles reference_gradient(const Program& program, std::size_t at) {
  using T = Dual<double>;
  Doubles gradient(numel(program.shape(at)));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const auto seed = [&](std::size_t made, std::vector<T>& cells) {
      if (made != at)
        return;
      // the gradient of a result is taken after its hook
      const bool is_input = at < program.inputs.size();
      cells[i].slope = is_input ? 1 : program.steps[at - program.inputs.size()].gradient_scale;
    };
    gradient[i] = objective<T>(program, seed).slope;
  }
  return gradient;
}

Doubles reference_second(const Program& program, std::size_t input,
                         const std::vector<Doubles>& direction) {
  using T = Dual<Dual<double>>;
  Doubles result(numel(program.shape(input)));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto seed = [&](std::size_t made, std::vector<T>& cells) {
      if (made < program.inputs.size())
        for (std::size_t k = 0; k < cells.size(); ++k)
          cells[k].value.slope = direction[made][k];
      if (made == input)
        cells[i].slope.value = 1;
    };
    result[i] = objective<T>(program, seed).slope.slope;
  }
  return result;
}

}  // namespace xgrad::testing
