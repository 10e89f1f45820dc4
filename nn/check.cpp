#include "check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include "../autograd/check/function_checks.hpp"
#include "../autograd/check/probe.hpp"
#include "../autograd/check/same_draws.hpp"
#include "../autograd/fail.hpp"
#include "../autograd/mode.hpp"
#include "../autograd/ops.hpp"
#include "../autograd/random.hpp"

namespace xgrad::nn::detail {

namespace {

// The checked Tensors: the inputs, made leaves if they require no gradient, then the parameters.
struct All {
  std::vector<Tensor> tensors;
  GradcheckOptions options;
  TensorFunction f;
  std::vector<std::string> notes = {};
};

// A sentence for each Tensor that is neither trained nor frozen nor a buffer.
std::string undeclared(const Members& members) {
  std::string text;
  for (const auto& [name, x] : named_parameters(members))
    if (!x.requires_grad() && !x.is_frozen())
      text += fmt::format(
          "{}{} is named by visit, is no buffer, and requires no gradient: requires_grad_() or "
          "nn::buffer()",
          text.empty() ? "" : "; ", name);
  return text;
}

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
    if (m.tensor.is_frozen())
      all.notes.push_back(fmt::format("'{}' is frozen and was not checked", m.name));
    if (!m.tensor.requires_grad())
      continue;
    all.tensors.push_back(m.tensor);
    names.push_back(m.name);
  }
  if (std::string mistake = undeclared(members); !mistake.empty())
    all.notes.push_back(std::move(mistake));
  return all;
}

// "the output depends on a Tensor that visit does not name ..." or, if there is none, "".
std::string forgotten(const Members& members, const All& all) {
  const ModeGuard mode({true, nullptr});
  std::vector<Tensor> found;
  std::vector<std::string> shapes;
  for (const Tensor& y : all.f(all.tensors))
    for (const Tensor& leaf : unvisited_leaves(members, y)) {
      const auto same = [&](const Tensor& x) { return x.defined() && x.handle() == leaf.handle(); };
      if (std::ranges::none_of(all.tensors, same) && std::ranges::none_of(found, same)) {
        found.push_back(leaf);
        shapes.push_back(to_string(leaf.shape()));
      }
    }
  if (shapes.empty())
    return {};
  return fmt::format(
      "the output depends on {} that visit does not name, of shape {}: add {} to visit, or an "
      "optimizer will never see {}",
      shapes.size() == 1 ? "a Tensor" : "Tensors", fmt::join(shapes, ", "),
      shapes.size() == 1 ? "it" : "them", shapes.size() == 1 ? "it" : "them");
}

// All visited Tensors have this dtype, so a dtype error comes from one that visit does not name or
// that the function holds.
template <class F>
auto hinting(const F& f, DType dtype = DType::float64) {
  try {
    return f();
  } catch (const DTypeError& error) {
    fail<DTypeError>(
        "{}; everything that visit names is {}: does it name every Tensor?  Pass one that the "
        "function holds as an input: {{x, s}}",
        error.what(), to_string(dtype));
  }
}

using Status = LayerReport::Status;

struct CheckOutcome {
  Status status;
  std::string text;
};

class LayerChecks {
 public:
  LayerChecks(const detail::Members& members, const detail::OfInputs& f,
              const std::vector<Tensor>& inputs, const LayerCheckOptions& options, bool is_call)
      : members_(members), f_(f), options_(options), in_(inputs), is_call_(is_call) {
    check<ValueError>(!in_.empty() && std::ranges::all_of(in_, &Tensor::defined),
                      "check_layer: an input is undefined, or there is none");
    convert_inputs(members.tensors.empty() ? in_[0].dtype() : members.tensors[0].tensor.dtype());
    set_training(false);
    y_ = call().detach();
  }

