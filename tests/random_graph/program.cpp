// A program as text, and where gradients arrive in it.

#include <algorithm>
#include <sstream>

#include "random_graph/random_graph.hpp"

namespace xgrad::testing {

const char* to_string(Op op) {
#define X(name) #name,
  static constexpr const char* names[] = {XGRAD_RANDOM_GRAPH_OPS(X)};
#undef X
  return names[static_cast<std::size_t>(op)];
}

const Shape& Program::shape(std::size_t at) const {
  return at < inputs.size() ? inputs[at].shape : steps[at - inputs.size()].shape;
}

std::string to_string(const Program& program) {
  std::ostringstream text;
  text.precision(17);
  const auto list = [&text](const auto& items) {
    for (const auto& item : items)
      text << ' ' << item;
  };
  std::size_t at = 0;
  for (const Input& input : program.inputs) {
    text << 'r' << at++ << " = " << (input.requires_grad ? "leaf " : "constant ")
         << xgrad::to_string(input.shape) << ':';
    list(input.values);
    text << '\n';
  }
  for (const Step& step : program.steps) {
    text << 'r' << at++ << " = " << to_string(step.op) << " of";
    for (const std::size_t r : step.in)
      text << " r" << r;
    text << " -> " << xgrad::to_string(step.shape);
    if (!step.numbers.empty()) {
      text << ", numbers";
      list(step.numbers);
    }
    if (!step.mask.empty()) {
      text << ", mask";
      list(step.mask);
    }
    text << (step.keepdim ? ", keepdim" : "") << ", factor " << step.factor;
    text << (step.flow == Flow::detached  ? ", detached"
             : step.flow == Flow::no_grad ? ", under NoGrad"
                                          : "");
    if (step.gradient_scale != 1)
      text << ", its gradient times " << step.gradient_scale;
    text << '\n';
  }
  for (const Root& root : program.roots) {
    text << "root r" << root.at << ", cotangent";
    list(root.cotangent);
    text << '\n';
  }
  return text.str();
}

std::vector<bool> differentiable(const Program& program) {
  std::vector<bool> is;
  for (const Input& input : program.inputs)
    is.push_back(input.requires_grad);
  for (const Step& step : program.steps)
    is.push_back(
        step.flow == Flow::differentiable &&
        std::any_of(step.in.begin(), step.in.end(), [&is](std::size_t at) { return is[at]; }));
  return is;
}

std::vector<bool> reached(const Program& program) {
  const std::vector<bool> may = differentiable(program);
  std::vector<bool> is(program.registers());
  for (const Root& root : program.roots)
    is[root.at] = may[root.at];
  for (std::size_t at = program.registers(); at-- > program.inputs.size();)
    if (is[at])
      for (const std::size_t from : program.steps[at - program.inputs.size()].in)
        is[from] = is[from] || may[from];
  return is;
}

}  // namespace xgrad::testing
