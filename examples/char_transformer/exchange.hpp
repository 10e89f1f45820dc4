#pragma once
// Models from and for other programs: safetensors files with nanoGPT's names.

#include "options.hpp"

namespace char_transformer {

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