  LayerReport run() {
    add("state_dict", [&] { return state(); });
    add("deterministic", [&] { return deterministic(); });
    add("check_batch_independence", [&] { return batch(); });
    add("check_causal", [&] { return causal(); });
    std::size_t size = y_.numel();
    for (const Tensor& x : in_)
      size += x.numel();
    for (const auto& [name, parameter] : detail::named_parameters(members_))
      size += parameter.numel();
    convert(DType::float64);
    add("parameters", [&] { return reached(); });
    std::rotate(report_.lines.begin() + 1, report_.lines.end() - 1, report_.lines.end());
    add("gradcheck",
        [&] { return gradients(detail::LayerCheck::gradcheck, size > options_.full); });
    add("gradgradcheck",
        [&] { return gradients(detail::LayerCheck::gradgradcheck, size > options_.full / 16); });
    add("dtype", [&] { return dtype(); });
    return std::move(report_);
  }

 private:
  template <class Check>
  void add(const std::string& name, const Check& check) {
    CheckOutcome outcome{Status::failed, ""};
    try {
      outcome = check();
    } catch (const std::exception& error) {
      outcome.text = error.what();
    }
    set_training(false);
    if (const auto own = name + ": "; outcome.text.starts_with(own))
      outcome.text.erase(0, own.size());
    report_.ok = report_.ok && outcome.status != Status::failed;
    report_.lines.push_back(
        {name, outcome.status, outcome.text.substr(0, outcome.text.find('\n'))});
  }

  Tensor call() const {
    return hinting([&] { return f_(in_); }, in_[0].dtype());
  }
  void set_training(bool mode) const {
    for (bool* const flag : members_.training)
      *flag = mode;
  }
  void convert(DType dtype) {
    detail::convert(members_, dtype);
    convert_inputs(dtype);
  }
  void convert_inputs(DType dtype) {
    for (Tensor& x : in_)
      x = x.detach().to(dtype);
  }

  CheckOutcome state() const {
    std::vector<std::string> shapes;
    for (const Tensor& leaf : detail::unvisited_leaves(members_, f_(in_)))
      shapes.push_back(to_string(leaf.shape()));
    if (!shapes.empty())
      return {Status::failed,
              fmt::format("visit omits a Tensor that the result depends on, of shape {}: it is "
                          "neither trained nor saved",
                          fmt::join(shapes, ", "))};
    return {Status::ok,
            fmt::format("{} names, of all trained Tensors", detail::state_dict(members_).size())};
  }

  // In float64, which tells a gradient of rounding alone from a small one.  A gradient may be 0
  // here and not elsewhere, as with weights that start at 0, a unit that is off, or an expert that
  // was not chosen: while one is, inputs and parameters move.
  CheckOutcome reached() const {
    if (std::string mistake = detail::undeclared(members_); !mistake.empty())
      return {Status::failed, std::move(mistake)};
    std::vector<Tensor> all = in_, movable = in_, trained;
    std::vector<std::string> names, least;
    for (const detail::Member& m : members_.tensors) {
      all.push_back(m.tensor);
      if (m.is_buffer || m.is_alias)
        continue;
      movable.push_back(m.tensor);
      if (!m.tensor.requires_grad())
        continue;
      trained.push_back(m.tensor);
      names.push_back(m.name);
    }
    if (trained.empty())
      return {Status::does_not_apply, "no parameter requires a gradient"};
    using xgrad::detail::random_signed;
    const xgrad::detail::Snapshot before(all);
    const auto typical = [](const Tensor& x) {
      return xgrad::detail::Leaf(xgrad::detail::elements(x)).typical;
    };
    Generator generator(options_.seed);
    enum Gradient { none, zero, rounding, some };
    std::vector<Gradient> found(trained.size(), none);  // the largest at any point
    for (std::size_t i = 0; i < found.size(); ++i)
      if (trained[i].numel() == 0)
        found[i] = some;  // there is nothing to train
    int moves = 0;
    const auto look = [&] {
      const Tensor y = f_(in_);
      const Tensor cotangent = random_signed(y.shape(), generator).to(y.dtype());
      const auto g = xgrad::detail::partial_gradients({y}, trained, {cotangent}, {});
      const double result = norm(y.detach() * cotangent).item();
      for (std::size_t i = 0; i < g.size(); ++i) {
        const double size = g[i].defined() ? norm(g[i]).item() * typical(trained[i]) : 0;
        if (g[i].defined() && (moves == 0 || std::isfinite(size)))
          found[i] = std::max(found[i], size == 0                ? zero
                                        : size <= 1e-10 * result ? rounding
                                                                 : some);
      }
    };
    look();
    for (const double by : {0.1, 0.3, 1.0, 1.0, 1.0}) {
      if (std::ranges::count(found, some) == std::ssize(found))
        break;
      for (Tensor& x : movable)
        x.copy_(x.detach() + random_signed(x.shape(), generator) * (by * typical(x)));
      set_training(++moves % 2 == 1);
      try {
        look();
      } catch (const Error&) {  // the function does not take these values
      }
    }
    const Gradient lowest = std::ranges::min(found);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (found[i] == lowest)
        least.push_back(names[i]);
    if (lowest == some)
      return {Status::ok, fmt::format("a gradient reaches all {}", names.size())};
    if (lowest == none)
      return {Status::failed, fmt::format("no gradient reaches {}", fmt::join(least, ", "))};
    return {lowest == zero ? Status::failed : Status::information,
            fmt::format("the gradient of {} is {}, here and at {} points nearby, whatever the loss",
                        fmt::join(least, ", "), lowest == zero ? "0" : "rounding alone", moves)};
  }

