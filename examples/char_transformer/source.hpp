#pragma once
// What a model is trained on: a text, as ids, split in two.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/data/batches.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/corpus/corpus.hpp>

namespace char_transformer {

struct Source {
  std::string name;  ///< for people: the file, or what the embedded corpus is
  xgrad::text::Characters characters;
  xgrad::text::Split ids;
  std::vector<double> nll;  ///< -log p of each character to validate on; empty if nobody knows

  /// The mean of nll over the characters that validation_loss() asks for: no model can do better.
  std::optional<double> entropy(std::size_t block_size) const;
};

/// What is trained on without --data: names with --preset micro, otherwise scenes.
xgrad::text::EmbeddedCorpus corpus_of(const std::string& preset);

/// Reads a text, or with an empty path makes corpus_of(preset).  Ids are those of `characters`, or
/// without them of the text's own.  Throws FileError for a file that cannot be read, is not
/// UTF-8, or has characters that are not known, and for a part that has no whole block.
Source open_source(const std::string& path, std::size_t block_size, const std::string& preset,
                   const std::optional<xgrad::text::Characters>& characters = {});

}  // namespace char_transformer
