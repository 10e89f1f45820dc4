#include "gpt.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include "../autograd/fail.hpp"
#include "../autograd/mode.hpp"
#include "../autograd/ops.hpp"
#include "../autograd/random.hpp"
#include "../autograd/trace.hpp"
#include "../nn/init.hpp"

namespace xgrad::lm {

using namespace nn;

const GPTConfig& checked(const GPTConfig& c, const char* caller) {
  if (std::min({c.block_size, c.vocab_size, c.n_layer, c.n_head, c.n_embd}) <= 0)
    fail<ValueError>(
        "{}: block_size {}, vocab_size {}, n_layer {}, n_head {}, n_embd {}: all must be positive",
        caller, c.block_size, c.vocab_size, c.n_layer, c.n_head, c.n_embd);
  check<ValueError>(c.head_dim > 0 || c.n_embd % c.n_head == 0,
                    "{}: n_embd {} is not a multiple of n_head {}", caller, c.n_embd, c.n_head);
  check<ValueError>(c.n_head % c.kv_heads() == 0, "{}: n_head {} is not a multiple of n_kv_head {}",
                    caller, c.n_head, c.kv_heads());
  check<ValueError>(!c.rotary || c.head_width() % 2 == 0,
                    "{}: heads of {} channels cannot rotate in pairs", caller, c.head_width());
  check<ValueError>(c.dropout >= 0 && c.dropout <= 1,
                    "{}: dropout is {}; a probability is in [0, 1]", caller, c.dropout);
  check<ValueError>(c.norm_eps > 0 && std::isfinite(c.norm_eps), "{}: norm_eps {} must be positive",
                    caller, c.norm_eps);
  check<ValueError>(c.sliding_window >= 0, "{}: sliding_window is {}; it must be 0 or above",
                    caller, c.sliding_window);
  if (c.rotary)
    RotaryEmbedding::rotated_channels(c.head_width(), *c.rotary);  // for its errors
  return c;
}

static GPTConfig of_block(Size width, Size heads, double dropout, bool bias) {
  return {.n_head = heads, .n_embd = width, .dropout = dropout, .bias = bias};
}

static Size checked_qkv_width(const GPTConfig& c) {
  checked(c, "CausalSelfAttention");
  return (c.n_head + 2 * c.kv_heads()) * c.head_width();
}

static std::optional<RMSNorm> head_norm(const GPTConfig& c) {
  return c.qk_norm ? std::optional(RMSNorm({c.head_width()}, c.norm_eps)) : std::nullopt;
}

CausalSelfAttention::CausalSelfAttention(const GPTConfig& c)
    : c_attn(c.n_embd, checked_qkv_width(c), c.qkv_bias.value_or(c.bias)),
      c_proj(c.n_head * c.head_width(), c.n_embd, c.proj_bias.value_or(c.bias)),
      q_norm(head_norm(c)),
      k_norm(head_norm(c)),
      n_head(c.n_head),
      n_kv_head(c.kv_heads()),
      dropout(c.dropout) {}

CausalSelfAttention::CausalSelfAttention(Dim width, Dim heads, double p, bool bias)
    : CausalSelfAttention(of_block(width, heads, p, bias)) {}

Tensor CausalSelfAttention::operator()(const Tensor& x, KeyValueCache* cache,
                                       const RotaryEmbedding* rotate,
                                       const std::optional<Indices>& first_key) const {
  const double p = training ? dropout : 0;
  check<ValueError>(cache == nullptr || p == 0,
                    "CausalSelfAttention: dropout with a cache; call eval() first");
  return all_or_nothing({cache, cache == nullptr ? 0u : 1u}, [&] {
    const Tensor qkv = c_attn(x);  // (B, T, (H + 2G) D)
    const bool is_grouped =
        rotate != nullptr || n_kv_head != n_head || q_norm || (cache != nullptr && first_key);
    const Tensor y = is_grouped         ? grouped(qkv, p, cache, rotate, first_key)
                     : cache == nullptr ? causal_self_attention(qkv, n_head, p, first_key)
                                        : causal_self_attention(qkv, n_head, *cache);  // (B, T, HD)
    return xgrad::dropout(c_proj(y), dropout, training);                               // (B, T, C)
  });
}

// As causal_self_attention, which needs as many keys as queries and does not copy them.
Tensor CausalSelfAttention::grouped(const Tensor& qkv, double p, KeyValueCache* cache,
                                    const RotaryEmbedding* rotate,
                                    const std::optional<Indices>& first_key) const {
  check<ShapeError>(qkv.dim() == 3,
                    "CausalSelfAttention: queries, keys and values are {}, not (B, T, channels)",
                    to_string(qkv.shape()));
  const Size B = qkv.size(0), T = qkv.size(1), H = n_head, G = n_kv_head,
             D = qkv.size(2) / (H + 2 * G);
  const auto heads = [&](Size first, Size n) {  // (B, n, T, D)
    return transpose(reshape(narrow(qkv, -1, first * D, n * D), {B, T, n, D}), 1, 2);
  };
  Tensor q = heads(0, H), k = heads(H, G), v = heads(H + G, G);
  if (q_norm) {
    q = (*q_norm)(q);
    k = (*k_norm)(k);
  }
  if (rotate != nullptr) {
    q = (*rotate)(q);
    k = (*rotate)(k);
  }
  Size offset = 0;
  if (cache != nullptr) {
    const auto held = cache->append(k, v);
    k = held.keys;
    v = held.values;
    offset = held.offset;
  }
  const Tensor y = scaled_dot_product_attention(q, k, v,
                                                {.is_causal = true,
                                                 .dropout_p = p,
                                                 .causal_offset = offset,
                                                 .first_key = first_key,
                                                 .enable_gqa = G != H});  // (B, H, T, D)
  return reshape(transpose(y, 1, 2), {B, T, H * D});
}

MLP::MLP(const GPTConfig& c)
    : c_fc(c.n_embd, c.inner_width(), c.mlp_bias.value_or(c.bias)),
      c_gate(c.activation != Activation::swiglu
                 ? std::nullopt
                 : std::optional<Linear>(std::in_place, c.n_embd, c.inner_width(),
                                         c.mlp_bias.value_or(c.bias))),
      c_proj(c.inner_width(), c.n_embd, c.mlp_bias.value_or(c.bias)),
      dropout(c.dropout),
      activation(c.activation) {
  check<ValueError>(c.dropout >= 0 && c.dropout <= 1,
                    "MLP: dropout is {}; a probability is in [0, 1]", c.dropout);
}

MLP::MLP(Dim width, double p, bool bias) : MLP(of_block(width, 1, p, bias)) {}

Tensor MLP::operator()(const Tensor& x) const {
  const Tensor y =
      c_gate ? silu((*c_gate)(x)) * c_fc(x)
             : gelu(c_fc(x), activation == Activation::gelu_tanh ? Gelu::tanh : Gelu::erf);
  return xgrad::dropout(c_proj(y), dropout, training);
}

Norm::Norm(const GPTConfig& c)
    : weight(ones({c.n_embd}).requires_grad_()), eps(c.norm_eps), kind(c.norm) {
  if (c.norm == NormKind::layer && c.bias)
    bias = zeros({c.n_embd}).requires_grad_();
}
Tensor Norm::operator()(const Tensor& x) const {
  const Dims width = weight.shape();
  return kind == NormKind::rms ? rms_norm(x, width, weight, eps)
                               : layer_norm(x, width, weight, bias, eps);
}

TransformerBlock::TransformerBlock(const GPTConfig& c) : ln_1(c), attn(c), ln_2(c), mlp(c) {}
TransformerBlock::TransformerBlock(Dim width, Dim heads, double dropout, bool bias)
    : TransformerBlock(of_block(width, heads, dropout, bias)) {}

Tensor TransformerBlock::operator()(const Tensor& x, KeyValueCache* cache,
                                    const RotaryEmbedding* rotate,
                                    const std::optional<Indices>& first_key) const {
  return all_or_nothing({cache, cache == nullptr ? 0u : 1u}, [&] {
    const Tensor y = [&] {
      const Scope scope("attn");
      return x + attn(ln_1(x), cache, rotate, first_key);
    }();
    const Scope scope("mlp");
    return y + mlp(ln_2(y));
  });
}

namespace {

// The logit of a token that cannot be drawn.
constexpr float never = -std::numeric_limits<float>::infinity();

// softmax, in place.
void to_probabilities(std::span<float> row) {
  const float largest = std::ranges::max(row);
  float sum = 0;
  for (float& v : row)
    sum += v = std::exp(v - largest);
  for (float& v : row)
    v /= sum;
}

void keep_top_p(std::span<float> row, double top_p) {
  if (top_p == 1)  // a sum of floats may reach 1 early
    return;
  std::vector<float> p(row.begin(), row.end());
  to_probabilities(p);
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return p[i]; });
  double before = 0;
  for (const std::size_t i : order) {
    if (before >= top_p)
      row[i] = never;
    before += p[i];
  }
}

