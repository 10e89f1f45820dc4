// Judges of stages 6 to 8, and of the attention layers with one mistake each.

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/function_checks.hpp>

#include "course/judge.hpp"

namespace learn {

using namespace xgrad;
using exercise::inputs, exercise::Inputs, exercise::random;

namespace {

template <class Report>
Answer answer(const Report& report) {
  return {bool(report), report.message};
}

// check_causal() with a tolerance for rounding; also for larger numbers, whose scores of some
// hundreds a mask of -100 does not hide.  (There a mask after softmax divides 0 by 0, which is no
// leak.)
LeakReport sees_future(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  for (const double size : {1.0, 3.0, 30.0}) {
    const auto found = check_causal(f, (x * size).detach(), {.atol = 1e-12 * size * size});
    if (!found && (size < 30 || !std::isnan(found.leak)))
      return found;
  }
  return {};
}

// Made of the stage's steps, so that compare() can name one.
Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  if (causal)
    scores = masked_fill(scores, nn::future(q.size(-2), k.size(-2)), -INFINITY);
  return matmul(softmax(scores, -1), v);
}

}  // namespace

Answer judge_attention(const Work& work) {
  auto* const mine = work.find<decltype(::my_attention)>("my_attention");
  const auto f = lent(mine);
  const auto right = [](const Inputs& x) { return plain_attention(x[0], x[1], x[2], false); };
  // All sizes differ, so that a transposed operand shows; then equal ones.
  const Inputs rectangular = {random({2, 3, 4}, 1), random({2, 5, 4}, 2), random({2, 5, 6}, 3)};
  const Inputs square = {random({2, 3, 3}, 1), random({2, 3, 3}, 2), random({2, 3, 3}, 3)};
  return judge_op("my_attention", f, right,
                  {square,
                   rectangular,
                   {random({3, 1, 2}, 4), random({3, 4, 2}, 5), random({3, 4, 1}, 6)},
                   {random({1, 6, 4}, 7), random({1, 1, 4}, 8), random({1, 1, 3}, 9)},
                   {random({1, 5, 2}, 7, 3), random({1, 5, 2}, 8, 3), random({1, 5, 2}, 9)}});
}

Answer judge_masks(const Work& work) {
  auto* const mine = work.find<decltype(::my_causal_attention)>("my_causal_attention");
  const Inputs in = {random({2, 4, 3}, 1), random({2, 4, 3}, 2), random({2, 4, 3}, 3)};
  const auto f = lent(mine);
  const auto right = [](const Inputs& x) { return plain_attention(x[0], x[1], x[2], true); };
  const Tensor y = mine(in[0].detach(), in[1].detach(), in[2].detach());
  if (y.defined() && y.shape() == in[2].shape())  // otherwise judge_values() reports it
    if (const auto leak = sees_future([&](const Tensor& x) { return mine(x, -x, x); }, in[0]);
        !leak)
      return {false, fmt::format("my_causal_attention: {}\n\nA position must not see those after "
                                 "it: at that time they are not yet known.",
                                 leak.message)};
  return judge_op("my_causal_attention", f, right,
                  {in,
                   {random({3, 5, 2}, 4), random({3, 5, 2}, 5), random({3, 5, 2}, 6)},
                   {random({1, 1, 4}, 7), random({1, 1, 4}, 8), random({1, 1, 4}, 9)},
                   {random({1, 2, 1}, 7), random({1, 2, 1}, 8), random({1, 2, 1}, 9)}});
}

namespace {

// Heads of d channels each.
Answer judge_heads(decltype(::my_heads)& mine, Size b, Size t, Size n_head, Size d) {
  const std::string name = fmt::format("my_heads with n_head = {}", n_head);
  const Inputs in = {random({b, t, 3 * n_head * d}, 1)};
  const auto f = [&](const Inputs& x) { return mine(x[0], static_cast<std::size_t>(n_head)); };
  const auto right = [&](const Inputs& x) {
    const auto parts = chunk<3>(x[0], -1);
    const auto split = [&](const Tensor& part) {
      return permute(reshape(part, {b, t, n_head, d}), {0, 2, 1, 3});
    };
    const Tensor y = plain_attention(split(parts[0]), split(parts[1]), split(parts[2]), true);
    return reshape(permute(y, {0, 2, 1, 3}), {b, t, n_head * d});
  };
  try {
    return ask({[&] { return judge_values(name, f, right, in); },
                [&] { return answer(sees_future([&](const Tensor& x) { return f({x}); }, in[0])); },
                [&] { return judge_gradient(name, f, in); }});
  } catch (const Error& error) {
    return {false, fmt::format("{}: it throws an error: {}", name, error.what())};
  }
}

}  // namespace

