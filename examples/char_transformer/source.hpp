#pragma once
// What a model is trained on: a text, as ids, split in two.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/data/batches.hpp>
#include <xgrad/data/characters.hpp>

#include "corpus.hpp"

namespace char_transformer {

struct Source {
  std::string name;             ///< for people: the file, or what the embedded corpus is
  std::string validation_name;  ///< "the validation split of NAME", or the file of --val-data
  xgrad::text::Characters characters;
  xgrad::text::Ids all;  ///< of the text that `name` is
  xgrad::text::Split ids;
  std::vector<double> nll;  ///< -log p of each character to validate on; empty if nobody knows

  /// The mean of nll over so many characters to validate on, after the first, which is only ever
  /// looked back on: no model can do better.
  std::optional<double> entropy(std::size_t characters) const;
};

/// What is trained on without --data: names with --preset micro, otherwise scenes.
corpus::Corpus corpus_of(const std::string& preset);

/// Reads a text, or with an empty path makes corpus_of(preset).  Its last tenth is to validate on,
/// unless `validation` names another text.  Ids are those of `characters`, or without them of the
/// text's own.  Throws FileError for a file that cannot be read, is not UTF-8, or has characters
/// that are not known.
Source open_source(const std::string& path, const std::string& validation,
                   const std::string& preset,
                   const std::optional<xgrad::text::Characters>& characters = {});
/// FileError for a part that has no whole block; `fixed` says that the size of blocks is.
void check_blocks(const Source& source, std::size_t block_size, bool fixed);

}  // namespace char_transformer