// Logits to probabilities, in place.
void filter(std::span<float> row, const GenerateOptions& options) {
  const auto temperature =
      static_cast<float>(std::min(options.temperature, double{std::numeric_limits<float>::max()}));
  const auto likeliest = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
  // A temperature so small that float32 cannot hold the quotient counts as 0.
  if (temperature == 0 || !std::isfinite(row[likeliest] / temperature)) {
    std::ranges::fill(row, 0.F);
    row[likeliest] = 1;
    return;
  }
  for (float& v : row)
    v /= temperature;
  if (options.top_k.has_value() && std::cmp_less(*options.top_k, row.size())) {
    std::vector<float> sorted(row.begin(), row.end());
    const auto at = sorted.begin() + (*options.top_k - 1);
    std::ranges::nth_element(sorted, at, std::greater<>());
    for (float& v : row)
      if (v < *at)
        v = never;
  }
  keep_top_p(row, options.top_p);
  const float largest = std::ranges::max(row);
  for (float& v : row)
    if (std::exp(v - largest) < options.min_p)
      v = never;
  to_probabilities(row);
}

}  // namespace

void check_sampling(const GenerateOptions& options) {
  check<ValueError>(options.temperature >= 0 && std::isfinite(options.temperature),
                    "generate: temperature is {}; it must be 0 or above", options.temperature);
  check<ValueError>(options.top_k.value_or(1) > 0, "generate: top_k is {}, which leaves no token",
                    options.top_k.value_or(1));
  check<ValueError>(options.top_p > 0 && options.top_p <= 1,
                    "generate: top_p is {}; it must be above 0 and at most 1", options.top_p);
  check<ValueError>(options.min_p >= 0 && options.min_p <= 1,
                    "generate: min_p is {}; it must be from 0 to 1", options.min_p);
}

