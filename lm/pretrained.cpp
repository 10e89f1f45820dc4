#include "pretrained.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>
#include "../autograd/check/describe.hpp"
#include "../autograd/fail.hpp"
#include "../autograd/mode.hpp"
#include "../autograd/ops.hpp"
#include "../io/checkpoint.hpp"
#include "../io/file.hpp"
#include "../nn/init.hpp"

namespace xgrad::lm {

using namespace io;

namespace {

// An object in a file.  A key with null counts as absent.
class Section {
 public:
  Section(std::string path, const Json& json, std::string prefix = "")
      : path_(std::move(path)), prefix_(std::move(prefix)), json_(json) {}

  const Json* find(const char* key) const { return given(json_, key); }
  [[noreturn]] void refuse(const char* key, const std::string& rule) const {
    const Json* const value = find(key);
    fail<FileError>("{}: {}{} {}; {}", path_, prefix_, key,
                    value == nullptr ? "is missing" : "is " + printable_name(format_json(*value)),
                    rule);
  }
  void supported(bool is, const char* key, const std::string& list) const {
    if (!is)
      refuse(key, "supported: " + list);
  }
  std::size_t size(const char* key, std::optional<std::size_t> otherwise = {}) const {
    constexpr std::uint64_t most = (std::uint64_t{1} << 31) - 1;
    const std::string rule = fmt::format("it must be a whole number from 1 to {}", most);
    const std::uint64_t n = get<std::uint64_t>(key, rule, otherwise);
    if (n == 0 || n > most)
      refuse(key, rule);
    return n;
  }
  double number(const char* key, std::optional<double> otherwise = {}) const {
    const Json* const value = find(key);
    const std::optional<double> x = value == nullptr ? otherwise : value->number();
    if (!x || !std::isfinite(*x) || *x <= 0)
      refuse(key, "it must be a positive number");
    return *x;
  }
  bool flag(const char* key, bool otherwise) const {
    return get<bool>(key, "it must be true or false", otherwise);
  }
  std::string text(const char* key, const std::string& otherwise = "") const {
    return get<std::string>(key, "it must be a text", otherwise);
  }
  /// Whether the key exists, even with null.
  bool has(const char* key) const { return json_.find(key) != nullptr; }
  /// The object of a key; none if it is empty or absent.
  std::optional<Section> section(const char* key) const {
    const Json* const value = find(key);
    if (value == nullptr || *value == Json(JsonObject{}))
      return {};
    if (value->as<JsonObject>() == nullptr)
      refuse(key, "it must be an object");
    return Section(path_, *value, std::string(key) + ".");
  }

 private:
  template <class T>
  T get(const char* key, const std::string& rule, const std::optional<T>& otherwise) const {
    const Json* const value = find(key);
    if (value == nullptr && otherwise)
      return *otherwise;
    const T* const x = value == nullptr ? nullptr : value->as<T>();
    if (x == nullptr)
      refuse(key, rule);
    return *x;
  }

