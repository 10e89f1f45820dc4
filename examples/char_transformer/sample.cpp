#include "sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/text.hpp>

#include "trained_model.hpp"

namespace char_transformer {
namespace {

std::vector<std::int64_t> encode_prompt(const std::string& prompt,
                                        const xgrad::data::Characters& characters) {
  if (!prompt.empty()) {
    try {
      return characters.encode(xgrad::data::decode_utf8(prompt, "the text"));
    } catch (const xgrad::ValueError& error) {
      throw xgrad::ValueError(fmt::format("--prompt: {}", error.what()));
    }
  }
  if (characters.contains(U'\n'))
    return characters.encode(U"\n");
  return {0};
}

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void print_sample(const xgrad::nn::GPT& model, const xgrad::data::Characters& characters,
                  const SampleOptions& options) {
  const std::vector<std::int64_t> prompt = encode_prompt(options.prompt, characters);
  auto ids = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, prompt.size()});
  std::copy(prompt.begin(), prompt.end(), ids.data());
  write(characters.decode(prompt));

  xgrad::Generator generator(options.seed);
  model.generate(
      xgrad::Indices(std::move(ids)), options.tokens, generator,
      {.temperature = options.temperature,
       .top_k = options.top_k,
       .on_token = [&](std::span<const std::int64_t> token) { write(characters.decode(token)); }});
  write("\n");
}

void sample(const SampleOptions& options) {
  const TrainedModel trained = load_trained_model(options.checkpoint);
  print_sample(trained.model, trained.notes.characters, options);
}

}  // namespace char_transformer