/// Whether the logits are neither NaN nor infinity, and no row excludes all tokens.
static bool can_be_drawn(const Tensor& logits) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return all(logits < infinity) && all(amax(logits, {-1}) > -infinity);
}

/// A processor that calls change() with the ids of each sequence and the logits that it may change.
template <class Change>
static LogitsProcessor for_each_row(Change change) {
  return [change](const Indices& tokens, const Tensor& logits) {
    check<ShapeError>(tokens.dim() == 2 && logits.dim() == 2 && tokens.size(0) == logits.size(0),
                      "LogitsProcessor: tokens are {} and logits {}, not (B, T) and (B, V)",
                      to_string(tokens.shape()), to_string(logits.shape()));
    const auto T = static_cast<std::size_t>(tokens.size(1)),
               V = static_cast<std::size_t>(logits.size(1));
    const Tensor values = logits.to(DType::float32);
    auto result = empty_array<float>(values.shape());
    std::copy_n(values.data<float>(), values.numel(), result.data());
    for (std::size_t b = 0; b * V < result.size(); ++b) {
      const std::span ids(tokens.data() + b * T, T);
      for (const std::int64_t id : ids)
        check<ValueError>(id >= 0 && std::cmp_less(id, V),
                          "LogitsProcessor: a token's id is {}; it must be from 0 to {}", id,
                          V - 1);
      change(ids, std::span(result.data() + b * V, V));
    }
    return Tensor(std::move(result));
  };
}

LogitsProcessor repetition_penalty(double penalty) {
  check<ValueError>(penalty > 0 && std::isfinite(penalty),
                    "repetition_penalty: {} is not positive and finite", penalty);
  return for_each_row([p = static_cast<float>(penalty)](auto ids, std::span<float> row) {
    for (const std::int64_t id : std::set<std::int64_t>(ids.begin(), ids.end())) {
      float& logit = row[static_cast<std::size_t>(id)];
      logit = logit < 0 ? logit * p : logit / p;
    }
  });
}

