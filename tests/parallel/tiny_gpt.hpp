#pragma once
// A small model with batches, and the bits of its gradients, for tests of shards.

#include <algorithm>
#include <string>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/parallel/shards.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

inline nn::GPT tiny_gpt(double dropout = 0) {
  manual_seed(5);
  return nn::GPT({.block_size = 6,
                  .vocab_size = 11,
                  .n_layer = 2,
                  .n_head = 2,
                  .n_embd = 8,
                  .dropout = dropout});
}

inline text::Batch tiny_batch(std::size_t rows, std::uint64_t seed = 3) {
  std::vector<std::int64_t> text(200);
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<std::int64_t>(i * i % 11);
  Generator generator(seed);
  return text::random_batch(text::Ids(text), 6, rows, generator);
}

// The gradient of a batch in eight shards, as one process computes it, and its loss.
template <class Loss, class... Batch>
double in_one_process(const Loss& loss, const Batch&... batch) {
  return parallel::backward(
      std::min({static_cast<std::size_t>(batch.size(0))...}),
      [&](std::size_t begin, std::size_t end) {
        return loss(batch.narrow(0, static_cast<std::int64_t>(begin), end - begin)...);
      },
      8);
}

inline std::string bits_of(const nn::StateDict& state) {
  std::string bits;
  for (const auto& [name, x] : state) {
    bits += name;
    if (x.defined())
      dispatch(x.dtype(), [&, &value = x]<class T>() {
        bits.append(reinterpret_cast<const char*>(value.template data<T>()),
                    value.numel() * sizeof(T));
      });
  }
  return bits;
}

// Returns the bytes of all gradients and clears them.
inline std::string take_gradients(const nn::StateDict& parameters) {
  nn::StateDict gradients;
  for (auto [name, p] : parameters) {
    gradients.emplace_back(name, p.grad());
    p.zero_grad();
  }
  return bits_of(gradients);
}
