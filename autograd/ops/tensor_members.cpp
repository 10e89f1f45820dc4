// The ops that are members of Tensor, by the functions of ops.hpp.

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

Tensor Tensor::operator-() const { return neg(*this); }
Tensor Tensor::operator[](std::int64_t index) const { return xgrad::select(*this, 0, index); }
Tensor Tensor::operator[](const Slice& slice) const {
  return xgrad::slice(*this, 0, slice.start, slice.end, slice.step);
}
Tensor Tensor::clone() const { return xgrad::clone(*this); }
Tensor Tensor::to(DType dtype) const { return xgrad::to(*this, dtype); }

Tensor Tensor::pow(double exponent) const { return xgrad::pow(*this, exponent); }
Tensor Tensor::exp() const { return xgrad::exp(*this); }
Tensor Tensor::log() const { return xgrad::log(*this); }
Tensor Tensor::sqrt() const { return xgrad::sqrt(*this); }
Tensor Tensor::abs() const { return xgrad::abs(*this); }
Tensor Tensor::tanh() const { return xgrad::tanh(*this); }
Tensor Tensor::sigmoid() const { return xgrad::sigmoid(*this); }
Tensor Tensor::relu() const { return xgrad::relu(*this); }
Tensor Tensor::clamp(std::optional<double> min, std::optional<double> max) const {
  return xgrad::clamp(*this, min, max);
}
Tensor Tensor::clamp(const Tensor& min, const Tensor& max) const {
  return xgrad::clamp(*this, min, max);
}
Tensor Tensor::masked_fill(const Mask& mask, double value) const {
  return xgrad::masked_fill(*this, mask, value);
}
Tensor Tensor::masked_fill(const Mask& mask, const Tensor& value) const {
  return xgrad::masked_fill(*this, mask, value);
}

Tensor Tensor::sum() const { return xgrad::sum(*this); }
Tensor Tensor::sum(const Dims& dims, bool keepdim) const {
  return xgrad::sum(*this, dims, keepdim);
}
Tensor Tensor::mean() const { return xgrad::mean(*this); }
Tensor Tensor::mean(const Dims& dims, bool keepdim) const {
  return xgrad::mean(*this, dims, keepdim);
}
Tensor Tensor::var(const Dims& dims, double correction, bool keepdim) const {
  return xgrad::var(*this, dims, correction, keepdim);
}
Tensor Tensor::std(const Dims& dims, double correction, bool keepdim) const {
  return xgrad::std(*this, dims, correction, keepdim);
}
Tensor Tensor::amax(const Dims& dims, bool keepdim) const {
  return xgrad::amax(*this, dims, keepdim);
}
Tensor Tensor::max() const { return xgrad::max(*this); }
Tensor Tensor::min() const { return xgrad::min(*this); }
Tensor Tensor::norm() const { return vector_norm(*this); }
Indices Tensor::argmax() const { return xgrad::argmax(*this); }
Indices Tensor::argmax(std::int64_t dim, bool keepdim) const {
  return xgrad::argmax(*this, dim, keepdim);
}
Tensor Tensor::cumsum(std::int64_t dim) const { return xgrad::cumsum(*this, dim); }
Tensor Tensor::softmax(std::int64_t dim) const { return xgrad::softmax(*this, dim); }
Tensor Tensor::log_softmax(std::int64_t dim) const { return xgrad::log_softmax(*this, dim); }
Tensor Tensor::matmul(const Tensor& other) const { return xgrad::matmul(*this, other); }

Tensor Tensor::add(const Tensor& other) const { return xgrad::add(*this, other); }
Tensor Tensor::add(double other) const { return *this + other; }
Tensor Tensor::sub(const Tensor& other) const { return xgrad::sub(*this, other); }
Tensor Tensor::sub(double other) const { return *this - other; }
Tensor Tensor::mul(const Tensor& other) const { return xgrad::mul(*this, other); }
Tensor Tensor::mul(double other) const { return *this * other; }
Tensor Tensor::div(const Tensor& other) const { return xgrad::div(*this, other); }
Tensor Tensor::div(double other) const { return *this / other; }
Tensor Tensor::pow(const Tensor& exponent) const { return xgrad::pow(*this, exponent); }
Tensor Tensor::expm1() const { return xgrad::expm1(*this); }
Tensor Tensor::log1p() const { return xgrad::log1p(*this); }
Tensor Tensor::rsqrt() const { return xgrad::rsqrt(*this); }
Tensor Tensor::sin() const { return xgrad::sin(*this); }
Tensor Tensor::cos() const { return xgrad::cos(*this); }
Tensor Tensor::erf() const { return xgrad::erf(*this); }
Tensor Tensor::prod() const { return xgrad::prod(*this); }
Tensor Tensor::prod(std::int64_t dim, bool keepdim) const {
  return xgrad::prod(*this, dim, keepdim);
}
Tensor Tensor::amin(const Dims& dims, bool keepdim) const {
  return xgrad::amin(*this, dims, keepdim);
}
Tensor Tensor::logsumexp(const Dims& dims, bool keepdim) const {
  return xgrad::logsumexp(*this, dims, keepdim);
}
Extremum Tensor::max(std::int64_t dim, bool keepdim) const {
  return xgrad::max(*this, dim, keepdim);
}
Extremum Tensor::min(std::int64_t dim, bool keepdim) const {
  return xgrad::min(*this, dim, keepdim);
}
Extremum Tensor::topk(std::size_t k, std::int64_t dim, bool largest) const {
  return xgrad::topk(*this, k, dim, largest);
}
Indices Tensor::argmin() const { return xgrad::argmin(*this); }
Indices Tensor::argmin(std::int64_t dim, bool keepdim) const {
  return xgrad::argmin(*this, dim, keepdim);
}
Tensor Tensor::mm(const Tensor& other) const { return xgrad::mm(*this, other); }
Tensor Tensor::bmm(const Tensor& other) const { return xgrad::bmm(*this, other); }
Tensor Tensor::dot(const Tensor& other) const { return xgrad::dot(*this, other); }
Tensor Tensor::tril(std::int64_t diagonal) const { return xgrad::tril(*this, diagonal); }
Tensor Tensor::triu(std::int64_t diagonal) const { return xgrad::triu(*this, diagonal); }

