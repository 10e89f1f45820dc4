#include "golden/samples.hpp"

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/engine.hpp>

#include "golden/file.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

namespace xgrad::testing {

// ---- the file ----

namespace {

template <class T, class Put>
void sort_by_sample(const std::map<std::string, T>& from, Put put) {
  for (const auto& [name, x] : from) {
    const std::size_t slash = name.rfind('/');
    const std::size_t digit = name.find_first_of("0123456789", slash);
    put(name.substr(0, slash), name.substr(slash + 1, digit - slash - 1),
        std::stoul(name.substr(digit)), x);
  }
}

Mask as_mask(const Indices& zeros_and_ones) {
  auto mask = empty_array<bool>(zeros_and_ones.shape());
  std::transform(zeros_and_ones.data(), zeros_and_ones.data() + zeros_and_ones.numel(), mask.data(),
                 [](std::int64_t i) { return i != 0; });
  return Mask(std::move(mask));
}

constexpr Tensor OpInputs::* leaf_letters[] = {&OpInputs::x, &OpInputs::y, &OpInputs::z,
                                               &OpInputs::u, &OpInputs::v};
constexpr Tensor OpInputs::* constant_letters[] = {&OpInputs::w, &OpInputs::c};
constexpr Indices OpInputs::* integer_letters[] = {&OpInputs::i, &OpInputs::j, &OpInputs::k};
constexpr Mask OpInputs::* mask_letters[] = {&OpInputs::m, &OpInputs::n};

OpInputs op_inputs(const SampleNumbers& numbers, const Inputs& leaves, DType dtype) {
  OpInputs in;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    in.*leaf_letters[i] = leaves[i];
  for (std::size_t i = 0; i < numbers.count("fixed"); ++i)
    in.*constant_letters[i] = numbers.get("fixed", i, dtype);
  const auto ids = numbers.integers("ids"), masks = numbers.integers("mask");
  for (std::size_t i = 0; i < ids.size(); ++i)
    in.*integer_letters[i] = ids[i];
  for (std::size_t i = 0; i < masks.size(); ++i)
    in.*mask_letters[i] = as_mask(masks[i]);
  return in;
}

/// The same as table.py's.
Tensor digest(const Tensor& x) {
  const Tensor flat = flatten(x.detach().to(DType::float64));
  const auto n = static_cast<std::size_t>(flat.numel()),
             step = std::max<std::size_t>(1, (n + 61) / 62);
  double largest = 0, mean = 0;
  std::vector<double> some(2);
  for (std::size_t i = 0; i < n; ++i) {
    const double v = flat.data<double>()[i];
    largest = std::max(largest, std::abs(v));
    mean += v * (static_cast<double>(i * 467 % 1009 + 1) / 1010) / static_cast<double>(n);
    if (i % step == 0)
      some.push_back(v);
  }
  some[0] = largest;
  some[1] = mean;
  return tensor(some, DType::float64);
}

const SampleNumbers& numbers_of(const OpCall& call) {
  const auto at = sample_numbers().find(call.name);
  if (at == sample_numbers().end())
    throw ValueError(std::string(call.name) + " has no numbers: run tests/golden/ops.py");
  return at->second;
}

// ---- comparison ----

class Comparison {
 public:
  Comparison(const OpCall& call, DType dtype)
      : call_(call), numbers_(numbers_of(call)), dtype_(dtype) {}

  /// Outputs and gradients of a large sample, whole: PyTorch's digest covers only a part.
  const std::vector<Tensor>& whole() const { return whole_; }

  Deviations all() {
    outputs();
    if (numbers_.has("grad")) {
      ordinary_gradients();
      gradients_with_graph();
    }
    return std::move(deviations_);
  }

 private:
  // Whether the call has a dtype as an argument.
  static bool chooses_dtype(const std::string& name) {
    return name.starts_with("to/") || name.find("/dtype") != std::string::npos;
  }

