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

struct LeakyReLU {
  double negative_slope = 0.01;
  Tensor operator()(const Tensor& x) const { return leaky_relu(x, negative_slope); }
  static void visit(auto&, auto&&) {}
};

struct ELU {
  double alpha = 1;
  Tensor operator()(const Tensor& x) const { return elu(x, alpha); }
  static void visit(auto&, auto&&) {}
};

struct Softplus {
  double beta = 1, threshold = 20;
  Tensor operator()(const Tensor& x) const { return softplus(x, beta, threshold); }
  static void visit(auto&, auto&&) {}
};

/// x where x > 0, else weight * x; derivative weight at 0.  He et al., 2015.
struct PReLU {
  Tensor weight;  ///< (num_parameters,): one for all, or one for each channel, dimension 1 of x

  explicit PReLU(Size num_parameters = 1, double init = 0.25);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) { v("weight", self.weight); }
};

struct Softmax {
  std::int64_t dim = -1;
  Tensor operator()(const Tensor& x) const { return softmax(x, dim); }
  static void visit(auto&, auto&&) {}
};

struct LogSoftmax {
  std::int64_t dim = -1;
  Tensor operator()(const Tensor& x) const { return log_softmax(x, dim); }
  static void visit(auto&, auto&&) {}
};

}  // namespace xgrad::nn