LogitsProcessor no_repeat_ngram(Dim n) {
  check<ValueError>(n > 0, "no_repeat_ngram: n is {}; it must be positive", n);
  return for_each_row([m = static_cast<std::size_t>(n) - 1](auto ids, std::span<float> row) {
    for (std::size_t i = 0; i + m < ids.size(); ++i)
      if (std::ranges::equal(ids.subspan(i, m), ids.last(m)))
        row[static_cast<std::size_t>(ids[i + m])] = never;
  });
}

Tensor next_token_probabilities(const Tensor& logits, const GenerateOptions& options) {
  check_sampling(options);
  check<ShapeError>(logits.dim() > 0 && logits.size(-1) > 0,
                    "next_token_probabilities: logits are {}; they must be (..., V) with V above 0",
                    to_string(logits.shape()));
  const NoGrad no_grad;
  Tensor values = logits.to(DType::float32);
  if (!all(isfinite(values))) {
    check<ValueError>(can_be_drawn(logits), "next_token_probabilities: logits are not finite");
    // differences may fit float32 where logits do not
    if (logits.dtype() == DType::float64)
      values = (logits - amax(logits, {-1}, true)).to(DType::float32);
  }
  auto result = empty_array<float>(values.shape());
  std::copy_n(values.data<float>(), values.numel(), result.data());
  const std::size_t V = values.shape().back();
  for (std::size_t begin = 0; begin < result.size(); begin += V)
    filter({result.data() + begin, V}, options);
  return Tensor(std::move(result));
}

GPT::GPT(const GPTConfig& c)
    : config(checked(c)),
      wte(c.vocab_size, c.n_embd),
      wpe(c.rotary ? std::nullopt
                   : std::optional<Embedding>(std::in_place, c.block_size, c.n_embd)),
      drop(c.dropout),
      h([&c] {
        std::vector<TransformerBlock> blocks;
        for (Size i = 0; i < c.n_layer; ++i)
          blocks.emplace_back(c);
        return blocks;
      }()),
      ln_f(c),
      lm_head(c.n_embd, c.vocab_size, false) {
  if (c.tied)
    wte.weight = lm_head.weight;
  // PyTorch's apply() visits the tied weight twice, as wte and as lm_head, so it is drawn twice.
  const std::vector<nn::detail::Member> members = nn::detail::members(*this).tensors;
  for (const nn::detail::Member& m : members)
    if (m.name.ends_with(".bias"))
      init::zeros_(m.tensor);
    else if (m.tensor.dim() == 2)  // the norms' weights stay ones
      init::normal_(m.tensor, 0, 0.02);
  // Each block adds to the residual stream twice.
  for (const nn::detail::Member& m : members)
    if (m.name.ends_with("c_proj.weight"))
      init::normal_(m.tensor, 0, 0.02 / std::sqrt(2 * static_cast<double>(c.n_layer)));
}

// (B, T) -> (B, T, V), or (B, V) after the last position alone, or the loss.
Tensor GPT::run(const Indices& idx, std::span<KeyValueCache> caches,
                const std::optional<Indices>& first, bool last, const Indices* targets) const {
  const Size held = caches.empty() ? 0 : caches.front().length();
  if (!caches.empty() && caches.size() != h.size())
    fail<ValueError>("GPT: {} for {}", counted(caches.size(), "cache", "caches"),
                     counted(h.size(), "block", "blocks"));
  for (const KeyValueCache& cache : caches)
    check<ValueError>(cache.length() == held, "GPT: one cache holds {} positions, another {}", held,
                      cache.length());
  if (idx.dim() != 2 || idx.size(1) == 0 || held + idx.size(1) > config.block_size)
    fail<ShapeError>("GPT: idx is {}; it must be (B, T) with T from 1 to block_size, {}{}",
                     to_string(idx.shape()), config.block_size,
                     held == 0 ? "" : fmt::format(", less {} in the caches", held));
  Indices positions = arange_indices(held, held + idx.size(1));
  std::optional<Indices> first_key;  // (B, 1, T) or (T,)
  if (first) {
    if (first->dim() > 2 || broadcast_shapes(first->shape(), idx.shape(), "GPT") != idx.shape())
      fail<ShapeError>("GPT: first is {}; it must broadcast to idx, {}", to_string(first->shape()),
                       to_string(idx.shape()));
    check<ValueError>(!any(*first < 0) && !any(positions < *first),
                      "GPT: first holds a position that is below 0, or after its own position");
    positions = unsqueeze(positions - *first, -2);
    first_key = unsqueeze(expand(*first, idx.shape()), 1);
  }
  // The cache holds all keys: those before the window are hidden.
  const Size end = held + idx.size(1), window = config.sliding_window;
  if (window > 0 && end > window) {
    const Indices seen = arange_indices(held - window + 1, end - window + 1);
    first_key = first_key ? where(seen > *first_key, seen, *first_key) : seen;
  }
  Tensor x = [&] {
    const Scope scope("embeddings");
    const Tensor e = wte(idx);  // (B, T, C)
    return drop(wpe ? e + (*wpe)(first ? squeeze(positions, {-2}) : positions) : e);
  }();
  std::optional<RotaryEmbedding> rotate;
  if (config.rotary)
    rotate.emplace(config.head_width(), positions, *config.rotary);
  for (std::size_t i = 0; i < h.size(); ++i) {
    const Scope scope("h", i);
    x = h[i](x, caches.empty() ? nullptr : &caches[i], rotate ? &*rotate : nullptr,
             first_key);  // (B, T, C)
  }
  const Scope scope("head");
  x = ln_f(last ? select(x, 1, -1) : x);
  if (targets == nullptr)
    return lm_head(x);
  x = flatten(x, 0, 1);  // (BT, C)
  if (lm_head.bfloat16.defined() || lm_head.lora_A.defined())
    return cross_entropy(lm_head(x), targets->flatten());
  return linear_cross_entropy(x, lm_head.weight, targets->flatten(), lm_head.bias);
}

