#pragma once
// The catalogue of ops.  Names and semantics are PyTorch's; where one differs, its comment says so.
//
// Dimension letters, here and in every attention comment:
//   B batch   T time (positions of a query)   S positions of keys and values   C channels (the
//   model's width) H heads   D channels of one head   V vocabulary
//
// All tensors of one op have the same dtype, else DTypeError.  "Broadcast" means NumPy's rules.
// Dimensions may be negative, counted from the end.
//
// Every op can be differentiated again and again: under create_graph its gradient is made of ops.
// Where an op has a kink or a pole, its comment says what gradient it gives there: PyTorch's,
// unless it says so.  The choice made at a kink is a constant: higher derivatives are of the chosen
// piece.
//
// Below a title with the word "members", what takes a Tensor first is also a member of it:
// softmax(x, -1) is x.softmax(-1).
//
// "To 2 ulp" is the largest error in units of the last place, float32 and float64, over the whole
// range with subnormals, infinities and NaN, of arguments and of results.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include <xgrad/autograd/ops/factories.hpp>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

// ---- elementwise, members (ops/elementwise.cpp, clamp_where.cpp): operands broadcast ----

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
/// takes the remainder first, so floor of 1 / 0.1 is 9: 0.1 as stored goes into 1 only 9 times.
Tensor div(const Tensor& a, const Tensor& b, RoundingMode rounding_mode);
Tensor neg(const Tensor& x);
/// x^exponent.  At x = 0 the derivative is that of the formula, exponent * x^(exponent - 1):
/// infinite for exponents below 1; for exponent 0 it is 0 everywhere.  In a Tensor exponent the
/// derivative is y log(x): 0 where x is 0 and the exponent is not negative, NaN where x is
/// negative.
Tensor pow(const Tensor& x, double exponent);
Tensor pow(const Tensor& x, const Tensor& exponent);
Tensor pow(double base, const Tensor& exponent);
Tensor exp(const Tensor& x);    ///< to 1.1 ulp
Tensor expm1(const Tensor& x);  ///< exp(x) - 1 to 2.5 ulp
Tensor log(const Tensor& x);    ///< natural, to 1 ulp; derivative infinite at 0
Tensor log1p(const Tensor& x);  ///< log(1 + x) to 1 ulp; derivative infinite at -1
Tensor sqrt(const Tensor& x);   ///< to 0.5 ulp; derivative infinite at 0
Tensor rsqrt(const Tensor& x);  ///< 1 / sqrt(x) to 1.5 ulp; derivative -infinity at 0
Tensor abs(const Tensor& x);    ///< derivative 0 at 0
Tensor sin(const Tensor& x);    ///< to 2.5 ulp
Tensor cos(const Tensor& x);    ///< to 2.5 ulp
/// To 2 ulp.  The derivatives of tanh, sigmoid and all that is made of them are computed from x, so
/// they keep their relative accuracy where the value is rounded to 1.
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);      ///< to 3 ulp in float32, 2 in float64
Tensor sigmoid(const Tensor& x);  ///< 1 / (1 + exp(-x)) to 3 ulp
Tensor relu(const Tensor& x);     ///< derivative 0 at 0; at NaN the gradient passes
/// NaN if either is.  At a tie half of the gradient goes to each, with a NaN all of it to both.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
/// x limited to [min, max]; either may be absent.  The gradient passes where min < x < max, as in
/// PyTorch 2.14 and newer; before, it passed at the bounds, too.
Tensor clamp(const Tensor& x, std::optional<double> min, std::optional<double> max);
/// The same elementwise: min(max(x, min), max), where either bound may be undefined.  The gradient
/// goes to x where min < x < max or all are equal, to min where x < min <= max, to max where x >
/// max or min > max; where x is one of two different bounds, half to x and half to that.  That,
/// too, is PyTorch 2.14's; before, x got all of it at the bounds.  With one bound it is maximum or
/// minimum.
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max);
/// Elementwise condition ? a : b.  The gradient goes to the one that was chosen; the other gets 0.
Tensor where(const Mask& condition, const Tensor& a, const Tensor& b);
Tensor where(const Mask& condition, const Tensor& a, double b);
Tensor where(const Mask& condition, double a, const Tensor& b);
/// x where the mask is false, else value; x and mask broadcast.  The gradient goes to x where the
/// mask is false; that of a Tensor value, which is 0-d (else ShapeError), is the sum of the others.
Tensor masked_fill(const Tensor& x, const Mask& mask, double value);
Tensor masked_fill(const Tensor& x, const Mask& mask, const Tensor& value);
Tensor to(const Tensor& x, DType dtype);  ///< converted; the gradient is converted back
Tensor clone(const Tensor& x);            ///< a copy

