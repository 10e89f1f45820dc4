#include <xgrad/io/pretrained_config.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/file.hpp>

namespace xgrad::io {
namespace {

// An object in a file.  A key whose value is null counts as absent.
class Section {
 public:
  Section(std::string path, const Json& json, std::string prefix = "")
      : path_(std::move(path)), prefix_(std::move(prefix)), json_(json) {}

  const Json* find(const char* key) const {
    const Json* const value = json_.find(key);
    return value == nullptr || value->as<std::nullptr_t>() != nullptr ? nullptr : value;
  }
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
  /// Whether the key is there, if only with null.
  bool has(const char* key) const { return json_.find(key) != nullptr; }
  /// The object of a key, unless it is empty or not there.
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

// Sizes that every configuration has, by their keys.
struct SizeKey {
  const char *gpt2, *llama;
  Size nn::GPTConfig::*size;
};
constexpr SizeKey size_keys[] = {
    {"vocab_size", "vocab_size", &nn::GPTConfig::vocab_size},
    {"n_positions", "max_position_embeddings", &nn::GPTConfig::block_size},
    {"n_layer", "num_hidden_layers", &nn::GPTConfig::n_layer},
    {"n_head", "num_attention_heads", &nn::GPTConfig::n_head},
    {"n_embd", "hidden_size", &nn::GPTConfig::n_embd}};

nn::GPTConfig read_sizes(const Section& file, bool gpt2) {
  nn::GPTConfig c;
  for (const SizeKey& key : size_keys)
    c.*key.size = file.size(gpt2 ? key.gpt2 : key.llama);
  return c;
}

nn::GPTConfig read_gpt2(const Section& file) {
  file.supported(file.flag("scale_attn_weights", true), "scale_attn_weights", "true");
  for (const char* const key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    file.supported(!file.flag(key, false), key, "false");
  nn::GPTConfig c = nn::GPTConfig::gpt2(read_sizes(file, true));
  c.n_inner = file.size("n_inner", 4 * c.n_embd);
  c.norm_eps = file.number("layer_norm_epsilon", 1e-5);
  const std::string activation = file.text("activation_function", "gelu_new");
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, activation) != names.end();
  };
  if (is_one_of({"gelu", "gelu_python"}))
    c.activation = nn::Activation::gelu;
  else
    file.supported(is_one_of({"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast",
                              "gelu_accurate"}),
                   "activation_function", "gelu, gelu_new and their other names");
  c.tied = file.flag("tie_word_embeddings", true);
  return c;
}

// As transformers 5 reads its own form, rope_parameters, and that of version 4, rope_theta and
// rope_scaling.  Where both are there, rope_scaling replaces rope_parameters, and rope_theta stands
// for one that the object lacks.
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

// Refuses layers in which a position sees fewer than all before it.  The defaults are those of
// transformers.
void check_no_window(const Section& file, const nn::GPTConfig& c, bool qwen2) {
  const char* const key = "sliding_window";
  const bool none = (qwen2 && !file.flag("use_sliding_window", false)) ||
                    (file.has(key) && file.find(key) == nullptr);
  const bool slides = !none && std::cmp_less(file.size(key, 4096), c.block_size);
  const Json* const types = qwen2 ? file.find("layer_types") : nullptr;
  if (types != nullptr) {
    for (const Json& type : types->as<JsonArray>() ? *types->as<JsonArray>() : JsonArray{*types})
      file.supported(
          type == Json("full_attention") || (type == Json("sliding_attention") && !none && !slides),
          "layer_types", "full_attention in every layer");
  } else if (const Json* const first = file.find("max_window_layers"); slides && qwen2) {
    const auto layers = first == nullptr ? std::optional(28.0) : first->number();
    file.supported(
        layers >= static_cast<double>(c.n_layer), "max_window_layers",
        fmt::format("{} and more with use_sliding_window, so that no layer slides", c.n_layer));
  } else {
    file.supported(!slides, key,
                   fmt::format("null, or at least max_position_embeddings, {}, which may be "
                               "lowered to it for shorter texts",
                               c.block_size));
  }
}

nn::GPTConfig read_llama(const Section& file, const std::string& type) {
  const std::string activation = file.text("hidden_act", "silu");
  file.supported(activation == "silu" || activation == "swish", "hidden_act",
                 "silu, also as swish");
  nn::GPTConfig c = nn::GPTConfig::llama(read_sizes(file, false));
  c.n_kv_head = file.size("num_key_value_heads", c.n_head);
  c.head_dim = file.find("head_dim") == nullptr ? 0 : file.size("head_dim");
  c.n_inner = file.size("intermediate_size");
  c.rotary = read_rotary(file);
  c.norm_eps = file.number("rms_norm_eps", 1e-6);
  if (type == "llama") {
    c.qkv_bias = c.proj_bias = file.flag("attention_bias", false);
    c.mlp_bias = file.flag("mlp_bias", false);
  } else {
    c.qkv_bias = type == "qwen2";
    check_no_window(file, c, type == "qwen2");
  }
  c.tied = file.flag("tie_word_embeddings", false);
  return c;
}

}  // namespace

Json read_json_file(const std::string& path) {
  const std::string text = read_file(path, std::uint64_t{64} << 20);
  try {
    return parse_json(text, 0, 16);
  } catch (const ValueError& error) {
    fail<FileError>("{}: {}", path, error.what());
  }
}

nn::GPTConfig read_pretrained_config(const std::string& path) {
  return pretrained_config_of(read_json_file(path), path);
}

nn::GPTConfig pretrained_config_of(const Json& json, const std::string& path) {
  const Section file(path, json);
  const std::string type = file.text("model_type");
  file.supported(type == "gpt2" || type == "llama" || type == "mistral" || type == "qwen2",
                 "model_type", "gpt2, llama, mistral and qwen2");
  if (file.find("quantization_config") != nullptr)
    fail<FileError>(
        "{}: quantization_config asks for quantised weights; supported: F16, BF16, "
        "F32 and F64",
        path);
  for (const char* const key : {"alibi", "num_experts", "num_local_experts"})
    if (const Json* const value = file.find(key))
      file.supported(*value == Json(false) || value->number() == 0.0, key,
                     "none of it: learned or rotary positions, one feed-forward part in a block");
  const nn::GPTConfig c = type == "gpt2" ? read_gpt2(file) : read_llama(file, type);
  try {
    return checked(c, path.c_str());
  } catch (const ValueError& error) {
    throw FileError(error.what());
  }
}

std::string pretrained_family(const nn::GPTConfig& c) {
  const bool qkv = c.qkv_bias.value_or(c.bias), proj = c.proj_bias.value_or(c.bias),
             mlp = c.mlp_bias.value_or(c.bias), swiglu = c.activation == nn::Activation::swiglu;
  std::string wrong;
  const auto need = [&](bool has, const char* option) {
    if (!has)
      wrong += (wrong.empty() ? "" : ", ") + std::string(option);
  };
  if (c.rotary) {
    need(c.rotary->pairs == nn::RotaryPairs::half, "rotary.pairs (half)");
    need(c.norm == nn::NormKind::rms, "norm (rms)");
    need(swiglu, "activation (swiglu)");
  } else {
    need(c.norm == nn::NormKind::layer, "norm (layer)");
    need(!swiglu, "activation (gelu, gelu_tanh)");
    need(c.kv_heads() == c.n_head, "n_kv_head (n_head)");
    need(c.n_head * c.head_width() == c.n_embd, "head_dim (n_embd / n_head)");
  }
  check<ValueError>(wrong.empty(),
                    "pretrained: no family with {} positions has this model's {}; in parentheses "
                    "is what {}",
                    c.rotary ? "rotary" : "learned", wrong, c.rotary ? "they have" : "gpt2 has");
  return !c.rotary ? "gpt2" : qkv && !proj && !mlp ? "qwen2" : "llama";
}

std::string format_pretrained_config(const nn::GPTConfig& c, const Json& ids) {
  const std::string family = pretrained_family(c);
  const bool gpt2 = family == "gpt2", qwen2 = family == "qwen2";
  const char* const architecture = gpt2    ? "GPT2LMHeadModel"
                                   : qwen2 ? "Qwen2ForCausalLM"
                                           : "LlamaForCausalLM";
  JsonObject json{{"architectures", JsonArray{Json(architecture)}},
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
    const bool exact = c.activation == nn::Activation::gelu;
    json.emplace_back("activation_function", exact ? "gelu" : "gelu_new");
    for (const char* const key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
      json.emplace_back(key, c.dropout);
    return format_json(json, InvalidUtf8::refused, 2) + "\n";
  }
  json.emplace_back("hidden_act", "silu");
  json.emplace_back("num_key_value_heads", c.kv_heads());
  json.emplace_back("head_dim", c.head_width());
  json.emplace_back("attention_dropout", c.dropout);
  if (qwen2) {
    json.emplace_back("use_sliding_window", false);
  } else {
    json.emplace_back("attention_bias",
                      c.qkv_bias.value_or(c.bias) || c.proj_bias.value_or(c.bias));
    json.emplace_back("mlp_bias", c.mlp_bias.value_or(c.bias));
  }
  // As before version 5, which reads it as well.
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

}  // namespace xgrad::io
