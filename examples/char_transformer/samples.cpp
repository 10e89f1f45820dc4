#include "samples.hpp"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/json.hpp>

#include "prompt.hpp"
#include "resume.hpp"

namespace char_transformer {
namespace {

constexpr std::size_t sampled_characters = 64;
constexpr std::size_t longest_prompt = 1000;  // a row has to be shorter than what JsonLines reads

std::optional<std::uint64_t> step_in(const std::string& line) {
  try {
    const xgrad::io::Json row = xgrad::io::parse_json(line);
    const auto* const step = row.find<std::uint64_t>("step");
    if (step != nullptr && row.find<std::string>("text") != nullptr)
      return *step;
  } catch (const xgrad::ValueError&) {
  }
  return std::nullopt;
}

}  // namespace

Sampler::Sampler(const TrainOptions& options, const xgrad::text::Characters& characters)
    : options_(options),
      characters_(characters),
      prompt_(encode_prompt("--sample-prompt", options.sample_prompt, characters)) {
  if (prompt_.size() > longest_prompt)
    throw xgrad::ValueError(fmt::format("--sample-prompt: {} characters are more than {}",
                                        prompt_.size(), longest_prompt));
}

bool Sampler::due(std::uint64_t steps) const {
  if (!options_.sample_interval)
    return evaluation_due(options_.recipe, steps);
  return *options_.sample_interval > 0 && steps % *options_.sample_interval == 0;
}

std::string Sampler::draw(const xgrad::nn::GPT& model) const {
  auto ids = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, prompt_.size()});
  prompt_.copy(0, prompt_.size(), ids.data());
  xgrad::Generator generator(options_.seed);
  const xgrad::Indices written = model.generate(xgrad::Indices(std::move(ids)), sampled_characters,
                                                generator, {.temperature = 0.8});
  return characters_.decode(
      xgrad::text::Ids(std::span(written.data(), static_cast<std::size_t>(written.numel()))));
}

Samples::Samples(std::string path, std::uint64_t steps)
    : lines_(std::move(path), steps + 1, step_in) {}

bool Samples::add(std::uint64_t steps, const std::string& text) {
  return lines_.add(xgrad::io::format_json(xgrad::io::JsonObject{{"step", steps}, {"text", text}}));
}

}  // namespace char_transformer
