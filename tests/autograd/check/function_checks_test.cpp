// check_causal(), check_batch_independence() and check_dropout_mean(): mistakes in the forward,
// which gradcheck cannot see.

#include <functional>
#include <limits>
#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/attention.hpp>

#include "autograd/check/attention_variants.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

TEST_CASE("check_causal", "[causal]") {
  const Weights w;
  const Tensor x = normal({2, 5, 8}, 3);
  const auto with = [&](const Variant& v) {
    return check_causal([&](const Tensor& a) { return attention(a, w, v); }, x);
  };
  const auto right = with({});
  CHECK(right);
  CHECK_FALSE(right.past_is_missing);
  CHECK(right.message == "check_causal: none of 5 positions sees a later one");

  const auto none = with({.no_mask = true});
  CHECK_FALSE(none);
  CHECK(none.output == 0);
  CHECK(none.input == 1);
  CHECK(none.leak != 0);
  CHECK_THAT(none.message, StartsWith("check_causal: position 0 sees position 1: d out (0, 0, 0) / "
                                      "d in (0, 1, 0) = "));
  // the mask hides the next position only
  const auto leaks = with({.mask_leaks = true});
  CHECK(leaks.output == 0);
  CHECK(leaks.input == 2);
  // softmax has seen the elements that are masked after it
  CHECK_FALSE(with({.mask_after = true}));
  // heads merged in the wrong order mix positions
  CHECK_FALSE(with({.heads_not_merged = true}));

  const nn::SelfAttention layer(8);
  const auto layer_report = [&](bool causal) {
    return check_causal([&](const Tensor& a) { return layer(a, {.is_causal = causal}).output; },
                        x.to(DType::float32));
  };
  CHECK(layer_report(true));
  CHECK_FALSE(layer_report(false));
}

TEST_CASE("check_causal finds leaks that only the value or only the gradient shows", "[causal]") {
  const Tensor x = normal({3, 4}, 1);
  const auto value = check_causal([](const Tensor& a) { return a - mean(a, {0}, true).detach(); },
                                  x, {.seq_dim = 0});
  CHECK_FALSE(value);
  CHECK(value.by_value);
  CHECK_THAT(value.message, ContainsSubstring("other values there change out (0, 0) from "));
  const auto shifted = check_causal(
      [](const Tensor& a) { return cat({slice(a, 0, 0, 1), slice(a, 0, 0, -1)}, 0); }, x);
  CHECK(shifted);
  CHECK(shifted.past_is_missing);
  CHECK_THAT(shifted.message, ContainsSubstring("but position 1 does not see position 1 either"));
  CHECK(check_causal([](const Tensor& a) { return cumsum(dropout(a, 0.5), 0); }, x));
  CHECK_THROWS_AS(check_causal([](const Tensor& a) { return slice(a, 0, 0, 2); }, x), ShapeError);
  CHECK_THROWS_AS(check_causal([](const Tensor& a) { return a; }, x, {.seq_dim = 2}), ValueError);
}

TEST_CASE("check_causal and check_batch_independence allow rounding", "[causal]") {
  const Tensor x = normal({4, 3}, 1);
  // the running sum as the total minus all later elements
  const auto f = [](const Tensor& a) {
    return sum(a * 0.1, {0}, true) - flip(cumsum(flip(a * 0.1, {0}), 0), {0}) + a * 0.1;
  };
  CHECK_FALSE(check_causal(f, x, {.seq_dim = 0}));
  CHECK(check_causal(f, x, {.seq_dim = 0, .atol = 1e-14}));
  const auto leaks = [](const Tensor& a) { return cumsum(a, 0) + 1e-9 * sum(a, {0}, true); };
  CHECK_FALSE(check_causal(leaks, x, {.seq_dim = 0, .atol = 1e-14}));
  CHECK_FALSE(check_batch_independence(leaks, x, {.atol = 1e-14}));
  CHECK_FALSE(check_batch_independence(leaks, x, {.atol = 1e-6}));  // an earlier item
  const auto mean_of_all = [](const Tensor& a) { return a + 1e-9 * sum(a, {0}, true); };
  CHECK_FALSE(check_batch_independence(mean_of_all, x, {.atol = 1e-14}));
  CHECK(check_batch_independence(mean_of_all, x, {.atol = 1e-6}));
  const auto nan = [](const Tensor& a) { return a + sum(a * 0.0, {0}, true) / 0.0; };
  CHECK_FALSE(check_causal(nan, x, {.seq_dim = 0, .atol = 1e-6}));
}

