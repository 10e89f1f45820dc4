#include "golden/ops.hpp"

#include <algorithm>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/io/safetensors.hpp>

#include "golden/file.hpp"
#include "helpers/catch.hpp"
#include "helpers/paths.hpp"
#include "helpers/tensors.hpp"

namespace xgrad::testing {

// ---- calls ----

GoldenOutputs::GoldenOutputs(const Mask& y) {
  auto a = empty_array<std::int64_t>(y.shape());
  std::copy_n(y.data(), y.numel(), a.data());
  indices.emplace_back(std::move(a));
}

void GoldenCalls::add(const std::string& op, std::initializer_list<std::string> samples,
                      const GoldenCall& call) {
  for (const std::string& sample : samples)
    if (!calls_.emplace(op + "/" + sample, call).second)
      throw ValueError("the golden call " + op + "/" + sample + " stands twice");
}

// ---- the file ----

namespace {

template <class T, class Put>
void sort_into_cases(const std::map<std::string, T>& from, Put put) {
  for (const auto& [name, x] : from) {
    const std::size_t slash = name.rfind('/');
    const std::size_t digit = name.find_first_of("0123456789", slash);
    put(name.substr(0, slash), name.substr(slash + 1, digit - slash - 1),
        std::stoul(name.substr(digit)), x);
  }
}

}  // namespace

const std::map<std::string, GoldenCase>& golden_cases() {
  static const std::map<std::string, GoldenCase> all = [] {
    const auto file = io::load_safetensors(source_dir + "/tests/golden/ops.safetensors");
    std::map<std::string, GoldenCase> made;
    sort_into_cases(file.tensors, [&](const auto& name, const auto& kind, std::size_t i, auto& x) {
      made[name].tensors[kind][i] = x;
    });
    sort_into_cases(file.indices, [&](const auto& name, const auto& kind, std::size_t i, auto& x) {
      made[name].indices[kind][i] = x;
    });
    return made;
  }();
  return all;
}

// ---- comparison ----

namespace {

class Run {
 public:
  Run(const GoldenCase& golden, GoldenCall call, DType dtype)
      : golden_(golden), call_(std::move(call)), dtype_(dtype) {}

  Deviations all() {
    outputs();
    if (golden_.has("g")) {
      ordinary_gradients();
      gradients_with_graph();
    }
    return std::move(deviations_);
  }

 private:
  // The gradients of what has a graph; undefined for an input that nothing uses.
  static std::vector<Tensor> gradients(const std::vector<Tensor>& of, const std::vector<Tensor>& by,
                                       const std::vector<Tensor>& cotangents, bool create_graph) {
    std::vector<Tensor> outputs, gs;
    for (std::size_t i = 0; i < of.size(); ++i)
      if (of[i].defined() && of[i].requires_grad()) {
        outputs.push_back(of[i]);
        gs.push_back(cotangents[i]);
      }
    if (outputs.empty())
      return std::vector<Tensor>(by.size());
    return grad(outputs, by,
                {.grad_outputs = gs, .create_graph = create_graph, .allow_unused = true});
  }

  // Fresh leaves.
  GoldenInputs inputs() const {
    GoldenInputs in;
    for (std::size_t i = 0; i < golden_.count("in"); ++i) {
      in.tensors.push_back(clone(golden_.get("in", i, dtype_)));
      in.tensors.back().requires_grad_(golden_.has("g"));
    }
    for (std::size_t i = 0; i < golden_.count("fixed"); ++i)
      in.fixed.push_back(golden_.get("fixed", i, dtype_));
    in.ids = golden_.integers("ids");
    for (const Indices& zeros_and_ones : golden_.integers("mask")) {
      auto mask = empty_array<bool>(zeros_and_ones.shape());
      std::transform(zeros_and_ones.data(), zeros_and_ones.data() + zeros_and_ones.numel(),
                     mask.data(), [](std::int64_t i) { return i != 0; });
      in.masks.emplace_back(std::move(mask));
    }
    return in;
  }

  // One for each output, of its dtype.
  std::vector<Tensor> cotangents(const std::vector<Tensor>& outputs) const {
    std::vector<Tensor> gs;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      gs.push_back(clone(golden_.get("g", i, outputs[i].dtype())));
    return gs;
  }

  void outputs() {
    const GoldenOutputs y = call_(inputs());
    REQUIRE(y.tensors.size() == golden_.count("out"));
    for (std::size_t i = 0; i < y.tensors.size(); ++i)
      compare("out", i, y.tensors[i]);
    const std::vector<Indices> integers = golden_.integers("index");
    REQUIRE(y.indices.size() == integers.size());
    for (std::size_t i = 0; i < integers.size(); ++i) {
      const Indices &a = y.indices[i], &b = integers[i];
      const bool same =
          a.shape() == b.shape() && std::equal(a.data(), a.data() + a.numel(), b.data());
      deviations_.emplace_back("index" + std::to_string(i), same ? 0 : inf);
    }
  }

  void ordinary_gradients() {
    const GoldenInputs in = inputs();
    const std::vector<Tensor> y = call_(in).tensors;
    const auto grads = gradients(y, in.tensors, cotangents(y), false);
    for (std::size_t i = 0; i < grads.size(); ++i)
      compare("grad", i, grads[i], in[i]);
  }

  // First gradients again, and second ones.
  void gradients_with_graph() {
    const GoldenInputs in = inputs();
    const std::vector<Tensor> y = call_(in).tensors;
    std::vector<Tensor> gs = cotangents(y);
    for (Tensor& g : gs)
      g.requires_grad_();
    const auto grads = gradients(y, in.tensors, gs, true);
    std::vector<Tensor> by = in.tensors, vs;
    by.insert(by.end(), gs.begin(), gs.end());
    for (std::size_t i = 0; i < grads.size(); ++i) {
      compare("grad", i, grads[i], in[i]);
      vs.push_back(golden_.get("v", i, dtype_));
    }
    if (!golden_.has("v"))
      return;
    const auto seconds = gradients(grads, by, vs, false);
    for (std::size_t i = 0; i < by.size(); ++i) {
      const bool by_input = i < in.tensors.size();
      compare(by_input ? "second" : "gg", by_input ? i : i - in.tensors.size(), seconds[i], by[i]);
    }
  }

  // A gradient that is undefined, or not in the file, is zero.
  void compare(const std::string& kind, std::size_t i, const Tensor& actual, const Tensor& like) {
    if (actual.defined())
      CHECK(actual.dtype() == like.dtype());
    const Tensor golden = golden_.get(kind, i, DType::float64);
    record(kind, i, actual.defined() ? actual : zeros_like(like),
           golden.defined() ? golden : zeros_like(like));
  }
  void compare(const std::string& kind, std::size_t i, const Tensor& actual) {
    record(kind, i, actual, golden_.get(kind, i, DType::float64));
  }
  void record(const std::string& kind, std::size_t i, const Tensor& actual, const Tensor& golden) {
    const Tensor ours = to(actual, DType::float64).detach(), theirs = to(golden, DType::float64);
    deviations_.emplace_back(kind + std::to_string(i), distance(ours, theirs, ErrorUnit::relative));
  }

  const GoldenCase& golden_;
  GoldenCall call_;
  DType dtype_;
  Deviations deviations_;
};

}  // namespace

Deviations deviations(const GoldenCase& golden, const GoldenCall& call, DType dtype) {
  return Run(golden, call, dtype).all();
}

}  // namespace xgrad::testing