  // The gradients of all results with a graph; undefined for an unused input.
  static Inputs gradients(const Inputs& of, const Inputs& by, const Inputs& cotangents,
                          bool create_graph) {
    Inputs outputs, gs;
    for (std::size_t i = 0; i < of.size(); ++i)
      if (of[i].defined() && of[i].requires_grad()) {
        outputs.push_back(of[i]);
        gs.push_back(cotangents[i]);
      }
    if (outputs.empty())
      return Inputs(by.size());
    return grad(outputs, by,
                {.grad_outputs = gs, .create_graph = create_graph, .allow_unused = true});
  }

  // Fresh leaves; draws continue with the cotangents.
  Inputs leaves(Draws& draws) const {
    Inputs all;
    if (call_.draw != nullptr)
      all = call_.draw(draws);
    for (std::size_t i = 0; i < numbers_.count("in"); ++i)
      all.push_back(clone(numbers_.get("in", i, dtype_)));
    for (Tensor& x : all)
      x = x.to(dtype_).requires_grad_(numbers_.has("grad"));
    return all;
  }
  // One for each output, of its dtype.
  Inputs cotangents(const Inputs& outputs, Draws& draws) const {
    Inputs gs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const DType dtype = outputs[i].dtype();
      gs.push_back(call_.draw != nullptr ? draws.randn(outputs[i].shape()).to(dtype)
                                         : clone(numbers_.get("g", i, dtype)));
    }
    return gs;
  }
  OpOutputs called(const Inputs& leaves) const {
    return call_.f(op_inputs(numbers_, leaves, dtype_));
  }

  void outputs() {
    Draws draws(call_.seed);
    const OpOutputs y = called(leaves(draws));
    REQUIRE(y.tensors.size() == numbers_.count("out"));
    for (std::size_t i = 0; i < y.tensors.size(); ++i) {
      compare("out", i, y.tensors[i]);
      const std::string name = call_.name;
      if (call_.draw != nullptr || (dtype_ == DType::float32 && !chooses_dtype(name)))
        CHECK(y.tensors[i].dtype() == dtype_);
      else if (dtype_ == DType::float64)
        CHECK(y.tensors[i].dtype() == numbers_.tensors.at("out").at(i).dtype());
    }
    const std::vector<Indices> integers = numbers_.integers("index");
    REQUIRE(y.indices.size() == integers.size());
    for (std::size_t i = 0; i < integers.size(); ++i) {
      const Indices &a = y.indices[i], &b = integers[i];
      const bool same =
          a.shape() == b.shape() && std::equal(a.data(), a.data() + a.numel(), b.data());
      deviations_.emplace_back("index" + std::to_string(i), same ? 0 : inf);
    }
  }

  void ordinary_gradients() {
    Draws draws(call_.seed);
    const Inputs in = leaves(draws), y = called(in).tensors;
    const Inputs grads = gradients(y, in, cotangents(y, draws), false);
    for (std::size_t i = 0; i < grads.size(); ++i)
      compare("grad", i, grads[i], in[i]);
  }

  // First gradients again, and second ones.
  void gradients_with_graph() {
    Draws draws(call_.seed);
    const Inputs in = leaves(draws), y = called(in).tensors;
    Inputs gs = cotangents(y, draws);
    for (Tensor& g : gs)
      g.requires_grad_();
    const Inputs grads = gradients(y, in, gs, true);
    Inputs by = in, vs;
    by.insert(by.end(), gs.begin(), gs.end());
    for (std::size_t i = 0; i < grads.size(); ++i) {
      compare("grad", i, grads[i], in[i]);
      vs.push_back(numbers_.get("v", i, dtype_));
    }
    if (!numbers_.has("v"))
      return;
    const Inputs seconds = gradients(grads, by, vs, false);
    for (std::size_t i = 0; i < by.size(); ++i) {
      const bool by_input = i < in.size();
      compare(by_input ? "second" : "gg", by_input ? i : i - in.size(), seconds[i], by[i]);
    }
  }

