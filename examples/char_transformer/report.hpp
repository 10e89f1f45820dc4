#pragma once
// What is left after a run, for people (runs/).

#include <cstddef>
#include <string>

#include "recipe.hpp"

namespace char_transformer {

/// Writes report.html of a run that has ended or was interrupted.  Why that failed; empty if it did
/// not.  Nothing that a run needs depends on it, so it throws nothing.
std::string report_of(const std::string& folder, const TrainOptions& options);
/// For environment.json: what the run is trained with, which changes none of its numbers.
std::string format_environment(std::size_t ranks);

}  // namespace char_transformer
