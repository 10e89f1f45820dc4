#pragma once
// Texts to train on that need no file, and of which the best possible loss is known.

#include <cstdint>
#include <string>
#include <vector>

namespace corpus {

struct Corpus {
  std::string text;         ///< ASCII
  std::vector<double> nll;  ///< -log p of each character given all before it, in nats; exact
};

/// So many characters that a grammar writes, again and again from its first rule (corpus.cpp has
/// the notation).  The same seed (its low 32 bits) gives the same text on every machine.
/// ValueError if the text does not tell which alternative was chosen.
Corpus grow(const std::string& grammar, std::size_t characters, std::uint64_t seed);
/// Scenes from the village of Mumbleford; and names, one a line, none longer than 11 letters.
Corpus scenes_corpus(std::size_t characters = 1'000'000, std::uint64_t seed = 1337);
Corpus names_corpus(std::size_t characters = 100'000, std::uint64_t seed = 1337);

}  // namespace corpus
