#pragma once
// The catalogue of ops.  Names and semantics are PyTorch's; where one differs, its comment says so.
// Shapes, parts and indexing are in ops/shape.hpp; norms, dropout, losses and attention in
// ops/network.hpp.
//
// Dimension letters, here and in every attention comment:
//   B batch   T time (positions of a query)   S positions of keys and values   C channels (the
//   model's width) H heads   D channels of one head   V vocabulary
//
// All tensors of one op have the same dtype, else DTypeError.  "Broadcast" means NumPy's rules.
// Dimensions may be negative, counted from the end.
//
// Every op can be differentiated any number of times: under create_graph its gradient is made of
// ops.  The gradient at a kink or a pole is PyTorch's unless the op's comment says otherwise.  The
// branch chosen at a kink is a constant: higher derivatives are those of that branch.
//
// Below a title with the word "members", a function whose first argument is a Tensor is also a
// member: softmax(x, -1) is x.softmax(-1).
//
// Values and gradients are as precise as PyTorch's: 1e-6 relative in float32 and 1e-13 in float64,
// at the ends of ranges, too (tests/autograd/ends_of_ranges_test.cpp).

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "ops/factories.hpp"
#include "ops/network.hpp"
#include "ops/shape.hpp"
#include "tensor.hpp"

namespace xgrad {

// ---- elementwise, members (ops/elementwise.cpp, functions.cpp, comparisons.cpp) ----
// Operands broadcast.

Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, double b);
Tensor add(const Tensor& a, const Tensor& b, double alpha);  ///< a + alpha * b
Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, double b);
Tensor sub(const Tensor& a, const Tensor& b, double alpha);  ///< a - alpha * b
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, double b);
Tensor div(const Tensor& a, const Tensor& b);  ///< gradients infinite or NaN where b is 0
Tensor div(const Tensor& a, double b);
enum class RoundingMode { trunc, floor };
/// a / b rounded towards 0 (trunc) or downward (floor, Python's //); both gradients are 0.  floor
/// takes the remainder first: floor of 1 / 0.1 is 9, because 0.1 as stored is above 1/10.
Tensor div(const Tensor& a, const Tensor& b, RoundingMode rounding_mode);
Tensor neg(const Tensor& x);
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b,
               double value = 1);  ///< x + value * a * b
/// x + weight * (end - x), and exactly end where the weight is 1.
Tensor lerp(const Tensor& x, const Tensor& end, const Tensor& weight);
Tensor lerp(const Tensor& x, const Tensor& end, double weight);
/// x^exponent.  The derivative at x = 0 is exponent * x^(exponent - 1): infinite for exponents
/// below 1, but 0 for exponent 0.  The derivative by a Tensor exponent is y log(x): 0 where x is 0
/// and the exponent is not negative, NaN where x is negative.
Tensor pow(const Tensor& x, double exponent);
Tensor pow(const Tensor& x, const Tensor& exponent);
Tensor pow(double base, const Tensor& exponent);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);  ///< 1 / x; derivative -infinity at 0
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);  ///< exp(x) - 1
Tensor log(const Tensor& x);    ///< natural; derivative infinite at 0
Tensor log1p(const Tensor& x);  ///< log(1 + x); derivative infinite at -1
Tensor log2(const Tensor& x);   ///< exact for powers of 2; derivative infinite at 0
Tensor log10(const Tensor& x);  ///< derivative infinite at 0
/// log(exp(a) + exp(b)), also where exp leaves the range; gradient NaN at equal infinities.
Tensor logaddexp(const Tensor& a, const Tensor& b);
Tensor sqrt(const Tensor& x);   ///< derivative infinite at 0
Tensor rsqrt(const Tensor& x);  ///< 1 / sqrt(x); derivative -infinity at 0
Tensor abs(const Tensor& x);    ///< derivative 0 at 0
Tensor sign(const Tensor& x);   ///< -1, 0 or 1, and 0 at NaN; the derivatives of these four are 0
Tensor floor(const Tensor& x);  ///< rounded downward
Tensor ceil(const Tensor& x);   ///< rounded upward
Tensor round(const Tensor& x);  ///< to the nearest whole number; of two, to the even one
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);  ///< log(x + sqrt(x^2 + 1))
/// Derivatives of tanh, sigmoid and functions of them are computed from x, so they keep their
/// relative accuracy where the value is rounded to 1.
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sigmoid(const Tensor& x);  ///< 1 / (1 + exp(-x))
Tensor relu(const Tensor& x);     ///< derivative 0 at 0; at NaN the gradient passes
/// NaN if either is.  Each gets half of the gradient at a tie, and all of it if one is NaN.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, double b);
Tensor minimum(const Tensor& a, double b);
/// x limited to [min, max]; either may be absent.  The gradient passes where min < x < max, as in
/// PyTorch 2.14 and newer; older versions passed it at the bounds, too.
Tensor clamp(const Tensor& x, std::optional<double> min, std::optional<double> max);
/// The same elementwise: min(max(x, min), max), where either bound may be undefined.  The gradient
/// goes to x where min < x < max or all are equal, to min where x < min <= max, to max where x >
/// max or min > max; where x equals one of two different bounds, each gets half.  This is PyTorch
/// 2.14's rule; older versions gave all to x at the bounds.  With one bound it is maximum or
/// minimum.
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max);
/// Elementwise condition ? a : b.  The gradient goes to the chosen operand; the other gets 0.
Tensor where(const Mask& condition, const Tensor& a, const Tensor& b);
Tensor where(const Mask& condition, const Tensor& a, double b);
Tensor where(const Mask& condition, double a, const Tensor& b);
/// x where the mask is false, else value; x and mask broadcast.  The gradient goes to x where the
/// mask is false; a Tensor value, 0-d or ShapeError, gets the sum of the others.
Tensor masked_fill(const Tensor& x, const Mask& mask, double value);
Tensor masked_fill(const Tensor& x, const Mask& mask, const Tensor& value);
Tensor to(const Tensor& x, DType dtype);  ///< converted; the gradient is converted back
Tensor clone(const Tensor& x);            ///< a copy

