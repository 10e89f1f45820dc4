// The pattern of a head's weights.

#include <algorithm>
#include <cmath>
#include <limits>
#include "../autograd/check/describe.hpp"
#include "../autograd/ops.hpp"
#include "attention_parts.hpp"

namespace xgrad::viz {
namespace {

/// Weights (T, S) by query and key; NaN where masked.
struct Weights {
  std::size_t queries, keys;
  std::vector<double> values;

  double operator()(std::size_t i, std::size_t j) const { return values[i * keys + j]; }
};

constexpr double fewest_queries = 4;

/// `follows(i, j)`: whether the pattern selects key j for query i.
template <class F>
void add_pattern(std::vector<HeadPattern>& patterns, const char* name, const Weights& weights,
                 const F& follows) {
  double weight = 0, chance = 0, queries = 0;
  for (std::size_t i = 0; i < weights.queries; ++i) {
    double there = 0, seen = 0, wanted = 0;
    for (std::size_t j = 0; j < weights.keys; ++j) {
      if (std::isnan(weights(i, j)))
        continue;
      ++seen;
      if (follows(i, j)) {
        ++wanted;
        there += weights(i, j);
      }
    }
    if (wanted == 0 || wanted == seen)
      continue;
    ++queries;
    weight += there;
    chance += wanted / seen;
  }
  if (queries < fewest_queries)
    return;
  patterns.push_back({name, (weight / queries - chance / queries) / (1 - chance / queries)});
}

}  // namespace

std::vector<HeadPattern> head_patterns(const Tensor& weights) {
  const Weights a{size_of(weights, 0), size_of(weights, 1), xgrad::detail::elements(weights)};
  std::vector<HeadPattern> patterns;
  add_pattern(patterns, "first position", a, [](std::size_t, std::size_t j) { return j == 0; });
  if (a.queries == a.keys) {
    add_pattern(patterns, "itself", a, [](std::size_t i, std::size_t j) { return i == j; });
    add_pattern(patterns, "previous position", a,
                [](std::size_t i, std::size_t j) { return j + 1 == i; });
  }
  std::ranges::sort(patterns, std::ranges::greater(), &HeadPattern::score);
  return patterns;
}

Tensor scores_or_zeros(const AttentionLayer& layer) {
  return layer.scores.defined() ? layer.scores
                                : masked_fill(zeros_like(layer.weights), layer.weights == 0.0,
                                              -std::numeric_limits<double>::infinity());
}

bool is_causal(const AttentionLayer& layer) {
  const std::size_t T = size_of(layer.weights, 1), S = size_of(layer.weights, 2);
  const std::vector<double> scores = xgrad::detail::elements(scores_or_zeros(layer));
  bool causal = T == S;
  for (std::size_t n = 0; n < scores.size() && causal; ++n)
    causal = is_masked(scores[n]) == (n % S > n / S % T);
  return causal;
}

const HeadPattern* AttentionLayer::label(std::size_t h) const {
  const std::vector<HeadPattern>& all = patterns.at(h);
  return !all.empty() && all.front().score >= 0.5 ? &all.front() : nullptr;
}

void keep_heads(AttentionLayer& layer) {
  for (Tensor* const x : {&layer.weights, &layer.gradient, &layer.scores, &layer.score_gradient,
                          &layer.q, &layer.k, &layer.bias}) {
    if (!x->defined())
      continue;
    std::vector<Tensor> kept;
    for (const std::size_t h : layer.heads)
      kept.push_back(select(*x, 0, static_cast<std::int64_t>(h)));
    *x = stack(kept);
  }
}

void add_patterns(AttentionLayer& layer) {
  const Tensor seen = masked_fill(layer.weights, is_masked(scores_or_zeros(layer)),
                                  std::numeric_limits<double>::quiet_NaN());
  for (std::size_t h = 0; h < layer.heads.size(); ++h)
    layer.patterns.push_back(head_patterns(select(seen, 0, static_cast<std::int64_t>(h))));
}

}  // namespace xgrad::viz
