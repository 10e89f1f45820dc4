#pragma once
// What the command line can say.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "recipe.hpp"

namespace char_transformer {

/// What --data - reads.
inline constexpr const char* standard_input = "/dev/stdin";
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
  std::string configuration_file;              ///< what stands in the file of --config

  /// Whether --resume names what to go on with, and not just whatever there is.
  bool resumes_by_name() const { return resume && !resume->empty() && *resume != "auto"; }
};

struct EvalOptions {
  std::string checkpoint;
  std::string data;   ///< empty: what the checkpoint was trained on
  std::string split;  ///< "train", "val" or "all"; empty: all of `data`, else "val"
  std::size_t threads = 0;
};

struct SampleOptions {
  std::string checkpoint;
  std::size_t num_samples = 1;
  std::string prompt;  ///< empty: a newline, or else the first character
  std::string file;    ///< with the prompt; "-": standard input
  bool interactive = false;
  std::size_t tokens = 500;
  std::string stop;  ///< the text that ends it; empty: none does
  double temperature = 0.8;
  std::optional<std::size_t> top_k;
  double top_p = 1, min_p = 0;
  bool show_probs = false;
  std::uint64_t seed = 1337;
  std::size_t threads = 0;
};

struct ExplainOptions {
  std::string checkpoint;             ///< a file, or a run's folder
  std::optional<std::string> prompt;  ///< none: a piece of text
  std::string data;                   ///< empty: what the checkpoint was validated on
  std::string out = "explain.html";
  bool overwrite = false;
  std::optional<std::size_t> length;
  std::vector<std::size_t> layers, heads;  ///< empty: all
  std::optional<std::size_t> position;
  double max_mb = 20;  ///< of the page
  std::size_t threads = 0;
};

struct GraphOptions {
  std::string checkpoint;
  std::optional<std::string> prompt;  ///< none: what the model writes by itself
  std::string out;                    ///< empty: graph.html, or standard output for dot and text
  bool overwrite = false;
  std::string format = "html";
  bool decompose = false;
  std::size_t max_nodes = 20'000;
  std::size_t threads = 0;
};

struct ExportOptions {
  std::string checkpoint;
  std::string out = "model.safetensors";
  bool overwrite = false;
};

struct ImportOptions {
  std::string state;
  std::string out = "checkpoint.safetensors";
  bool overwrite = false;
  std::string data;                   ///< empty: the characters are the file's
  std::optional<std::size_t> n_head;  ///< none: what the file says
};

struct ReportOptions {
  std::vector<std::string> runs;
  bool overwrite = false;
};

struct CompareOptions {
  std::vector<std::string> runs;
  std::string out;  ///< a page; empty: none
  bool overwrite = false;
};

struct CorpusOptions {
  std::string preset = "nano";
};

/// A request for help, the configuration, a man page or completion: the text to print.
struct Help {
  std::string text;
};

using Command =
    std::variant<Help, TrainOptions, EvalOptions, SampleOptions, ExplainOptions, GraphOptions,
                 ExportOptions, ImportOptions, ReportOptions, CompareOptions, CorpusOptions>;

/// Reads the command line, and the file of --config.  Throws command_line::UsageError; for `train
/// --resume --print-config`, which shows the run's configuration, also what read_resume_point()
/// throws.
Command parse_command(int argc, const char* const* argv);

}  // namespace char_transformer