Answer judge_heads(const Work& work) {
  auto* const mine = work.find<decltype(::my_heads)>("my_heads");
  Answer answer = judge_heads(*mine, 2, 4, 2, 3);
  if (!answer.right)
    return answer;
  for (const auto& [b, t, n_head, d] :
       std::vector<std::array<Size, 4>>{{3, 5, 3, 4}, {2, 3, 1, 5}, {1, 1, 4, 2}})
    if (answer.right)
      answer = judge_heads(*mine, b, t, n_head, d);
  if (!answer.right)
    answer.said +=
        "\n\nWith n_head = 2 and x of the shape (2, 4, 18) it is right: is a number fixed that "
        "should come from n_head or the shape?";
  return answer;
}

namespace {

// Other numbers; with factor 30, scores are so far apart that some weights are 0.
Inputs scaled(double factor) {
  Inputs in = inputs();
  for (Tensor& x : in)
    x = (x.detach() * factor).requires_grad_();
  return in;
}

}  // namespace

Answer judge_explained(const Work& work) {
  auto* const attention = work.find<decltype(::attention)>("attention");
  // explain_gradient() takes each op as given; compare() checks the whole against the reference.
  return ask(
      {[&] { return judge_gradient("attention", attention, inputs()); },
       [&] {
         return judge_op("attention", attention, exercise::reference, {inputs(), scaled(-30)});
       }});
}

Answer judge_compared(const Work& work) {
  auto* const attention = work.find<decltype(::attention)>("attention");
  return judge_op("attention", attention, exercise::reference, {inputs(), scaled(1.5)});
}

Answer judge_causal(const Work& work) {
  auto* const attention = work.find<decltype(::attention)>("attention");
  const Inputs in = inputs();
  return ask(
      {[&] {
         return answer(sees_future([&](const Tensor& x) { return attention({x, in[1]}); }, in[0]));
       },
       [&] {
         return judge_values("attention", attention, exercise::reference, {in[0], in[1]});
       },
       [&] {
         return judge_gradient("attention", attention, {in[0], in[1]});
       }});
}

namespace {

// The weights of `reference`.
Tensor weights_of_reference(const Inputs& in) {
  using namespace exercise;
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);
  const Tensor q = split_heads(parts[0]), k = split_heads(parts[1]);
  return softmax(hide_future(matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D})), -1);
}

// Whether each weight, if not 0 anyway, is dropped with probability p, independently of the others,
// and kept weights are divided by 1 - p.
Answer judge_drops(const std::string& name, const std::function<Tensor()>& dropped,
                   const Tensor& weights, double p) {
  if (all(dropped() == weights))
    return {false, fmt::format("{}: nothing is dropped: with p = {} the values are those of p = 0",
                               name, p)};
  constexpr int samples = 1000;
  constexpr double limit = 6;  // standard errors
  const auto all_weights = xgrad::detail::elements(weights);
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < all_weights.size(); ++i)
    if (all_weights[i] > 1e-9)
      at.push_back(i);
  std::vector<double> alone(at.size()), both(at.size() * at.size());
  for (int n = 0; n < samples; ++n) {
    const auto now = xgrad::detail::elements(dropped());
    std::vector<std::size_t> zeros;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double divided = all_weights[at[i]] / (1 - p);
      if (now[at[i]] == 0)
        zeros.push_back(i);
      else if (!(std::abs(now[at[i]] - divided) <= 1e-9))
        return {false, fmt::format("{}: with p = {} a weight of {} becomes {}; it is 0, or, if it "
                                   "is kept, divided by 1 - p, which is {}",
                                   name, p, number(all_weights[at[i]]), number(now[at[i]]),
                                   number(divided))};
    }
    for (const std::size_t i : zeros) {
      ++alone[i];
      for (const std::size_t j : zeros)
        ++both[i * at.size() + j];
    }
  }
  const double mean =
      std::accumulate(alone.begin(), alone.end(), 0.0) / static_cast<double>(samples * at.size());
  for (const double count : alone)
    if (std::abs(count / samples - p) > limit * std::sqrt(p * (1 - p) / samples))
      return {false, fmt::format("{}: with p = {} the share of weights that are dropped is {:.2f}",
                                 name, p, mean)};
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (std::abs(both[i * at.size() + j] / samples - p * p) >
          limit * std::sqrt(p * p * (1 - p * p) / samples))
        return {false, fmt::format("{}: some weights are dropped together, or never together: each "
                                   "has a coin of its own",
                                   name)};
  return {true, ""};
}

