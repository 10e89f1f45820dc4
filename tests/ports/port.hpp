#pragma once
// Compares a port with PyTorch's numbers in ports.safetensors, by the names in ports.py.

#include <functional>
#include <string>
#include <vector>
#include <xgrad/xgrad.hpp>

#include "golden/file.hpp"
#include "helpers/catch.hpp"

#pragma GCC diagnostic ignored "-Wconversion"  // ports are a user's: y / x.size(0)

namespace xgrad::testing {

/// One port in one dtype.
class Port {
 public:
  Port(const GoldenFile& file, std::string name, DType dtype)
      : file_(file), name_(std::move(name)), dtype_(dtype) {}

  DType dtype() const { return dtype_; }
  Tensor operator[](const std::string& input) const { return given("in/" + input); }
  Indices indices(const std::string& input) const { return file_.indices(name_ + "/in/" + input); }
  /// Gives the model PyTorch's weights.
  void start(auto& model) const {
    nn::to(model, dtype_);
    nn::StateDict state = nn::state_dict(model);
    for (auto& [key, value] : state)
      value = given("start/" + key);
    nn::load_state_dict(model, state);
  }
  void compare(const std::string& output, const Tensor& ours) { check("out/" + output, ours); }
  void compare_gradients(const auto& model) {
    for (const auto& [key, value] : nn::named_parameters(model))
      check("grad/" + key, value.grad());
  }
  void compare_trained(const auto& model) {
    for (const auto& [key, value] : nn::state_dict(model))
      check("trained/" + key, value);
  }

 private:
  Tensor given(const std::string& value) const {
    return file_.tensor(name_ + "/" + value).to(dtype_);
  }
  void check(const std::string& value, const Tensor& ours) {
    const std::string label = dtype_ == DType::float64 ? "/f64/" : "/f32/";
    file_.check(name_ + label + value, ours);
  }

  const GoldenFile& file_;
  std::string name_;
  DType dtype_;
};

/// Runs a port in each dtype with numbers.  It must use all of them.
void run_port(const std::string& name, const std::function<void(Port&)>& port);

}  // namespace xgrad::testing
