#pragma once
// Elementwise functions and softmax as layers, for Sequential.

#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {

struct ReLU {
  Tensor operator()(const Tensor& x) const { return relu(x); }
  static void visit(auto&, auto&&) {}
};

struct GELU {
  Gelu approximate = Gelu::erf;
  Tensor operator()(const Tensor& x) const { return gelu(x, approximate); }
  static void visit(auto&, auto&&) {}
};

struct SiLU {
  Tensor operator()(const Tensor& x) const { return silu(x); }
  static void visit(auto&, auto&&) {}
};

struct Tanh {
  Tensor operator()(const Tensor& x) const { return tanh(x); }
  static void visit(auto&, auto&&) {}
};

struct Sigmoid {
  Tensor operator()(const Tensor& x) const { return sigmoid(x); }
  static void visit(auto&, auto&&) {}
};

struct Softmax {
  std::int64_t dim = -1;
  Tensor operator()(const Tensor& x) const { return softmax(x, dim); }
  static void visit(auto&, auto&&) {}
};

}  // namespace xgrad::nn
