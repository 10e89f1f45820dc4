// var, std, mean, vector norms and prod over the whole range: what ops.hpp says of their errors.

#include <optional>
#include <xgrad/autograd/engine.hpp>

#include "autograd/accuracy_rows.hpp"
#include "helpers/catch.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

struct Errors {
  Worst value, gradient;
};

// A function of a row, and what it and its gradient are; a scale of the gradient's errors.
struct Wanted {
  Wide y;
  WideRow dx;
  Wide scale;
};

template <class F, class W>
Errors errors(const std::vector<SweptRow>& rows, const F& f, const W& wide, bool create_graph,
              DType dtype) {
  Errors worst;
  for (const SweptRow& row : rows) {
    const std::optional<Wanted> want = wide(WideRow(row.x.begin(), row.x.end()));
    if (!want)
      continue;
    const Tensor x = row_tensor(row.x, dtype).requires_grad_();
    const Tensor y = f(x);
    worst.value.add(error_in_epsilons(numbers(y)[0], want->y, want->y, dtype), row.what);
    if (want->y != 0 && !(want->y >= smallest_normal(dtype) && want->y <= largest(dtype)))
      continue;
    const std::vector<double> dx = numbers(grad({y}, {x}, {.create_graph = create_graph})[0]);
    for (std::size_t i = 0; i < dx.size(); ++i)
      worst.gradient.add(error_in_epsilons(dx[i], want->dx[i], want->scale, dtype),
                         row.what + ", element " + std::to_string(i));
  }
  return worst;
}

bool close(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::abs(b);
}

void check(const std::string& what, const Errors& e, double value, double gradient) {
  INFO(what << ": value " << e.value.error << " at " << e.value.where << ", gradient "
            << e.gradient.error << " at " << e.gradient.where);
  CHECK(e.value.error <= value);
  CHECK(e.gradient.error <= gradient);
}

std::vector<SweptRow> all_rows(DType dtype) {
  std::vector<SweptRow> rows = rows_about(dtype);
  for (SweptRow& row : rows_of_all_magnitudes(dtype))
    rows.push_back(std::move(row));
  return rows;
}

std::optional<Wanted> wide_spread(const WideRow& x, bool root) {
  if (x.size() == 1)
    return {};
  const WideRow v = wide_deviations(x);
  const auto degrees = static_cast<Wide>(x.size() - 1);
  const Wide var = wide_product(v, v) / degrees, y = root ? std::sqrt(var) : var;
  Wanted want{y, v, 0};
  for (Wide& d : want.dx)
    d = y == 0 ? 0 : root ? d / y / degrees : 2 * d / degrees;
  want.scale = wide_largest(want.dx);
  return want;
}

std::optional<Wanted> wide_norm_of(const WideRow& x, Wide ord) {
  const Wide most = wide_largest(x);
  if (ord < 0 && std::count(x.begin(), x.end(), 0) > 0)
    return {};
  Wide sum = 0;
  for (const Wide v : x)
    sum += most == 0 ? 0 : std::pow(std::abs(v) / most, ord);
  const Wide y = most * std::pow(sum, 1 / ord);
  Wanted want{y, x, 0};
  for (Wide& d : want.dx)
    d = y == 0 || d == 0 ? 0 : std::copysign(std::pow(std::abs(d) / y, ord - 1), d);
  want.scale = wide_largest(want.dx);
  return want;
}

}  // namespace

TEST_CASE("var and std are as accurate as ops.hpp says: offsets, lengths, every magnitude",
          "[accuracy]") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const bool create_graph : {false, true})
      for (const bool root : {false, true})
        check(std::string(root ? "std, " : "var, ") + to_string(dtype),
              errors(
                  all_rows(dtype), [&](const Tensor& x) { return root ? xgrad::std(x) : var(x); },
                  [&](const WideRow& x) { return wide_spread(x, root); }, create_graph, dtype),
              8, 8);
}

TEST_CASE("vector_norm is as accurate as ops.hpp says: offsets, lengths, every magnitude",
          "[accuracy]") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const bool create_graph : {false, true})
      for (const double ord : {2.0, 3.0, 1.5, 0.5, -1.0})
        check("ord " + std::to_string(ord) + ", " + to_string(dtype),
              errors(
                  all_rows(dtype), [&](const Tensor& x) { return vector_norm(x, ord); },
                  [&](const WideRow& x) { return wide_norm_of(x, ord); }, create_graph, dtype),
              8, 8);
}

