#pragma once
// What is said before a run starts: what runs, on what, how large it is, and what it will take.

#include <functional>
#include <string>

#include "start.hpp"
#include "training.hpp"

namespace char_transformer {

/// Takes a label and what it labels, of one line or several.
using Tell = std::function<void(const std::string& label, const std::string& text)>;

/// What runs, the text, what losses mean on it, and the model: its parts and what they cost.
void describe_model(const Start& start, Training& training, const Tell& tell);
/// The same, the steps that a run makes, and the time that they will take, measured for up to a
/// second, unless a signal comes.
void describe(const Start& start, Training& training, const std::function<bool()>& stop,
              const Tell& tell);

/// The steps that take as long as the validation loss after the last one.
double steps_of_validation(const Start& start, const Training& training);

/// What takes the memory of training, and which flags change it: for "not enough memory".
std::string describe_needs(const TrainOptions& options);
/// Throws xgrad::Error if training needs more than is available, unless --check-memory says not to
/// look.
void check_memory(const TrainOptions& options);

}  // namespace char_transformer
