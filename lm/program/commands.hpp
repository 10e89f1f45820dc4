#pragma once
// The commands other than train (run.hpp) and sample (sample.hpp): plain options, filled
// by flags.cpp, and the functions that take them.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace program {

struct EvalOptions {
  std::string checkpoint, base;  ///< base: read_trained_model(), as in the others
  std::string data;              ///< empty: the text that the checkpoint was trained on
  std::string split;             ///< "train", "val" or "all"; empty: all of `data`, else "val"
  std::optional<std::string> document_end;  ///< as in training; empty: the text is one document
  std::string dtype;                        ///< as of TrainOptions; empty: as in training
  bool raw = false;
  std::optional<std::size_t> block_size;
  std::size_t threads = 0;
};
void evaluate(const EvalOptions& options);

struct PageOptions {
  std::string checkpoint, base, out;
  std::optional<std::string> prompt;
  bool raw = false, overwrite = false;
  std::size_t threads = 0;
};

struct ExplainOptions : PageOptions {
  std::string data;  ///< empty: the text that the checkpoint was validated on
  std::optional<std::size_t> length;
  std::vector<std::size_t> layers, heads;  ///< empty: all
  std::optional<std::size_t> position;
  double max_mb = 20;
};
void explain(const ExplainOptions& options);

struct GraphOptions : PageOptions {
  std::string format = "html";
  bool decompose = false;
  std::size_t max_nodes = 20'000;
};
void graph(const GraphOptions& options);

struct ExportOptions {
  std::string checkpoint, base, out = "model.safetensors";
  bool adapters = false, overwrite = false;
};
void export_model(const ExportOptions& options);

struct RunsOptions {
  std::vector<std::string> runs;
  std::string out;
  bool overwrite = false;
};
/// Writes report.html to the folder of each run.
void report(const RunsOptions& options);
/// Prints a table of the runs, and writes a page or a picture of them.
void compare(const RunsOptions& options);
/// Writes the page of scripts/web to `out`.  Error if xgrad was built before it.
void playground(const RunsOptions& options);
extern const std::string_view playground_page;

/// Version, commit and compiler: "xgrad 0.1.0 (commit 13afac4), GCC 12.2.0".
std::string describe_build();
/// The commit that was built, "13afac4" or "13afac4-dirty", empty outside git; and "GCC 12.2.0".
extern const char *const build_commit, *const build_compiler;

}  // namespace program
