#pragma once
// The losses in a metrics file: one JSON object per line, with "step", "loss" and maybe "val_loss".

#include <string>
#include <xgrad/io/picture.hpp>

namespace plot_losses {

struct Metrics {
  xgrad::io::Series loss = {}, validation = {};
};

/// Throws FileError for what is not a metrics file, naming the line.
Metrics read_metrics(const std::string& path);

}  // namespace plot_losses
