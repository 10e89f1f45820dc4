#pragma once
// The command `graph`: what a model computes on a short text, and each gradient with its reason.

#include <cstddef>
#include <optional>
#include <string>

namespace char_transformer {

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

/// Writes the graph of the loss on the prompt, or prints it.  ValueError for a prompt of other than
/// 2 to block_size + 1 characters, or with characters that the model does not know.
void graph(const GraphOptions& options);

}  // namespace char_transformer