TEST_CASE("check_batch_independence", "[batch]") {
  const Weights w;
  const Tensor x = normal({3, 4, 8}, 3);
  const auto right =
      check_batch_independence([&](const Tensor& a) { return attention(a, w, {}); }, x);
  CHECK(right);
  CHECK(right.message == "check_batch_independence: none of 3 items sees another");

  const auto leak =
      check_batch_independence([](const Tensor& a) { return a - mean(a, {0}, true); }, x);
  CHECK_FALSE(leak);
  CHECK_FALSE(leak.by_value);
  CHECK(leak.output == 0);
  CHECK(leak.input == 1);
  CHECK(leak.leak == Approx(-1 / 3.0));
  CHECK_THAT(leak.message, StartsWith("check_batch_independence: item 0 sees item 1: d out "
                                      "(0, 0, 0) / d in (1, 0, 0) = -0.333333"));
  CHECK(gradcheck([](const Tensor& a) { return a - mean(a, {0}, true); },
                  {normal({3, 2}, 1).requires_grad_()}));

  // An earlier item must not be seen, either, although check_causal allows that.
  const auto earlier = check_batch_independence([](const Tensor& a) { return cumsum(a, 0); }, x);
  CHECK(earlier.output == 1);
  CHECK(earlier.input == 0);

  // As batch normalisation with statistics that take no gradient
  const auto value =
      check_batch_independence([](const Tensor& a) { return a / a.std({0}, 1, true).detach(); }, x);
  CHECK_FALSE(value);
  CHECK(value.by_value);
  CHECK_THAT(value.message, ContainsSubstring("other values there change out (0, 0, 0) from "));

  // (B * H, T, D) taken for (H * B, T, D)
  const auto heads = check_batch_independence(
      [](const Tensor& a) {
        const Tensor parts = permute(reshape(a, {3, 4, 2, 4}), {0, 2, 1, 3});
        return reshape(permute(reshape(parts, {2, 3, 4, 4}), {1, 2, 0, 3}), {3, 4, 8});
      },
      x);
  CHECK_FALSE(heads);
  CHECK(heads.output == 0);
  CHECK(heads.input == 1);

  const auto along_1 = [](const Tensor& a) { return softmax(a, 1); };
  CHECK(check_batch_independence(along_1, x, {.dim = 2}));
  CHECK_FALSE(check_batch_independence(along_1, x, {.dim = 1}));
  CHECK_THROWS_AS(check_batch_independence([](const Tensor& a) { return a[0]; }, x), ShapeError);
  CHECK_THROWS_WITH(check_batch_independence(along_1, normal({1, 2}, 1)),
                    ContainsSubstring("1 items; at least 2 are needed"));
}

TEST_CASE("check_dropout_mean", "[dropout]") {
  const Tensor x = normal({6, 5}, 1);
  const double p = 0.2;
  const auto keep = [&](double probability) {
    return where(rand(Dims(x.shape()), DType::float64) < probability, ones_like(x), 0);
  };
  const std::string before = default_generator().state();
  const auto right = check_dropout_mean([&] { return dropout(x, p); }, x);
  CHECK(right);
  CHECK(right.zeros == Approx(p).margin(0.01));
  CHECK(right.standard_errors < 4);
  CHECK(default_generator().state() == before);

  const auto reason = [&](const std::function<Tensor()>& f, double ratio,
                          const std::string& words) {
    const auto found = check_dropout_mean(f, x);
    INFO(found.message);
    CHECK_FALSE(found);
    CHECK(found.ratio == Approx(ratio).margin(0.02));
    CHECK(found.standard_errors > 5);
    CHECK_THAT(found.message, ContainsSubstring(words));
  };
  reason([&] { return x * keep(1 - p); }, 0.8, "the factor 1 / (1 - p) is missing");
  reason([&] { return x * keep(1 - p) * (1 - p); }, 0.64, "multiplies by 1 - p");
  reason([&] { return x * keep(p) / (1 - p); }, 0.25, "p and 1 - p are exchanged");
  reason([&] { return x / (1 - p); }, 1.25, "nothing is dropped, but it is scaled");
  reason([&] { return dropout(x, p) + 0.3; }, 1 + 0.3 * x.sum().item() / (x * x).sum().item(), "");
  CHECK(check_dropout_mean([&] { return x; }, x));
  CHECK(check_dropout_mean([&] { return dropout(x, 0.001); }, x));
  // the right mean of the whole, but one half is always dropped
  const Tensor both = tensor({1, 1, 1, 1}, DType::float64);
  CHECK_FALSE(check_dropout_mean([&] { return tensor({2, 2, 0, 0}, DType::float64); }, both));
  CHECK_THROWS_AS(check_dropout_mean([&] { return x[0]; }, x), ShapeError);
  CHECK_THROWS_AS(check_dropout_mean([&] { return x * 0.0; }, x * 0.0), ValueError);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(check_dropout_mean([&] { return x * nan; }, x));
  CHECK_THROWS_AS(check_dropout_mean([&] { return x; }, x * nan), ValueError);
}