Tensor GPT::operator()(const Indices& idx, std::span<KeyValueCache> caches,
                       const std::optional<Indices>& first) const {
  return all_or_nothing(caches, [&] { return run(idx, caches, first, false, nullptr); });
}

Tensor GPT::last_logits(const Indices& idx, std::span<KeyValueCache> caches,
                        const std::optional<Indices>& first) const {
  return all_or_nothing(caches, [&] { return run(idx, caches, first, true, nullptr); });
}

Tensor GPT::loss(const Indices& idx, const Indices& targets,
                 const std::optional<Indices>& first) const {
  check<ShapeError>(idx.shape() == targets.shape(), "GPT: idx is {} but targets are {}",
                    to_string(idx.shape()), to_string(targets.shape()));
  return run(idx, {}, first, false, &targets);
}

void merge_lora(GPT& model) {
  nn::detail::members(model).check_tensors("merge_lora");
  if (model.config.tied && model.lm_head.lora_A.defined()) {
    model.lm_head.weight = clone(model.lm_head.weight.detach());
    model.config.tied = false;
  }
  nn::merge_lora(model);
}

// ---- sampling ----

// The first positions that positions `from` to `to` see, (B, to - from), after padding.
static std::optional<Indices> after_padding(const std::vector<Size>& padding, Size from, Size to) {
  if (padding.empty())
    return {};
  auto first = empty_array<std::int64_t>(to_shape({padding.size(), to - from}, "generate"));
  std::int64_t* at = first.data();
  for (const Size end : padding)
    for (Size i = from; i < to; ++i)
      *at++ = std::min(end, i);
  return Indices(std::move(first));
}

// Logits after options.logits_processor; those of ended sequences stay.
static Tensor processed(const Indices& tokens, const Tensor& logits, const std::vector<bool>& ended,
                        const GenerateOptions& options) {
  check<ValueError>(all(isfinite(logits)), "generate: the model's logits are not finite");
  if (!options.logits_processor)
    return logits;
  std::vector<Tensor> rows;
  const std::vector<Size>& padded = options.left_padding;
  const bool apart = !padded.empty() || std::ranges::find(ended, true) != ended.end();
  for (std::size_t b = 0; apart && b < ended.size(); ++b) {
    const Size row = static_cast<Size>(b), padding = padded.empty() ? 0 : padded[b];
    const Indices own = tokens.narrow(0, row, 1).narrow(1, padding, tokens.size(1) - padding);
    const Tensor single = logits.narrow(0, row, 1);
    rows.push_back(ended[b] ? single : options.logits_processor(own, single));
  }
  const Tensor result = apart ? cat(rows, 0) : options.logits_processor(tokens, logits);
  check<ShapeError>(result.defined() && result.shape() == logits.shape(),
                    "generate: logits_processor returned {}; it must be {}",
                    result.defined() ? to_string(result.shape()) : "no Tensor",
                    to_string(logits.shape()));
  check<ValueError>(can_be_drawn(result),
                    "generate: the changed logits exclude all tokens, or are NaN or infinity");
  return result;
}

