#include <xgrad/autograd/check/isolated_op.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <string_view>
#include <type_traits>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::detail {
namespace {

struct Done {};

// A backward run starts with the formula of the output.  This keeps the gradients that the formula
// gives, and ends the run by an exception before the next formula.
struct Catcher final : Observer {
  const Node* node;
  std::vector<Tensor> by_input;
  int depth = NestedRun::depth() + 1;  // not of runs within the op's formula

  Catcher(const Node* of, std::size_t inputs) : node(of), by_input(inputs) {}
  void on_forward(std::string_view, std::span<const Tensor>, const Tensor&,
                  const Forward&) override {}
  void on_backward(const Node& ran, std::size_t input, const Tensor& gradient) override {
    if (NestedRun::depth() != depth)
      return;
    if (&ran != node)
      throw Done();
    by_input.at(input) = gradient;
  }
  bool caught() const {
    return std::ranges::any_of(by_input, [](const Tensor& g) { return g.defined(); });
  }
};

// While it lives, a hook after all others of a Tensor, or in their place.
class HookGuard {
 public:
  enum class Others { stay, rest };
  HookGuard(const Tensor& x, Others others, Node::Hook hook)
      : x_(x), before_(x.impl().node->hooks) {
    if (others == Others::rest)
      x.impl().node->hooks.clear();
    x_.register_hook(std::move(hook));
  }
  HookGuard(const HookGuard&) = delete;
  HookGuard& operator=(const HookGuard&) = delete;
  ~HookGuard() { x_.impl().node->hooks = before_; }

 private:
  Tensor x_;
  std::vector<std::pair<std::size_t, Node::Hook>> before_;
};

}  // namespace

IsolatedOp::IsolatedOp(const Trace::Event& event) : event_(event) {
  for (std::size_t i = 0; i < event.inputs.size(); ++i) {
    const Tensor& x = event.inputs[i];
    if (!x.defined() || !x.requires_grad())
      continue;
    const auto same = std::ranges::find_if(sources_, [&](const auto& inputs) {
      return event.inputs[inputs[0]].impl().node == x.impl().node;
    });
    if (same != sources_.end())
      same->push_back(i);
    else
      sources_.push_back({i});
  }
}

IsolatedOp::Gradients IsolatedOp::gradients(const Tensor& cotangent, bool create_graph) const {
  std::vector<Tensor> targets;
  for (std::size_t k = 0; k < sources(); ++k)
    targets.push_back(source(k));
  Gradients result;
  Catcher catcher(event_.output.impl().node.get(), event_.inputs.size());
  {
    // The last hook undoes what earlier hooks changed.
    const HookGuard last(event_.output, HookGuard::Others::stay, [&](const Tensor& g) {
      result.hooked = elements(g) != elements(cotangent);
      return cotangent;
    });
    const ModeGuard watch({true, &catcher});
    try {
      grad({event_.output}, targets,
           {.grad_outputs = {cotangent},
            .create_graph = create_graph,
            .retain_graph = true,
            .allow_unused = true});
    } catch (const Done&) {
    } catch (const std::exception&) {
      if (!catcher.caught())
        throw;  // this op's own formula failed, not a later one
    }
  }
  for (const auto& inputs : sources_)
    result.of_sources.push_back(catcher.by_input[inputs[0]]);
  return result;
}

std::vector<Tensor> IsolatedOp::second_gradients(const Tensor& number,
                                                 const Tensor& cotangent) const {
  std::vector<Tensor> result(sources() + 1);
  if (!number.defined() || !number.requires_grad())
    return result;
  // A gradient may lead through the output, which is saved.
  const HookGuard none(event_.output, HookGuard::Others::rest, [](const Tensor& g) { return g; });
  // The gradient of a source is kept and not passed on: one source may be made of another.
  std::vector<std::unique_ptr<HookGuard>> hooks;
  std::vector<Tensor> targets;
  const auto keep = [&](std::size_t k, const Tensor& x) {
    targets.push_back(x);
    hooks.push_back(
        std::make_unique<HookGuard>(x, HookGuard::Others::rest, [&result, k](const Tensor& g) {
          result[k] = g;
          return zeros_like(g);
        }));
  };
  for (std::size_t k = 0; k < sources(); ++k)
    keep(k, source(k));
  keep(sources(), cotangent);
  grad({number}, targets, {.retain_graph = true, .allow_unused = true});
  return result;
}

// The forward with these values in place of the sources.
Tensor IsolatedOp::run(const std::vector<Tensor>& values) const {
  std::vector<Tensor> inputs = event_.inputs;
  for (std::size_t k = 0; k < sources(); ++k)
    for (const std::size_t i : sources_[k])
      inputs[i] = values[k];
  return event_.forward(inputs);
}

std::vector<double> IsolatedOp::forward(const std::vector<std::vector<double>>& moves) const {
  std::vector<Tensor> values;
  for (std::size_t k = 0; k < sources(); ++k) {
    values.push_back(source(k).detach());
    if (!moves[k].empty())
      dispatch(values.back().dtype(), [&]<class T>() {
        T* const data = writable_data<T>(values.back());
        for (Size j = 0; j < values.back().numel(); ++j)
          data[j] += static_cast<T>(moves[k][j]);
      });
  }
  return elements(run(values));
}

Mask IsolatedOp::without_derivative() const {
  const ModeGuard plain({false, nullptr});
  const Tensor y = event_.output.detach();
  const Mask here = infinite(y), nan = ~isfinite(y) & ~here;
  if (!any(here))
    return nan;
  std::vector<Tensor> half;
  for (const Tensor& x : event_.inputs)
    half.push_back(x.defined() ? full_like(x.detach(), 0.5) : x);
  try {
    return nan | (here & ~infinite(event_.forward(half)));
  } catch (const std::exception&) {
    return nan;  // it refuses such inputs
  }
}

Tensor IsolatedOp::replay(const std::vector<Tensor>& values) const {
  const auto op = std::make_shared<const IsolatedOp>(*this);  // what a trace holds is not updated
  return record(
      event_.op, std::span(values),
      [op](std::span<const Tensor> in) {
        Tensor y = op->run({in.begin(), in.end()}).clone();
        const auto there = elements(op->event_.output);
        dispatch(y.dtype(), [&]<class T>() {
          T* const data = writable_data<T>(y);
          for (Size j = 0; j < y.numel(); ++j)
            if (std::isinf(there[j]) && static_cast<double>(data[j]) == there[j])
              data[j] = 0;
        });
        return y;
      },
      [op, left_out = without_derivative()](Context& ctx) {
        const Tensor g = where(left_out, 0, ctx.gradient());
        const auto gradients = op->gradients(g, false).of_sources;
        for (std::size_t k = 0; k < gradients.size(); ++k)
          if (gradients[k].defined())
            ctx.add(k, gradients[k]);
      });
}

}  // namespace xgrad::detail
