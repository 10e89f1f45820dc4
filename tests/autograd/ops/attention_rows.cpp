// Rows of the attention ops.  Their reference is the formula, one query at a time.

#include <cmath>
#include <limits>
#include <xgrad/autograd/random.hpp>

#include "autograd/ops/op_table.hpp"

namespace xgrad::testing {
namespace {

// Element (batch..., i, j) of x, which broadcasts: `batch` counts the items of batch dimensions
// `dims`.
double element(const Tensor& x, std::size_t batch, const Shape& dims, std::size_t i,
               std::size_t j) {
  std::vector<std::size_t> index(dims.size() + 2);
  for (std::size_t d = dims.size(); d-- > 0; batch /= dims[d])
    index[d] = batch % dims[d];
  index[dims.size()] = i;
  index[dims.size() + 1] = j;
  std::size_t at = 0;
  for (Size d = 0; d < x.dim(); ++d) {
    const std::size_t size = x.shape()[d];
    at = at * size + (size == 1 ? 0 : index[index.size() - x.dim() + d]);
  }
  return x.data<double>()[at];
}

struct Reference {
  Shape batch;  // of the result
  bool causal = false;
  double scale = 0;  // 0: 1 / sqrt(D)
  Tensor bias = {};  // additive
  std::function<double(std::size_t, std::size_t, std::size_t)> keep =
      {};  // after dropout: a factor
  std::int64_t causal_offset = 0;

  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v) const {
    const std::size_t t = q.size(-2), s = k.size(-2), d = q.size(-1), dv = v.size(-1);
    Shape shape(batch.size() + 2, 0);
    std::copy(batch.begin(), batch.end(), shape.begin());
    shape[batch.size()] = t;
    shape[batch.size() + 1] = dv;
    std::vector<double> y;
    for (Size b = 0; b < numel(batch); ++b)
      for (std::size_t i = 0; i < t; ++i) {
        std::vector<double> row(dv, 0.0), weights(s);
        double largest = -std::numeric_limits<double>::infinity(), total = 0;
        for (std::size_t j = 0; j < s; ++j) {
          double score = 0;
          for (std::size_t c = 0; c < d; ++c)
            score += element(q, b, batch, i, c) * element(k, b, batch, j, c);
          score *= scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(d));
          if (bias.defined())
            score += element(bias, b, batch, i, j);
          const bool future = causal && std::int64_t(j) - std::int64_t(i) > causal_offset;
          weights[j] = future ? -std::numeric_limits<double>::infinity() : score;
          largest = std::max(largest, weights[j]);
        }
        for (double& w : weights)
          total += w = std::isinf(largest) ? 0 : std::exp(w - largest);
        for (std::size_t j = 0; j < s && total > 0; ++j)
          for (std::size_t c = 0; c < dv; ++c)
            row[c] += weights[j] / total * (keep ? keep(b, i, j) : 1) * element(v, b, batch, j, c);
        y.insert(y.end(), row.begin(), row.end());
      }
    return sample_from(shape, [&](std::size_t i) { return y[i]; });
  }
};

// What a boolean mask adds to the scores.
Tensor as_bias(const Mask& mask) {
  return sample_from(mask.shape(), [&](std::size_t i) {
    return mask.data()[i] ? 0 : -std::numeric_limits<double>::infinity();
  });
}

Mask mask_from(const Shape& shape, const std::function<bool(std::size_t)>& f) {
  auto a = empty_array<bool>(shape);
  for (std::size_t i = 0; i < a.size(); ++i)
    a.data()[i] = f(i);
  return Mask(std::move(a));
}

Inputs qkv(const Dims& q, const Dims& k, const Dims& v) {
  return {sample_randn(q, 61), sample_randn(k, 62), sample_randn(v, 63)};
}

Sample plain(const std::string& name, const Dims& q, const Dims& k, const Dims& v,
             const Shape& batch, const AttentionOptions& options = {}) {
  return {name, qkv(q, k, v),
          [options](const Inputs& in) {
            return scaled_dot_product_attention(in[0], in[1], in[2], options);
          },
          [=](const Inputs& in) {
            Reference reference{batch, options.is_causal, options.scale.value_or(0)};
            reference.causal_offset = options.causal_offset;
            return reference(in[0], in[1], in[2]);
          }};
}

Sample masked(const std::string& name, const Dims& q, const Dims& k, const Dims& v,
              const Shape& batch, const Mask& mask) {
  return {
      name, qkv(q, k, v),
      [mask](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2], mask); },
      [=](const Inputs& in) {
        return Reference{batch, false, 0, as_bias(mask)}(in[0], in[1], in[2]);
      }};
}

