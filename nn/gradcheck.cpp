#include <xgrad/nn/gradcheck.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>

namespace xgrad::nn::detail {

namespace {

// The checked Tensors: the inputs, as leaves of their own if they require no gradient, then the
// parameters.
struct All {
  std::vector<Tensor> tensors;
  GradcheckOptions options;
  TensorFunction f;
  std::vector<std::string> notes = {};
};

All everything(const char* caller, const Members& members, const TensorFunction& f,
               const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const std::size_t n = inputs.size();
  if (!options.names.empty() && options.names.size() != n)
    fail<ValueError>("{}: {} names for {} inputs", caller, options.names.size(), n);
  const auto call = [&f, n](const std::vector<Tensor>& in) {
    return f({in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n)});
  };
  All all{{}, options, call};
  auto& names = all.options.names;
  for (std::size_t i = 0; i < n; ++i) {
    Tensor x = inputs[i];
    if (x.defined() && x.dtype() == DType::float64 && !x.requires_grad())
      x = x.detach().requires_grad_();
    all.tensors.push_back(x);
    if (options.names.empty())
      names.push_back(fmt::format("input {}", i));
  }
  for (const Member& m : members.tensors) {
    if (m.tensor.dtype() != DType::float64)
      fail<DTypeError>(
          "{}: {} '{}' is {}, too coarse for finite differences: convert the layer with "
          "to(layer, DType::float64)",
          caller, m.is_buffer ? "buffer" : "parameter", m.name, to_string(m.tensor.dtype()));
    if (m.is_alias || m.is_buffer)
      continue;
    if (!m.tensor.requires_grad()) {
      all.notes.push_back(fmt::format("'{}' is frozen and was not checked", m.name));
      continue;
    }
    all.tensors.push_back(m.tensor);
    names.push_back(m.name);
  }
  return all;
}

// Leaves that the outputs depend on but visit does not name.
std::vector<Tensor> forgotten(const Members& members, const All& all) {
  const ModeGuard mode({true, nullptr});
  std::vector<Tensor> found;
  for (const Tensor& y : all.f(all.tensors))
    for (const Tensor& leaf : unvisited_leaves(members, y)) {
      const auto same = [&](const Tensor& x) { return x.defined() && x.handle() == leaf.handle(); };
      if (std::ranges::none_of(all.tensors, same) && std::ranges::none_of(found, same))
        found.push_back(leaf);
    }
  return found;
}

// All visited Tensors are float64, so a clash of dtypes comes from one that visit does not name, or
// that the function holds.
template <class F>
auto hinting(const F& f) {
  try {
    return f();
  } catch (const DTypeError& error) {
    fail<DTypeError>("{}; everything that visit names is float64: {}", error.what(), not_converted);
  }
}

}  // namespace

void wrong_count(std::size_t given) {
  fail<ValueError>("gradcheck: the layer is not called with {} Tensors", given);
}

GradcheckReport gradcheck(LayerCheck which, const Members& members, const TensorFunction& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const xgrad::detail::SameDraws draws;
  const bool first = which == LayerCheck::gradcheck;
  const char* const caller = first ? "gradcheck" : "gradgradcheck";
  const All all = everything(caller, members, f, inputs, options);
  GradcheckReport report = hinting([&] {
    return first ? xgrad::gradcheck(all.f, all.tensors, all.options)
                 : xgrad::gradgradcheck(all.f, all.tensors, all.options);
  });
  report.notes.insert(report.notes.end(), all.notes.begin(), all.notes.end());
  if (!report.ok)
    return report;
  std::vector<std::string> shapes;
  for (const Tensor& leaf : forgotten(members, all))
    shapes.push_back(to_string(leaf.shape()));
  if (!shapes.empty()) {
    report.ok = false;
    report.reason = GradcheckReason::unvisited;
    report.explanation = fmt::format(
        "the output depends on {} that visit does not name, of shape {}: add {} to visit, or an "
        "optimizer will never see {}",
        shapes.size() == 1 ? "a Tensor" : "Tensors", fmt::join(shapes, ", "),
        shapes.size() == 1 ? "it" : "them", shapes.size() == 1 ? "it" : "them");
    report.message = fmt::format("{}: {}", caller, report.explanation);
  }
  return report;
}

EpsSweep eps_sweep(const Members& members, const TensorFunction& f,
                   const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const All all = everything("eps_sweep", members, f, inputs, options);
  return hinting([&] { return xgrad::eps_sweep(all.f, all.tensors, all.options); });
}

}  // namespace xgrad::nn::detail
