#include "hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "checkpoint_info.hpp"
#include "run_dir.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;

// Of several rows with a word, the first whose flag the command has counts.
constexpr Hint of_flags[] = {
    {"lr max-lr peak-lr base-lr", "--learning-rate"},
    {"wd", "--weight-decay"},
    {"warmup-steps num-warmup-steps", "--warmup-iters"},
    {"steps max-steps num-steps iterations num-iterations", "--max-iters"},
    {"bs per-device-train-batch-size micro-batch-size", "--batch-size"},
    {"context context-length ctx-size n-ctx c seq-len seq-length max-length", "--block-size"},
    {"layers num-layers num-hidden-layers depth", "--n-layer"},
    {"heads num-heads num-attention-heads", "--n-head"},
    {"d-model hidden-size embed-dim width dim", "--n-embd"},
    {"clip clip-grad-norm max-grad-norm", "--grad-clip"},
    {"grad-accum accumulate", "--gradient-accumulation-steps"},
    {"eval-steps eval-every val-interval", "--eval-interval"},
    {"save-steps save-every always-save-checkpoint", "--save-interval"},
    {"r lora lora-r", "--lora-rank"},
    {"target-modules", "--lora-targets"},
    {"tokenizer", "--tokens"},
    {"dataset train-file train-data text-file", "--data"},
    {"output-dir output o save-dir", "--out"},
    {"continue resume-from-checkpoint", "--resume"},
    {"model m ckpt model-path model-name-or-path", "--init-from"},
    {"model m ckpt model-path model-name-or-path init-from resume", "--checkpoint"},
    {"start p", "--prompt"},
    {"start p prompt", "--sample-prompt"},
    {"f", "--file"},
    {"max-new-tokens max-tokens n-predict n", "--sample-tokens"},
    {"max-new-tokens max-tokens n-predict n max-length length", "--tokens"},
    {"repeat-penalty", "--repetition-penalty"},
    {"no-repeat-ngram-size", "--no-repeat-ngram"},
    {"do-sample greedy", "--temperature"},
    {"t num-workers workers n-threads", "--threads"},
    {"s random-seed", "--seed"},
    {"f y yes force overwrite-output-dir", "--overwrite"},
    {"epochs num-epochs num-train-epochs",
     "there is none: --max-iters counts steps, of --batch-size blocks each"},
    {"device cuda gpu backend ngl n-gpu-layers",
     "there is none: models compute on the CPU, with --threads"},
    {"dtype precision fp16 bf16 half amp", "there is none: models compute in float32"},
    {"compile torch-compile", "there is none: nothing is compiled"},
    {"wandb wandb-log wandb-project wandb-run-name tensorboard report-to log-interval",
     "there is none: a run's metrics.jsonl has every step, and its report.html the curves"},
    {"optimizer optim",
     "there is none: AdamW trains every model, with --beta1, --beta2 and --weight-decay"},
    {"scheduler lr-scheduler lr-scheduler-type decay-lr",
     "there is none: --warmup-iters, then a cosine to --min-lr at --lr-decay-iters"},
    {"patience early-stopping",
     "there is none: a run's best.safetensors is the model with the lowest validation loss"},
    {"eval-only", "there is none: the command eval prints a model's loss"},
    {"i interactive chat", "there is none: sample continues a text, and holds no dialogue"}};

constexpr Hint of_commands[] = {
    {"generate gen complete write predict infer inference run", "sample"},
    {"chat interactive serve", "there is none: sample continues a text, and holds no dialogue"},
    {"finetune fine-tune tune lora sft", "train --init-from"},
    {"resume continue", "train --resume"},
    {"fit pretrain", "train"},
    {"evaluate validate score test perplexity", "eval"},
    {"attention visualize", "explain"},
    {"convert merge", "export"},
    {"plot curves", "compare --out"},
    {"prepare tokenize preprocess", "there is none: train reads a text as it is"},
    {"download pull",
     "there is none: 'hf download ORG/NAME --local-dir DIR' makes a folder, which all commands "
     "read"}};

/// The first row with a word and an answer that is accepted.
template <class F>
std::string answer(std::span<const Hint> hints, std::string_view word, const F& accepts) {
  std::string plain(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  for (char& c : plain)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  plain = fmt::format(" {} ", plain);
  for (const auto& [words, text] : hints)
    if (fmt::format(" {} ", words).find(plain) != std::string::npos && accepts(std::string(text)))
      return text.starts_with("there is ") ? fmt::format("; {}", text)
                                           : fmt::format("; did you mean {}?", text);
  return "";
}

}  // namespace

std::span<const Hint> flag_hints() { return of_flags; }
std::span<const Hint> command_hints() { return of_commands; }

std::string flag_hint(std::string_view word, const std::function<bool(const std::string&)>& has) {
  return answer(of_flags, word,
                [&](const std::string& text) { return !text.starts_with("--") || has(text); });
}

std::string command_hint(std::string_view word) {
  return answer(of_commands, word, [](const std::string&) { return true; });
}

std::string argument_hint(const std::string& word,
                          const std::function<bool(const std::string&)>& has) {
  std::error_code none;
  const bool file = fs::is_regular_file(word, none);
  std::string flag;
  if (has("--resume") && checkpoint_in(word))
    flag = "--resume or --init-from";
  else if (has("--init-from") && (has_model_type(word) || word.ends_with(".safetensors")))
    flag = "--init-from";
  else if (file && word.ends_with(".json"))
    flag = "--config";
  else if (file && has("--data"))
    flag = "--data";
  else if (has("--prompt"))
    flag = "--prompt";
  return flag.empty() ? "" : fmt::format("; did you mean {} '{}'?", flag, word);
}

std::string model_hint(const std::string& path) {
  std::error_code none;
  if (fs::exists(path, none))
    return "";
  if (path == "scratch" || path == "resume")
    return path == "scratch" ? ": a new model is the default, without --init-from"
                             : ": --resume continues a run";
  const fs::path name = path, parent = name.parent_path();
  const bool owned = !parent.empty() && !parent.has_parent_path() && parent != "runs" &&
                     !path.starts_with('.') && !fs::exists(parent, none);
  const bool gpt2 = path == "distilgpt2" || path.starts_with("gpt2");
  if (!(owned || gpt2) || !name.has_filename() || path.ends_with(".safetensors"))
    return "";
  return fmt::format(
      ": nothing is downloaded here; if it is a model of HuggingFace's hub, 'hf download {} "
      "--local-dir {}' makes a folder that this program reads",
      path, name.filename().string());
}

}  // namespace char_transformer
