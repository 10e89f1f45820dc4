#include "adapters.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include "../autograd/fail.hpp"
#include "../autograd/mode.hpp"
#include "../autograd/ops.hpp"
#include "../io/checkpoint.hpp"
#include "pre_tokenizer.hpp"
#include "pretrained.hpp"

namespace xgrad::lm {

using namespace io;

namespace {

constexpr const char *config_name = "/adapter_config.json",
                     *weights_name = "/adapter_model.safetensors", *base_key = "xgrad_base";
constexpr const char* peft_prefix = "base_model.model.";  // of all keys in the weights' file
constexpr const char* peft_merges =
    "in Python, AutoPeftModelForCausalLM.from_pretrained(FOLDER).merge_and_unload()"
    ".save_pretrained(NEW) writes a model that has them merged";
using Names = std::vector<std::string>;

// A module of transformers with a matrix: rows of a Linear of GPT.
struct Module {
  std::string name, linear;
  nn::LoraPart part;
  Shape shape;  ///< of the Linear's weight

  std::string key(const char* matrix) const {
    return fmt::format("{}{}.{}.weight", peft_prefix, name, matrix);
  }
};

// pretrained_tensors() with a tied head, too: its adapters are its own, and the embedding has none.
std::vector<PretrainedTensor> tensors_of(GPTConfig config) {
  config.tied = false;
  return pretrained_tensors(config);
}

std::vector<Module> modules_of(const GPTConfig& config) {
  const auto layer = [](const std::string& weight) {
    return weight.substr(0, weight.rfind(".weight"));
  };
  std::vector<Module> modules;
  for (const PretrainedTensor& p : tensors_of(config)) {
    if (p.shape.size() != 2 || p.name.starts_with("transformer.w"))  // no Linear
      continue;
    nn::LoraPart part{};
    for (const auto& [name, rows] : p.parts) {
      part.rows = static_cast<Size>(rows);
      modules.push_back({layer(name), layer(p.name), part, p.shape});
      part.first += part.rows;
    }
  }
  return modules;
}

// The modules that the options choose; `all`: every target chooses some.
std::vector<Module> chosen(const GPTConfig& config, const nn::LoraOptions& options, bool all) {
  std::vector<Module> modules = modules_of(config);
  Names names;
  for (const Module& module : modules)
    names.push_back(module.name);
  names = nn::detail::lora_targets(names, options, all);
  std::erase_if(modules, [&](const Module& m) { return std::ranges::count(names, m.name) == 0; });
  return modules;
}

// The modules of an adapter_config.json, as peft/tuners/tuners_utils.py chooses them.
std::vector<Module> chosen(const GPTConfig& model, const AdapterConfig& config) {
  std::vector<Module> modules = chosen(model, config.lora, false);
  std::erase_if(modules, [&](const Module& m) {
    return !config.pattern.empty() && std::ranges::count(config.lora.targets, m.name) == 0 &&
           !matches_whole(config.pattern, m.name);
  });
  return modules;
}

nn::detail::LoraLayers layers_of(const std::vector<Module>& modules) {
  nn::detail::LoraLayers layers;
  for (const Module& module : modules) {
    auto& parts = layers[module.linear];
    if (std::cmp_less(module.part.rows, module.shape[0]))
      parts.push_back(module.part);
  }
  return layers;
}

// Chosen Linears get adapters.  add_lora() is not shown the embedding of a tied head, which it
// would refuse: both are frozen, and merge_lora(GPT&) unties them.
void add(GPT& model, const nn::LoraOptions& options, bool all, Generator* generator) {
  const std::vector<Module> modules = chosen(model.config, options, all);
  nn::detail::Members members = nn::detail::members(model);
  if (model.config.tied && layers_of(modules).contains("lm_head"))
    std::erase_if(members.tensors, [](auto& m) { return m.name == "transformer.wte.weight"; });
  nn::detail::add_lora(members, options, layers_of(modules), generator);
}

// The keys of the model's own weights in a file: PEFT adds those of embeddings and heads that have
// adapters, that are in modules_to_save, and by save_embedding_layers.  FileError unless they are
// the model's, up to their rounding in the file.
std::set<std::string> own_weights(const SafetensorsFile& file, const GPT& model,
                                  const std::string& folder) {
  const nn::StateDict state = nn::state_dict(model);
  std::map<std::string, Tensor> values(state.begin(), state.end());
  values.emplace("lm_head.weight", model.lm_head.weight);
  std::set<std::string> keys;
  for (const PretrainedTensor& p : tensors_of(model.config)) {
    Size first = 0;
    for (const auto& [name, rows] : p.parts) {
      const std::size_t dot = name.rfind('.');
      for (const char* const layer : {"", ".base_layer"}) {
        const std::string key = peft_prefix + name.substr(0, dot) + layer + name.substr(dot);
        if (p.zero || !file.contains(key))
          continue;
        keys.insert(key);
        Tensor x = narrow(values.at(p.name).detach(), 0, first, rows);
        if (p.transposed)
          x = transpose(x, 0, 1);
        const StoredTensor& stored = file.tensors().at(key);
        const bool half = stored.dtype == "F16";
        const double rounding = half ? 0x1p-11 : stored.dtype == "BF16" ? 0x1p-8 : 0;
        check<FileError>(stored.shape == x.shape() &&
                             allclose(file.tensor(key, x.dtype()), x, rounding, half ? 0x1p-25 : 0),
                         "{}: these adapters change the model's own weights ({}); {}", folder, key,
                         peft_merges);
      }
      first += static_cast<Size>(rows);
    }
  }
  return keys;
}

}  // namespace

AdapterConfig read_adapter_config(const std::string& folder) {
  const std::string path = folder + config_name;
  const Json json = read_json_file(path);
  const auto supported = [&](bool is, const std::string& key, const std::string& rule) {
    const Json* const value = json.find(key);
    if (!is)
      fail<FileError>("{}: {} {}; {}", path, key,
                      value == nullptr ? "is missing" : "is " + printable_name(format_json(*value)),
                      rule);
  };
  const auto is_one_of = [&](const char* key, const std::vector<Json>& values) {
    const Json* const value = json.find(key);
    return std::ranges::find(values, value == nullptr ? Json() : *value) != values.end();
  };
  supported(is_one_of("peft_type", {"LORA"}), "peft_type", "supported: LORA");
  supported(is_one_of("task_type", {{}, "CAUSAL_LM"}), "task_type", "supported: CAUSAL_LM");
  supported(is_one_of("bias", {{}, "none"}), "bias", "supported: none");
  // Others have changed the base model's weights.
  supported(is_one_of("init_lora_weights", {{}, true, false, "gaussian"}), "init_lora_weights",
            "supported: true, false and gaussian");
  // Read here, or without effect on the result of trained adapters.
  constexpr std::string_view read =
      " auto_mapping base_model_name_or_path bias fan_in_fan_out inference_mode init_lora_weights "
      "layers_pattern layers_to_transform lora_alpha lora_dropout megatron_core modules_to_save "
      "peft_type peft_version "
      "qalora_group_size r revision runtime_config target_modules task_type use_rslora ";
  for (const auto& [key, value] : *json.as<JsonObject>())
    supported((read.find(" " + key + " ") != read.npos && key.find(' ') == key.npos) ||
                  is_one_of(key.c_str(), {{}, false, JsonObject{}, JsonArray{}, ""}),
              key, "supported: adapters without it");

  supported(is_one_of("use_rslora", {{}, true, false}), "use_rslora", "it must be true or false");
  AdapterConfig config;
  const double rank = json.number("r").value_or(0), alpha = json.number("lora_alpha").value_or(0);
  supported(rank >= 1 && rank <= 65536 && rank == std::floor(rank), "r",
            "it must be a whole number from 1 to 65536");
  config.lora.rank = static_cast<Size>(rank);
  supported(alpha > 0 && std::isfinite(alpha), "lora_alpha", "it must be a positive number");
  config.lora.alpha = is_one_of("use_rslora", {true}) ? alpha * std::sqrt(rank) : alpha;
  const auto names = [&](const char* key, bool may_be_empty) {
    Names list;
    if (const auto* const array = json.find<JsonArray>(key))
      for (const Json& name : *array)
        list.push_back(name.as<std::string>() ? *name.as<std::string>() : "");
    supported((!list.empty() || (may_be_empty && is_one_of(key, {{}, JsonArray{}}))) &&
                  !std::ranges::count(list, ""),
              key, "it must be a list of names");
    return list;
  };
  const auto listed = [&](const char* key) {  // a value, or several
    const Json* const value = json.find(key);
    const auto* const array = value == nullptr ? nullptr : value->as<JsonArray>();
    return array != nullptr ? *array : is_one_of(key, {{}}) ? JsonArray() : JsonArray{*value};
  };
  Names numbers, containers;
  for (const Json& layer : listed("layers_to_transform")) {
    const auto* const number = layer.as<std::uint64_t>();
    supported(number != nullptr, "layers_to_transform", "it must be a number, or a list of them");
    numbers.push_back(std::to_string(*number));
  }
  for (const Json& name : listed("layers_pattern")) {
    supported(name.as<std::string>() != nullptr, "layers_pattern", "it must be a name, or a list");
    containers.push_back(*name.as<std::string>());
  }
  if (!numbers.empty())  // the first number of a name is its layer, in what is before it
    config.pattern =
        fmt::format(R"((.*?\.)?({})\.({})\..*)",
                    containers.empty() ? "[^.]*" : fmt::format("{}", fmt::join(containers, "|")),
                    fmt::join(numbers, "|"));
  const auto* const pattern = json.find<std::string>("target_modules");
  supported(pattern == nullptr || numbers.empty(), "layers_to_transform",
            "target_modules is a text, which chooses layers itself");
  if (pattern == nullptr || pattern->empty()) {
    config.lora.targets = names("target_modules", false);
  } else if (!matches_whole("(?i)all-linear", *pattern)) {
    config.pattern = *pattern;
    config.lora.except = {};
  }
  try {
    matches_whole(config.pattern, "");
  } catch (const ValueError& error) {
    fail<FileError>(
        "{}: {}: {}", path,
        pattern == nullptr ? "layers_to_transform with layers_pattern" : "target_modules",
        error.what());
  }
  config.modules_to_save = names("modules_to_save", true);
  if (const auto* const base = json.find<std::string>("base_model_name_or_path"))
    config.base = *base;
  return config;
}

void add_adapters(GPT& model, const nn::LoraOptions& options, Generator& generator) {
  add(model, options, true, &generator);
}

void add_empty_adapters(GPT& model, const nn::LoraOptions& options) {
  add(model, options, false, nullptr);
}

AdapterConfig load_adapters(const std::string& folder, GPT& model) {
  check_weights_kind(folder);
  AdapterConfig config = read_adapter_config(folder);
  const SafetensorsFile file(folder + weights_name);
  const std::vector<Module> modules = chosen(model.config, config);
  if (!config.pattern.empty()) {
    config.lora.targets.clear();
    for (const Module& module : modules)
      config.lora.targets.push_back(module.name);
  }
  std::vector<nn::detail::StateEntry> expected;
  const auto rank = static_cast<std::size_t>(config.lora.rank);
  for (const Module& module : modules) {
    expected.push_back({module.key("lora_A"), {rank, module.shape[1]}});
    expected.push_back({module.key("lora_B"), {static_cast<std::size_t>(module.part.rows), rank}});
  }
  for (const auto& [key, stored] : file.tensors())
    check<FileError>(
        key.find(".lora_embedding_") == key.npos,
        "{}: {} is an adapter of an embedding, and an embedding has none here; {}", folder,
        printable_name(key),
        model.config.tied ? "merged, it would change the tied lm_head as well" : peft_merges);
  const std::set<std::string> own = own_weights(file, model, folder);
  for (const std::string& name : config.modules_to_save)
    check<FileError>(
        std::ranges::any_of(own, [&](auto& key) { return key.ends_with("." + name + ".weight"); }),
        "{}: modules_to_save names {}, and {} has no weight of it", folder, printable_name(name),
        weights_name + 1);
  io::detail::check_fits(folder + ": the adapters do not fit the model", expected, {&file, 1}, own);
  const auto sum = file.metadata().find(base_key);
  check<FileError>(
      sum == file.metadata().end() || sum->second == base_checksum(nn::state_dict(model)),
      "{}: its adapters were trained to other weights than this model's", folder);
  // Everything is read before the model changes.
  std::map<std::string, std::vector<Tensor>> values;  // by the name of the stacked matrix
  for (const Module& module : modules)
    for (const char* const matrix : {"lora_A", "lora_B"})
      values[module.linear + "." + matrix].push_back(
          file.tensor(module.key(matrix), model.ln_f.weight.dtype()));
  add_empty_adapters(model, config.lora);
  const NoGrad no_grad;
  for (auto& [name, x] : nn::named_parameters(model))
    if (const auto at = values.find(name); at != values.end())
      x.copy_(cat(at->second, 0));
  return config;
}

void save_adapters(const std::string& folder, const GPT& model, const std::string& base,
                   bool overwrite) {
  const NoGrad no_grad;
  std::map<std::string, const nn::Linear*> adapted;
  for (const auto& [name, linear] : nn::detail::members(model).linears)
    if (linear->lora_A.defined())
      adapted.emplace(name, linear);
  check<ValueError>(!adapted.empty(), "save_adapters: the model has no adapters");
  const auto& [first_name, first] = *adapted.begin();
  const Size rank = first->lora_B.size(1);
  TensorFile content{
      .metadata = {{"format", "pt"}, {base_key, base_checksum(nn::state_dict(model))}}};
  Names names;
  std::set<std::string> last;  // the last parts of names
  for (const Module& module : modules_of(model.config)) {
    const auto found = adapted.find(module.linear);
    if (found == adapted.end())
      continue;
    const nn::Linear& linear = *found->second;
    check<ValueError>(linear.lora_B.size(1) == rank && linear.lora_scale == first->lora_scale,
                      "save_adapters: {} has adapters of another rank or scale than {}",
                      found->first, first_name);
    auto parts = linear.lora_parts;
    if (parts.empty())
      parts.push_back({0, static_cast<Size>(module.shape[0])});
    Size i = 0, held = 0;  // rows of the parts before
    for (const auto& [first_row, rows] : parts) {
      const Size at = module.part.first - first_row;
      if (at >= 0 && at < rows) {
        names.push_back(module.name);
        last.insert(module.name.substr(module.name.rfind('.') + 1));
        content.tensors.emplace(module.key("lora_A"), narrow(linear.lora_A, 0, i * rank, rank));
        content.tensors.emplace(module.key("lora_B"),
                                narrow(linear.lora_B, 0, held + at, module.part.rows));
      }
      ++i;
      held += rows;
    }
  }
  const Names all_last(last.begin(), last.end());
  const bool enough = chosen(model.config, {.targets = all_last}, true).size() == names.size();
  const Names& targets = enough ? all_last : names;
  const double alpha = first->lora_scale * static_cast<double>(rank), nearest = std::round(alpha);
  const bool whole = std::abs(alpha - nearest) < 1e-12 * alpha && nearest > 0 && alpha < 1e15;
  const JsonObject config{
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", base},
      {"r", rank},
      {"lora_alpha", whole ? Json(static_cast<std::int64_t>(nearest)) : Json(alpha)},
      {"target_modules", JsonArray(targets.begin(), targets.end())},
      {"bias", "none"},
      {"lora_dropout", 0.0},
      {"fan_in_fan_out", pretrained_family(model.config) == "gpt2"},
      {"inference_mode", true}};
  const std::string text = format_json(config, InvalidUtf8::refused, 2) + "\n";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check<FileError>(!error, "{}: this folder cannot be made: {}", folder, error.message());
  for (const char* const name : {config_name, weights_name})
    check_output(folder + name, overwrite);
  AtomicFile file(folder + config_name);
  file.write(text);
  save_safetensors(folder + weights_name, content);
  file.commit();
}

std::string base_checksum(const nn::StateDict& state) {
  Checksum sum;
  for (const auto& [name, x] : state) {
    if (name.ends_with(".lora_A") || name.ends_with(".lora_B"))
      continue;
    const Tensor single = x.to(DType::float32);
    sum.add(name.data(), name.size());
    sum.add(single.data<float>(), sizeof(float) * static_cast<std::size_t>(single.numel()));
  }
  return sum.digits();
}

}  // namespace xgrad::lm