TEST_CASE("std near the ends of the range has the right value and gradients", "[accuracy]") {
  for (const Values& v : {Values{1e20, -1e20}, {1e-25, -1e-25}, {1e38, 2e38, 3e38}, {3e38, 3e38}}) {
    const Tensor x = tensor(v).requires_grad_();
    const Tensor plain = to(x.detach(), DType::float64).requires_grad_();
    const Tensor y = xgrad::std(x), wide = xgrad::std(plain);
    CHECK(same_bits(y, to(wide, DType::float32)));
    const auto gradient = [](const Tensor& of, const Tensor& at) {
      return grad({of}, {at}, {.create_graph = true})[0];
    };
    const Tensor dx = gradient(y, x), wanted = gradient(wide, plain);
    CHECK(allclose(to(dx.detach(), DType::float64), wanted.detach(), 1e-6, 0));
    // twice, for the gradient with respect to the first element
    const Tensor ddx = grad({dx[0]}, {x})[0], second = grad({wanted[0]}, {plain})[0];
    const double spread = numbers(wide)[0];  // second derivatives are of the size of 1 / spread
    CHECK(allclose(to(ddx, DType::float64), second, 0, spread == 0 ? 0 : 1e-6 / spread));
  }
  const Tensor x = tensor({1e300, -1e300}, DType::float64).requires_grad_();
  CHECK(close(numbers(xgrad::std(x))[0], std::sqrt(2) * 1e300, 1e-15));
  CHECK(close(numbers(grad({xgrad::std(x)}, {x})[0])[0], std::sqrt(0.5), 1e-15));
}

TEST_CASE("mean: a sum that leaves the range, and means of equal losses", "[accuracy]") {
  for (const std::int64_t n : {2, 3, 800}) {
    const Tensor rows = stack({full({n}, 3e38), full({n}, 1e-3), full({n}, inf), full({n}, -3e38)});
    const std::vector<double> m = numbers(mean(rows, {1}));
    CHECK(close(m[0], 3e38, 1e-6));
    CHECK(m[1] == numbers(mean(rows[1]))[0]);
    CHECK(m[2] == inf);
    CHECK(close(m[3], -3e38, 1e-6));
  }
  for (const std::int64_t n : {3, 384, 100000}) {
    const Tensor logits = stack({full({n}, 100.3), full({n}, 97.1), full({n}, 99.7)}, 1);
    const Indices target = argmin(logits, 1);
    const auto each = [&](Reduction r) { return cross_entropy(logits, target, {.reduction = r}); };
    CHECK(numbers(each(Reduction::mean))[0] == numbers(each(Reduction::none))[0]);
    const auto nll = [&](Reduction r) { return nll_loss(logits, target, {.reduction = r}); };
    CHECK(numbers(nll(Reduction::mean))[0] == numbers(nll(Reduction::none))[0]);
    const Tensor a = full({n}, 100.3), b = full({n}, 97.1);
    CHECK(close(numbers(mse_loss(a, b))[0], numbers(mse_loss(a, b, Reduction::none))[0], 2e-7));
  }
}

TEST_CASE("gradients of prod: all but one, where the product leaves the range", "[accuracy]") {
  struct Case {
    Values x, first;
    Values second;  ///< of the sum of the first
  };
  const double nan = not_a_number;
  for (const Case& c :
       {Case{{1e-30, 1e-30, 2}, {2e-30, 2e-30, 0}, {2, 2, 2e-30}},
        Case{{inf, 2, 3}, {6, inf, inf}, {5, inf, inf}},
        Case{{0, inf, 3}, {inf, 0, nan}, {inf, 3, inf}},
        Case{{1e30, 1e30, 1e-30, 1e-30}, {1e-30, 1e-30, 1e30, 1e30}, {2, 2, inf, inf}},
        Case{{0, 1e-30, 1e-30, 1e30}, {1e-30, 0, 0, 0}, {2, 1, 1, 0}},
        Case{{0, 0, 2}, {0, 0, 0}, {2, 2, 0}}, Case{{1e-42, 2, 4}, {8, 4e-42, 2e-42}, {6, 4, 2}},
        Case{{1e20, 1e20, 1e20}, {inf, inf, inf}, {2e20, 2e20, 2e20}}}) {
    const Tensor x = tensor(c.x).requires_grad_();
    const Tensor first = grad({prod(x)}, {x}, {.create_graph = true})[0];
    INFO(to_string(x) << ": " << to_string(first));
    const auto check_close = [](const Tensor& got, const Values& want) {
      const std::vector<double> a = numbers(got), b = numbers(tensor(want));
      for (std::size_t i = 0; i < a.size(); ++i) {
        INFO("element " << i << ": " << a[i] << ", wanted " << b[i]);
        CHECK(error_in_epsilons(a[i], b[i], b[i], DType::float32) <= 4);
      }
    };
    check_close(first, c.first);
    check_close(grad({prod(x)}, {x})[0], c.first);
    const Tensor second = grad({sum(first)}, {x})[0];
    INFO("second: " << to_string(second));
    check_close(second, c.second);
  }
}