Sample biased(const std::string& name, const Dims& q, const Dims& k, const Dims& v,
              const Shape& batch, const Tensor& bias) {
  Inputs inputs = qkv(q, k, v);
  inputs.push_back(bias);
  return {name, inputs,
          [](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2], in[3]); },
          [=](const Inputs& in) {
            return Reference{batch, false, 0, in[3]}(in[0], in[1], in[2]);
          }};
}

// With enable_gqa: as if the heads of k and v stood there as often as q has them.
Sample grouped(const std::string& name, const Dims& q, const Dims& k, const Dims& v,
               AttentionOptions options = {}) {
  options.enable_gqa = true;
  Sample sample = plain(name, q, k, v, {q.begin(), q.end() - 2}, options);
  sample.reference = [reference = sample.reference](const Inputs& in) {
    const auto all = [&](const Tensor& x) {
      return repeat_interleave(x, in[0].size(-3) / x.size(-3), -3);
    };
    return reference({in[0], all(in[1]), all(in[2])});
  };
  return sample;
}

// The same with a mask that wants no gradient.
Sample constant_bias(const std::string& name, const Dims& q, const Dims& k, const Dims& v,
                     const Shape& batch, const Tensor& bias) {
  return {name, qkv(q, k, v),
          [bias](const Inputs& in) {
            return scaled_dot_product_attention(in[0], in[1], in[2], to(bias, in[0].dtype()));
          },
          [=](const Inputs& in) {
            return Reference{batch, false, 0, bias}(in[0], in[1], in[2]);
          }};
}

// The factors that dropout draws for weights (batch, T, S), from a generator with this seed.
std::function<double(std::size_t, std::size_t, std::size_t)> dropout_factors(
    std::uint64_t seed, double p, std::size_t batch, std::size_t t, std::size_t s) {
  Generator generator(seed);
  std::vector<double> kept(batch * t * s);
  fill_bernoulli(std::span(kept), 1 - p, generator);
  return [=](std::size_t b, std::size_t i, std::size_t j) {
    return kept[(b * t + i) * s + j] / (1 - p);
  };
}

Sample dropped(const std::string& name, const Dims& q, const Dims& k, const Dims& v,
               const Shape& batch, const AttentionOptions& options) {
  return {name, qkv(q, k, v),
          [options](const Inputs& in) {
            manual_seed(5);
            return scaled_dot_product_attention(in[0], in[1], in[2], options);
          },
          [=](const Inputs& in) {
            Reference reference{batch, options.is_causal};
            reference.causal_offset = options.causal_offset;
            reference.keep =
                dropout_factors(5, options.dropout_p, numel(batch), in[0].size(-2), in[1].size(-2));
            return reference(in[0], in[1], in[2]);
          }};
}

Sample packed(const std::string& name, const Dims& shape, std::size_t n_head,
              double dropout_p = 0) {
  return {name,
          {sample_randn(shape, 64)},
          [=](const Inputs& in) {
            manual_seed(6);
            return causal_self_attention(in[0], n_head, dropout_p);
          },
          [=](const Inputs& in) {
            const std::size_t b = in[0].size(0), t = in[0].size(1), c = in[0].size(2) / 3;
            const std::size_t d = c / n_head;
            const auto part = [&](std::size_t which) {  // (B, H, T, D)
              return sample_from({b, n_head, t, d}, [&](std::size_t i) {
                const std::size_t channel = i % d, time = i / d % t, head = i / d / t % n_head,
                                  batch = i / d / t / n_head;
                return in[0]
                    .data<double>()[(batch * t + time) * 3 * c + which * c + head * d + channel];
              });
            };
            Reference reference{{b, n_head}, true};
            if (dropout_p > 0)
              reference.keep = dropout_factors(6, dropout_p, b * n_head, t, t);
            const Tensor y = reference(part(0), part(1), part(2));
            return sample_from({b, t, c}, [&](std::size_t i) {
              const std::size_t channel = i % d, head = i / d % n_head, time = i / c % t,
                                batch = i / c / t;
              return y.data<double>()[((batch * n_head + head) * t + time) * d + channel];
            });
          }};
}