  std::string path_, prefix_;
  const Json& json_;
};

struct Family {
  const char *name, *architecture;
};
constexpr Family families[] = {{"gpt2", "GPT2LMHeadModel"},
                               {"llama", "LlamaForCausalLM"},
                               {"mistral", "MistralForCausalLM"},
                               {"qwen2", "Qwen2ForCausalLM"},
                               {"qwen3", "Qwen3ForCausalLM"}};

// Sizes that every configuration has, with their keys.
struct SizeKey {
  const char *gpt2, *llama;
  Size GPTConfig::* size;
};
constexpr SizeKey size_keys[] = {{"vocab_size", "vocab_size", &GPTConfig::vocab_size},
                                 {"n_positions", "max_position_embeddings", &GPTConfig::block_size},
                                 {"n_layer", "num_hidden_layers", &GPTConfig::n_layer},
                                 {"n_head", "num_attention_heads", &GPTConfig::n_head},
                                 {"n_embd", "hidden_size", &GPTConfig::n_embd}};

GPTConfig read_sizes(const Section& file, bool gpt2) {
  GPTConfig c;
  for (const SizeKey& key : size_keys)
    c.*key.size = file.size(gpt2 ? key.gpt2 : key.llama);
  return c;
}

GPTConfig read_gpt2(const Section& file) {
  file.supported(file.flag("scale_attn_weights", true), "scale_attn_weights", "true");
  for (const char* const key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    file.supported(!file.flag(key, false), key, "false");
  GPTConfig c = GPTConfig::gpt2(read_sizes(file, true));
  c.n_inner = file.size("n_inner", 4 * c.n_embd);
  c.norm_eps = file.number("layer_norm_epsilon", 1e-5);
  const std::string activation = file.text("activation_function", "gelu_new");
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, activation) != names.end();
  };
  if (is_one_of({"gelu", "gelu_python"}))
    c.activation = Activation::gelu;
  else
    file.supported(is_one_of({"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast",
                              "gelu_accurate"}),
                   "activation_function", "gelu, gelu_new and their other names");
  c.tied = file.flag("tie_word_embeddings", true);
  return c;
}

// As transformers 5 reads its own form, rope_parameters, and version 4's, rope_theta and
// rope_scaling.  rope_scaling replaces rope_parameters, and rope_theta is used if the object lacks
// its own.
nn::RotaryOptions read_rotary(const Section& file) {
  static const Json nothing = JsonObject{};
  const std::optional<Section> scaling = file.section("rope_scaling"),
                               parameters = file.section("rope_parameters");
  const Section rope = scaling ? *scaling : parameters ? *parameters : Section("", nothing);
  for (const char* const key : {"full_attention", "sliding_attention"})
    rope.supported(rope.find(key) == nullptr, key, "one rotation for all layers");
  for (const Section& part : {file, rope})
    part.supported(part.number("partial_rotary_factor", 1) == 1, "partial_rotary_factor", "1");
  nn::RotaryOptions rotary;
  rotary.theta = rope.number("rope_theta", file.number("rope_theta", 10000));
  const char* const key = rope.find("rope_type") == nullptr ? "type" : "rope_type";
  const std::string type = rope.text(key, "default");
  rope.supported(type == "default" || type == "linear" || type == "llama3", key,
                 "default, linear and llama3");
  if (type != "default")
    rotary.factor = rope.number("factor");
  if (type == "llama3") {
    rotary.low_freq_factor = rope.number("low_freq_factor");
    rotary.high_freq_factor = rope.number("high_freq_factor");
    constexpr const char* original = "original_max_position_embeddings";
    rotary.original_max_position_embeddings =
        file.size(original, rope.size(original, file.size("max_position_embeddings")));
    if (rotary.low_freq_factor >= rotary.high_freq_factor)
      rope.refuse("low_freq_factor", "it must be below high_freq_factor");
  }
  return rotary;
}

// The window of all layers; 0 if it has no effect.  The defaults are transformers'.
Size read_window(const Section& file, const GPTConfig& c, bool qwen) {
  const char* const key = "sliding_window";
  const bool none = (qwen && !file.flag("use_sliding_window", false)) ||
                    (file.has(key) && file.find(key) == nullptr);
  const Size window = none ? 0 : file.size(key, 4096);
  const bool slides = !none && window < c.block_size;
  if (const Json* const types = qwen ? file.find("layer_types") : nullptr) {
    const JsonArray list = types->as<JsonArray>() ? *types->as<JsonArray>() : JsonArray{*types};
    const auto full = std::ranges::count(list, Json("full_attention")),
               sliding = std::ranges::count(list, Json("sliding_attention"));
    const bool all_slide = full == 0 && sliding == c.n_layer;
    file.supported(
        full + sliding == std::ssize(list) && (sliding == 0 || (!none && (!slides || all_slide))),
        "layer_types",
        "full_attention in every layer, or, with use_sliding_window and a "
        "sliding_window, sliding_attention in every layer");
    return slides && sliding > 0 ? window : 0;
  }
  if (slides && qwen) {  // the layers after the first max_window_layers slide
    const Json* const value = file.find("max_window_layers");
    const double first = value == nullptr ? 28.0 : value->number().value_or(0.5);
    const bool all_full = first >= static_cast<double>(c.n_layer);
    file.supported(all_full || first == 0, "max_window_layers",
                   fmt::format("0, and {} and more: all layers slide or none", c.n_layer));
    return all_full ? 0 : window;
  }
  return slides ? window : 0;
}

GPTConfig read_llama(const Section& file, const std::string& type) {
  const std::string activation = file.text("hidden_act", "silu");
  file.supported(activation == "silu" || activation == "swish", "hidden_act",
                 "silu, also as swish");
  GPTConfig c = GPTConfig::llama(read_sizes(file, false));
  c.n_kv_head = file.size("num_key_value_heads", c.n_head);
  if (file.find("head_dim") != nullptr || type == "qwen3")
    c.head_dim = file.size("head_dim", 128);
  c.n_inner = file.size("intermediate_size");
  c.rotary = read_rotary(file);
  c.norm_eps = file.number("rms_norm_eps", 1e-6);
  c.qk_norm = type == "qwen3";
  c.qkv_bias = type == "qwen2";
  if (type == "llama" || c.qk_norm)
    c.qkv_bias = c.proj_bias = file.flag("attention_bias", false);
  if (type == "llama")
    c.mlp_bias = file.flag("mlp_bias", false);
  else
    c.sliding_window = read_window(file, c, type != "mistral");
  c.tied = file.flag("tie_word_embeddings", false);
  return c;
}

}  // namespace