// If v is the same in all channels of a head, so is the result, whichever weights are dropped.
Answer dropped_in_weights(decltype(::dropped_attention)& attention, const Inputs& in) {
  using namespace exercise;
  const Tensor v = narrow(in[1].detach(), 0, 2 * C, C);
  const Tensor first = narrow(reshape(v, {H, D, C}), 1, 0, 1);
  const Tensor weight =
      cat({narrow(in[1].detach(), 0, 0, 2 * C), reshape(expand(first, {H, D, C}), {C, C})}, 0);
  const Tensor heads = reshape(attention({in[0].detach(), weight}, 0.2), {B, T, H, D});
  const Tensor apart = amax(heads, {-1}) - amin(heads, {-1});
  if (amax(reshape(apart, {B * T * H}), {0}).item() < 1e-9)
    return {true, ""};
  return {
      false,
      "dropped_attention: with dropout p = 0.2 the channels of a head are dropped one by one\n\n"
      "Dropout is for the weights: where one is dropped, all channels of a head lose that "
      "position together. Yours drops numbers of v, or of the result."};
}

// If v is the one-hot position, the result is the weights.
Answer dropped_one_by_one(decltype(::dropped_attention)& attention) {
  using namespace exercise;
  static_assert(D == T);
  const Tensor one_hot = eye(T, DType::float64), rest = zeros({D, C - D}, DType::float64);
  const Tensor x = cat({expand(one_hot, {B, T, T}), random({B, T, C - T}, 5).detach()}, -1);
  const Tensor v = cat({one_hot, rest}, -1);
  const Tensor weight = cat({random({2 * C, C}, 6).detach(), v, v}, 0);
  return judge_drops(
      "dropped_attention",
      [&] {
        return attention({x, weight}, 0.4);
      },
      attention({x, weight}, 0), 0.4);
}

}  // namespace

Answer judge_dropout(const Work& work) {
  auto* const weights = work.find<decltype(::attention_weights)>("attention_weights");
  const Inputs in = inputs();
  const auto without = [&](const Inputs& x) { return weights(x, 0); };
  const Tensor right = weights_of_reference(in);
  return ask({[&] {
                return judge_values("attention_weights with p = 0, which drops nothing", without,
                                    weights_of_reference, {in[0], in[1]});
              },
              [&] { return answer(check_dropout_mean([&] { return weights(in, 0.2); }, right)); },
              [&] {
                return judge_drops(
                    "attention_weights", [&] { return weights(in, 0.4); }, right, 0.4);
              },
              [&] {
                return judge_gradient("attention_weights", without, {in[0], in[1]});
              },
              [&] {
                const auto with = [&](const Inputs& x) { return weights(x, 0.4); };
                return judge_gradient("attention_weights", with, {in[0], in[1]});
              }});
}

Answer judge_dropped(const Work& work) {
  auto* const attention = work.find<decltype(::dropped_attention)>("dropped_attention");
  const Inputs in = inputs();
  for (const double p : {0.0, 0.2}) {
    const auto leak = sees_future([&](const Tensor& x) { return attention({x, in[1]}, p); }, in[0]);
    if (!leak)
      return {false, fmt::format("with dropout p = {}: {}{}", p, leak.message,
                                 p > 0 ? "\n\nWithout dropout it does not: a test in evaluation "
                                         "would have seen nothing."
                                       : "")};
  }
  const auto without = [&](const Inputs& x) { return attention(x, 0); };
  return ask({[&] {
                return judge_values("dropped_attention with p = 0, which drops nothing", without,
                                    exercise::reference, {in[0], in[1]});
              },
              [&] { return dropped_in_weights(*attention, in); },
              [&] { return dropped_one_by_one(*attention); },
              [&] {
                return judge_gradient("dropped_attention", without, {in[0], in[1]});
              },
              [&] {
                const auto with = [&](const Inputs& x) { return attention(x, 0.4); };
                return judge_gradient("dropped_attention", with, {in[0], in[1]});
              }});
}

}  // namespace learn