void Tensor::copy_(const Tensor& from) {
  check_updatable();
  check<ValueError>(from.defined(), "copy_: the Tensor to copy from is undefined");
  const ModeGuard unseen({false, nullptr});  // by a Trace, too: it is no step of what is computed
  const Tensor value = from.to(dtype());
  set_value((value.shape() == shape() ? value : xgrad::expand(value, shape())).impl().value);
}
void Tensor::fill_(double number) { copy_(scalar(number, dtype())); }

Tensor Tensor::reshape(const Dims& sizes) const { return xgrad::reshape(*this, sizes); }
Tensor Tensor::view(const Dims& sizes) const { return xgrad::view(*this, sizes); }
Tensor Tensor::flatten(std::int64_t start_dim, std::int64_t end_dim) const {
  return xgrad::flatten(*this, start_dim, end_dim);
}
Tensor Tensor::permute(const Dims& dims) const { return xgrad::permute(*this, dims); }
Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1) const {
  return xgrad::transpose(*this, dim0, dim1);
}
Tensor Tensor::t() const {
  if (dim() > 2)
    fail<ShapeError>("t: x {} has more than two dimensions; transpose() and permute() take any",
                     to_string(shape()));
  return dim() == 2 ? xgrad::transpose(*this, 0, 1) : *this;
}
Tensor Tensor::squeeze() const { return xgrad::squeeze(*this); }
Tensor Tensor::squeeze(const Dims& dims) const { return xgrad::squeeze(*this, dims); }
Tensor Tensor::unsqueeze(std::int64_t dim) const { return xgrad::unsqueeze(*this, dim); }
Tensor Tensor::expand(const Dims& sizes) const { return xgrad::expand(*this, sizes); }
std::vector<Tensor> Tensor::split(std::size_t split_size, std::int64_t dim) const {
  return xgrad::split(*this, split_size, dim);
}
std::vector<Tensor> Tensor::chunk(std::size_t chunks, std::int64_t dim) const {
  return xgrad::chunk(*this, chunks, dim);
}
Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, Dim length) const {
  return xgrad::narrow(*this, dim, start, length);
}
Tensor Tensor::select(std::int64_t dim, std::int64_t index) const {
  return xgrad::select(*this, dim, index);
}

Tensor Tensor::flip(const Dims& dims) const { return xgrad::flip(*this, dims); }
Tensor Tensor::repeat(const Dims& sizes) const { return xgrad::repeat(*this, sizes); }
Tensor Tensor::repeat_interleave(std::int64_t repeats, std::optional<std::int64_t> dim) const {
  return xgrad::repeat_interleave(*this, repeats, dim);
}
Tensor Tensor::repeat_interleave(const Indices& repeats, std::optional<std::int64_t> dim) const {
  return xgrad::repeat_interleave(*this, repeats, dim);
}
std::vector<Tensor> Tensor::split(const std::vector<std::size_t>& split_sizes,
                                  std::int64_t dim) const {
  return xgrad::split(*this, split_sizes, dim);
}
Tensor Tensor::select_scatter(const Tensor& src, std::int64_t dim, std::int64_t index) const {
  return xgrad::select_scatter(*this, src, dim, index);
}
Tensor Tensor::slice_scatter(const Tensor& src, std::int64_t dim, std::optional<std::int64_t> start,
                             std::optional<std::int64_t> end, std::int64_t step) const {
  return xgrad::slice_scatter(*this, src, dim, start, end, step);
}

Tensor Tensor::index_select(std::int64_t dim, const Indices& index) const {
  return xgrad::index_select(*this, dim, index);
}
Tensor Tensor::gather(std::int64_t dim, const Indices& index) const {
  return xgrad::gather(*this, dim, index);
}
Tensor Tensor::index_add(std::int64_t dim, const Indices& index, const Tensor& src) const {
  return xgrad::index_add(*this, dim, index, src);
}
Tensor Tensor::scatter(std::int64_t dim, const Indices& index, const Tensor& src) const {
  return xgrad::scatter(*this, dim, index, src);
}
Tensor Tensor::scatter(std::int64_t dim, const Indices& index, double value) const {
  return xgrad::scatter(*this, dim, index, value);
}
Tensor Tensor::scatter_add(std::int64_t dim, const Indices& index, const Tensor& src) const {
  return xgrad::scatter_add(*this, dim, index, src);
}
Tensor Tensor::index_put(const std::vector<Indices>& indices, const Tensor& values,
                         bool accumulate) const {
  return xgrad::index_put(*this, indices, values, accumulate);
}

}  // namespace xgrad
