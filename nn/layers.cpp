// The layers that are little more than their parameters and one op.

#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/dropout.hpp>
#include <xgrad/nn/embedding.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/layer_norm.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/nn/rms_norm.hpp>

namespace xgrad::nn {

Linear::Linear(std::size_t in_features, std::size_t out_features, bool with_bias)
    : weight(zeros({out_features, in_features})) {
  init::kaiming_uniform_(weight, std::sqrt(5.0)).requires_grad_();
  if (with_bias) {
    const double bound = in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0.0;
    bias = init::uniform_(zeros({out_features}), -bound, bound).requires_grad_();
  }
}
Tensor Linear::operator()(const Tensor& x) const { return linear(x, weight, bias); }

Embedding::Embedding(std::size_t num_embeddings, std::size_t dim)
    : weight(init::normal_(zeros({num_embeddings, dim})).requires_grad_()) {}
Tensor Embedding::operator()(const Indices& indices) const { return embedding(indices, weight); }

LayerNorm::LayerNorm(const Dims& sizes, const LayerNormOptions& options)
    : normalized_shape(sizes), weight(ones(sizes).requires_grad_()), eps(options.eps) {
  if (options.bias)
    bias = zeros(sizes).requires_grad_();
}
Tensor LayerNorm::operator()(const Tensor& x) const {
  return layer_norm(x, normalized_shape, weight, bias, eps);
}

RMSNorm::RMSNorm(const Dims& sizes, std::optional<double> epsilon)
    : normalized_shape(sizes), weight(ones(sizes).requires_grad_()), eps(epsilon) {}
Tensor RMSNorm::operator()(const Tensor& x) const {
  return rms_norm(x, normalized_shape, weight, eps);
}

Dropout::Dropout(double probability) : p(probability) {
  check<ValueError>(p >= 0 && p <= 1, "Dropout: p is {}; a probability is in [0, 1]", p);
}
Tensor Dropout::operator()(const Tensor& x) const { return dropout(x, p, training); }

}  // namespace xgrad::nn