// ---- activations (ops/activation.cpp) ----

enum class Gelu { erf, tanh };
/// x * Phi(x), with the normal distribution's Phi exact (erf) or approximated as
/// (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 (tanh).  Hendrycks and Gimpel, 2016.  Phi is
/// right to 2e-7 in float32 from -3 on; elsewhere x * Phi(x) is right to 8 + x^2 / 2 ulp.
Tensor gelu(const Tensor& x, Gelu approximate = Gelu::erf);
/// x * sigmoid(x), to 4 ulp where sigmoid(x) is not subnormal.
Tensor silu(const Tensor& x);
/// log(1 + exp(beta * x)) / beta (F.softplus), for beta 1 to 3 ulp; x itself where beta * x >
/// threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// x * tanh(log(1 + exp(x))) (F.mish), to 6 ulp where exp(x) is not subnormal.  Misra, 2019.
Tensor mish(const Tensor& x);
/// log(sigmoid(x)) = -log(1 + exp(-x)) (F.logsigmoid), to 3 ulp.
Tensor logsigmoid(const Tensor& x);
/// x where x > 0, else alpha * (exp(x) - 1) (F.elu); derivative alpha at 0; at NaN the gradient
/// passes.  Clevert et al., 2015.
Tensor elu(const Tensor& x, double alpha = 1);
/// x where x > 0, else negative_slope * x (F.leaky_relu); derivative negative_slope at 0.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// x limited to [min, max] (F.hardtanh): clamp, but at NaN the gradient passes.  ValueError if
/// min > max.
Tensor hardtanh(const Tensor& x, double min = -1, double max = 1);

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
/// |a - b| <= atol + rtol * |b| everywhere; false for different shapes.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8);
Indices argmax(const Tensor& x);  ///< of the flattened x; the first of equals
Indices argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);
Indices argmin(const Tensor& x);
Indices argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);

