#pragma once
// samples.jsonl: what the model of a run writes on the way, after one and the same prompt.

#include <cstddef>
#include <cstdint>
#include <string>
#include <xgrad/data/characters.hpp>
#include <xgrad/nn/gpt.hpp>

#include "json_lines.hpp"
#include "options.hpp"

namespace char_transformer {

/// Draws samples.  Each comes from a generator of its own that begins with the run's seed, so
/// nothing of the training depends on whether there are any, and a run that was interrupted has
/// those that it would have had.
class Sampler {
 public:
  /// Throws ValueError for a prompt that is too long or has characters that the model does not
  /// know.
  Sampler(const TrainOptions& options, const xgrad::text::Characters& characters);

  /// Whether one belongs after so many steps: after each --sample-interval of them, or without it
  /// at evaluations.
  bool due(std::uint64_t steps) const;
  /// Prompt and continuation.
  std::string draw(const xgrad::nn::GPT& model) const;

 private:
  const TrainOptions& options_;
  const xgrad::text::Characters& characters_;
  xgrad::text::Ids prompt_;
};

class Samples {
 public:
  /// Opens the file, or makes it, for a run that has made so many steps: samples of later ones go.
  /// Throws as JsonLines.
  Samples(std::string path, std::uint64_t steps);

  /// Adds `{"step": 250, "text": "..."}`, where 250 steps were made; as JsonLines::add().
  bool add(std::uint64_t steps, const std::string& text);

  const JsonLines& lines() const { return lines_; }

 private:
  JsonLines lines_;
};

}  // namespace char_transformer
