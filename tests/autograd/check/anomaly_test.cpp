#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/attention.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/tensors.hpp"
#include "helpers/tiny_transformer.hpp"

using namespace xgrad;

namespace {

std::string anomaly(const std::function<void()>& f) {
  return message_of<AnomalyError>([&f] {
    const DetectAnomaly guard;
    f();
  });
}

}  // namespace

TEST_CASE("DetectAnomaly names the op, its scope and its values", "[anomaly]") {
  const Tensor x = tensor({{1, 2}, {-3, 4}});
  CHECK(anomaly([&] {
          const Scope outer("h", 2), inner("attn");
          sum(log(x * 2.0));
        }) ==
        "anomaly in the forward of op 2, log, in h.2.attn: the output holds NaN, first at (1, 0)\n"
        "  input 0: (2, 2) float32, -6 ... 8\n"
        "  output:  (2, 2) float32, 0.693147 ... 2.07944, 1 NaN");
  CHECK_THAT(anomaly([&] { exp(x * 100.0); }),
             StartsWith("anomaly in the forward of op 2, exp: the output holds inf, first at (0, "
                        "0)"));
  CHECK_THAT(anomaly([&] { log(x - 1.0) * 2.0; }), ContainsSubstring("op 2, log"));
  CHECK_THAT(anomaly([&] { zeros({2}) / zeros({2}); }), ContainsSubstring("op 1, div"));
  CHECK_THAT(anomaly([&] { ones({2}) / zeros({2}); }), ContainsSubstring("op 1, div"));
  CHECK(anomaly([&] { exp(x); }) == nothing_thrown);
}

TEST_CASE("DetectAnomaly names the op whose gradient is not finite", "[anomaly]") {
  const Tensor x = tensor({4, 0, 1}, DType::float64).requires_grad_();
  const std::string message = anomaly([&] {
    const Tensor y = [&] {
      const Scope scope("norm");
      return sqrt(x * 1.0);
    }();
    sum(y * 3.0).backward();
  });
  CHECK(message ==
        "anomaly in the backward of op 2, sqrt, in norm: the gradient of input 0 holds inf, first "
        "at (1)\n"
        "  input 0: (3,) float64, 0 ... 4\n"
        "  output:  (3,) float64, 0 ... 2\n"
        "  gradient of the output:  (3,) float64, 3\n"
        "  gradient of input 0: (3,) float64, 0.75 ... 1.5, 1 inf");
  CHECK_FALSE(x.grad().defined());
  // where() hides the value, but 0 * inf is in the gradient
  CHECK_THAT(
      anomaly([&] { sum(where(x > 0.0, sqrt(x), 0)).backward(); }),
      StartsWith("anomaly in the backward of op 1, sqrt: the gradient of input 0 holds NaN"));
  // a graph from before the guard
  const Tensor y = sum(sqrt(x));
  CHECK_THAT(anomaly([&] { y.backward(); }), StartsWith("anomaly in the backward of sqrt: "));
  // a custom op
  CHECK_THAT(anomaly([&] {
               sum(record(
                       "mine", {x}, [](std::span<const Tensor> in) { return in[0] * 1.0; },
                       [](Context& ctx) { ctx.add(0, ctx.gradient() / 0.0); }))
                   .backward();
             }),
             StartsWith("anomaly in the backward of op 1, mine"));
}

TEST_CASE("DetectAnomaly: inputs that are not finite", "[anomaly]") {
  Tensor w = ones({2, 2}).requires_grad_();
  set_element(w, 1, not_a_number);
  CHECK_THAT(anomaly([&] { linear(ones({3, 2}), w); }),
             ContainsSubstring("op 1, linear") &&
                 ContainsSubstring("input 1 was already NaN: it is a parameter"));
  set_element(w, 1, std::numeric_limits<double>::infinity());
  CHECK_THAT(anomaly([&] { w * 2.0; }),
             ContainsSubstring("input 0 was already inf: it is a parameter"));
  CHECK_THAT(anomaly([&] { tensor({1, not_a_number}) * 2.0; }),
             ContainsSubstring("input 0 was already NaN: it is a constant"));
}