// ---- reductions, members (ops/reduce.cpp, extremum.cpp): over all or some dimensions ----

Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor mean(const Tensor& x);  ///< a number also where the sum leaves the range
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim = false);
/// sum((x - mean)^2) / max(0, n - correction).  No dims: over all.  true and false are corrections,
/// too: 1 and 0, what PyTorch calls unbiased and not.  Gradients are infinite or NaN unless
/// correction < n; in PyTorch they are finite beyond n.  Right to 1 ulp in float32 and 8 epsilons
/// in float64, whatever the mean is, and so are its gradients, to 8 epsilons of the largest, as
/// long as no x - mean leaves the range.
Tensor var(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// sqrt(var); gradient 0 where it is 0.  As accurate as var, also where var leaves the
/// range, as long as it is a normal number.  Write
/// xgrad::std(x) or x.std(dims): after `using namespace xgrad`, std is a namespace too.
Tensor std(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// Gradients are right to n epsilons also where factors are zero, infinite or so small or large
/// that the product leaves the range.
Tensor prod(const Tensor& x);
Tensor prod(const Tensor& x, std::int64_t dim, bool keepdim = false);
struct Extremum {
  Tensor values;
  Indices indices;
};
Tensor max(const Tensor& x);  ///< the gradient is shared evenly among equals
Tensor min(const Tensor& x);
Extremum max(const Tensor& x, std::int64_t dim,
             bool keepdim = false);  ///< gradient to the index returned, the first
Extremum min(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor amax(const Tensor& x, const Dims& dims,
            bool keepdim = false);  ///< gradient shared evenly among equals; NaN if there is a NaN
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim = false);
/// log(sum(exp(x))); gradient 0 where all of x are -inf, and in PyTorch NaN.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);

// ---- norms of vectors and matrices (ops/extremum.cpp, matrix_norm.cpp) ----

/// (sum |x|^ord)^(1/ord); ord infinity is max |x|, minus infinity min |x|, 0 the number of
/// non-zeros.  Gradient 0 at 0, and in every element that is 0 but for ord 2 (where it is x /
/// norm); for ord infinity or minus infinity shared evenly among equals, for ord 0 it is 0
/// everywhere.  For orders of 1/2 to 8 in size, norms that are normal numbers are right to 8
/// epsilons, also where powers leave the range, and gradients to 8 epsilons of the largest, as long
/// as no |x| / norm is subnormal; errors grow with ord and 1 / ord.
Tensor vector_norm(const Tensor& x, double ord = 2);
Tensor vector_norm(const Tensor& x, double ord, const Dims& dims, bool keepdim = false);
enum class MatrixNorm { fro, nuc };
/// Of each matrix whose rows and columns are dims: fro is sqrt(sum x^2), nuc the sum of the
/// singular values, the diagonal of S in x = U S Vᵀ, and NaN if x is not finite.  The gradient of
/// nuc is U Vᵀ over those that are not 0 (PyTorch's: over all); its second derivatives are right
/// where none is 0.  ValueError unless dims are two.
Tensor matrix_norm(const Tensor& x, MatrixNorm ord = MatrixNorm::fro, const Dims& dims = {-2, -1},
                   bool keepdim = false);
/// Summed over the dimensions along which `shape` broadcasts to x's.
Tensor sum_to(const Tensor& x, const Shape& shape);

// ---- matrix products, members (ops/matmul.cpp) ----

/// (..., m, k), (..., k, n) -> (..., m, n) with broadcast batches; 1-D operands are a row on the
/// left, a column on the right.
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor mm(const Tensor& a, const Tensor& b);   ///< (m, k), (k, n) -> (m, n)
Tensor bmm(const Tensor& a, const Tensor& b);  ///< (B, m, k), (B, k, n) -> (B, m, n)
/// beta * x + alpha * bmm(a, b) (torch.baddbmm): x broadcasts to (B, m, n); with beta 0 it is not
/// read and its gradient is 0.
Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1,
               double alpha = 1);
Tensor dot(const Tensor& a, const Tensor& b);    ///< (n,), (n,) -> ()
Tensor outer(const Tensor& a, const Tensor& b);  ///< (m,), (n,) -> (m, n)

// ---- more products (ops/matmul.cpp, einsum.cpp) ----

/// x Wᵀ + b: x (..., in), weight (out, in), bias (out) or undefined -> (..., out); without out,
/// weight (in,) and bias () -> (...).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Einstein's summation: "bij,bjk->bik"; with "..." for broadcast dimensions and an implied output
/// as in PyTorch.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

// ---- shape, members (ops/shape.cpp, repeat.cpp, slice_cat.cpp) ----

/// The same elements in another shape; one size may be -1.  Shares memory and copies nothing, as do
/// view, flatten, squeeze, unsqueeze and parts of the first dimension.
Tensor reshape(const Tensor& x, const Dims& sizes);
Tensor view(const Tensor& x, const Dims& sizes);  ///< the same as reshape
Tensor flatten(const Tensor& x, std::int64_t start_dim = 0, std::int64_t end_dim = -1);
Tensor permute(const Tensor& x, const Dims& dims);
Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1);
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, const Dims& dims);  ///< drops those of dims that have size 1
Tensor unsqueeze(const Tensor& x, std::int64_t dim);
Tensor expand(const Tensor& x, const Dims& sizes);  ///< -1 keeps a size
/// x sizes[d] times along each dimension d (Tensor.repeat); sizes beyond x's are of new ones, in
/// front.
Tensor repeat(const Tensor& x, const Dims& sizes);
/// Each element along dim `repeats` times in a row, or element i repeats[i] times: one for each, or
/// one for all (torch.repeat_interleave).  Without a dim, of the flattened x.
Tensor repeat_interleave(const Tensor& x, std::int64_t repeats,
                         std::optional<std::int64_t> dim = {});
Tensor repeat_interleave(const Tensor& x, const Indices& repeats,
                         std::optional<std::int64_t> dim = {});
Tensor cat(const std::vector<Tensor>& xs, std::int64_t dim = 0);
Tensor stack(const std::vector<Tensor>& xs, std::int64_t dim = 0);
std::vector<Tensor> split(const Tensor& x, std::size_t split_size, std::int64_t dim = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<std::size_t>& split_sizes,
                          std::int64_t dim = 0);
std::vector<Tensor> chunk(const Tensor& x, std::size_t chunks, std::int64_t dim = 0);
/// As many parts as are named, for `const auto [k, v] = chunk<2>(x, -1)`; ValueError if there are
/// more or fewer.
template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, std::size_t split_size, std::int64_t dim = 0);
template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, const std::vector<std::size_t>& split_sizes,
                            std::int64_t dim = 0);
