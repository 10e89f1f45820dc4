#pragma once
// Models from and for other programs: safetensors files with nanoGPT's names.

#include <cstddef>
#include <optional>
#include <string>

namespace char_transformer {

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

/// The command `export`.  Writes the weights, and in the metadata "config" and "characters" as in a
/// checkpoint.
void export_model(const ExportOptions& options);

/// The command `import`.  The sizes follow from the shapes, the heads and the characters from the
/// options or from metadata as export_model() writes it.  The checkpoint is float32, with an
/// optimizer that has made no step.  Prints what was converted.  Throws FileError for a file that
/// does not hold such a model, listing all that is wrong, and for characters that are not as many
/// as the model knows.
void import_model(const ImportOptions& options);

}  // namespace char_transformer