TEST_CASE("DetectAnomaly: infinities that are meant pass", "[anomaly]") {
  manual_seed(1);
  const Tensor x = randn({2, 4, 8}).requires_grad_();
  const nn::SelfAttention attention(8);
  const nn::MultiHeadAttention heads(8, 2);
  const Mask hidden = tril(Mask{{true, true, true, true}});
  const auto clean = [](const std::function<Tensor()>& f) {
    CHECK(anomaly([&] { sum(f()).backward(); }) == nothing_thrown);
    CHECK(anomaly([&] {
            const Tensor y = f();
            grad({sum(y)}, {y}, {.create_graph = true});
          }) == nothing_thrown);
  };
  clean([&] { return attention(x, {.is_causal = true}).output; });
  clean([&] { return heads(x, x, x, {.is_causal = true}).output; });
  // a row that is masked completely
  clean([&] { return softmax(masked_fill(x, x < inf, -inf), -1); });
  // additive masks, and masks by a user's op
  const Tensor additive = triu(full({4, 4}, -inf), 1);
  clean([&] {
    return softmax(
        matmul(x, transpose(x, -2, -1)) * 0.1 + where(additive < 0.0, additive, zeros({4, 4})), -1);
  });
  clean([&] { return softmax(where(x > 0.0, x, -inf) * 2.0, -1); });
  clean([&] {
    const Tensor masked = record(
        "my_mask", {x},
        [](std::span<const Tensor> in) {
          Tensor y = in[0].clone();
          for (Size i = 0; i < y.numel(); i += 3)
            set_element(y, i, -std::numeric_limits<double>::infinity());
          return y;
        },
        [](Context& ctx) { ctx.add(0, ctx.gradient()); });
    return softmax(masked, -1);
  });
  // but not if they reach a loss or become NaN
  CHECK_THAT(anomaly([&] { sum(masked_fill(x, x > 0.0, -inf)); }), ContainsSubstring("op 2, sum"));
  CHECK_THAT(anomaly([&] { log_softmax(masked_fill(x, x < inf, -inf), -1); }),
             ContainsSubstring("op 2, log_softmax"));
  CHECK_THAT(anomaly([&] { ones({2}) * 0.0 * full({2}, -inf); }),
             ContainsSubstring("op 2, mul") && ContainsSubstring("holds NaN"));
  (void)hidden;
}

TEST_CASE("DetectAnomaly: intended -inf passes, and an op that it breaks is named with its maker",
          "[anomaly]") {
  Tensor w = leaf({0.3, -1, 2});
  const Tensor logits = leaf({1, 2, 3, 4});
  const Tensor zero = zeros({1}, DType::float64);
  const auto from_0 = [&] { return log(cumsum(cat({zero, exp(w)}, 0), 0)); };  // -inf first
  const auto passes = [&](const std::function<Tensor()>& f) {
    w.zero_grad();
    CHECK(anomaly([&] { f().backward(); }) == nothing_thrown);
    CHECK(all(isfinite(w.grad())));
  };
  passes([&] { return sum(exp(from_0())); });
  passes([&] { return sum(softmax(logits + from_0(), -1) * logits); });
  passes([&] { return logsumexp(logits - exp(from_0()), {0}) + sum(narrow(from_0(), 0, 1, 3)); });
  const NoGrad none;
  CHECK(anomaly([&] { softmax(from_0(), -1); }) == nothing_thrown);
  CHECK(anomaly([&] { softmax(log(cumsum(tensor({0, 2, 1}), 0)), -1); }) == nothing_thrown);
  CHECK_THAT(anomaly([&] { sum(from_0() * 2.0); }),
             StartsWith("anomaly in the forward of op 6, sum: the output holds -inf") &&
                 ContainsSubstring("input 0 was already -inf: op 4, log, made it"));
  CHECK_THAT(anomaly([&] { from_0() - from_0(); }),
             ContainsSubstring("op 9, sub: the output holds NaN, first at (0)") &&
                 ContainsSubstring("was already -inf: op 4, log, made it") &&
                 ContainsSubstring("was already -inf: op 8, log, made it"));
  const ModeGuard recording(Mode::current().with(&Mode::grad_enabled, true));
  // A gradient of 0 arrives there and becomes NaN, which is wrong.
  const Tensor x = leaf({0, 1, 2});
  for (const bool cut : {false, true})
    CHECK_THAT(
        anomaly([&] {
          const Tensor y = log(cumsum(x, 0));
          sum(cut ? narrow(y, 0, 1, 2) : exp(y)).backward();
        }),
        StartsWith("anomaly in the backward of op 2, log: the gradient of input 0 holds NaN"));
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("DetectAnomaly: a transformer trains clean, and names the layer of a broken weight",
          "[anomaly]") {
  manual_seed(1);
  TinyTransformer model(4, 5, 2, 2, 8, 0.1);
  const Indices x{{0, 1, 2, 3}}, y{{1, 2, 3, 4}};
  CHECK(anomaly([&] { model.loss(x, y).backward(); }) == nothing_thrown);
  set_element(model.h[1].mlp.c_fc.weight, 5, not_a_number);
  CHECK_THAT(anomaly([&] { model.loss(x, y).backward(); }),
             ContainsSubstring("linear, in h.1.mlp: the output holds NaN") &&
                 ContainsSubstring("input 1 was already NaN: it is a parameter"));
}

TEST_CASE("DetectAnomaly: a Trace around it sees the op, and guards nest", "[anomaly]") {
  const Tensor x = tensor({-1});
  Trace trace;
  CHECK_THROWS_AS(([&] {
                    const DetectAnomaly guard;
                    log(x);
                  }()),
                  AnomalyError);
  CHECK(trace.events().size() == 1);
  CHECK(Mode::current().observer == &trace);
  log(x);
  CHECK(trace.events().size() == 2);  // no guard, no error
}
