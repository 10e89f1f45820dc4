#pragma once
// The attention of a trained model, as a page.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace char_transformer {

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

/// The command `explain`: writes a page of the attention of a checkpoint, or of all that a run's
/// folder holds, on a prompt or a piece of text (pages/attention.hpp).
void explain(const ExplainOptions& options);

}  // namespace char_transformer
