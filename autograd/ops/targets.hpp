#pragma once
// Class ids as targets: what cross_entropy and nll_loss share.
//
// x is (V) or (N, V, d1, ...) with V classes, and target (), or (N, d1, ...).

#include <xgrad/autograd/ops.hpp>

namespace xgrad::targets {

/// The dimension of x that counts classes.  ShapeError if x is 0-d.
std::size_t class_dim(const char* op, const Tensor& x);

/// ShapeError or DTypeError unless weight is undefined or has one number of x's dtype for each
/// class; GraphError if it requires a gradient.
void check_weight(const char* op, const Tensor& weight, const Tensor& x);

/// ShapeError if the shapes do not fit, ValueError if an id is neither a class nor `ignored`.
void check_ids(const char* op, const Tensor& x, const Indices& target, std::int64_t ignored);

/// What the mean divides by: the weight of all targets that are not ignored.  If all are, the loss
/// is NaN, as in PyTorch, and its gradient 0.
struct Denominator {
  double weight = 0;
  bool any = false;
  double gradient_factor() const { return any ? 1 / weight : 0; }
};
Denominator denominator(const Indices& target, const Tensor& weight, std::int64_t ignored);

/// The losses of single targets, reduced.  Their sum is taken in double.
template <class T>
Tensor reduced(Array<T> losses, Reduction reduction, double divisor);

/// A constant of this shape with weight_c * (1 - smoothing) where c is the target's class, plus
/// weight_c * smoothing / V everywhere; 0 for targets that are ignored.
Tensor wanted(const Shape& shape, DType dtype, std::size_t class_dim, const Indices& target,
              const Tensor& weight, std::int64_t ignored, double smoothing);

/// The gradient of single losses, as a Tensor that broadcasts against x.
Tensor expanded_gradient(const Tensor& g, std::size_t class_dim, Reduction reduction,
                         double mean_factor);

/// q g, and 0 wherever q is 0, also where g is NaN or infinite: what is not wanted has no gradient.
Tensor of_wanted(const Tensor& q, const Tensor& g);

}  // namespace xgrad::targets