  CheckOutcome deterministic() const {
    for (const bool training : {false, true}) {
      set_training(training);
      const xgrad::detail::SameDraws draws;
      const xgrad::detail::Snapshot before(in_);
      f_(in_);
      if (std::string changes = before.changes("the layer"); !changes.empty())
        return {Status::failed, std::move(changes)};
      draws.again();
      const auto differs = [&](bool from_one_seed) {
        const Tensor first = f_(in_);
        if (from_one_seed)
          draws.again();
        return !xgrad::detail::same_bits(first, f_(in_));
      };
      if (!differs(training))
        continue;
      draws.again();
      const bool keeps_state = differs(true);
      return {Status::failed,
              fmt::format("two calls in {} differ{}", training ? "training" : "evaluation",
                          keeps_state ? ", from one seed: does the layer keep state?"
                                      : ": is dropout still active?")};
    }
    return {Status::ok, "two calls give the same bits; in training, from one seed"};
  }

  // Whether x and the result have the same size, at least 2, at dimension d; if not, why.
  std::optional<CheckOutcome> unlike(const Tensor& x, std::int64_t d) const {
    const auto has = [&](const Tensor& t) { return -t.dim() <= d && d < t.dim(); };
    if (!has(x) || !has(y_) || x.size(d) != y_.size(d) || x.size(d) < 2)
      return CheckOutcome{Status::does_not_apply,
                          fmt::format("x {} and the result {} share no dimension {} of 2 or more",
                                      to_string(x.shape()), to_string(y_.shape()), d)};
    return {};
  }
  // As a function of one input.
  std::function<Tensor(const Tensor&)> of_input(std::size_t i) const {
    return [this, i](const Tensor& x) {
      auto in = in_;
      in[i] = x;
      return f_(in);
    };
  }

  CheckOutcome batch() const {
    CheckOutcome all{Status::does_not_apply, "x has no batch"};
    for (std::size_t i = 0; options_.batch_dim && i < in_.size(); ++i) {
      if (in_[i].dim() < 2)
        continue;
      if (auto no = unlike(in_[i], *options_.batch_dim)) {
        if (all.status == Status::does_not_apply)
          all = std::move(*no);
        continue;
      }
      for (const bool training : {false, true}) {
        set_training(training);
        const LeakReport found = check_batch_independence(
            of_input(i), in_[i], {.dim = *options_.batch_dim, .seed = options_.seed});
        if (!found)
          return {Status::failed, fmt::format("{}{}, in {}", found.message,
                                              i > 0 ? fmt::format(", of input {}", i) : "",
                                              training ? "training" : "evaluation")};
        all = {Status::ok, found.message};
      }
    }
    return all;
  }