std::vector<Sample> attention_samples() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto every_third = [](std::size_t i) { return i % 3 != 1; };
  const auto not_second_row = [](std::size_t i) { return i / 4 != 1 && i % 3 != 2; };
  const Tensor ragged = sample_from({3, 4}, [&](std::size_t i) {
    return i % 5 == 0 || i / 4 == 1 ? -infinity : 0.1 * static_cast<double>(i);
  });
  return {
      plain("one head", {3, 2}, {4, 2}, {4, 3}, {}),
      plain("batch", {2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {2}),
      plain("batch and heads", {2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2}),
      plain("scale", {2, 3, 2}, {2, 3, 2}, {2, 3, 2}, {2}, {.scale = 0.3}),
      plain("one key", {3, 2}, {1, 2}, {1, 2}, {}),
      plain("one query", {1, 2}, {4, 2}, {4, 2}, {}),
      plain("heads share keys", {2, 2, 3, 2}, {2, 1, 3, 2}, {2, 1, 3, 2}, {2, 2}),
      plain("one query for all", {3, 2}, {2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2}),
      plain("values of more batches", {2, 3, 2}, {2, 3, 2}, {2, 2, 3, 2}, {2, 2}),
      plain("causal", {2, 4, 2}, {2, 4, 2}, {2, 4, 2}, {2}, {.is_causal = true}),
      plain("causal, more keys", {2, 3, 2}, {2, 5, 2}, {2, 5, 2}, {2}, {.is_causal = true}),
      plain("causal, more queries", {2, 5, 2}, {2, 3, 2}, {2, 3, 2}, {2}, {.is_causal = true}),
      plain("causal, shared keys", {2, 3, 2}, {3, 2}, {3, 2}, {2}, {.is_causal = true}),
      plain("causal, the last queries", {2, 2, 2}, {2, 5, 2}, {2, 5, 3}, {2},
            {.is_causal = true, .causal_offset = 3}),
      plain("causal, the last query", {2, 1, 2}, {2, 4, 2}, {2, 4, 2}, {2},
            {.is_causal = true, .causal_offset = 3}),
      plain("causal, queries before the last", {3, 2}, {6, 2}, {6, 2}, {},
            {.is_causal = true, .causal_offset = 1}),
      plain("causal, all keys seen", {3, 2}, {4, 2}, {4, 2}, {},
            {.is_causal = true, .causal_offset = 9}),
      plain("causal, queries before the first key", {2, 5, 2}, {2, 2, 2}, {2, 2, 3}, {2},
            {.is_causal = true, .causal_offset = 2 - 5}),
      plain("causal, one query sees a key", {4, 2}, {4, 2}, {4, 2}, {},
            {.is_causal = true, .causal_offset = -3}),
      plain("causal, no key seen", {3, 2}, {4, 2}, {4, 2}, {},
            {.is_causal = true, .causal_offset = std::numeric_limits<std::int64_t>::min()}),
      plain("causal, all seen", {3, 2}, {4, 2}, {4, 2}, {},
            {.is_causal = true, .causal_offset = std::numeric_limits<std::int64_t>::max()}),
      plain("causal, before the first key, no keys", {3, 2}, {0, 2}, {0, 2}, {},
            {.is_causal = true, .causal_offset = -1}),
      plain("large, before the first key", {3, 110, 16}, {3, 70, 16}, {3, 70, 24}, {3},
            {.is_causal = true, .causal_offset = 70 - 110}),
      grouped("groups, before the first key", {2, 4, 3, 2}, {2, 2, 2, 2}, {2, 2, 2, 3},
              {.is_causal = true, .causal_offset = 2 - 3}),
      dropped("dropout, before the first key", {2, 4, 2}, {2, 2, 2}, {2, 2, 2}, {2},
              {.is_causal = true, .dropout_p = 0.3, .causal_offset = 2 - 4}),
      plain("large, the last queries", {3, 70, 16}, {3, 90, 16}, {3, 90, 16}, {3},
            {.is_causal = true, .causal_offset = 20}),
      grouped("heads in groups", {2, 4, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 3}),
      grouped("one group, causal, the last queries", {3, 2, 2}, {1, 5, 2}, {1, 5, 2},
              {.is_causal = true, .causal_offset = 3}),
      grouped("groups of one head", {2, 3, 2}, {2, 4, 2}, {2, 4, 2}),
      grouped("groups, large", {1, 4, 70, 16}, {1, 2, 90, 16}, {1, 2, 90, 16}, {.scale = 0.2}),
      plain("no batch", {0, 3, 2}, {0, 4, 2}, {0, 4, 2}, {0}),
      plain("no queries", {2, 0, 2}, {2, 4, 2}, {2, 4, 2}, {2}),
      plain("no keys", {2, 3, 2}, {2, 0, 2}, {2, 0, 2}, {2}),
      plain("no values' channels", {3, 2}, {4, 2}, {4, 0}, {}),
      plain("large", {3, 70, 20}, {3, 90, 20}, {3, 90, 24}, {3}),
      plain("large, causal", {2, 2, 100, 16}, {2, 2, 100, 16}, {2, 2, 100, 16}, {2, 2},
            {.is_causal = true}),
      masked("mask", {2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {2}, mask_from({3, 4}, every_third)),
      masked("mask of each batch", {2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {2},
             mask_from({2, 3, 4}, every_third)),
      masked("mask of keys", {2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, {2, 2},
             mask_from({2, 1, 1, 4}, every_third)),
      masked("mask of keys, 1-d", {3, 2}, {4, 2}, {4, 2}, {}, mask_from({4}, every_third)),
      masked("mask of queries", {3, 2}, {4, 2}, {4, 2}, {}, mask_from({3, 1}, every_third)),
      masked("0-d mask", {3, 2}, {4, 2}, {4, 2}, {},
             mask_from({}, [](std::size_t) { return true; })),
      masked("a row is masked", {3, 2}, {4, 2}, {4, 2}, {}, mask_from({3, 4}, not_second_row)),
      masked("all is masked", {3, 2}, {4, 2}, {4, 2}, {},
             mask_from({1, 1}, [](std::size_t) { return false; })),
      masked("mask, large", {2, 70, 20}, {2, 90, 20}, {2, 90, 24}, {2},
             mask_from({2, 70, 90}, [](std::size_t i) { return i * i % 7 < 3; })),
      biased("additive mask", {2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {2}, sample_randn({3, 4}, 65)),
      biased("additive mask of each batch", {2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {2},
             sample_randn({2, 3, 4}, 65)),
      biased("additive mask of heads", {2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, {2, 2},
             sample_randn({2, 1, 4}, 65)),
      biased("additive mask, 1-d", {3, 2}, {4, 2}, {4, 2}, {}, sample_randn({4}, 65)),
      constant_bias("additive mask with -inf", {3, 2}, {4, 2}, {4, 2}, {}, ragged),
      constant_bias("additive mask of queries", {3, 2}, {4, 2}, {4, 2}, {},
                    sample_randn({3, 1}, 65)),
      biased("additive mask, large", {2, 70, 20}, {2, 90, 20}, {2, 90, 24}, {2},
             sample_randn({70, 90}, 65)),
      dropped("dropout", {2, 3, 2}, {2, 4, 2}, {2, 4, 2}, {2}, {.dropout_p = 0.4}),
      dropped("dropout, causal", {2, 4, 2}, {2, 4, 2}, {2, 4, 2}, {2},
              {.is_causal = true, .dropout_p = 0.3}),
      dropped("dropout, shared keys", {2, 3, 2}, {3, 2}, {3, 2}, {2}, {.dropout_p = 0.3}),
      dropped("dropout, large", {2, 2, 70, 8}, {2, 2, 60, 8}, {2, 2, 60, 8}, {2, 2},
              {.dropout_p = 0.1}),
      {"self attention of one tensor",
       {sample_randn({2, 3, 2}, 66)},
       [](const Inputs& in) {
         return scaled_dot_product_attention(in[0], in[0], in[0],
                                             AttentionOptions{.is_causal = true});
       },
       [](const Inputs& in) {
         return Reference{{2}, true}(in[0], in[0], in[0]);
       }},
      {"everything is dropped", qkv({3, 2}, {4, 2}, {4, 2}),
       [](const Inputs& in) {
         return scaled_dot_product_attention(in[0], in[1], in[2], AttentionOptions{.dropout_p = 1});
       },
       [](const Inputs&) {
         return zeros({3, 2}, DType::float64);
       }},
  };
}

std::vector<Bad> attention_bad() {
  const auto call = [](const Dims& q, const Dims& k, const Dims& v, AttentionOptions options = {}) {
    return [=] { scaled_dot_product_attention(ones(q), ones(k), ones(v), options); };
  };
  const auto with_mask = [](const Shape& mask, AttentionOptions options = {}) {
    return [=] {
      scaled_dot_product_attention(ones({2, 3, 2}), ones({2, 4, 2}), ones({2, 4, 2}),
                                   mask_from(mask, [](std::size_t) { return true; }), options);
    };
  };
  const std::string op = "scaled_dot_product_attention";
  return {
      {"rank", call({3}, {4, 2}, {4, 2}), Bad::shape, {op, "q (3,)", "(T, D)"}},
      {"channels", call({3, 2}, {4, 3}, {4, 2}), Bad::shape, {op, "(3, 2)", "(4, 3)", "2 and 3"}},
      {"positions", call({3, 2}, {4, 2}, {5, 2}), Bad::shape, {op, "k has 4", "v has 5"}},
      {"batches", call({2, 3, 2}, {3, 4, 2}, {3, 4, 2}), Bad::shape, {op, "(2,)", "(3,)"}},
      {"batch of values", call({2, 3, 2}, {2, 4, 2}, {3, 4, 2}), Bad::shape, {op, "(2,)", "(3,)"}},
      {"mask", with_mask({3, 5}), Bad::shape, {op, "(3, 5)", "(2, 3, 4)"}},
      {"mask of more batches",
       with_mask({2, 2, 3, 4}),
       Bad::shape,
       {op, "mask (2, 2, 3, 4)", "scores (2, 3, 4)"}},
      {"mask and causal", with_mask({3, 4}, {.is_causal = true}), Bad::value, {op, "is_causal"}},
      {"offset without causal",
       call({3, 2}, {4, 2}, {4, 2}, {.causal_offset = 1}),
       Bad::value,
       {op, "causal_offset is 1"}},
      {"heads of groups",
       call({2, 3, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, {.enable_gqa = true}),
       Bad::shape,
       {op, "q (2, 3, 3, 2), k (2, 2, 4, 2)", "enable_gqa"}},
      {"heads of values",
       call({4, 3, 2}, {2, 4, 2}, {1, 4, 2}, {.enable_gqa = true}),
       Bad::shape,
       {op, "v (1, 4, 2)", "enable_gqa"}},
      {"groups without heads",
       call({3, 2}, {4, 2}, {4, 2}, {.enable_gqa = true}),
       Bad::shape,
       {op, "q (3, 2)", "enable_gqa"}},
      {"mask of groups",
       [] {
         scaled_dot_product_attention(ones({4, 3, 2}), ones({2, 3, 2}), ones({2, 3, 2}),
                                      ones({2, 3, 3}), {.enable_gqa = true});
       },
       Bad::shape,
       {op, "mask (2, 3, 3) has 2 heads but q has 4"}},
      {"dropout",
       call({3, 2}, {4, 2}, {4, 2}, {.dropout_p = 1.5}),
       Bad::value,
       {op, "dropout_p 1.5"}},
      {"dtypes",
       [] {
         scaled_dot_product_attention(ones({3, 2}), ones({3, 2}), ones({3, 2}, DType::float64));
       },
       Bad::dtype,
       {op, "float32", "float64"}},
      {"dtype of the mask",
       [] {
         scaled_dot_product_attention(ones({3, 2}), ones({3, 2}), ones({3, 2}),
                                      ones({3, 3}, DType::float64));
       },
       Bad::dtype,
       {op, "float32", "float64"}},
  };
}

}  // namespace

std::vector<Row> attention_rows() {
  return {{"scaled_dot_product_attention", attention_samples(), attention_bad()},
          {"causal_self_attention",
           {packed("one head", {2, 3, 6}, 1), packed("two heads", {2, 3, 12}, 2),
            packed("channel a head", {1, 4, 9}, 3), packed("one position", {2, 1, 6}, 1),
            packed("no channels", {2, 3, 0}, 2), packed("no batch", {0, 3, 6}, 1),
            packed("no positions", {2, 0, 6}, 1), packed("dropout", {2, 4, 12}, 2, 0.3),
            packed("large", {3, 70, 48}, 4), packed("large, dropout", {2, 70, 48}, 2, 0.2)},
           {{"rank",
             [] {
               causal_self_attention(ones({2, 6}), 1);
             },
             Bad::shape,
             {"causal_self_attention", "(2, 6)", "(B, T, 3C)"}},
            {"heads",
             [] {
               causal_self_attention(ones({1, 2, 12}), 3);
             },
             Bad::shape,
             {"causal_self_attention", "(1, 2, 12)", "3 heads"}},
            {"no heads",
             [] {
               causal_self_attention(ones({1, 2, 12}), 0);
             },
             Bad::value,
             {"causal_self_attention", "n_head"}},
            {"dropout",
             [] {
               causal_self_attention(ones({1, 2, 12}), 2, -0.1);
             },
             Bad::value,
             {"causal_self_attention", "dropout_p -0.1"}}}}};
}

}  // namespace xgrad::testing
