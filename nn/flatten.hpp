#pragma once
// Layers that compute nothing, for Sequential.

#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {

struct Identity {
  Tensor operator()(const Tensor& x) const { return x; }
  static void visit(auto&, auto&&) {}
};

struct Flatten {
  std::int64_t start_dim = 1, end_dim = -1;
  Tensor operator()(const Tensor& x) const { return flatten(x, start_dim, end_dim); }
  static void visit(auto&, auto&&) {}
};

}  // namespace xgrad::nn
