#pragma once
// State dicts that PyTorch saved (tests/golden/weights.py), and what models make of them.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/module.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/errors.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

/// PyTorch's inputs and outputs.
inline const io::TensorFile& outputs() {
  static const io::TensorFile file = io::load_safetensors(golden_weights("outputs"));
  return file;
}

inline void check_close(const Tensor& x, const Tensor& expected) {
  REQUIRE(x.shape() == expected.shape());
  double largest = 0;
  for (Size i = 0; i < x.numel(); ++i)
    largest = std::max(largest, std::abs(element<double>(x.to(DType::float64), i) -
                                         double{expected.data<float>()[i]}));
  CHECK(largest <= 1e-5);
}

/// All values of a model, to detect changes.
inline std::vector<double> values_of(const nn::StateDict& state) {
  std::vector<double> all;
  for (const auto& [name, x] : state) {
    const Tensor wide = x.to(DType::float64);
    all.insert(all.end(), wide.data<double>(), wide.data<double>() + wide.numel());
  }
  return all;
}

/// Checks that loading fails with a message with these parts, and changes nothing.
template <nn::Layer M>
void check_not_loaded(M& model, const std::string& path, const std::vector<std::string>& parts) {
  const std::vector<double> before = values_of(nn::state_dict(model));
  const std::string message = message_of<FileError>([&] { io::load(model, path); });
  CHECK_THAT(message, StartsWith(path + ": "));
  check_contains(message, parts);
  CHECK(values_of(nn::state_dict(model)) == before);
}
