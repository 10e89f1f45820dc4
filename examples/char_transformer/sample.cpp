#include "sample.hpp"

#include <fmt/format.h>

#include <string>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/text.hpp>

#include "output.hpp"
#include "trained_model.hpp"

namespace char_transformer {
xgrad::data::Ids encode_prompt(const char* flag, const std::string& prompt,
                               const xgrad::data::Characters& characters) {
  if (!prompt.empty()) {
    try {
      return characters.encode(xgrad::data::decode_utf8(prompt, "the text"));
    } catch (const xgrad::ValueError& error) {
      throw xgrad::ValueError(fmt::format("{}: {}", flag, error.what()));
    }
  }
  if (characters.contains(U'\n'))
    return characters.encode(U"\n");
  return {0};
}

void print_sample(const xgrad::nn::GPT& model, const xgrad::data::Characters& characters,
                  const SampleOptions& options) {
  const xgrad::data::Ids prompt = encode_prompt("--prompt", options.prompt, characters);
  auto ids = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, prompt.size()});
  prompt.copy(0, prompt.size(), ids.data());
  say(characters.decode(prompt));

  xgrad::Generator generator(options.seed);
  model.generate(xgrad::Indices(std::move(ids)), options.tokens, generator,
                 {.temperature = options.temperature,
                  .top_k = options.top_k,
                  .on_token = [&](std::span<const std::int64_t> token) {
                    say(characters.decode(xgrad::data::Ids(token)));
                  }});
  say("\n");
}

void sample(const SampleOptions& options) {
  const TrainedModel trained = load_trained_model(options.checkpoint);
  print_sample(trained.model, trained.notes.characters, options);
}

}  // namespace char_transformer
