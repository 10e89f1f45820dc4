// layer_norm and rms_norm over the whole range: what ops.hpp says of their errors.

#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>

#include "autograd/accuracy_rows.hpp"
#include "helpers/catch.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

struct NormCase {
  bool centred;
  double eps;
  Tensor operator()(const Tensor& x) const {
    return centred ? layer_norm(x, {x.size(-1)}, {}, {}, eps) : rms_norm(x, {x.size(-1)}, {}, eps);
  }
};

struct WideNorm {
  WideRow h, dx;
  Wide r, h_scale, dx_scale;
};

// Of a row x and the gradient g of the result.
WideNorm wide_norm(const NormCase& norm, const std::vector<double>& x, const std::vector<double>& g,
                   DType dtype) {
  WideNorm out;
  WideRow v(x.begin(), x.end()), d(g.begin(), g.end());
  if (norm.centred) {
    v = wide_deviations(v);
    d = wide_deviations(d);
  }
  const auto n = static_cast<Wide>(x.size());
  const Wide r = out.r = 1 / std::sqrt(wide_product(v, v) / n + static_cast<Wide>(norm.eps));
  for (const Wide e : v)
    out.h.push_back(e * r);
  const Wide along = wide_product(d, out.h) / n;
  for (std::size_t i = 0; i < x.size(); ++i)
    out.dx.push_back(r * (d[i] - out.h[i] * along));
  out.h_scale = r * std::max<Wide>(wide_largest(v), smallest_normal(dtype));
  out.dx_scale = r * (wide_largest(d) + out.h_scale * std::sqrt(wide_product(d, d) / n));
  return out;
}

enum class Reading { fused, composed, decomposed };

struct NormErrors {
  Worst h, dx;
};

NormErrors norm_errors(const NormCase& norm, const std::vector<SweptRow>& rows, Reading reading,
                       DType dtype) {
  NormErrors worst;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(1, 2);
  for (const SweptRow& row : rows) {
    std::vector<double> g;
    const double about = random() % 2 == 0 ? 0 : 100.3, size = random() % 3 == 0 ? 0 : 1;
    for (std::size_t i = 0; i < row.x.size(); ++i)
      g.push_back(in_dtype(about + size * uniform(random), dtype));
    const WideNorm want = wide_norm(norm, row.x, g, dtype);
    // beyond, 1 / sqrt(variance + eps) is no normal number of the dtype
    if (!(want.r >= smallest_normal(dtype) && want.r <= largest(dtype)))
      continue;
    // the ops that a norm is made of do not know that the mean of h is 0
    const Wide dx_scale =
        want.dx_scale +
        (reading == Reading::decomposed ? want.r * wide_largest(WideRow(g.begin(), g.end())) : 0);
    if (dx_scale * static_cast<Wide>(g.size()) > largest(dtype))
      continue;
    const Tensor x = row_tensor(row.x, dtype).requires_grad_();
    std::optional<Decompose> decompose;
    if (reading == Reading::decomposed)
      decompose.emplace();
    const Tensor y = norm(x);
    const Tensor dx = grad(
        {y}, {x},
        {.grad_outputs = {row_tensor(g, dtype)}, .create_graph = reading == Reading::composed})[0];
    const std::vector<double> h = numbers(y), gradient = numbers(dx);
    for (std::size_t i = 0; i < h.size(); ++i) {
      const std::string at = row.what + ", element " + std::to_string(i);
      worst.h.add(error_in_epsilons(h[i], want.h[i], want.h_scale, dtype), at);
      worst.dx.add(error_in_epsilons(gradient[i], want.dx[i], dx_scale, dtype), at);
    }
  }
  return worst;
}

const char* name_of(Reading reading) {
  return reading == Reading::fused      ? "fused"
         : reading == Reading::composed ? "composed"
                                        : "decomposed";
}

}  // namespace

TEST_CASE("layer_norm of equal numbers is 0, and so are gradients of what is equal", "[accuracy]") {
  for (const auto& [n, v] : {std::pair{3, 100.3}, {384, 10000.3}, {7, -0.1}, {800, 1e6}})
    for (const Reading reading : {Reading::fused, Reading::composed, Reading::decomposed}) {
      INFO(n << " times " << v << ", " << name_of(reading));
      const Tensor x = full({n}, v).requires_grad_();
      std::optional<Decompose> decompose;
      if (reading == Reading::decomposed)
        decompose.emplace();
      const Tensor y = layer_norm(x, {n});
      CHECK(all(y == 0.0));
      const Tensor dx =
          grad({y}, {x},
               {.grad_outputs = {full({n}, v)}, .create_graph = reading == Reading::composed})[0];
      CHECK(all(dx == 0.0));
    }
}

