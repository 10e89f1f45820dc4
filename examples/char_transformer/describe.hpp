#pragma once
// What is said before a run starts: what runs, on what, how large it is, and what it will take.

#include <functional>
#include <string>
#include <xgrad/nn/gpt.hpp>

#include "start.hpp"
#include "stop.hpp"
#include "training.hpp"

namespace char_transformer {

/// Takes a label and what it labels, of one line or several.
using Tell = std::function<void(const std::string& label, const std::string& text)>;

/// Floating-point operations of forward and backward for one token of T = block_size:
/// 6 N + 12 L C T, where N counts the parameters without wpe, whose rows are only looked up, L
/// blocks of width C.  Additions and multiplications count each, and attention counts as if it had
/// no mask.  Chowdhery et al., PaLM, 2022, appendix B.
double flops_per_token(const xgrad::nn::GPT& model);

/// The steps that take as long as the validation loss after the last one.
double steps_of_validation(const Start& start, const Training& training);

/// What runs, the text, what losses mean on it, and the model: its parts and what they cost.
void describe_model(const Start& start, Training& training, const Tell& tell);

/// The same, the steps that a run makes, and the time that they will take, measured for up to a
/// second, unless a signal comes.
void describe(const Start& start, Training& training, const StopSignals& signals, const Tell& tell);

}  // namespace char_transformer
