#pragma once
// Texts to train on that need no file, and of which the best possible loss is known.

#include <cstdint>
#include <string>
#include <vector>
#include <xgrad/data/corpus/grammar.hpp>

namespace xgrad::text {

/// A text grown from a probabilistic grammar, with what each character is worth.
struct EmbeddedCorpus {
  std::string text;         ///< ASCII
  std::vector<double> nll;  ///< -log p of each character given all before it, in nats; exact

  /// The mean of nll over [begin, end): the entropy floor of that part.  A model whose loss there
  /// is x is x minus this far from perfect.  (A perfect model here has read everything before; one
  /// that sees only the last 64 characters cannot quite get there.)  Throws ValueError unless begin
  /// < end <= text.size().
  double mean_nll(std::size_t begin, std::size_t end) const;
};

/// The grammar of embedded_corpus().
const Grammar& corpus_grammar();
/// The grammar of names_corpus().
const Grammar& names_grammar();

/// Scenes from the village of Mumbleford: the first `characters` characters with this seed (its low
/// 32 bits count).  The same arguments give the same text on every machine.  Throws ValueError if
/// characters is 0.
EmbeddedCorpus embedded_corpus(std::size_t characters = 1'000'000, std::uint64_t seed = 1337);

/// Invented names, one a line, for the smallest of models: 24 letters and the newline.  No name is
/// longer than 11 letters.  Arguments and exceptions as above.
EmbeddedCorpus names_corpus(std::size_t characters = 100'000, std::uint64_t seed = 1337);

}  // namespace xgrad::text