Json read_json_file(const std::string& path) {
  return of_file(path, [&] { return parse_json(read_file(path, std::uint64_t{64} << 20), 0, 16); });
}

const Json* given(const Json& json, const char* key) {
  const Json* const value = json.find(key);
  return value == nullptr || value->as<std::nullptr_t>() != nullptr ? nullptr : value;
}

GPTConfig read_pretrained_config(const std::string& path) {
  return pretrained_config_of(read_json_file(path), path);
}

GPTConfig pretrained_config_of(const Json& json, const std::string& path) {
  const Section file(path, json);
  const std::string type = file.text("model_type");
  file.supported(std::ranges::any_of(families, [&](const Family& f) { return type == f.name; }),
                 "model_type", "gpt2, llama, mistral, qwen2 and qwen3");
  if (file.find("quantization_config") != nullptr)
    fail<FileError>(
        "{}: quantization_config asks for quantised weights; supported: F16, BF16, "
        "F32 and F64",
        path);
  for (const char* const key : {"alibi", "num_experts", "num_local_experts"})
    if (const Json* const value = file.find(key))
      file.supported(*value == Json(false) || value->number() == 0.0, key,
                     "none of it: learned or rotary positions, one feed-forward part in a block");
  const GPTConfig c = type == "gpt2" ? read_gpt2(file) : read_llama(file, type);
  try {
    return checked(c, path.c_str());
  } catch (const ValueError& error) {
    throw FileError(error.what());
  }
}

std::string pretrained_family(const GPTConfig& c) {
  const bool qkv = c.qkv_bias.value_or(c.bias), proj = c.proj_bias.value_or(c.bias),
             mlp = c.mlp_bias.value_or(c.bias), swiglu = c.activation == Activation::swiglu,
             slides = c.sliding_window > 0;
  const char* const family = !c.rotary              ? "gpt2"
                             : c.qk_norm            ? "qwen3"
                             : qkv && !proj && !mlp ? "qwen2"
                             : slides               ? "mistral"
                                                    : "llama";
  std::string wrong;
  const auto need = [&](bool has, const char* option) {
    if (!has)
      wrong += (wrong.empty() ? "" : ", ") + std::string(option);
  };
  if (c.rotary) {
    need(c.rotary->pairs == nn::RotaryPairs::half, "rotary.pairs (half)");
    need(c.rotary->partial_rotary_factor == 1, "rotary.partial_rotary_factor (1)");
    need(c.norm == NormKind::rms, "norm (rms)");
    need(swiglu, "activation (swiglu)");
    need(!c.qk_norm || !mlp, "mlp_bias with qk_norm (false)");
    need(!slides || c.qk_norm || !mlp, "mlp_bias with sliding_window (false)");
    need(!slides || c.qk_norm || !proj, "proj_bias with sliding_window (false)");
  } else {
    need(c.norm == NormKind::layer, "norm (layer)");
    need(!swiglu, "activation (gelu, gelu_tanh)");
    need(c.kv_heads() == c.n_head, "n_kv_head (n_head)");
    need(c.n_head * c.head_width() == c.n_embd, "head_dim (n_embd / n_head)");
    need(!slides, "sliding_window (0)");
    need(!c.qk_norm, "qk_norm (false)");
  }
  check<ValueError>(
      wrong.empty(),
      "pretrained: transformers has no model with {} positions and this model's {} (in "
      "parentheses: the setting that it has)",
      c.rotary ? "rotary" : "learned", wrong);
  return family;
}

