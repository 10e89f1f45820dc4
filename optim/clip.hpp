#pragma once
// Limiting gradients between backward() and step().

#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::optim {

struct ClipOptions {
  double norm_type = 2;             ///< p of the p-norm, above 0; infinity is the largest magnitude
  bool error_if_nonfinite = false;  ///< ValueError, before anything changes, if the norm is not
};

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)), where norm is that of all of them as
/// one vector, and returns norm (torch.nn.utils.clip_grad_norm_).  The sum runs in double, in an
/// order that does not depend on the number of threads.  Parameters without a gradient are skipped;
/// one that is listed twice, as one of a tie may be, counts and is scaled once.
/// ValueError if max_norm is negative or norm_type is not positive.
double clip_grad_norm(const std::vector<Tensor>& params, double max_norm,
                      const ClipOptions& options = {});

/// Limits each element of each gradient to [-limit, limit] (torch.nn.utils.clip_grad_value_).
/// ValueError if limit is negative.
void clip_grad_value(const std::vector<Tensor>& params, double limit);

}  // namespace xgrad::optim
