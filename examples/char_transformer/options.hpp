#pragma once
// What the command line can say.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "command.hpp"
#include "recipe.hpp"

namespace char_transformer {

/// Where --val-blocks is not given.
inline constexpr std::size_t usual_val_blocks = 2048;

struct TrainOptions {
  std::string program = "char_transformer";  ///< as it was called
  std::string launcher = {};                 ///< the words before it, of several ranks
  std::string data;                          ///< empty: the embedded corpus
  std::string val_data;                      ///< empty: the last tenth of `data`
  std::string out;                           ///< empty: a new folder under runs/
  std::string preset = "nano";
  Recipe recipe;
  std::uint64_t seed = 1337;
  std::size_t threads = 0;
  bool profile = false;
  bool dry_run = false;                        ///< say what would be done, and do nothing
  bool overfit_one_batch = false;              ///< instead of a run
  bool quiet = false, verbose = false;         ///< of standard error
  bool check_memory = true;                    ///< refuse what does not fit
  std::optional<std::string> resume;           ///< a folder, a checkpoint, or empty or "auto"
  std::string init_from;                       ///< a checkpoint; empty: random weights
  std::optional<std::size_t> save_interval;    ///< none: at each evaluation
  std::optional<std::size_t> keep;             ///< none: 0, or what the run had
  std::optional<std::size_t> val_blocks;       ///< of the last validation; 0: all
  bool allow_changes = false;                  ///< of a run that goes on
  std::optional<std::size_t> sample_interval;  ///< none: at each evaluation; 0: never
  std::string sample_prompt;                   ///< empty: as of SampleOptions
  std::set<std::string> given;                 ///< the flags that the command line or --config has

  /// Whether --resume names what to go on with, and not just whatever there is.
  bool resumes_by_name() const { return resume && !resume->empty() && *resume != "auto"; }
};

}  // namespace char_transformer
