#include <xgrad/autograd/ops/targets.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/generator.hpp>
#include <xgrad/autograd/graph.hpp>

namespace xgrad::targets {

std::size_t class_dim(const char* op, const Tensor& x) {
  check<ShapeError>(x.dim() > 0, "{}: x is 0-d: it needs a dimension of classes", op);
  return x.dim() == 1 ? 0 : 1;
}

void check_weight(const char* op, const Tensor& weight, const Tensor& x) {
  if (!weight.defined())
    return;
  const std::size_t classes = x.shape()[class_dim(op, x)];
  if (weight.shape() != Shape{classes})
    fail<ShapeError>("{}: weight has shape {} but x {} has {} classes", op,
                     to_string(weight.shape()), to_string(x.shape()), classes);
  if (weight.dtype() != x.dtype())
    fail<DTypeError>("{}: x is {} but weight is {}; convert one with to()", op,
                     to_string(x.dtype()), to_string(weight.dtype()));
  check<GraphError>(!any_requires_grad(std::array{weight}),
                    "{}: weight requires a gradient, but there is none for it: pass "
                    "weight.detach()",
                    op);
}

void check_ids(const char* op, const Tensor& x, const Indices& target, std::int64_t ignored) {
  const std::size_t dim = class_dim(op, x);
  const auto classes = static_cast<std::int64_t>(x.shape()[dim]);
  Shape expected;
  for (std::size_t d = 0; d < x.shape().size(); ++d)
    if (d != dim)
      expected.push_back(x.shape()[d]);
  if (target.shape() != expected)
    fail<ShapeError>("{}: x {} takes targets of shape {}, not {}", op, to_string(x.shape()),
                     to_string(expected), to_string(target.shape()));
  for (Size i = 0; i < target.numel(); ++i)
    if (const std::int64_t id = target.data()[i]; id != ignored && (id < 0 || id >= classes)) {
      const auto at = position(expected, i);
      fail<ValueError>("{}: target {} at {} is not one of {} classes, nor ignore_index {}", op, id,
                       to_string(Shape(at.begin(), at.end())), classes, ignored);
    }
}

Wanted::Wanted(const Tensor& x, const Indices& target, const Tensor& class_weight,
               std::int64_t ignored) {
  const ModeGuard unseen({false, nullptr});
  ignore = target == ignored;
  any_ignored = ignore.any();
  if (any_ignored || class_weight.defined())
    detail::check_draws();  // shards would be averaged whatever they divide by
  ids = where(ignore, 0, target);
  const Tensor all = class_weight.defined()
                         ? reshape(index_select(class_weight, 0, ids.flatten()), ids.shape())
                         : ones(ids.shape(), x.dtype());
  const Tensor each = masked_fill(all, ignore, 0);
  weights = each;
  const Tensor wide = to(each, DType::float64);
  total = std::accumulate(wide.data<double>(), wide.data<double>() + wide.numel(), 0.0);
  gradient_factor = ignore.all() ? 0 : 1 / total;
}

void check_shard(Reduction reduction) {
  if (reduction == Reduction::sum)
    detail::check_draws();
}

template <class T>
Tensor reduced(Array<T> losses, Reduction reduction, double divisor) {
  check_shard(reduction);
  if (reduction == Reduction::none)
    return Tensor(std::move(losses));
  const double sum = std::accumulate(losses.data(), losses.data() + losses.size(), 0.0);
  return scalar(reduction == Reduction::mean ? sum / divisor : sum, dtype_of<T>);
}
template Tensor reduced(Array<float>, Reduction, double);
template Tensor reduced(Array<double>, Reduction, double);

Tensor reduced(const Tensor& losses, Reduction reduction, double divisor) {
  check_shard(reduction);
  if (reduction == Reduction::none)
    return losses;
  // (sum() would take shards for such as are not averaged)
  return reduction == Reduction::mean ? sum_to(losses, {}) / divisor : sum(losses);
}

}  // namespace xgrad::targets