  CheckOutcome causal() const {
    const Tensor& x = in_[0];
    const bool is_batch = options_.batch_dim && x.dim() >= 2 &&
                          (*options_.batch_dim == -2 || *options_.batch_dim == x.dim() - 2);
    auto no = unlike(x, -2);
    if (!no && is_batch)
      no = CheckOutcome{Status::does_not_apply, "dimension -2 of x is the batch"};
    if (no) {
      if (options_.causal)
        no->status = Status::failed;
      return *no;
    }
    const auto found = check_causal(of_input(0), x, {.seed = options_.seed});
    if (!options_.causal)
      return {Status::information, found.message};
    return {found ? Status::ok : Status::failed, found.message};
  }

  CheckOutcome gradients(detail::LayerCheck which, bool fast) const {
    const auto report = detail::gradcheck(
        which, members_, f_, in_,
        {.fast_mode = fast,
         .seed = options_.seed,
         .names = in_.size() == 1 ? std::vector<std::string>{"x"} : std::vector<std::string>()});
    return {report ? Status::ok : Status::failed, report.message};
  }

  CheckOutcome dtype() {
    for (const DType own : {DType::float64, DType::float32}) {
      convert(own);
      try {
        if (const DType got = call().dtype(); got != own)
          return {Status::failed,
                  fmt::format("from {} layer and x it gives {}", to_string(own), to_string(got))};
      } catch (const DTypeError& error) {
        return {is_call_ ? Status::failed : Status::does_not_apply, error.what()};
      }
    }
    return {Status::ok, "float32 gives float32, float64 gives float64"};
  }

  const detail::Members& members_;
  const detail::OfInputs& f_;
  const LayerCheckOptions& options_;
  std::vector<Tensor> in_;
  bool is_call_;  // f only calls the layer
  Tensor y_;
  LayerReport report_;
};

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
  if (std::string omitted = forgotten(members, all); !omitted.empty()) {
    report.ok = false;
    report.reason = GradcheckReason::unvisited;
    report.explanation = std::move(omitted);
    report.message = fmt::format("{}: {}", caller, report.explanation);
  }
  return report;
}

GradientExplanation explain_gradient(const Members& members, const TensorFunction& f,
                                     const std::vector<Tensor>& inputs,
                                     const ExplainOptions& options) {
  const xgrad::detail::SameDraws draws;
  const All all = everything("explain_gradient", members, f, inputs, {.names = options.names});
  ExplainOptions named = options;
  named.names = all.options.names;
  GradientExplanation found =
      hinting([&] { return xgrad::explain_gradient(all.f, all.tensors, named); });
  if (std::string omitted = found ? forgotten(members, all) : ""; !omitted.empty()) {
    found.ok = false;
    found.message = std::move(omitted);
  }
  for (const std::string& note : all.notes)
    found.message += "; " + note;
  return found;
}

EpsSweep eps_sweep(const Members& members, const TensorFunction& f,
                   const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const All all = everything("eps_sweep", members, f, inputs, options);
  return hinting([&] { return xgrad::eps_sweep(all.f, all.tensors, all.options); });
}

}  // namespace xgrad::nn::detail

namespace xgrad::nn {

constexpr const char* words[] = {"ok", "FAILED", "does not apply", "info"};  // of a Status

LayerReport detail::check_layer(const Members& members, const OfInputs& f,
                                const std::vector<Tensor>& inputs, const LayerCheckOptions& options,
                                bool is_call) {
  const ModeGuard mode({true, nullptr});
  const xgrad::detail::SameDraws draws;
  return LayerChecks(members, f, inputs, options, is_call).run();
}

const LayerReport::Line& LayerReport::line(std::string_view check) const {
  const auto found = std::ranges::find(lines, check, &Line::check);
  if (found == lines.end())
    fail<ValueError>("LayerReport: no check is called '{}'", check);
  return *found;
}

std::string LayerReport::table() const {
  std::vector<std::vector<std::string>> rows;
  for (const Line& l : lines)
    rows.push_back({l.check, fmt::format("{:<14}", words[static_cast<int>(l.status)]), l.found});
  return in_columns(rows, "<<");
}

std::ostream& operator<<(std::ostream& out, const LayerReport& report) {
  return out << report.table();
}

}  // namespace xgrad::nn