std::string format_pretrained_config(const GPTConfig& c, const Json& ids) {
  const std::string family = pretrained_family(c);
  const bool gpt2 = family == "gpt2", qwen = family.starts_with("qwen");
  const auto known = std::ranges::find(families, family, &Family::name);
  JsonObject json{{"architectures", JsonArray{Json(known->architecture)}},
                  {"model_type", family},
                  {"torch_dtype", "float32"},
                  {"tie_word_embeddings", c.tied},
                  {gpt2 ? "n_inner" : "intermediate_size", c.inner_width()},
                  {gpt2 ? "layer_norm_epsilon" : "rms_norm_eps", c.norm_eps}};
  for (const auto& [key, value] : *ids.as<JsonObject>())
    json.emplace_back(key, value);
  for (const SizeKey& key : size_keys)
    json.emplace_back(gpt2 ? key.gpt2 : key.llama, c.*key.size);
  if (gpt2) {
    const bool exact = c.activation == Activation::gelu;
    json.emplace_back("activation_function", exact ? "gelu" : "gelu_new");
    for (const char* const key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
      json.emplace_back(key, c.dropout);
    return format_json(json, InvalidUtf8::refused, 2) + "\n";
  }
  json.emplace_back("hidden_act", "silu");
  json.emplace_back("num_key_value_heads", c.kv_heads());
  json.emplace_back("head_dim", c.head_width());
  json.emplace_back("attention_dropout", c.dropout);
  if (qwen)
    json.emplace_back("use_sliding_window", c.sliding_window > 0);
  if (c.sliding_window > 0) {
    json.emplace_back("sliding_window", c.sliding_window);
    if (qwen)  // the first layer that slides
      json.emplace_back("max_window_layers", std::uint64_t{0});
  }
  if (family == "llama" || family == "qwen3")
    json.emplace_back("attention_bias",
                      c.qkv_bias.value_or(c.bias) || c.proj_bias.value_or(c.bias));
  if (family == "llama")
    json.emplace_back("mlp_bias", c.mlp_bias.value_or(c.bias));
  // The form of transformers before version 5, which reads it as well.
  const nn::RotaryOptions& rotary = *c.rotary;
  const bool llama3 = rotary.original_max_position_embeddings > 0;
  json.emplace_back("rope_theta", rotary.theta);
  JsonObject scaling{{"rope_type", llama3 ? "llama3" : "linear"}, {"factor", rotary.factor}};
  if (llama3) {
    scaling.emplace_back("low_freq_factor", rotary.low_freq_factor);
    scaling.emplace_back("high_freq_factor", rotary.high_freq_factor);
    scaling.emplace_back("original_max_position_embeddings",
                         rotary.original_max_position_embeddings);
  }
  if (llama3 || rotary.factor != 1)
    json.emplace_back("rope_scaling", std::move(scaling));
  return format_json(json, InvalidUtf8::refused, 2) + "\n";
}

// Checked first, because the list of pretrained_tensors() is as long as the configuration says.
constexpr std::size_t fewest_layer_tensors = 9;

std::vector<PretrainedTensor> pretrained_tensors(const GPTConfig& c) {
  const std::string family = pretrained_family(c);
  const bool gpt2 = family == "gpt2";
  const std::size_t C = c.n_embd, D = c.head_width(), HD = c.n_head * D, GD = c.kv_heads() * D,
                    F = c.inner_width();
  const bool qkv = c.qkv_bias.value_or(c.bias), proj = c.proj_bias.value_or(c.bias),
             mlp = c.mlp_bias.value_or(c.bias);
  std::vector<PretrainedTensor> all;
  // Adds the weight and the bias of layer `name` of GPT.  `parts` are Llama's layers, stacked,
  // with their numbers of rows; GPT-2 uses GPT's name.  `in` is the number of columns, 0 for a
  // vector.  A bias that the family has and the model lacks is stored as zeros.
  const auto layer = [&](const std::string& name,
                         std::vector<std::pair<std::string, std::size_t>> parts, std::size_t in,
                         bool family_bias = false, bool bias = false) {
    std::size_t out = 0;
    for (const auto& [part, rows] : parts)
      out += rows;
    if (gpt2)
      parts = {{name, out}};
    PretrainedTensor w{name + ".weight", in > 0 ? Shape{out, in} : Shape{out},
                       gpt2 && in > 0 && family_bias},
        b{name + ".bias", {out}, false, !bias};
    for (const auto& [part, rows] : parts) {
      w.parts.emplace_back(part + ".weight", rows);
      b.parts.emplace_back(part + ".bias", rows);
    }
    all.push_back(std::move(w));
    if (family_bias)
      all.push_back(std::move(b));
  };
  layer("transformer.wte", {{"model.embed_tokens", c.vocab_size}}, C);
  if (gpt2)
    layer("transformer.wpe", {{"", c.block_size}}, C);
  for (Size i = 0; i < c.n_layer; ++i) {
    const std::string h = fmt::format("transformer.h.{}.", i),
                      l = fmt::format("model.layers.{}.", i), attn = l + "self_attn.";
    layer(h + "ln_1", {{l + "input_layernorm", C}}, 0, gpt2, c.bias);
    layer(h + "attn.c_attn", {{attn + "q_proj", HD}, {attn + "k_proj", GD}, {attn + "v_proj", GD}},
          C, gpt2 || qkv || proj, qkv);
    layer(h + "attn.c_proj", {{attn + "o_proj", C}}, HD, gpt2 || proj || (qkv && family != "qwen2"),
          proj);
    if (c.qk_norm) {
      layer(h + "attn.q_norm", {{attn + "q_norm", D}}, 0);
      layer(h + "attn.k_norm", {{attn + "k_norm", D}}, 0);
    }
    layer(h + "ln_2", {{l + "post_attention_layernorm", C}}, 0, gpt2, c.bias);
    layer(h + "mlp.c_fc", {{l + "mlp.up_proj", F}}, C, gpt2 || mlp, mlp);
    if (!gpt2)
      layer(h + "mlp.c_gate", {{l + "mlp.gate_proj", F}}, C, mlp, mlp);
    layer(h + "mlp.c_proj", {{l + "mlp.down_proj", C}}, F, gpt2 || mlp, mlp);
  }
  layer("transformer.ln_f", {{"model.norm", C}}, 0, gpt2, c.bias);
  if (!c.tied)
    layer("lm_head", {{"lm_head", c.vocab_size}}, C);
  return all;
}

nn::StateDict to_pretrained(const GPTConfig& config, const nn::StateDict& state) {
  const NoGrad no_grad;
  const std::vector<PretrainedTensor> parameters = pretrained_tensors(config);
  std::map<std::string, Tensor> values(state.begin(), state.end());
  std::vector<nn::detail::StateEntry> expected;
  for (const PretrainedTensor& p : parameters)
    if (p.zero)
      values.emplace(p.name, zeros(p.shape, DType::float32));
    else
      expected.push_back({p.name, p.shape});
  const std::string problems =
      nn::detail::mismatches(expected, nn::detail::state_entries(state), "by the configuration");
  check<ValueError>(problems.empty(),
                    "to_pretrained: the state does not fit the configuration (lm::merge_lora() "
                    "adds adapters to weights){}",
                    problems);
  nn::StateDict result;
  for (const PretrainedTensor& p : parameters) {
    Size first = 0;
    for (const auto& [name, rows] : p.parts) {
      const Tensor part = narrow(values.at(p.name).detach(), 0, first, rows);
      result.emplace_back(name, p.transposed ? transpose(part, 0, 1) : part);
      first += rows;
    }
  }
  return result;
}

// The ids in a configuration, null ones too.
static JsonObject special_ids(const Json& config) {
  JsonObject ids;
  for (const char* const key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (const Json* const id = config.find(key))
      ids.emplace_back(key, *id);
  return ids;
}

JsonObject read_pretrained_metadata(const std::string& folder) {
  JsonObject metadata{{"config.json", special_ids(read_json_file(folder + "/config.json"))}};
  for (const char* const name : pretrained_files) {
    const std::string path = folder + "/" + name;
    if (std::error_code none; !std::filesystem::exists(path, none))
      continue;
    const Json text = read_file(path, std::uint64_t{16} << 20);
    of_file(path, [&] { return format_json(text); });
    metadata.emplace_back(name, text);
  }
  end_of_text_ids(metadata, folder);
  return metadata;
}

// The generation_config.json among these texts; null if there is none.
static Json generation_config_in(const Json& metadata, const std::string& path) {
  const char* const name = "generation_config.json";
  const auto* const text = metadata.find<std::string>(name);
  return of_file(path + ": " + name,
                 [&] { return text == nullptr ? Json() : parse_json(*text, 0, 16); });
}

std::map<std::string, double> generation_settings(const Json& metadata, const std::string& path) {
  struct Setting {
    const char* key;
    double low, high;
    bool whole = false;
  };
  const Json json = generation_config_in(metadata, path);
  const Section file(path + ": generation_config.json", json);
  std::map<std::string, double> settings;
  if (file.find("do_sample") != nullptr)
    settings.emplace("do_sample", file.flag("do_sample", false) ? 1 : 0);
  for (const auto& [key, low, high, whole] :
       {Setting{"temperature", 0, 100}, Setting{"top_k", 0, 1e9, true}, Setting{"top_p", 1e-9, 1},
        Setting{"min_p", 0, 1}, Setting{"repetition_penalty", 1e-6, 1e6},
        Setting{"no_repeat_ngram_size", 0, 1e9, true}})
    if (const Json* const value = file.find(key)) {
      const std::optional<double> x = value->number();
      if (!x || !(*x >= low && *x <= high) || (whole && *x != std::floor(*x)))
        file.refuse(key, fmt::format("it must be a {}number from {} to {}", whole ? "whole " : "",
                                     low, high));
      settings.emplace(key, *x);
    }
  return settings;
}

std::vector<std::int64_t> end_of_text_ids(const Json& metadata, const std::string& path) {
  const char* name = "generation_config.json";
  Json config = generation_config_in(metadata, path);
  if (metadata.find<std::string>(name) == nullptr)
    if (const Json* const ids = metadata.find(name = "config.json"))
      config = *ids;
  const Json* const eos = given(config, "eos_token_id");
  if (eos == nullptr)
    return {};
  std::vector<std::int64_t> ids;
  for (const Json& id : eos->as<JsonArray>() ? *eos->as<JsonArray>() : JsonArray{*eos})
    if (const auto* const n = id.as<std::uint64_t>(); n != nullptr && *n <= 0xFFFFFFFF)
      ids.push_back(static_cast<std::int64_t>(*n));
    else
      fail<FileError>("{}: {}: eos_token_id is {}; it must be an id or a list of ids", path, name,
                      printable_name(format_json(*eos)));
  return ids;
}

void save_pretrained(const std::string& folder, const GPT& model, bool overwrite,
                     const Json& metadata) {
  const Json* const ids = metadata.find("config.json");
  const std::string config = ids == nullptr
                                 ? format_pretrained_config(model.config)
                                 : format_pretrained_config(model.config, special_ids(*ids));
  TensorFile content{.metadata = {{"format", "pt"}}};
  for (const auto& [name, x] : to_pretrained(model.config, nn::state_dict(model)))
    if (Tensor single = x.to(DType::float32); (isfinite(x) & isinf(single)).any())
      fail<ValueError>("save_pretrained: {} holds a finite value that float32 cannot", name);
    else
      content.tensors.emplace(name, std::move(single));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check<FileError>(!error, "{}: this folder cannot be made: {}", folder, error.message());
  const std::string weights = folder + "/model.safetensors";
  check_output(weights, overwrite);
  std::deque<AtomicFile> files;
  const auto write = [&](const char* name, const std::string& text) {
    const std::string path = folder + "/" + name;
    check_output(path, overwrite);
    files.emplace_back(path).write(text);
  };
  write("config.json", config);
  for (const char* const name : pretrained_files)
    if (const auto* const text = metadata.find<std::string>(name))
      write(name, *text);
  save_safetensors(weights, content);
  for (AtomicFile& file : files)
    file.commit();
}

// ---- loading ----

void check_weights_kind(const std::string& path) {
  struct Kind {
    const char *suffix, *magic, *message;
  };
  static constexpr Kind kinds[] = {
      {"adapter_model.bin", nullptr,
       "holds Python pickles, which can run code and are not read; in Python, "
       "AutoPeftModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER) writes "
       "adapter_model.safetensors"},
      {".gguf", "GGUF",
       "is a GGUF file, which is not supported; name the folder that it was made from, with "
       "config.json and model.safetensors, or write one in Python: "
       "AutoModelForCausalLM.from_pretrained(FOLDER, gguf_file=NAME).save_pretrained(NEW)"},
      {".bin", "PK\3\4",
       "holds Python pickles, which can run code and are not read; in Python, "
       "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER) writes "
       "model.safetensors, and safetensors.torch.save_file() a state dict"}};
  namespace fs = std::filesystem;
  std::error_code none;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path, none))
    names.insert(entry.path().filename().string());
  std::string begin(4, '\0');
  if (fs::is_regular_file(path, none) && fs::file_size(path, none) >= begin.size())
    ReadFile(path).read(begin.data(), begin.size(), 0);
  const bool read = std::ranges::any_of(names, [](const std::string& name) {
    return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
  });
  for (const auto& [suffix, magic, message] : kinds) {
    const auto named = std::ranges::find_if(
        names, [&, end = suffix](const std::string& name) { return name.ends_with(end); });
    if (magic != nullptr && begin == magic)
      fail<FileError>("{}: {}", path, message);
    if (named != names.end() && !read)
      fail<FileError>("{}: {} {}", path, printable_name(*named), message);
  }
}

