// Judges of the stages 6 to 8, and of the attention layers with a mistake each.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/autograd/check/function_checks.hpp>

#include "course/judge.hpp"

namespace learn {

using namespace xgrad;
using exercise::inputs, exercise::Inputs, exercise::random;

namespace {

template <class Found>
Answer answer(const Found& found) {
  return {bool(found), found.message};
}

// In the steps that the stage is about, so that compare() can name one.
Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  if (causal)
    scores = masked_fill(scores, nn::future(q.size(-2), k.size(-2)), -INFINITY);
  return matmul(softmax(scores, -1), v);
}

}  // namespace

Answer judge_attention(const Work& work) {
  auto* const mine = work.find<decltype(::my_attention)>("my_attention");
  const auto f = [&](const Inputs& x) { return mine(x[0], x[1], x[2]); };
  const auto right = [](const Inputs& x) { return plain_attention(x[0], x[1], x[2], false); };
  // All sizes are different, so that what is transposed shows; then equal.
  const Inputs rectangular = {random({2, 3, 4}, 1), random({2, 5, 4}, 2), random({2, 5, 6}, 3)};
  const Inputs square = {random({2, 3, 3}, 1), random({2, 3, 3}, 2), random({2, 3, 3}, 3)};
  return ask({[&] { return judge_values("my_attention", f, right, square); },
              [&] {
                return ask({[&] { return judge_values("my_attention", f, right, rectangular); },
                            [&] { return judge_gradient("my_attention", f, rectangular); }});
              }});
}

Answer judge_masks(const Work& work) {
  auto* const mine = work.find<decltype(::my_causal_attention)>("my_causal_attention");
  const Inputs in = {random({2, 4, 3}, 1), random({2, 4, 3}, 2), random({2, 4, 3}, 3)};
  const auto f = [&](const Inputs& x) { return mine(x[0], x[1], x[2]); };
  const auto right = [](const Inputs& x) { return plain_attention(x[0], x[1], x[2], true); };
  const Tensor y = f(in);
  if (y.defined() && y.shape() == in[2].shape())  // else judge_values() says so
    if (const auto leak = check_causal([&](const Tensor& x) { return mine(x, x, x); }, in[0]);
        !leak)
      return {false, fmt::format("my_causal_attention: {}\n\nA position must not see those after "
                                 "it: at that time they are not yet known.",
                                 leak.message)};
  return ask({[&] { return judge_values("my_causal_attention", f, right, in); },
              [&] { return judge_gradient("my_causal_attention", f, in); }});
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
                [&] { return judge_gradient(name, f, in); }});
  } catch (const Error& error) {
    return {false, fmt::format("{}: it throws an error: {}", name, error.what())};
  }
}

}  // namespace

Answer judge_heads(const Work& work) {
  auto* const mine = work.find<decltype(::my_heads)>("my_heads");
  const Answer two = judge_heads(*mine, 2, 4, 2, 3);
  if (!two.right)
    return two;
  Answer three = judge_heads(*mine, 3, 5, 3, 3);
  if (!three.right)
    three.said +=
        "\n\nWith n_head = 2 and x of the shape (2, 4, 18) it is right: does it take a number from "
        "there that n_head or the shape should say?";
  return three;
}

Answer judge_explained(const Work& work) {
  auto* const attention = work.find<decltype(::attention)>("attention");
  // explain_gradient() takes each op as it is: that the whole is what it was is for compare().
  return ask({[&] { return judge_gradient("attention", attention, inputs()); },
              [&] { return judge_values("attention", attention, exercise::reference, inputs()); }});
}

Answer judge_compared(const Work& work) {
  auto* const attention = work.find<decltype(::attention)>("attention");
  return ask({[&] { return judge_values("attention", attention, exercise::reference, inputs()); },
              [&] { return judge_gradient("attention", attention, inputs()); }});
}

namespace {

// What `reference` is without its bias.
Tensor without_bias(const Inputs& in) {
  return exercise::reference({in[0], in[1], zeros({exercise::C}, DType::float64)});
}

}  // namespace

Answer judge_causal(const Work& work) {
  auto* const attention = work.find<decltype(::attention)>("attention");
  const Inputs in = inputs();
  return ask(
      {[&] {
         return answer(check_causal([&](const Tensor& x) { return attention({x, in[1]}); }, in[0]));
       },
       [&] {
         return judge_values("attention", attention, without_bias, {in[0], in[1]});
       },
       [&] {
         return judge_gradient("attention", attention, {in[0], in[1]});
       }});
}

namespace {

// The weights in `reference`.
Tensor weights_of_reference(const Inputs& in) {
  using namespace exercise;
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);
  const Tensor q = split_heads(parts[0]), k = split_heads(parts[1]);
  return softmax(hide_future(matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D})), -1);
}

Answer nothing_dropped(const char* name) {
  return {false,
          fmt::format("{}: nothing is dropped: with p = 0.2 the values are those of p = 0", name)};
}

// With v the same in all channels of a head, so is what comes out, whichever weights are dropped.
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
      "It is the weights that are dropped, so that a position is not looked at for once: then "
      "all channels of a head lose it together. Yours drops numbers of v, or of the result."};
}

}  // namespace

Answer judge_dropout(const Work& work) {
  auto* const weights = work.find<decltype(::attention_weights)>("attention_weights");
  const Inputs in = inputs();
  const Answer mean = answer(check_dropout_mean([&] { return weights(in, 0.2); }, weights(in, 0)));
  const auto without = [&](const Inputs& x) { return weights(x, 0); };
  if (!mean.right)
    return mean;
  if (all(weights(in, 0.2) == weights(in, 0)))
    return nothing_dropped("attention_weights");
  return ask({[&] {
                return judge_values("attention_weights with p = 0", without, weights_of_reference,
                                    {in[0], in[1]});
              },
              [&] {
                return judge_gradient("attention_weights", without, {in[0], in[1]});
              },
              [&] { return mean; }});
}

Answer judge_dropped(const Work& work) {
  auto* const attention = work.find<decltype(::dropped_attention)>("dropped_attention");
  const Inputs in = inputs();
  for (const double p : {0.0, 0.2}) {
    const auto leak = check_causal(
        [&](const Tensor& x) {
          return attention({x, in[1]}, p);
        },
        in[0]);
    if (!leak)
      return {false, fmt::format("with dropout p = {}: {}{}", p, leak.message,
                                 p > 0 ? "\n\nWithout dropout it does not: a test in evaluation "
                                         "would have seen nothing."
                                       : "")};
  }
  if (all(attention(in, 0.2) == attention(in, 0)))
    return nothing_dropped("dropped_attention");
  if (const Answer where = dropped_in_weights(*attention, in); !where.right)
    return where;
  const auto without = [&](const Inputs& x) { return attention(x, 0); };
  return ask(
      {[&] {
         return judge_values("dropped_attention with p = 0", without, without_bias, {in[0], in[1]});
       },
       [&] {
         return judge_gradient("dropped_attention", without, {in[0], in[1]});
       },
       [&] {
         return answer(check_dropout_mean([&] { return attention(in, 0.2); }, attention(in, 0)));
       }});
}

}  // namespace learn
