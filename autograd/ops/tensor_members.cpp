// The members of Tensor that are functions of ops.hpp.

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

#include <xgrad/members_defined.inc>

template <class X>
static X matrix_transpose(const X& x) {
  if (x.dim() > 2)
    fail<ShapeError>("t: x {} has more than two dimensions; transpose() and permute() take any",
                     to_string(x.shape()));
  return x.dim() == 2 ? transpose(x, 0, 1) : x;
}
Tensor Tensor::t() const { return matrix_transpose(*this); }
template <>
Indices Indices::t() const {
  return matrix_transpose(*this);
}
template <>
Mask Mask::t() const {
  return matrix_transpose(*this);
}
Tensor Tensor::operator-() const { return neg(); }
Tensor Tensor::operator[](std::int64_t index) const { return select(0, index); }
Tensor Tensor::operator[](const Slice& part) const {
  return slice(0, part.start, part.end, part.step);
}

void Tensor::copy_(const Tensor& from) {
  check_updatable();
  check<ValueError>(from.defined(), "copy_: the Tensor to copy from is undefined");
  const ModeGuard unseen({false, nullptr});  // by a Trace, too: it is no step of the computation
  const Tensor value = from.to(dtype());
  set_value((value.shape() == shape() ? value : xgrad::expand(value, shape())).impl().value);
}
void Tensor::fill_(double number) { copy_(scalar(number, dtype())); }

}  // namespace xgrad