// The files named by {"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors", ...}}.
static std::set<std::string> read_index(const std::string& path) {
  const Json json = read_json_file(path);
  const auto* const map = json.find<JsonObject>("weight_map");
  check<FileError>(map != nullptr && !map->empty(), "{}: has no 'weight_map' that names files",
                   path);
  std::set<std::string> files;
  for (const auto& [name, value] : *map) {
    const auto* const file = value.as<std::string>();
    if (file == nullptr || !file->ends_with(".safetensors") || file->starts_with('.') ||
        file->find_first_of(std::string_view("/\\:\0", 4)) != std::string::npos)
      fail<FileError>(
          "{}: '{}' is in {}; it must be a .safetensors file in the index's folder, without a path",
          path, printable_name(name), printable_name(format_json(value)));
    files.insert(*file);
  }
  return files;
}

static std::vector<SafetensorsFile> open_weights(const std::string& folder) {
  const std::string one = "model.safetensors", index = folder + "/" + one + ".index.json";
  std::error_code none;
  const bool sharded =
      !std::filesystem::exists(folder + "/" + one, none) && std::filesystem::exists(index, none);
  std::vector<SafetensorsFile> files;
  for (const std::string& path : sharded ? read_index(index) : std::set<std::string>{one})
    files.emplace_back(folder + "/" + path);
  return files;
}