// ---- activations (ops/functions.cpp; gelu: elementwise.cpp) ----

enum class Gelu { erf, tanh };
/// x * Phi(x), with the normal distribution's Phi exact (erf) or approximated as
/// (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 (tanh).  Hendrycks and Gimpel, 2016.
Tensor gelu(const Tensor& x, Gelu approximate = Gelu::erf);
/// x * sigmoid(x).
Tensor silu(const Tensor& x);
/// log(1 + exp(beta * x)) / beta (F.softplus); x itself where beta * x >
/// threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// x * tanh(log(1 + exp(x))) (F.mish).  Misra, 2019.
Tensor mish(const Tensor& x);
/// log(sigmoid(x)) = -log(1 + exp(-x)) (F.logsigmoid).
Tensor logsigmoid(const Tensor& x);
/// x where x > 0, else alpha * (exp(x) - 1) (F.elu); derivative alpha at 0; at NaN the gradient
/// passes.  Clevert et al., 2015.
Tensor elu(const Tensor& x, double alpha = 1);
/// x where x > 0, else negative_slope * x (F.leaky_relu); derivative negative_slope at 0.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// x limited to [min, max] (F.hardtanh): clamp, but at NaN the gradient passes.  ValueError if
/// min > max.
Tensor hardtanh(const Tensor& x, double min = -1, double max = 1);
/// x / 6 + 1/2 limited to [0, 1] (F.hardsigmoid); derivative 0 at -3 and 3.
Tensor hardsigmoid(const Tensor& x);

// ---- comparisons, members (ops/comparisons.cpp): not differentiable ----

Mask operator==(const Tensor& a, const Tensor& b);
Mask operator!=(const Tensor& a, const Tensor& b);
Mask operator<(const Tensor& a, const Tensor& b);
Mask operator<=(const Tensor& a, const Tensor& b);
Mask operator>(const Tensor& a, const Tensor& b);
Mask operator>=(const Tensor& a, const Tensor& b);
Mask operator==(const Tensor& a, double b);
Mask operator!=(const Tensor& a, double b);
Mask operator<(const Tensor& a, double b);
Mask operator<=(const Tensor& a, double b);
Mask operator>(const Tensor& a, double b);
Mask operator>=(const Tensor& a, double b);
Mask operator&(const Mask& a, const Mask& b);
Mask operator|(const Mask& a, const Mask& b);
Mask operator~(const Mask& a);
Mask isfinite(const Tensor& x);
Mask isinf(const Tensor& x);
Mask isnan(const Tensor& x);
/// |a - b| <= atol + rtol * |b| everywhere; false for different shapes.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8);
Indices argmax(const Tensor& x);  ///< of the flattened x; the first of equals
Indices argmax(const Tensor& x, Dim dim, bool keepdim = false);
Indices argmin(const Tensor& x);
Indices argmin(const Tensor& x, Dim dim, bool keepdim = false);

