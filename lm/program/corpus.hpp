#pragma once
// Generated texts for training, with a known lowest possible loss.

#include <cstdint>
#include <string>
#include <vector>

namespace corpus {

struct Corpus {
  std::string text;         ///< ASCII
  std::vector<double> nll;  ///< -log p of a choice, in nats, at its first character
};

/// Scenes from a village; and names, one a line.  A seed gives the same text on every machine.
Corpus scenes_corpus(std::size_t characters = 1'000'000, std::uint64_t seed = 1337);
Corpus names_corpus(std::size_t characters = 100'000, std::uint64_t seed = 1337);

}  // namespace corpus