template <std::size_t N>
std::array<Tensor, N> chunk(const Tensor& x, std::int64_t dim = 0);
/// x[start : end : step] along dim; start and end as in Python (negative from the end, clipped),
/// step > 0.
Tensor slice(const Tensor& x, std::int64_t dim, std::optional<std::int64_t> start,
             std::optional<std::int64_t> end, std::int64_t step = 1);
/// x[start : start + length] along dim; ValueError if there are fewer.
Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, Dim length);
Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index);  ///< drops dim
/// A copy of x with src where select(x, dim, index) is, and where slice(x, ...) is
/// (torch.select_scatter, torch.slice_scatter): what `x[index] = src` is in PyTorch.  src has the
/// shape of that part.
Tensor select_scatter(const Tensor& x, const Tensor& src, std::int64_t dim, std::int64_t index);
Tensor slice_scatter(const Tensor& x, const Tensor& src, std::int64_t dim = 0,
                     std::optional<std::int64_t> start = {}, std::optional<std::int64_t> end = {},
                     std::int64_t step = 1);
Tensor flip(const Tensor& x, const Dims& dims);
Tensor tril(const Tensor& x,
            std::int64_t diagonal = 0);  ///< zeros above the diagonal of the last two dimensions
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);  ///< zeros below it

// ---- indexing, scans and softmax, members (ops/index.cpp, scatter.cpp, softmax.cpp) ----

Tensor index_select(const Tensor& x, std::int64_t dim,
                    const Indices& index);  ///< index 1-D; rows may repeat
/// out[i][j] = x[index[i][j]][j] for dim 0 (torch.gather): index has x's rank and no larger sizes
/// off dim, or any shape without elements.
Tensor gather(const Tensor& x, std::int64_t dim, const Indices& index);
/// A copy of x with src added at index along dim, as torch.scatter_add; the gradient of gather.
Tensor scatter_add(const Tensor& x, std::int64_t dim, const Indices& index, const Tensor& src);
/// The same with src, or one number, in place of what was there (torch.scatter).  Of several that
/// go to one place the last stays, and the gradient of the others is 0; PyTorch says neither.
Tensor scatter(const Tensor& x, std::int64_t dim, const Indices& index, const Tensor& src);
Tensor scatter(const Tensor& x, std::int64_t dim, const Indices& index, double value);
/// A copy of x with `values` at (i[0], i[1], ...) of its first dimensions, for each element i of
/// the indices, which broadcast (torch.index_put): x[rows, columns] = values.  values broadcast to
/// the indices' shape and x's other sizes.  Negative indices count from the end.  accumulate adds;
/// else, of several at one place the last stays, as in scatter.
Tensor index_put(const Tensor& x, const std::vector<Indices>& indices, const Tensor& values,
                 bool accumulate = false);
Tensor index_add(const Tensor& x, std::int64_t dim, const Indices& index, const Tensor& src);
Tensor cumsum(const Tensor& x, std::int64_t dim);
/// The k largest (or smallest) along dim, in falling (rising) order; the gradient goes to the
/// indices returned, of equals the first.
Extremum topk(const Tensor& x, std::size_t k, std::int64_t dim = -1, bool largest = true);
/// Rows of weight (V, C): indices (...) -> (..., C).  ValueError names an id outside 0 ... V - 1
/// and its place.
Tensor embedding(const Indices& indices, const Tensor& weight);

Tensor softmax(const Tensor& x,
               std::int64_t dim);  ///< a row of only -inf gives zeros, where PyTorch gives NaN
Tensor log_softmax(const Tensor& x,
                   std::int64_t dim);  ///< a row of only -inf gives NaN, as PyTorch

// ---- layer norms and dropout (ops/norm.cpp, dropout.cpp) ----

/// (x - mean) / sqrt(biased variance + eps) * weight + bias over the last normalized_shape.size()
/// dimensions; weight and bias have that shape or are undefined.  Before weight and bias, results
/// are right to 4 epsilons of the row's largest, whatever its mean and magnitude, as long as |x| is
/// at most half of the largest number and 1 / sqrt(variance + eps) a normal one.  So is the
/// gradient r (d - h mean(d h)), with d = g - mean(g) and h the results, to 4 epsilons of r (max
/// |d| + max |h| sqrt(mean(d^2))).  Ba, Kiros and Hinton, 2016.
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight; eps defaults to the dtype's epsilon, as in PyTorch.  As
/// accurate as layer_norm, with d = g.  Zhang and Sennrich, 2019.
Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt);
/// In training, each element is kept with probability 1 - p and scaled by 1 / (1 - p), else x.
/// Draws as PyTorch does.
Tensor dropout(const Tensor& x, double p, bool training = true);
Tensor dropout(const Tensor& x, double p, bool training, Generator& generator);

