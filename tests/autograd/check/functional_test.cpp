// jacobian, hessian and their products with vectors, against closed forms.

#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

Tensor f64(const Values& values) { return tensor(values, DType::float64); }

Tensor diagonal(const Tensor& x) { return eye(x.numel(), x.dtype()) * reshape(x, {-1}); }

bool close(const Tensor& a, const Tensor& b) { return allclose(a, b, 1e-12, 1e-12); }

Tensor cubes(const Tensor& x) { return sum(x * x * x); }

}  // namespace

TEST_CASE("a linear map: J is its matrix", "[functional]") {
  const Tensor W = normal({3, 4}, 1), x = normal({4}, 2), u = normal({3}, 3), v = normal({4}, 4);
  const auto f = [&W](const Tensor& in) { return matmul(W, in); };
  CHECK(close(jacobian(f, x), W));
  const auto [y, uJ] = vjp(f, x, u);
  CHECK(close(y, matmul(W, x)));
  CHECK(close(uJ, matmul(W.t(), u)));
  const auto [again, Jv] = jvp(f, x, v);
  CHECK(close(again, y));
  CHECK(close(Jv, matmul(W, v)));
}

TEST_CASE("softmax: J = diag(p) - p pᵀ, logsumexp: the same is H", "[functional]") {
  const Tensor x = normal({5}, 1), v = normal({5}, 2), p = softmax(x, 0);
  const Tensor expected = diagonal(p) - outer(p, p);
  const auto probabilities = [](const Tensor& in) { return softmax(in, 0); };
  const auto f = [](const Tensor& in) { return logsumexp(in, {0}); };
  CHECK(close(jacobian(probabilities, x), expected));
  CHECK(close(jvp(probabilities, x, v).second, matmul(expected, v)));
  CHECK(close(vjp(probabilities, x, v).second, matmul(expected, v)));
  CHECK(close(hessian(f, x), expected));
  const auto [y, Hv] = hvp(f, x, v);
  CHECK(close(y, f(x)));
  CHECK(close(Hv, matmul(expected, v)));
}

TEST_CASE("a quadratic form: H = A + Aᵀ, and one step of Newton's method", "[functional]") {
  const Tensor A = normal({4, 4}, 1), b = normal({4}, 2), x = normal({4}, 3), v = normal({4}, 4);
  const auto f = [&](const Tensor& in) { return dot(in, matmul(A, in)) + dot(b, in); };
  const Tensor H = A + A.t();
  CHECK(close(hessian(f, x), H));
  CHECK(close(hvp(f, x, v).second, matmul(H, v)));
  CHECK(close(hvp(f, zeros_like(x), v).second, matmul(H, v)));
}

TEST_CASE("Rosenbrock's valley", "[functional]") {
  const auto f = [](const Tensor& in) {
    const Tensor x = in[0], y = in[1];
    return pow(1.0 - x, 2) + 100.0 * pow(y - x * x, 2);
  };
  const double x = -1.2, y = 1;
  CHECK(close(jacobian(f, f64({x, y})), f64({-2 * (1 - x) - 400 * x * (y - x * x),  //
                                             200 * (y - x * x)})));
  CHECK(close(hessian(f, f64({x, y})),
              f64({{2 - 400 * y + 1200 * x * x, -400 * x}, {-400 * x, 200}})));
}