// ---- reductions, members (ops/reduce.cpp): over dims, or over all without them ----

Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The sum of x converted to dtype first, as in every op with a dtype: x.sum({}, false, dtype).
Tensor sum(const Tensor& x, const Dims& dims, bool keepdim, DType dtype);
/// Finite even if the sum overflows.
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// sum((x - mean)^2) / max(0, n - correction).  No dims: over all.  The corrections true and false
/// are 1 and 0, PyTorch's unbiased and biased.  Gradients are infinite or NaN unless correction <
/// n; PyTorch's are finite beyond n.  A large mean does not cost precision.
Tensor var(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// sqrt(var); gradient 0 where it is 0; correct even if var overflows.  Write xgrad::std(x) or
/// x.std(dims): after `using namespace xgrad`, std is a namespace too.
Tensor std(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// Gradients are correct even if factors are zero or infinite, or the product leaves the range.
Tensor prod(const Tensor& x);
Tensor prod(const Tensor& x, Dim dim, bool keepdim = false);
Tensor prod(const Tensor& x, DType dtype);
Tensor prod(const Tensor& x, Dim dim, bool keepdim, DType dtype);
struct Extremum {
  Tensor values;
  Indices indices;
};
Tensor max(const Tensor& x);  ///< the gradient is shared evenly among equals
Tensor min(const Tensor& x);
Extremum max(const Tensor& x, Dim dim,
             bool keepdim = false);  ///< gradient to the index returned, the first
Extremum min(const Tensor& x, Dim dim, bool keepdim = false);
Tensor amax(const Tensor& x, const Dims& dims,
            bool keepdim = false);  ///< gradient shared evenly among equals; NaN if there is a NaN
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim = false);
/// log(sum(exp(x))); if all of x are -inf the gradient is 0, and PyTorch's NaN.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);
/// vector_norm, below.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);

// ---- norms of vectors and matrices (ops/reduce.cpp) ----

/// (sum |x|^ord)^(1/ord); ord infinity is max |x|, minus infinity min |x|, 0 the number of
/// non-zeros.  The gradient of an element that is 0 is 0, for ord 2 as x / norm; for ord infinity
/// or minus infinity it is shared evenly among equals, for ord 0 it is 0.  Correct even if powers
/// leave the range.
Tensor vector_norm(const Tensor& x, double ord = 2, const Dims& dims = {}, bool keepdim = false);
/// Frobenius: sqrt(sum x^2) of each matrix; dims are its rows and columns, else ValueError.
Tensor matrix_norm(const Tensor& x, const Dims& dims = {-2, -1}, bool keepdim = false);
struct NormalizeOptions {
  double p = 2;
  std::int64_t dim = 1;
  double eps = 1e-12;
};
/// x / max(vector_norm(x, p) along dim, eps) (F.normalize).
Tensor normalize(const Tensor& x, const NormalizeOptions& options = {});
/// sum(normalize(a) * normalize(b)) along a dim of the shape to which a and b broadcast.  Norms are
/// at least eps; below it the gradient is that of a constant norm.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, Dim dim = 1, double eps = 1e-8);
/// Summed over the dimensions along which `shape` broadcasts to x's.
Tensor sum_to(const Tensor& x, const Shape& shape);

// ---- matrix products, members (ops/matmul.cpp) ----

/// (..., m, k), (..., k, n) -> (..., m, n) with broadcast batches; 1-D operands are a row on the
/// left, a column on the right.
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor mm(const Tensor& a, const Tensor& b);     ///< (m, k), (k, n) -> (m, n)
Tensor bmm(const Tensor& a, const Tensor& b);    ///< (B, m, k), (B, k, n) -> (B, m, n)
Tensor dot(const Tensor& a, const Tensor& b);    ///< (n,), (n,) -> ()
Tensor outer(const Tensor& a, const Tensor& b);  ///< (m,), (n,) -> (m, n)

// ---- more products (ops/matmul.cpp) ----

/// x Wᵀ + b: x (..., in), weight (out, in), bias (out) or undefined -> (..., out); without out,
/// weight (in,) and bias () -> (...).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Einstein's summation: "bij,bjk->bik"; with "..." for broadcast dimensions and an implied output
/// as in PyTorch.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

// ---- indexing, scans and softmax, members (ops/index.cpp, reduce.cpp, norm.cpp) ----

Tensor index_select(const Tensor& x, Dim dim,
                    const Indices& index);  ///< index 1-D; rows may repeat
/// out[i][j] = x[index[i][j]][j] for dim 0 (torch.gather): index has x's rank and no larger sizes
/// off dim, or any shape without elements.
Tensor gather(const Tensor& x, Dim dim, const Indices& index);
/// A copy of x with src added at index along dim, as torch.scatter_add; the gradient of gather.
Tensor scatter_add(const Tensor& x, Dim dim, const Indices& index, const Tensor& src);
/// The same, but src, or one number, replaces the elements (torch.scatter).  If several go to one
/// place, the last stays and the gradient of the others is 0; PyTorch leaves both open.
Tensor scatter(const Tensor& x, Dim dim, const Indices& index, const Tensor& src);
Tensor scatter(const Tensor& x, Dim dim, const Indices& index, double value);
/// A copy of x with `values` at (i[0], i[1], ...) of its first dimensions, for each element i of
/// the indices, which broadcast (torch.index_put): x[rows, columns] = values.  values broadcast to
/// the indices' shape and x's other sizes.  Negative indices count from the end.  If several values
/// go to one place, accumulate adds them; otherwise the last stays.
Tensor index_put(const Tensor& x, const std::vector<Indices>& indices, const Tensor& values,
                 bool accumulate = false);
Tensor index_add(const Tensor& x, Dim dim, const Indices& index, const Tensor& src);
Tensor cumsum(const Tensor& x, Dim dim);
Tensor cumsum(const Tensor& x, Dim dim, DType dtype);
/// Running products.  Gradients are correct even if factors are 0.
Tensor cumprod(const Tensor& x, Dim dim);
/// All of x in rising (or falling) order along dim, with indices.  The sort is stable, and NaN
/// counts as largest.  The gradient goes to the indices returned.
Extremum sort(const Tensor& x, Dim dim = -1, bool descending = false);
Indices argsort(const Tensor& x, Dim dim = -1, bool descending = false);
/// The k largest (or smallest) along dim, in falling (rising) order; the first of equals.  The
/// gradient goes to the indices returned.
Extremum topk(const Tensor& x, Dim k, Dim dim = -1, bool largest = true);
/// Rows of weight (V, C): indices (...) -> (..., C).  ValueError names an index outside 0 ... V - 1
/// and its place.  The row padding_idx, from -V to V - 1, gets no gradient.
Tensor embedding(const Indices& indices, const Tensor& weight, OptionalDim padding_idx = {});

Tensor softmax(const Tensor& x,
               Dim dim);  ///< a row of only -inf gives zeros, where PyTorch gives NaN
Tensor log_softmax(const Tensor& x,
                   Dim dim);  ///< a row of only -inf gives NaN, as PyTorch
Tensor softmax(const Tensor& x, Dim dim, DType dtype);
Tensor log_softmax(const Tensor& x, Dim dim, DType dtype);

// ---- operators ----
// + - * / of Tensors and numbers, and += and its like: ops/operators.hpp, included below.

// ---- printing (print.cpp) ----

/// How numbers are printed (torch.set_printoptions).
struct PrintOptions {
  int precision = 4;
  std::size_t threshold = 1000;  ///< more elements than this are summarised
  std::size_t edgeitems = 3;     ///< shown at each end of a summarised dimension
  std::size_t linewidth = 80;
  std::optional<bool> sci_mode = {};
};
PrintOptions& print_options();
/// PyTorch's format: tensor([[1., 2.], [3., 4.]], requires_grad=True).
std::string to_string(const Tensor& x);
std::string to_string(const Indices& x);
std::string to_string(const Mask& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Indices& x);
std::ostream& operator<<(std::ostream& out, const Mask& x);

}  // namespace xgrad

#include "ops/indices.hpp"
#include "ops/operators.hpp"