// ---- losses (ops/loss.cpp) ----

enum class Reduction { none, mean, sum };
struct CrossEntropyOptions {
  Tensor weight = {};  ///< (V,) or undefined: rescales each class
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;  ///< (1 - e) * nll + e / V * sum(-log p)
  Reduction reduction = Reduction::mean;
};
/// -log softmax(x)[target]: x (N, V) or (V) or (N, V, d1, ...), target (N) or () or (N, d1, ...).
/// The mean is over targets that are not ignored, weighted by class.
Tensor cross_entropy(const Tensor& x, const Indices& target,
                     const CrossEntropyOptions& options = {});
/// -sum(target * log softmax(x)), target probabilities of x's shape; the mean is over N.
Tensor cross_entropy(const Tensor& x, const Tensor& target,
                     const CrossEntropyOptions& options = {});
struct NllLossOptions {
  Tensor weight = {};
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
Tensor nll_loss(const Tensor& log_p, const Indices& target, const NllLossOptions& options = {});
/// (x - target)^2; equal shapes, where PyTorch would broadcast with a warning.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);

// ---- attention (ops/attention.cpp) ----

struct AttentionOptions {
  bool is_causal = false;  ///< position t sees keys 0 ... t
  double dropout_p = 0;    ///< on the attention weights; always active when not 0, as in PyTorch
  std::optional<double> scale = {};  ///< 1 / sqrt(D) unless given
  /// With is_causal: position t sees keys 0 ... t + causal_offset.  S - T if the queries are the
  /// last of the keys' positions (PyTorch's causal_lower_right).  ValueError without is_causal.
  std::size_t causal_offset = 0;
};
/// softmax(q kᵀ * scale + mask) v: q (..., T, D), k (..., S, D), v (..., S, Dv) -> (..., T, Dv);
/// batch dimensions broadcast.  A boolean mask is true where attention is allowed; an additive one
/// is added to the scores; both broadcast to (..., T, S).  A row that is masked completely gives
/// zeros.  A weight of 0 times NaN or infinity is NaN, as in a matrix product; keys that is_causal
/// hides from every query count as absent.  Vaswani et al., 2017.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Mask& mask, const AttentionOptions& options);
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, const AttentionOptions& options);
/// (A template, so that {.is_causal = true} alone is options and no mask.)
template <class M>
concept AttentionMask = std::is_same_v<M, Mask> || std::is_same_v<M, Tensor>;
template <AttentionMask M>
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const M& mask) {
  return scaled_dot_product_attention(q, k, v, mask, AttentionOptions{});
}
/// Causal self-attention of n_head heads on packed projections: qkv (B, T, 3C), where C = H * D and
/// each of q, k, v holds its heads side by side -> (B, T, C).  The same numbers as splitting into
/// (B, H, T, D), scaled_dot_product_attention with is_causal, and merging the heads, without the
/// copies.
Tensor causal_self_attention(const Tensor& qkv, std::size_t n_head, double dropout_p = 0);

// ---- operators ----
// + - * / of Tensors and numbers, and += and its like: ops/operators.hpp, included below.

// ---- indexing and printing ----

/// Python's start:end:step.
struct Slice {
  std::optional<std::int64_t> start = {}, end = {};
  std::int64_t step = 1;
};
struct Ellipsis {};
struct NewAxis {};
/// One entry of an index: an integer (drops the dimension), a Slice, Ellipsis{}, or NewAxis{}
/// (Python's None).
struct Index {
  std::variant<std::int64_t, Slice, Ellipsis, NewAxis> value;
  template <std::integral I>
  Index(I i) : value(static_cast<std::int64_t>(i)) {}
  Index(Slice slice) : value(slice) {}
  Index(Ellipsis) : value(Ellipsis{}) {}
  Index(NewAxis) : value(NewAxis{}) {}
};
/// x[i, j:k, ..., None]: index(x, {0, Slice{1, 3}, Ellipsis{}}).  ValueError if an integer is out
/// of range, there are more indices than dimensions, or more than one Ellipsis.
Tensor index(const Tensor& x, const std::vector<Index>& indices);

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

#include <xgrad/autograd/ops/indices.hpp>
#include <xgrad/autograd/ops/operators.hpp>
