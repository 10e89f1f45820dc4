// Norms of matrices.
//
// The nuclear norm is the sum of the singular values.  Its gradient is the polar factor of x,
// polar(x) = U Vᵀ for x = U S Vᵀ, and what follows from there is made of ops: x = P H, where P is
// polar(x) and H = Pᵀ x = V S Vᵀ is symmetric.  Unlike derivatives of U and V apart, those of P do
// not mind equal singular values.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/reduced.hpp>
#include <xgrad/autograd/xtensor.hpp>
// (kept apart from its neighbours so that the formatter does not sort it: it leans on xtensor.hpp)
#include <xtensor-blas/xlinalg.hpp>

namespace xgrad {
namespace {

// The decomposition of matrices of one size, one after the other: a = u diag(s) vt, s falling; all
// NaN if a is not finite.
template <class T>
struct Svd {
  using Matrix = xt::xtensor<T, 2, xt::layout_type::row_major>;
  std::size_t m, n, k;
  Matrix u, vt;
  xt::xtensor<T, 1> s;

  Svd(std::size_t rows, std::size_t columns)
      : m(rows), n(columns), k(std::min(m, n)), u({m, k}), vt({k, n}), s(std::array{k}) {}
  void decompose(const T* a) {
    if (k == 0)
      return;
    if (!std::all_of(a, a + m * n, [](T x) { return std::isfinite(x); })) {
      for (T* const part : {u.data(), vt.data(), s.data()})
        std::fill_n(part,
                    part == u.data()   ? m * k
                    : part == s.data() ? k
                                       : k * n,
                    std::numeric_limits<T>::quiet_NaN());
      return;
    }
    const std::array<std::size_t, 2> shape{m, n};
    const auto turn = kernels::turn_at_blas();
    std::tie(u, s, vt) = xt::linalg::svd(xt::adapt(a, m * n, xt::no_ownership(), shape), false);
  }
  // What is no larger is 0, but for rounding.
  T negligible() const {
    return s[0] * (static_cast<T>(std::max(m, n)) * std::numeric_limits<T>::epsilon());
  }
};

// x h + h x = c for h (B, n, n), symmetric with eigenvalues that are not negative: in their basis
// element (i, j) of x is that of c divided by the sum of eigenvalues i and j, or 0 if that is 0.
Tensor solve_lyapunov(const Tensor& h, const Tensor& c) {
  return record(
      "solve_lyapunov", {h, c},
      []<class T>(std::span<const Tensor> in) {
        const std::size_t n = in[0].size(-1);
        auto x = empty_array<T>(in[1].shape());
        Svd<T> svd(n, n);
        std::vector<T> part(n * n), inner(n * n);
        const auto multiply = [n](bool ta, const T* a, const T* b, bool tb, T* to) {
          kernels::gemm(ta, tb, n, n, n, T(1), a, n, b, n, T(0), to, n);
        };
        for (std::size_t at = 0; at < x.size(); at += n * n) {
          svd.decompose(in[0].data<T>() + at);
          const T* const vt = svd.vt.data();
          multiply(false, vt, in[1].data<T>() + at, false, part.data());
          multiply(false, part.data(), vt, true, inner.data());
          for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) {
              const T both = svd.s[i] + svd.s[j];
              inner[i * n + j] = both <= svd.negligible() ? T(0) : inner[i * n + j] / both;
            }
          multiply(true, vt, inner.data(), false, part.data());
          multiply(false, part.data(), vt, false, x.data() + at);
        }
        return x;
      },
      [h = Saved(h)](Context& ctx) {
        const Tensor dc = solve_lyapunov(h.tensor(), ctx.gradient());
        const Tensor xt = transpose(ctx.output(), -2, -1);
        ctx.add(0, -(matmul(dc, xt) + matmul(xt, dc)));
        ctx.add(1, dc);
      },
      {.saves_output = true});
}

// d <g, polar(x)> / d x, for x (B, m, n) with m >= n and p = polar(x).  From x = p h follow
// pᵀ dp h + h pᵀ dp = pᵀ dx - dxᵀ p and (1 - p pᵀ) dp = (1 - p pᵀ) dx / h.  The map from dx to dp
// is its own transpose, because p is itself a gradient.
Tensor tall_polar_gradient(const Tensor& g, const Tensor& x, const Tensor& p) {
  const Tensor pt = transpose(p, -2, -1), h = matmul(pt, x), inside = matmul(pt, g);
  Tensor along = matmul(p, solve_lyapunov(h, inside - transpose(inside, -2, -1)));
  if (x.size(-2) == x.size(-1))
    return along;
  const Tensor two = expand(2 * eye(x.size(-1), x.dtype()), h.shape());
  return along + matmul(g - matmul(p, inside), solve_lyapunov(h, two));
}

Tensor polar_gradient(const Tensor& g, const Tensor& x, const Tensor& p) {
  if (x.size(-2) >= x.size(-1))
    return tall_polar_gradient(g, x, p);
  const auto t = [](const Tensor& a) { return transpose(a, -2, -1); };
  return t(tall_polar_gradient(t(g), t(x), t(p)));
}

// U Vᵀ over the singular values that are not 0.
Tensor polar(const Tensor& x) {
  return record(
      "polar", {x},
      []<class T>(std::span<const Tensor> in) {
        const std::size_t m = in[0].size(-2), n = in[0].size(-1);
        auto p = empty_array<T>(in[0].shape());
        Svd<T> svd(m, n);
        for (std::size_t at = 0; at < p.size(); at += m * n) {
          svd.decompose(in[0].data<T>() + at);
          std::size_t rank = svd.k;
          while (rank > 0 && svd.s[rank - 1] <= svd.negligible())
            --rank;
          kernels::gemm(false, false, m, n, rank, T(1), svd.u.data(), svd.k, svd.vt.data(), n, T(0),
                        p.data() + at, n);
        }
        return p;
      },
      [x = Saved(x)](Context& ctx) {
        ctx.add(0, polar_gradient(ctx.gradient(), x.tensor(), ctx.output()));
      },
      {.saves_output = true});
}

// (B, m, n) -> (B)
Tensor nuclear_norm(const Tensor& x) {
  return record(
      "matrix_norm", {x},
      []<class T>(std::span<const Tensor> in) {
        const std::size_t m = in[0].size(-2), n = in[0].size(-1);
        auto y = empty_array<T>({in[0].size(0)});
        Svd<T> svd(m, n);
        for (std::size_t i = 0; i < y.size(); ++i) {
          svd.decompose(in[0].data<T>() + i * m * n);
          y.data()[i] = static_cast<T>(std::accumulate(svd.s.begin(), svd.s.end(), 0.0));
        }
        return y;
      },
      [x = Saved(x)](Context& ctx) {
        const Tensor p = polar(x.tensor());
        ctx.add(0, p * reshape(ctx.gradient(), {p.size(0), 1, 1}));
      });
}

}  // namespace

Tensor matrix_norm(const Tensor& x, MatrixNorm ord, const Dims& dims, bool keepdim) {
  if (dims.size() != 2)
    fail<ValueError>("matrix_norm: {} given, not two", counted(dims.size(), "dim", "dims"));
  const Reduced matrix(x.shape(), dims, "matrix_norm");
  if (ord == MatrixNorm::fro)
    return vector_norm(x, 2, dims, keepdim);
  Dims order;
  for (Size d = 0; d < x.dim(); ++d)
    if (!matrix.contains(d))
      order.push_back(static_cast<std::int64_t>(d));
  order.insert(order.end(), dims.begin(), dims.end());
  const Shape shape = matrix.after(keepdim);
  const Tensor last = permute(x, order);
  const Tensor y = nuclear_norm(reshape(last, {numel(shape), last.size(-2), last.size(-1)}));
  return reshape(y, shape);
}

}  // namespace xgrad
