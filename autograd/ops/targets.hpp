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

/// What is asked of each target, as the formulas capture it.
struct Wanted {
  Indices ids;  ///< the targets, 0 where ignored
  Mask ignore;  ///< which are
  bool any_ignored;
  Saved weights;  ///< of each target: that of its class or 1, and 0 where ignored
  double total;   ///< of the weights: what the mean divides by.  If all are ignored, the loss
                  ///< is NaN, as in PyTorch, and its gradient 0:
  double gradient_factor;  ///< 1 / total, or 0
  Wanted(const Tensor& x, const Indices& target, const Tensor& class_weight, std::int64_t ignored);
};

/// Has the batch kept whole (detail::check_draws()) if a shard's loss is a sum.
void check_shard(Reduction reduction);

/// The losses of single targets, reduced; those of a kernel are summed in double.
template <class T>
Tensor reduced(Array<T> losses, Reduction reduction, double divisor);
Tensor reduced(const Tensor& losses, Reduction reduction, double divisor);

}  // namespace xgrad::targets
