#pragma once
// Checks for tests of layers.

#include <string>
#include <vector>
#include <xgrad/nn/module.hpp>

#include "helpers/catch.hpp"

inline std::vector<std::string> names(const xgrad::nn::StateDict& state) {
  std::vector<std::string> list;
  for (const auto& [name, tensor] : state)
    list.push_back(name);
  return list;
}

// The first elements of x.
inline void check_start(const xgrad::Tensor& x, const std::vector<double>& expected,
                        double eps = 2e-6) {
  const xgrad::Tensor values = x.detach().to(xgrad::DType::float64);
  REQUIRE(std::cmp_greater_equal(values.numel(), expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(values.data<double>()[i] == Approx(expected[i]).epsilon(eps).margin(2e-7));
}
