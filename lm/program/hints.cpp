#include "hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint_info.hpp"
#include "run_dir.hpp"

namespace program {

namespace fs = std::filesystem;

// A word may have several rows: the first whose flag the command has is used.
static constexpr Hint table_of_hints[] = {
    {"--lr --max-lr", "--learning-rate"},
    {"--steps --max-steps", "--max-iters"},
    {"--context-length --ctx-size -c --seq-len --max-length", "--block-size"},
    {"--output-dir --output -o", "--out"},
    {"--model -m --model-name-or-path", "--init-from"},
    {"--model -m --model-name-or-path --init-from", "--checkpoint"},
    {"--start -p", "--prompt"},
    {"--start -p --prompt", "--sample-prompt"},
    {"--max-new-tokens --max-tokens --n-predict -n", "--sample-tokens"},
    {"--max-new-tokens --max-tokens --n-predict -n --max-length", "--tokens"},
    {"--repeat-penalty", "--repetition-penalty"},
    {"--epochs --num-epochs --num-train-epochs",
     "there is none: --max-iters counts steps, of --batch-size blocks each"},
    {"--device --cuda --gpu --backend -ngl",
     "there is none: models compute on the CPU, with --threads"},
    {"--precision --fp16 --bf16", "--dtype"},
    {"--dtype --precision --fp16 --bf16", "there is none: train and eval alone have --dtype"},
    {"--compile --torch-compile", "there is none: nothing is compiled"},
    {"--wandb --wandb-log --wandb-project --wandb-run-name --tensorboard --report-to",
     "there is none: a run's metrics.jsonl has every step, and its report.html the curves"},
    {"--optimizer --optim",
     "there is none: AdamW trains every model, with --beta1, --beta2 and --weight-decay"},
    {"--patience --early-stopping",
     "there is none: a run's best.safetensors is the model with the lowest validation loss"},
    {"generate complete write predict infer run", "sample"},
    {"chat serve", "there is none: sample continues a text, and holds no dialogue"},
    {"finetune fine-tune tune", "train --init-from"},
    {"evaluate validate test", "eval"}};

std::span<const Hint> hints() { return table_of_hints; }

std::string word_hint(std::string word, const HasFlag& has) {
  std::ranges::replace(word, '_', '-');
  for (const auto& [words, answer] : table_of_hints)
    if (fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos &&
        (!answer.starts_with("--") || has(std::string(answer))))
      return answer.starts_with("there is ") ? fmt::format("; {}", answer)
                                             : fmt::format("; did you mean {}?", answer);
  return "";
}

std::string argument_hint(const std::string& argument, const HasFlag& has) {
  std::error_code none;
  const bool file = fs::is_regular_file(argument, none);
  const char* const flag = has("--resume") && checkpoint_in(argument)    ? "--resume or --init-from"
                           : has("--resume") && has_model_type(argument) ? "--init-from"
                           : file && argument.ends_with(".json")         ? "--config"
                           : file && has("--data")                       ? "--data"
                           : has("--prompt")                             ? "--prompt"
                                                                         : nullptr;
  return flag == nullptr ? "" : fmt::format("; did you mean {} '{}'?", flag, argument);
}

std::string model_hint(const std::string& path) {
  std::error_code none;
  const fs::path name = path, owner = name.parent_path();
  const bool owned = !owner.empty() && !owner.has_parent_path() && owner != "runs" &&
                     !path.starts_with('.') && !fs::exists(owner, none);
  if (!(owned || path.starts_with("gpt2")) || path.ends_with(".safetensors") ||
      !name.has_filename() || fs::exists(path, none))
    return "";
  return fmt::format(
      ": nothing is downloaded here; if it is a model of HuggingFace's hub, 'hf download {} "
      "--local-dir {}' makes a folder that this program reads",
      path, name.filename().string());
}

}  // namespace program
