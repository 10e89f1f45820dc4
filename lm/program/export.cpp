// Models for other programs: safetensors files with nanoGPT's names, and folders for transformers.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>
#include <xgrad/io/file.hpp>
#include <xgrad/lm/adapters.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/nn/layers.hpp>

#include "checkpoint_info.hpp"
#include "commands.hpp"
#include "output.hpp"

namespace program {
namespace {

namespace fs = std::filesystem;
using xgrad::io::Json;

/// Whether --out is a folder: a name with a slash at its end, without an extension, or of a folder.
/// UsageError for other files than .safetensors.
bool is_folder(const ExportOptions& options) {
  const std::string extension = fs::path(options.out).extension().string();
  if (std::error_code none; options.out.ends_with('/') || fs::is_directory(options.out, none))
    return true;
  if (extension == ".safetensors")
    return false;
  check_output(options.out, options.overwrite, files_of(options.checkpoint, options.base));
  if (!extension.empty())
    fail<UsageError>(
        "--out {}: export writes NAME.safetensors, or a folder for transformers, NAME/, from which "
        "other programs make their formats (for GGUF, llama.cpp's convert_hf_to_gguf.py)",
        options.out);
  return true;
}

/// Writes a folder as transformers does.
void export_folder(const ExportOptions& options) {
  const fs::path folder = options.out;
  std::vector<std::string> names = {"config.json", "model.safetensors", "tokenizer.json"};
  std::ranges::copy(xgrad::lm::pretrained_files, std::back_inserter(names));
  if (std::error_code none; fs::exists(folder / "adapter_config.json", none))
    fail<FileError>("{}: commands read the adapters there, not a model: name another folder",
                    options.out);
  else if (fs::exists(folder, none))
    for (const std::string& name : names)
      check_output((folder / name).string(), options.overwrite,
                   files_of(options.checkpoint, options.base));
  TrainedModel trained = load_trained_model(options.checkpoint, options.base);  // names the model
  xgrad::lm::merge_lora(trained.model);
  const Json metadata = metadata_of(trained.info);
  std::string written = "config.json, model.safetensors, tokenizer.json";
  for (const char* const name : xgrad::lm::pretrained_files)
    if (std::error_code none; metadata.find(name) != nullptr)
      written += fmt::format(", {}", name);
    else if (fs::exists(folder / name, none))
      fail<FileError>("{}: of another model, and this one has none: name another folder",
                      (folder / name).string());
  xgrad::lm::save_pretrained(folder.string(), trained.model, options.overwrite, metadata);
  xgrad::io::write_file((folder / "tokenizer.json").string(),
                        xgrad::io::format_json(trained.info.vocabulary.tokenizer_json(),
                                               xgrad::io::InvalidUtf8::refused, 2));
  say(fmt::format("{}: {}\n", options.out, written));
  const auto tensors = xgrad::lm::pretrained_tensors(trained.model.config);
  if (std::ranges::any_of(tensors, &xgrad::lm::PretrainedTensor::zero))
    say("Biases that the model lacks, and transformers' has, are zeros.\n");
}

/// Writes a folder as PEFT does.
void export_adapters(const ExportOptions& options) {
  check<UsageError>(is_folder(options), "--adapters writes a folder: --out DIR/ names it");
  if (!pretrained_folder(options.out).empty())
    fail<FileError>(
        "{}: is a pretrained model's folder, and commands would read the adapters there: "
        "name another",
        options.out);
  for (const char* const name : {"adapter_config.json", "adapter_model.safetensors"})
    check_output((fs::path(options.out) / name).string(), options.overwrite,
                 files_of(options.checkpoint, options.base));
  const TrainedModel trained = load_trained_model(options.checkpoint, options.base);
  if (!trained.info.lora)
    fail<FileError>("{}: has no adapters that --adapters could write", trained.path);
  xgrad::lm::save_adapters(options.out, trained.model, trained.info.lora->base, options.overwrite);
  say(fmt::format("{}: adapter_config.json, adapter_model.safetensors\n", options.out));
}

}  // namespace

void export_model(const ExportOptions& options) {
  need_run(options.checkpoint);
  if (options.adapters)
    return export_adapters(options);
  if (is_folder(options))
    return export_folder(options);
  check_output(options.out, options.overwrite, files_of(options.checkpoint, options.base));
  TrainedModel trained = load_trained_model(options.checkpoint, options.base);  // names the model
  xgrad::lm::merge_lora(trained.model);
  const CheckpointInfo& info = trained.info;
  const xgrad::nn::StateDict state = xgrad::nn::state_dict(trained.model);
  const auto [key, vocabulary] = info.vocabulary.stored();
  const auto* const text = vocabulary.as<std::string>();
  const xgrad::io::TensorFile file{
      .tensors = {state.begin(), state.end()},
      .metadata = {{"format", "pt"},
                   {"config", xgrad::io::format_json(info.config)},
                   {key, text != nullptr ? *text : xgrad::io::format_json(vocabulary)}}};
  xgrad::io::save_safetensors(options.out, file);
  say(fmt::format("{}: {}\n", options.out, format_count(file.tensors.size(), "tensor")));
}

}  // namespace program