  // A gradient that is undefined, or not in the file, is zero.
  void compare(const std::string& kind, std::size_t i, const Tensor& actual, const Tensor& like) {
    if (actual.defined())
      CHECK(actual.dtype() == like.dtype());
    compare(kind, i, actual.defined() ? actual : zeros_like(like));
  }
  void compare(const std::string& kind, std::size_t i, const Tensor& actual) {
    const Tensor wanted = numbers_.get(kind, i, DType::float64);
    const Tensor ours =
        call_.draw != nullptr ? digest(actual) : to(actual, DType::float64).detach();
    if (call_.draw != nullptr)
      whole_.push_back(to(actual, DType::float64).detach());
    deviations_.emplace_back(
        kind + std::to_string(i),
        distance(ours, wanted.defined() ? wanted : zeros_like(ours), ErrorUnit::relative));
  }

  const OpCall& call_;
  const SampleNumbers& numbers_;
  DType dtype_;
  Deviations deviations_;
  std::vector<Tensor> whole_;
};

}  // namespace

const std::map<std::string, SampleNumbers>& sample_numbers() {
  static const std::map<std::string, SampleNumbers> all = [] {
    const GoldenFile golden("ops");
    const io::TensorFile& file = golden.content();
    std::map<std::string, SampleNumbers> made;
    sort_by_sample(file.tensors, [&](const auto& name, const auto& kind, std::size_t i, auto& x) {
      made[name].tensors[kind][i] = x;
    });
    sort_by_sample(file.indices, [&](const auto& name, const auto& kind, std::size_t i, auto& x) {
      made[name].indices[kind][i] = x;
    });
    return made;
  }();
  return all;
}

Deviations deviations(const OpCall& call, DType dtype) {
  Comparison comparison(call, dtype);
  Deviations all = comparison.all();
  if (call.draw == nullptr || dtype == DType::float64)
    return all;
  // A digest has few elements, so each element in float32 is compared with float64's.
  Comparison in_double(call, DType::float64);
  in_double.all();
  for (std::size_t i = 0; i < comparison.whole().size(); ++i)
    all.emplace_back("all elements of result " + std::to_string(i),
                     distance(comparison.whole()[i], in_double.whole().at(i), ErrorUnit::relative));
  return all;
}

// ---- samples ----

std::string signs_of(const std::vector<Tensor>& xs) {
  std::string text;
  for (const Tensor& x : xs) {
    if (x.defined())
      for (const double v : numbers(x.detach()))
        text += std::isnan(v) ? 'n' : !std::isinf(v) ? '.' : v > 0 ? '+' : '-';
    text += ' ';
  }
  return text;
}

static Tensor joined(const std::vector<Tensor>& outputs) {
  if (outputs.size() == 1)
    return outputs[0];
  std::vector<Tensor> lines;
  for (const Tensor& y : outputs)
    lines.push_back(flatten(y));
  return cat(lines);
}

const std::vector<OpSample>& op_samples(const OpGroup& group) {
  static std::map<std::string, std::vector<OpSample>> made;
  auto [at, is_new] = made.try_emplace(group.name);
  if (!is_new)
    return at->second;
  for (const OpCall& call : group.calls) {
    const SampleNumbers& numbers = numbers_of(call);
    const std::string name = call.name;
    const std::size_t slash = name.find('/');
    OpSample sample{name.substr(0, slash), name.substr(slash + 1), {}, {}};
    if (call.draw != nullptr) {
      Draws draws(call.seed);
      sample.inputs = call.draw(draws);
    }
    for (std::size_t i = 0; i < numbers.count("in"); ++i)
      sample.inputs.push_back(numbers.get("in", i, DType::float64));
    if (sample.inputs.empty() || !numbers.has("out"))
      continue;
    sample.f = [&call, &numbers](const Inputs& in) {
      return joined(call.f(op_inputs(numbers, in, in[0].dtype())).tensors);
    };
    sample.gradients = numbers.has("grad");
    sample.differences = call.differences && sample.gradients;
    sample.tolerance32 = call.tolerance32;
    at->second.push_back(std::move(sample));
  }
  return at->second;
}

}  // namespace xgrad::testing