TEST_CASE("norms are as accurate as ops.hpp says: offsets, lengths, every magnitude",
          "[accuracy]") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const Reading reading : {Reading::fused, Reading::composed, Reading::decomposed})
      for (const bool centred : {true, false}) {
        const auto check = [&](const char* range, const NormErrors& e) {
          INFO((centred ? "layer_norm, " : "rms_norm, ")
               << to_string(dtype) << ", " << name_of(reading) << ", " << range << ": " << e.h.error
               << " at " << e.h.where << ", gradient " << e.dx.error << " at " << e.dx.where);
          CHECK(e.h.error <= 4);
          CHECK(e.dx.error <= 4);
        };
        check("offsets", norm_errors({centred, 1e-5}, rows_about(dtype), reading, dtype));
        const auto magnitudes = rows_of_all_magnitudes(dtype);
        check("magnitudes", norm_errors({centred, 1e-5}, magnitudes, reading, dtype));
        check("eps 0", norm_errors({centred, 0}, magnitudes, reading, dtype));
      }
}

TEST_CASE("a row that leaves the range changes no bit of its neighbours", "[accuracy]") {
  const Tensor plain = normal({1, 100}, 1, DType::float32), huge = plain * 1e25;
  const Tensor rows = cat({plain, huge, plain});
  for (const bool centred : {true, false}) {
    const NormCase norm{centred, 1e-5};
    const Tensor y = norm(rows), alone = norm(plain);
    CHECK(same_bits(y[0], alone[0]));
    CHECK(same_bits(y[2], alone[0]));
    CHECK(same_bits(y[1], norm(huge)[0]));
  }
}

// Nothing but rounding may tell rows apart that differ by an offset or, without eps, by a factor.
TEST_CASE("second derivatives of norms depend on neither offset nor magnitude", "[accuracy]") {
  struct Change {
    NormCase norm;
    double offset, factor;
  };
  for (const DType dtype : {DType::float32, DType::float64})
    for (const bool decomposed : {false, true})
      for (const std::int64_t n : {2, 3, 16, 100, 384}) {
        const double far = dtype == DType::float32 ? 0x1p36 : 0x1p300;  // the results are numbers
        for (const Change& c : {Change{{true, 1e-5}, 1024, 1},
                                {{true, 1e-5}, -9999, 1},
                                {{true, 1e-5}, 1e6, 1},
                                {{true, 0}, 0, far},
                                {{true, 0}, 0, 1 / far},
                                {{false, 0}, 0, far},
                                {{false, 0}, 0, 1 / far}}) {
          const auto second = [&](double offset, double factor) {
            std::optional<Decompose> decompose;
            if (decomposed)
              decompose.emplace();
            const Tensor whole =
                div(8.0 * normal({4, n}, 1, dtype), ones({4, n}, dtype), RoundingMode::floor);
            const Tensor x = ((whole + offset) * factor).requires_grad_();
            const Tensor g =
                grad({c.norm(x)}, {x},
                     {.grad_outputs = {normal({4, n}, 2, dtype)}, .create_graph = true})[0];
            const Tensor gg = grad({g}, {x}, {.grad_outputs = {normal({4, n}, 3, dtype)}})[0];
            return gg * factor * factor;
          };
          const Tensor plain = second(0, 1), changed = second(c.offset, c.factor);
          INFO((c.norm.centred ? "layer_norm, " : "rms_norm, ")
               << to_string(dtype) << (decomposed ? ", decomposed, " : ", composed, ") << n
               << ", offset " << c.offset << ", factor " << c.factor);
          const double off = numbers(vector_norm(changed - plain, inf))[0];
          CHECK(off <= 16 * epsilon(dtype) * numbers(vector_norm(plain, inf))[0]);
        }
      }
}

TEST_CASE("accuracy of norms: table", "[.accuracy-summary]") {
  print_accuracy_header();
  for (const DType dtype : {DType::float32, DType::float64})
    for (const bool centred : {true, false}) {
      const auto print = [&](const char* range, const std::vector<SweptRow>& rows) {
        const NormErrors e = norm_errors({centred, 1e-5}, rows, Reading::fused, dtype);
        print_accuracy(centred ? "layer_norm" : "rms_norm", range, dtype, e.h.error, e.dx.error);
      };
      print("plain", plain_rows(dtype));
      print("offsets", rows_about(dtype));
    }
}