static const SafetensorsFile* find_file(const std::vector<SafetensorsFile>& files,
                                        const std::string& name) {
  const auto at = std::ranges::find_if(files, [&](auto& file) { return file.contains(name); });
  return at == files.end() ? nullptr : &*at;
}

// Throws if the files do not hold these parameters, and renames their tensors to the names of
// parts.  A tied weight may occur as the first parameter, as the head, or as both.
static void check_weights(std::vector<SafetensorsFile>& files,
                          std::vector<PretrainedTensor>& parameters, bool tied,
                          const std::string& folder) {
  std::vector<nn::detail::StateEntry> expected;
  std::set<std::string> names, ignored;
  for (const PretrainedTensor& p : parameters)
    for (const auto& [name, rows] : p.parts) {
      Shape& shape = expected.emplace_back(nn::detail::StateEntry{name, p.shape}).shape;
      shape[0] = rows;
      if (p.transposed)
        std::swap(shape[0], shape[1]);
      names.insert(name);
    }
  std::string& embedding = parameters.front().parts.front().first;
  const std::string head = "lm_head.weight";
  if (tied)
    expected.push_back({.name = head, .shape = expected.front().shape, .tied_to = embedding});
  for (SafetensorsFile& file : files) {
    file.rename([&](const std::string& name) {  // models without a head have no prefix
      for (const std::string prefix : {"transformer.", "model."})
        if (names.contains(prefix + name))
          return prefix + name;
      return name;
    });
    for (const auto& [name, stored] : file.tensors())  // buffers of some versions of transformers
      if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
          name.ends_with(".rotary_emb.inv_freq"))
        ignored.insert(name);
  }
  io::detail::check_fits(folder + ": the weights do not fit config.json", expected, files, ignored,
                         "by config.json");
  const SafetensorsFile* const first = find_file(files, embedding);
  const SafetensorsFile* const second = tied ? find_file(files, head) : nullptr;
  check<FileError>(first == nullptr || second == nullptr ||
                       xgrad::detail::same_bits(first->tensor(embedding, DType::float32),
                                                second->tensor(head, DType::float32)),
                   "{}: {} and {} differ, and config.json ties them (tie_word_embeddings)", folder,
                   embedding, head);
  if (first == nullptr)
    embedding = head;
}

