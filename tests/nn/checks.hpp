#pragma once
// Checks for tests of layers.

#include <string>
#include <vector>
#include <xgrad/nn/check.hpp>
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

// Converts the model and checks the gradient of f, which calls it, by every parameter and by x; and
// that visit names every parameter that f uses.
template <class M, class F>
void check_gradients(M& model, xgrad::Tensor x, const F& f) {
  xgrad::nn::to(model, xgrad::DType::float64);
  x = x.detach().to(xgrad::DType::float64);
  CHECK(xgrad::nn::unvisited_leaves(model, f(x)).empty());
  const auto call = [&](const std::vector<xgrad::Tensor>& in) { return f(in[0]); };
  const auto first = xgrad::nn::gradcheck(model, call, {x});
  INFO(first.message);
  CHECK(first.ok);
  const auto second = xgrad::nn::gradgradcheck(model, call, {x});
  INFO(second.message);
  CHECK(second.ok);
}