Indices GPT::generate(const Indices& idx, Dim max_new_tokens, Generator& generator,
                      const GenerateOptions& options) const {
  return generate(idx, max_new_tokens, std::span(&generator, 1), options);
}
Indices GPT::generate(const Indices& idx, Dim max_new_tokens, std::span<Generator> generators,
                      const GenerateOptions& options) const {
  check<ShapeError>(idx.dim() == 2 && idx.size(1) > 0,
                    "generate: idx is {}; it must be (B, T) with at least one token to start from",
                    to_string(idx.shape()));
  check<ValueError>(max_new_tokens >= 0, "generate: max_new_tokens is {}; it must not be negative",
                    max_new_tokens);
  check_sampling(options);
  const auto B = static_cast<std::size_t>(idx.size(0));
  check<ValueError>(generators.size() == 1 || generators.size() == B,
                    "generate: {} for {}; there must be one, or one for each",
                    counted(generators.size(), "generator", "generators"),
                    counted(B, "sequence", "sequences"));
  std::vector<Size> padding = options.left_padding;
  check<ValueError>(padding.empty() || padding.size() == B, "generate: left_padding has {} for {}",
                    counted(padding.size(), "size", "sizes"), counted(B, "sequence", "sequences"));
  for (const Size n : padding)
    check<ValueError>(n >= 0 && n < idx.size(1),
                      "generate: left_padding is {} of {} positions; a sequence needs a token", n,
                      idx.size(1));
  GPT model = *this;  // shares the weights; the training flags are its own
  eval(model);
  const NoGrad no_grad;

  const std::vector<std::int64_t>& ends = options.eos_token_id;
  std::vector<std::int64_t> tokens(B);
  std::vector<bool> ended(B);
  Indices all = idx;
  Size length = idx.size(1);
  const Size left = config.block_size - std::min(config.block_size, length);
  const Size capacity = config.block_size - left + std::min<Size>(left, max_new_tokens);
  std::vector<KeyValueCache> caches(h.size(), KeyValueCache(capacity));
  for (Size step = 0; step < max_new_tokens; ++step, ++length) {
    if (length > config.block_size) {  // the window moves, and every token's position with it
      caches.clear();
      const Size moved = step == 0 ? length - config.block_size : 1;
      for (Size& n : padding)
        n = std::max<Size>(0, n - moved);
    }
    const Size held = caches.empty() ? length - config.block_size : caches.front().length();
    const Size before = caches.empty() ? 0 : held;
    const Indices window = all.narrow(1, held, length - held);
    const Tensor logits =
        model.last_logits(window, caches, after_padding(padding, before, before + length - held))
            .to(DType::float32);  // (B, V)
    const Tensor p = next_token_probabilities(processed(all, logits, ended, options), options);
    const auto V = static_cast<std::size_t>(config.vocab_size);
    for (std::size_t b = 0; b < B; ++b) {
      const bool shared = generators.size() == 1;  // ended sequences draw, as in transformers
      const std::span row(p.data<float>() + b * V, V);
      if (options.temperature == 0)
        tokens[b] = std::ranges::max_element(row) - row.begin();
      else if (!ended[b] || shared)
        tokens[b] = static_cast<std::int64_t>(multinomial(row, generators[shared ? 0 : b]));
      if (ended[b])
        tokens[b] = ends.empty() ? 0 : ends.front();
      ended[b] = ended[b] || std::ranges::find(ends, tokens[b]) != ends.end();
    }
    all = cat({all, Indices(tokens).unsqueeze(1)}, 1);
    if (options.on_token)
      options.on_token(tokens);
    for (std::size_t b = 0; options.sequence_ends && b < B; ++b)
      ended[b] = ended[b] || options.sequence_ends(b);
    const bool all_ended =
        (!ends.empty() || options.sequence_ends) && std::ranges::find(ended, false) == ended.end();
    if (all_ended || (options.stop && options.stop()))
      break;
  }
  return all;
}

}  // namespace xgrad::lm

template void xgrad::nn::detail::Collector::layer(const std::string&, xgrad::lm::TransformerBlock&);
template void xgrad::nn::detail::Collector::layer(const std::string&, xgrad::lm::GPT&);