TEST_CASE("gradients of prod of many factors, of every magnitude", "[accuracy]") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    std::vector<SweptRow> rows = rows_of_all_magnitudes(dtype);
    for (const SweptRow& row : rows_about(dtype))
      rows.push_back(row);
    Worst worst;
    for (const SweptRow& row : rows) {
      const Tensor x = row_tensor(row.x, dtype).requires_grad_();
      const std::vector<double> dx = numbers(grad({prod(x)}, {x})[0]);
      for (std::size_t i = 0; i < dx.size(); ++i) {
        Wide fraction = 1;  // and an exponent apart: long double, too, has ends
        int exponent = 0, e = 0;
        for (std::size_t j = 0; j < dx.size(); ++j)
          if (j != i) {
            fraction = std::frexp(fraction * static_cast<Wide>(row.x[j]), &e);
            exponent += e;
          }
        const Wide want = std::ldexp(fraction, std::clamp(exponent, -16000, 16000));
        worst.add(error_in_epsilons(dx[i], want, want, dtype) / static_cast<double>(dx.size()),
                  row.what + ", element " + std::to_string(i));
      }
    }
    INFO(to_string(dtype) << ": " << worst.error << " at " << worst.where);
    CHECK(worst.error <= 1);
  }
}

TEST_CASE("accuracy of reductions: table", "[.accuracy-summary]") {
  print_accuracy_header();
  for (const DType dtype : {DType::float32, DType::float64}) {
    const auto print = [&](const char* name, const auto& f, const auto& wide) {
      for (const bool plain : {true, false}) {
        const Errors e = errors(plain ? plain_rows(dtype) : all_rows(dtype), f, wide, false, dtype);
        print_accuracy(name, plain ? "plain" : "all", dtype, e.value.error, e.gradient.error);
      }
    };
    print(
        "var", [](const Tensor& x) { return var(x); },
        [](const WideRow& x) { return wide_spread(x, false); });
    print(
        "std", [](const Tensor& x) { return xgrad::std(x); },
        [](const WideRow& x) { return wide_spread(x, true); });
    print(
        "vector_norm", [](const Tensor& x) { return vector_norm(x); },
        [](const WideRow& x) { return wide_norm_of(x, 2); });
    print(
        "vector_norm, ord 3", [](const Tensor& x) { return vector_norm(x, 3); },
        [](const WideRow& x) { return wide_norm_of(x, 3); });
  }
}

TEST_CASE("gradients of norms whose powers or bounds leave the range", "[accuracy][reduce]") {
  const auto gradient = [](Tensor x, const auto& f) {
    x.requires_grad_();
    f(x).backward();
    return x.grad();
  };
  // An element that is 0 has gradient 0, whatever the others' powers are.
  for (const DType dtype : {DType::float32, DType::float64})
    for (const double ord : {3.0, 4.0, 10.0, 20.0})
      for (const double small : {1.0, 3e-7, 1e-13, 1e-20, 1e-30}) {
        CAPTURE(to_string(dtype), ord, small);
        const Tensor x = tensor({0, small, small}, dtype);
        const Tensor g = gradient(x, [&](const Tensor& v) { return vector_norm(v, ord); });
        CHECK(g[0].item() == 0);
        CHECK(std::abs(g[1].item() - std::pow(2, 1 / ord - 1)) < 1e-5);
      }
  // Singular values next to the end of the range.
  for (const double large : {1.0, 2e38}) {
    CAPTURE(large);
    const Tensor x = tensor({{large, 0}, {0, large / 20}}, DType::float32);
    const Tensor g =
        gradient(x, [](const Tensor& v) { return matrix_norm(v, MatrixNorm::nuc); });
    CHECK(std::abs(g[0][0].item() - 1) < 1e-5);
    CHECK(std::abs(g[1][1].item() - 1) < 1e-5);
    CHECK(std::abs(g[0][1].item()) < 1e-5);
  }
}
