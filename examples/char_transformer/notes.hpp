#pragma once
// What a checkpoint, and config.json beside it, hold of this program's own.

#include <cstdint>
#include <optional>
#include <string>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/ids.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/nn/gpt.hpp>

#include "recipe.hpp"
#include "source.hpp"

namespace char_transformer {

/// The evaluations of a run so far.
struct Evaluations {
  struct Best {
    std::uint64_t step;  ///< steps made when it was measured
    double loss;
  };
  std::uint64_t last = 0;                 ///< steps made when the latest was; 0: none yet
  std::optional<Best> best;               ///< the lowest loss
  std::uint64_t without_improvement = 0;  ///< how many came after it

  /// Notes one; whether it is the lowest so far.
  bool add(std::uint64_t step, double loss);
};

/// What their losses are over: "20 random batches".
std::string format_batches(std::size_t n);
/// Whether one belongs after so many steps.
bool evaluation_due(const Recipe& recipe, std::uint64_t steps);
/// Whether a run has ended: all steps made and evaluated, or its patience at an end.
bool finished(const Recipe& recipe, std::uint64_t steps, const Evaluations& evaluations);

struct Notes {
  xgrad::io::Json config;  ///< an object, under nanoGPT's names
  xgrad::text::Characters characters;
  std::string text = {};      ///< checksum() of the text of --data; empty if nobody knows
  std::string val_text = {};  ///< of that of --val-data; empty without one
  Evaluations evaluations = {};
};

xgrad::io::Json to_json(const Notes& notes);
/// Those of a checkpoint.  FileError for a checkpoint of another program.
Notes read_notes(const xgrad::io::Checkpoint& checkpoint);

/// The configuration of a model of which only this is known.
xgrad::io::JsonObject to_json(const xgrad::nn::GPTConfig& config);

/// A checksum of the ids of a text.
std::string checksum(const xgrad::text::Ids& ids);
/// "--data" or "--val-data", whichever names another text than a run was trained on; else empty.
std::string other_text(const Source& source, const Notes& notes);

/// What config.json beside a checkpoint says.
struct FolderNotes {
  xgrad::io::Json config = nullptr;      ///< all of it
  std::string broken = {};               ///< why it cannot be read, though it is there
  std::optional<std::string> data = {};  ///< a path; empty: the embedded corpus; none: nobody knows

  /// What stands under a key; empty without one.
  std::string text(const char* key) const;
};
FolderNotes read_folder_notes(const std::string& checkpoint);
/// What is written there.  A run that goes on after so many steps keeps the flags that
/// --allow-changes changed since `before`, and lists under "changes" what they became.
std::string format_folder_notes(const TrainOptions& options, std::size_t vocab_size,
                                const xgrad::io::Json& before = nullptr, std::uint64_t steps = 0,
                                const std::string& changes = "");

}  // namespace char_transformer