TEST_CASE("shapes of J and H are those of output and input, joined", "[functional]") {
  const Tensor x = normal({2, 3}, 1);
  const auto rows = [](const Tensor& in) { return sum(in * in, {0}); };
  const Tensor J = jacobian(rows, x);
  REQUIRE(J.shape() == Shape{3, 2, 3});
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        CHECK(index(J, {k, i, j}).item() == (j == k ? 2 * index(x, {i, j}).item() : 0.0));
  const Tensor H = hessian(cubes, x);
  CHECK(H.shape() == Shape{2, 3, 2, 3});
  CHECK(close(reshape(H, {6, 6}), 6.0 * diagonal(x)));
  // 0-d, one element, none at all
  CHECK(hessian(cubes, scalar(2, DType::float64)).shape() == Shape{});
  CHECK(hessian(cubes, scalar(2, DType::float64)).item() == 12);
  CHECK(hessian([](const Tensor& in) { return reshape(cubes(in), {1, 1}); }, x).shape() ==
        Shape{2, 3, 2, 3});
  CHECK(jacobian(cubes, zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(hessian(cubes, zeros({0, 2})).shape() == Shape{0, 2, 0, 2});
  CHECK(jacobian([](const Tensor& in) { return in * 2.0; }, zeros({0, 2})).shape() ==
        Shape{0, 2, 0, 2});
}

TEST_CASE("several inputs and outputs", "[functional]") {
  const Tensor a = normal({3}, 1), b = normal({3}, 2), u = normal({3}, 3), w = normal({3}, 4);
  const auto f = [](const Inputs& in) {
    return std::vector<Tensor>{in[0] * in[0] * in[1], sum(in[1])};
  };
  const auto J = jacobian(f, {a, b});
  REQUIRE(J.size() == 2);
  REQUIRE(J[0].size() == 2);
  CHECK(close(J[0][0], diagonal(2.0 * a * b)));
  CHECK(close(J[0][1], diagonal(a * a)));
  CHECK(close(J[1][0], zeros({3}, DType::float64)));
  CHECK(close(J[1][1], ones({3}, DType::float64)));

  const Tensor two = scalar(2, DType::float64);
  const auto [y, vJ] = vjp(f, {a, b}, {u, two});
  CHECK(close(y[1], sum(b)));
  CHECK(close(vJ[0], 2.0 * a * b * u));
  CHECK(close(vJ[1], a * a * u + 2.0));
  const auto [again, Jv] = jvp(f, {a, b}, {u, w});
  CHECK(close(again[0], a * a * b));
  CHECK(close(Jv[0], 2.0 * a * b * u + a * a * w));
  CHECK(close(Jv[1], sum(w)));

  const auto g = [](const Inputs& in) { return sum(in[0] * in[0] * in[1]); };
  const auto H = hessian(g, {a, b});
  CHECK(close(H[0][0], diagonal(2.0 * b)));
  CHECK(close(H[0][1], diagonal(2.0 * a)));
  CHECK(close(H[1][0], diagonal(2.0 * a)));
  CHECK(close(H[1][1], zeros({3, 3}, DType::float64)));
  const auto [value, Hv] = hvp(g, {a, b}, {u, w});
  CHECK(close(value, g({a, b})));
  CHECK(close(Hv[0], 2.0 * b * u + 2.0 * a * w));
  CHECK(close(Hv[1], 2.0 * a * u));
  // one Tensor as two inputs has two derivatives, under create_graph too
  const Tensor leaf = a.detach().requires_grad_();
  for (const bool create_graph : {false, true}) {
    const auto twice = jacobian(g, {leaf, leaf}, create_graph);
    CHECK(close(twice[0][0], 2.0 * a * a));
    CHECK(close(twice[0][1], a * a));
  }
}

TEST_CASE("v is optional if it is a single number", "[functional]") {
  const Tensor x = normal({3}, 1), t = scalar(0.5, DType::float64);
  CHECK(close(vjp(cubes, x).second, 3.0 * x * x));
  CHECK(close(jvp([&x](const Tensor& in) { return x * in * in; }, t).second, x));
  CHECK(hvp(cubes, t).second.item() == Approx(3));
  CHECK_THROWS_AS(jvp(cubes, x), ValueError);
  CHECK_THROWS_AS(hvp(cubes, x), ValueError);
  CHECK_THROWS_AS(vjp([](const Tensor& in) { return in * in; }, x), ValueError);
}

TEST_CASE("an output that does not depend on an input has derivative zero", "[functional]") {
  const Tensor x = normal({2}, 1), v = normal({2}, 2), other = normal({2}, 3).requires_grad_();
  const auto constant = [](const Tensor&) { return scalar(3, DType::float64); };
  const auto of_another = [&other](const Tensor&) { return sum(other * other); };
  const auto linear = [](const Tensor& in) { return sum(in * 2.0); };
  const Tensor zero = zeros({2}, DType::float64), square = zeros({2, 2}, DType::float64);
  for (const bool create_graph : {false, true})
    for (const std::function<Tensor(const Tensor&)>& f :
         {std::function<Tensor(const Tensor&)>(constant), {of_another}}) {
      CHECK(close(jacobian(f, x, create_graph), zero));
      CHECK(close(hessian(f, x, create_graph), square));
      CHECK(close(vjp(f, x, {}, create_graph).second, zero));
      CHECK(jvp(f, x, v, create_graph).second.item() == 0);
      CHECK(close(hvp(f, x, v, create_graph).second, zero));
    }
  CHECK(close(hessian(linear, x), square));
  CHECK(close(hvp(linear, x, v).second, zero));
  CHECK(jvp(linear, x, v).second.item() == Approx(2 * sum(v).item()));
  CHECK(close(jacobian([](const Tensor& in) { return in; }, x), eye(2, DType::float64)));
  CHECK(close(jacobian([&x](const Tensor&) { return x; }, x), square));
  CHECK_FALSE(other.grad().defined());
}

TEST_CASE("create_graph: the results can be differentiated again", "[functional]") {
  const Tensor x = normal({3}, 1).requires_grad_(), v = normal({3}, 2).requires_grad_();
  const auto f = [](const Tensor& in) { return sum(pow(in, 4)); };
  const auto d = [&x](const Tensor& y) { return grad({sum(y)}, {x}, {.retain_graph = true})[0]; };
  CHECK(close(d(jacobian(f, x, true)), 12.0 * x * x));
  CHECK(close(d(hessian(f, x, true)), 24.0 * x));
  CHECK(close(d(vjp(f, x, {}, true).second), 12.0 * x * x));
  CHECK(close(d(vjp(f, x, {}, true).first), 4.0 * x * x * x));
  CHECK(close(d(jvp(f, x, v, true).second), 12.0 * x * x * v));
  const Tensor Hv = hvp(f, x, v, true).second;
  CHECK(close(d(Hv), 24.0 * x * v));
  CHECK(close(grad({sum(Hv)}, {v})[0], 12.0 * x * x));
  CHECK(close(grad({jvp(f, x, v, true).second}, {v})[0], 4.0 * x * x * x));
  const Tensor u = scalar(2, DType::float64).requires_grad_();
  CHECK(close(grad({sum(vjp(f, x, u, true).second)}, {u})[0], sum(4.0 * x * x * x)));
  // by another Tensor that the function uses: d sum(6 w x) / d w
  const Tensor w = normal({3}, 3).requires_grad_();
  const auto g = [&w](const Tensor& in) { return sum(w * in * in * in); };
  CHECK(close(grad({sum(hessian(g, x, true))}, {w})[0], 6.0 * x));
  // by the result of an op, through to its leaf
  const Tensor h = x * 2.0;
  CHECK(close(d(hessian(f, h, true)), 24.0 * h * 2.0));
  // a Jacobian of a Hessian
  const auto H = [&f](const Tensor& in) { return hessian(f, in, true); };
  const Tensor third = jacobian(H, x);
  REQUIRE(third.shape() == Shape{3, 3, 3});
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(index(third, {i, i, i}).item() == Approx(24 * x.data<double>()[i]));
}

TEST_CASE("nothing but the results is changed", "[functional]") {
  const Tensor x = normal({3}, 1).requires_grad_(), v = normal({3}, 2).requires_grad_();
  const Tensor w = normal({3}, 3).requires_grad_();
  const auto f = [&w](const Tensor& in) { return sum(w * in * in * in); };
  for (const Tensor& result : {jacobian(f, x), hessian(f, x), vjp(f, x).first, vjp(f, x).second,
                               jvp(f, x, v).second, hvp(f, x, v).first, hvp(f, x, v).second})
    CHECK_FALSE(result.requires_grad());
  for (const Tensor& in : {x, v, w})
    CHECK_FALSE(in.grad().defined());
  const Tensor constant = x.detach();
  CHECK(close(hessian(f, constant), hessian(f, x)));
  CHECK_FALSE(constant.requires_grad());
  const NoGrad no_grad;  // the caller's; the function's graph is recorded nevertheless
  CHECK(close(hessian(cubes, x), 6.0 * diagonal(x)));
  CHECK(close(jvp(cubes, x, v).second, sum(3.0 * x * x * v)));
  CHECK_FALSE(Mode::current().grad_enabled);
  const auto throws = [](const Tensor&) -> Tensor { throw std::runtime_error("from within"); };
  CHECK_THROWS_WITH(hessian(throws, x), "from within");
  CHECK_FALSE(Mode::current().grad_enabled);
}

TEST_CASE("derivatives of functions in float32", "[functional]") {
  const Tensor x = tensor({1, 2}), v = tensor({3, 5});
  CHECK(allclose(hessian(cubes, x), tensor({{6, 0}, {0, 12}})));
  CHECK(allclose(hvp(cubes, x, v).second, tensor({18, 60})));
  CHECK(allclose(jacobian(cubes, x), tensor({3, 12})));
  CHECK(jvp(cubes, x, v).second.item() == 69);
  // an output of another dtype than the input
  const auto widened = [](const Tensor& in) { return to(in * in, DType::float64); };
  CHECK(jacobian(widened, x).dtype() == DType::float32);
  CHECK(jvp(widened, x, v).second.dtype() == DType::float64);
}

TEST_CASE("bad calls of jacobian, hessian and their products", "[functional]") {
  const Tensor x = normal({3}, 1);
  const auto square = [](const Tensor& in) { return in * in; };
  const auto pair = [](const Inputs& in) { return std::vector<Tensor>{sum(in[0]), sum(in[0])}; };
  const auto nothing = [](const Inputs&) { return std::vector<Tensor>{}; };
  const auto undefined = [](const Tensor&) { return Tensor(); };
  CHECK_THROWS_AS(hessian(square, x), ShapeError);
  CHECK_THROWS_WITH(hessian(square, x),
                    "hessian: the function returned shape (3,): only a Tensor of one element has "
                    "a Hessian");
  CHECK_THROWS_WITH(hvp(square, x, x), StartsWith("hvp: the function returned shape (3,)"));
  CHECK_THROWS_AS(hessian(pair, {x}), ValueError);
  CHECK_THROWS_WITH(hvp(pair, {x}, {x}), StartsWith("hvp: the function returned 2 Tensors"));
  CHECK_THROWS_WITH(jacobian(nothing, {x}), "jacobian: the function returned nothing");
  CHECK_THROWS_WITH(vjp(undefined, x, x), "vjp: the function's output 0 is undefined");
  CHECK_THROWS_WITH(jacobian(pair, Inputs{}), "jacobian: no inputs");
  CHECK_THROWS_WITH(jacobian(square, Tensor()), "jacobian: input 0 is undefined");

  CHECK_THROWS_AS(vjp(square, x, zeros({4}, DType::float64)), ShapeError);
  CHECK_THROWS_WITH(vjp(square, x, zeros({4}, DType::float64)),
                    "vjp: v[0] has shape (4,) but output 0 has shape (3,)");
  CHECK_THROWS_WITH(jvp(square, x, zeros({3, 1}, DType::float64)),
                    "jvp: v[0] has shape (3, 1) but input 0 has shape (3,)");
  CHECK_THROWS_WITH(hvp(cubes, x, zeros({}, DType::float64)),
                    "hvp: v[0] has shape () but input 0 has shape (3,)");
  CHECK_THROWS_AS(jvp(square, x, zeros({3})), DTypeError);
  CHECK_THROWS_WITH(jvp(square, x, zeros({3})), "jvp: v[0] is float32 but input 0 is float64");
  CHECK_THROWS_WITH(jvp(pair, {x}, {x, x}), "jvp: v has 2 Tensors for 1 inputs");
  CHECK_THROWS_WITH(vjp(pair, {x}), "vjp: v has 0 Tensors for 2 outputs");
  CHECK_THROWS_WITH(vjp(pair, {x}, {sum(x), {}}), "vjp: v[1] is undefined");
}
