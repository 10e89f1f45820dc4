#include <xgrad/nn/gpt.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/init.hpp>

namespace xgrad::nn {

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
  // PyTorch's apply() comes to the tied weight twice, as wte and as lm_head, so it is drawn twice.
  const std::vector<detail::Member> members = detail::members(*this).tensors;
  for (const detail::Member& m : members)
    if (m.name.ends_with(".bias"))
      init::zeros_(m.tensor);
    else if (m.tensor.dim() == 2)  // the norms' weights stay ones
      init::normal_(m.tensor, 0, 0.02);
  // Each block adds twice to the residual stream.
  for (const detail::Member& m : members)
    if (m.name.ends_with("c_proj.weight"))
      init::normal_(m.tensor, 0, 0.02 / std::sqrt(2 * static_cast<double>(c.n_layer)));
}

// What goes into ln_f: (B, T) -> (B, T, C).
Tensor GPT::hidden(const Indices& idx, std::span<KeyValueCache> caches) const {
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
                     held == 0 ? "" : fmt::format(", less the {} that the caches hold", held));
  const Indices positions = arange_indices(held, held + idx.size(1));
  Tensor x = [&] {
    const Scope scope("embeddings");
    return drop(wpe ? wte(idx) + (*wpe)(positions) : wte(idx));  // (B, T, C)
  }();
  std::optional<RotaryEmbedding> rotate;
  if (config.rotary)
    rotate.emplace(config.head_width(), positions, *config.rotary);
  for (std::size_t i = 0; i < h.size(); ++i) {
    const Scope scope("h", i);
    x = h[i](x, caches.empty() ? nullptr : &caches[i], rotate ? &*rotate : nullptr);  // (B, T, C)
  }
  return x;
}

Tensor GPT::operator()(const Indices& idx, std::span<KeyValueCache> caches) const {
  return all_or_nothing(caches, [&] {
    const Tensor x = hidden(idx, caches);
    const Scope scope("head");
    return lm_head(ln_f(x));  // (B, T, V)
  });
}

Tensor GPT::last_logits(const Indices& idx, std::span<KeyValueCache> caches) const {
  return all_or_nothing(caches, [&] {
    const Tensor x = hidden(idx, caches);
    const Scope scope("head");
    return lm_head(ln_f(select(x, 1, -1)));  // (B, V)
  });
}

Tensor GPT::loss(const Indices& idx, const Indices& targets) const {
  check<ShapeError>(idx.shape() == targets.shape(), "GPT: idx is {} but targets are {}",
                    to_string(idx.shape()), to_string(targets.shape()));
  const Tensor logits = (*this)(idx);  // (B, T, V)
  const Scope scope("head");
  return cross_entropy(reshape(logits, {targets.numel(), config.vocab_size}), targets.flatten());
}

// ---- sampling ----

namespace {

std::int64_t next_token(std::span<const float> probabilities, Generator& generator,
                        const GenerateOptions& options) {
  if (options.temperature == 0)
    return std::ranges::max_element(probabilities) - probabilities.begin();
  return static_cast<std::int64_t>(multinomial(probabilities, generator));
}

}  // namespace

Indices GPT::generate(const Indices& idx, Size max_new_tokens, Generator& generator,
                      const GenerateOptions& options) const {
  check<ShapeError>(idx.dim() == 2 && idx.size(1) > 0,
                    "generate: idx is {}; it must be (B, T) with at least one token to start from",
                    to_string(idx.shape()));
  check<ValueError>(max_new_tokens >= 0, "generate: max_new_tokens is {}; it must not be negative",
                    max_new_tokens);
  check_sampling(options);
  GPT model = *this;  // shares the weights; the training flags are its own
  eval(model);
  const NoGrad no_grad;

  const auto B = static_cast<std::size_t>(idx.size(0));
  const std::vector<std::int64_t>& ends = options.eos_token_id;
  std::vector<std::int64_t> tokens(B);
  std::vector<bool> ended(B);
  Indices all = idx;
  Size length = idx.size(1);
  const Size left = config.block_size - std::min(config.block_size, length);
  const Size capacity = config.block_size - left + std::min(left, max_new_tokens);
  std::vector<KeyValueCache> caches(h.size(), KeyValueCache(capacity));
  for (Size step = 0; step < max_new_tokens; ++step, ++length) {
    if (length > config.block_size)  // the window moves, and with it the position of every token
      caches.clear();
    const Size held = caches.empty() ? length - config.block_size : caches.front().length();
    const Indices window = all.narrow(1, held, length - held);
    const Tensor logits = model.last_logits(window, caches).to(DType::float32);  // (B, V)
    if (options.on_logits)
      options.on_logits(logits);
    const Tensor p = next_token_probabilities(logits, options);
    const auto V = static_cast<std::size_t>(config.vocab_size);
    for (std::size_t b = 0; b < B; ++b) {
      tokens[b] = next_token({p.data<float>() + b * V, V}, generator, options);
      if (ended[b])  // its draw is made nevertheless, as in transformers
        tokens[b] = ends.front();
      ended[b] = std::ranges::find(ends, tokens[b]) != ends.end();
    }
    all = cat({all, Indices(tokens).unsqueeze(1)}, 1);
    if (options.on_token)
      options.on_token(tokens);
    const bool all_ended = !ends.empty() && std::ranges::find(ended, false) == ended.end();
    if (all_ended || (options.stop && options.stop()))
      break;
  }
  return all;
}

}  // namespace xgrad::nn