// A model whose values are loaded later.  With bfloat16 its large weights are not allocated, so
// they never all exist in float32.
static GPT empty_model(const GPTConfig& config, const PretrainedOptions& options) {
  const nn::init::SkipInit values_follow;
  if (!options.bfloat16) {
    GPT model(config);
    nn::to(model, options.dtype);
    return model;
  }
  GPTConfig small = config;
  small.n_layer = small.vocab_size = small.block_size = 1;
  GPT model(small);
  nn::to_bfloat16(model);
  for (Size i = 1; i < config.n_layer; ++i)
    model.h.push_back(nn::clone(model.h[0]));
  model.config = config;
  return model;
}

// Reads a matrix, a megabyte at a time.
static Bfloat16Matrix read_bfloat16(const std::vector<SafetensorsFile>& files,
                                    const PretrainedTensor& p) {
  Bfloat16Matrix matrix(p.shape);
  std::size_t row = 0;
  for (const auto& [name, rows] : p.parts) {
    const SafetensorsFile& file = *find_file(files, name);
    const Shape& shape = file.tensors().at(name).shape;
    const std::size_t n = shape[0], tile = std::max<std::size_t>(1, 262'144 / shape[1]);
    for (std::size_t i = 0; i < n; i += tile) {
      const Tensor x = file.rows(name, i, std::min(tile, n - i), DType::float32);
      check<FileError>(
          p.transposed ? matrix.put(row, i, transpose(x, 0, 1)) : matrix.put(row + i, 0, x),
          "{}: tensor '{}' holds a finite value that bfloat16 cannot", file.path(), name);
    }
    row += rows;
  }
  return matrix;
}

GPT load_pretrained(const std::string& folder, const PretrainedOptions& options) {
  check<ValueError>(!options.bfloat16 || options.dtype == DType::float32,
                    "load_pretrained: bfloat16 weights are for a model in float32");
  check_weights_kind(folder);
  if (std::error_code none; std::filesystem::exists(folder + "/adapter_config.json", none) &&
                            !std::filesystem::exists(folder + "/config.json", none))
    fail<FileError>(
        "{}: adapter_config.json is of a PEFT adapter: load the model that it belongs to, then "
        "these with load_adapters()",
        folder);
  GPTConfig config = read_pretrained_config(folder + "/config.json");
  config.dropout = options.dropout;
  checked(config, "load_pretrained");
  std::vector<SafetensorsFile> files = open_weights(folder);
  std::size_t stored = 0;
  for (const SafetensorsFile& file : files)
    stored += file.tensors().size();
  check<FileError>(std::cmp_less_equal(config.n_layer, stored / fewest_layer_tensors),
                   "{}: config.json asks for {} layers, and the weights have {}", folder,
                   config.n_layer, counted(stored, "tensor", "tensors"));
  std::vector<PretrainedTensor> parameters = pretrained_tensors(config);
  check_weights(files, parameters, config.tied, folder);

  GPT model = empty_model(config, options);
  const NoGrad no_grad;
  std::map<std::string, const PretrainedTensor*> by_name;
  for (const PretrainedTensor& p : parameters)
    by_name.emplace(p.name, &p);
  for (auto& [name, parameter] : nn::named_parameters(model)) {
    const PretrainedTensor& p = *by_name.at(name);
    std::vector<Tensor> rows;
    for (const auto& [part, n] : p.parts) {
      const Tensor x = find_file(files, part)->tensor(part, options.dtype);
      rows.push_back(p.transposed ? transpose(x, 0, 1) : x);
    }
    parameter.set_value((rows.size() == 1 ? rows[0] : cat(rows, 0)).identity().value);
  }
  for (const nn::detail::Weight& weight : nn::detail::members(model).weights)
    if (weight.bfloat16->defined() && by_name.contains(weight.name))
      *weight.bfloat16 = read_bfloat16(files, *by_name.at(weight.name));
  if (options.bfloat16 && config.tied)
    model.lm_head.bfloat16 = model.wte.bfloat16;
  return model;
}

}  // namespace xgrad::lm
