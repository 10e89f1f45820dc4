#include <xgrad/io/pretrained.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/listed.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/pretrained_config.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/nn/init.hpp>

namespace xgrad::io {

// Checked before pretrained_tensors() is asked, which lists as many as a configuration says.
constexpr std::size_t fewest_layer_tensors = 9;

std::vector<PretrainedTensor> pretrained_tensors(const nn::GPTConfig& c) {
  const std::string family = pretrained_family(c);
  const bool gpt2 = family == "gpt2", llama = family == "llama";
  const std::size_t C = c.n_embd, D = c.head_width(), HD = c.n_head * D, GD = c.kv_heads() * D,
                    F = c.inner_width();
  const bool qkv = c.qkv_bias.value_or(c.bias), proj = c.proj_bias.value_or(c.bias),
             mlp = c.mlp_bias.value_or(c.bias);
  std::vector<PretrainedTensor> all;
  // GPT-2's names are nn::GPT's own.
  const auto matrix = [&](std::string name, const std::string& parameter, Shape shape) {
    all.push_back({(gpt2 ? parameter : name) + ".weight", parameter + ".weight", shape});
  };
  const auto bias_of = [&](std::string name, const std::string& parameter, std::size_t out,
                           bool has) {
    all.push_back({(gpt2 ? parameter : name) + ".bias", parameter + ".bias", {out}});
    all.back().zero = !has;
  };
  // The families have biases of some parts or of none: what a model lacks of them is zeros.
  const auto linear = [&](const std::string& name, const std::string& parameter, std::size_t out,
                          std::size_t in, bool bias, bool others = false) {
    matrix(name, parameter, gpt2 ? Shape{in, out} : Shape{out, in});
    all.back().transposed = gpt2;
    if (gpt2 || bias || others)
      bias_of(name, parameter, out, bias);
  };
  const auto norm = [&](const std::string& name, const std::string& parameter) {
    matrix(name, parameter, {C});
    if (gpt2)
      bias_of(name, parameter, C, c.bias);
  };
  matrix("model.embed_tokens", "transformer.wte", {c.vocab_size, C});
  if (gpt2)
    matrix("", "transformer.wpe", {c.block_size, C});
  for (Size i = 0; i < c.n_layer; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i),
                      block = fmt::format("transformer.h.{}.", i), attn = block + "attn.c_attn";
    norm(layer + "input_layernorm", block + "ln_1");
    if (gpt2) {
      linear("", attn, 3 * C, C, qkv);
    } else {
      linear(layer + "self_attn.q_proj", attn, HD, C, qkv, proj);
      linear(layer + "self_attn.k_proj", attn, GD, C, qkv, proj);
      linear(layer + "self_attn.v_proj", attn, GD, C, qkv, proj);
    }
    linear(layer + "self_attn.o_proj", block + "attn.c_proj", C, HD, proj, llama && qkv);
    norm(layer + "post_attention_layernorm", block + "ln_2");
    linear(layer + "mlp.up_proj", block + "mlp.c_fc", F, C, mlp);
    if (!gpt2)
      linear(layer + "mlp.gate_proj", block + "mlp.c_gate", F, C, mlp);
    linear(layer + "mlp.down_proj", block + "mlp.c_proj", C, F, mlp);
  }
  norm("model.norm", "transformer.ln_f");
  if (!c.tied)
    matrix("lm_head", "lm_head", {c.vocab_size, C});
  return all;
}

nn::StateDict to_pretrained(const nn::GPTConfig& config, const nn::StateDict& state) {
  const NoGrad no_grad;
  const std::map<std::string, Tensor> given(state.begin(), state.end());
  std::map<std::string, Size> rows;  // of each parameter, that have been given out
  nn::StateDict result;
  for (const PretrainedTensor& t : pretrained_tensors(config)) {
    if (t.zero) {
      result.emplace_back(t.name, zeros(t.shape, DType::float32));
      continue;
    }
    const auto x = given.find(t.parameter);
    check<ValueError>(x != given.end(), "to_pretrained: there is no {}", t.parameter);
    const Size n = static_cast<Size>(t.transposed ? t.shape[1] : t.shape[0]);
    Size& first = rows[t.parameter];
    if (x->second.dim() == 0 || first + n > x->second.size(0))
      fail<ValueError>("to_pretrained: {} is {}, and has no rows {} to {}", t.parameter,
                       to_string(x->second.shape()), first, first + n);
    const Tensor part = narrow(x->second.detach(), 0, first, n);
    first += n;
    result.emplace_back(t.name, t.transposed ? transpose(part, 0, 1) : part);
    if (result.back().second.shape() != t.shape)
      fail<ValueError>("to_pretrained: {} would be {}, and must be {}", t.name,
                       to_string(result.back().second.shape()), to_string(t.shape));
  }
  for (const auto& [name, n] : rows)
    check<ValueError>(n == given.at(name).size(0),
                      "to_pretrained: {} has {} rows, and of this configuration {}", name,
                      given.at(name).size(0), n);
  for (const auto& [name, x] : given)
    check<ValueError>(
        rows.contains(name), "to_pretrained: {} has no place in these files{}", name,
        name.ends_with("lora_A") ? "; nn::merge_lora() adds adapters to weights" : "");
  return result;
}

// The ids that a configuration names, null ones too.
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
    try {
      format_json(text);
    } catch (const ValueError& error) {
      fail<FileError>("{}: {}", path, error.what());
    }
    metadata.emplace_back(name, text);
  }
  end_of_text_ids(metadata, folder);
  return metadata;
}

std::vector<std::int64_t> end_of_text_ids(const Json& metadata, const std::string& path) {
  const char* name = "generation_config.json";
  Json config;
  if (const auto* const text = metadata.find<std::string>(name))
    try {
      config = parse_json(*text, 0, 16);
    } catch (const ValueError& error) {
      fail<FileError>("{}: {}: {}", path, name, error.what());
    }
  else if (const Json* const ids = metadata.find(name = "config.json"))
    config = *ids;
  const Json* const eos = config.find("eos_token_id");
  if (eos == nullptr || eos->as<std::nullptr_t>() != nullptr)
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

void save_pretrained(const std::string& folder, const nn::GPT& model, bool overwrite,
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
      {"adapter_config.json", nullptr,
       "is of a PEFT adapter, without the model that it belongs to; in Python, "
       "AutoPeftModelForCausalLM.from_pretrained(FOLDER).merge_and_unload().save_pretrained(NEW) "
       "writes both as one model; its tokenizer belongs there, too"},
      {".gguf", "GGUF",
       "is a GGUF file, whose weights are not read; name the folder that it was made from, with "
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
  std::string begin;
  if (fs::is_regular_file(path, none) && fs::file_size(path, none) >= 4) {
    begin.resize(4);
    ReadFile(path).read(begin.data(), begin.size(), 0);
  }
  const bool read = std::ranges::any_of(names, [](const std::string& name) {
    return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
  });
  for (const auto& [suffix, magic, message] : kinds) {
    const auto named = std::ranges::find_if(
        names, [&, end = suffix](const std::string& name) { return name.ends_with(end); });
    if (magic != nullptr && begin == magic)
      fail<FileError>("{}: {}", path, message);
    if (named != names.end() && (magic == nullptr || !read))
      fail<FileError>("{}: {} {}", path, printable_name(*named), message);
  }
}

namespace {

// A name as models without a head have it.
std::string short_name(const std::string& name) {
  for (const std::string_view prefix : {"transformer.", "model."})
    if (name.starts_with(prefix))
      return name.substr(prefix.size());
  return name;
}

bool is_old_buffer(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

struct Stored {
  const SafetensorsFile* file;
  std::string name;
  const StoredTensor& header() const { return file->tensors().at(name); }
  Tensor read(DType dtype) const { return file->tensor(name, dtype); }
};

// The files with a folder's weights, opened, and their tensors by short name.
struct Weights {
  std::deque<SafetensorsFile> files;
  std::map<std::string, Stored> tensors;
  std::map<std::string, std::vector<std::string>> problems;  // names by what is wrong with them

  void problem(const std::string& kind, const std::string& name) { problems[kind].push_back(name); }
};

// The files that {"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors", ...}} names.
std::set<std::string> read_index(const std::string& path) {
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
          "{}: '{}' is in {}; it must be a .safetensors file beside the index, without a path",
          path, printable_name(name), printable_name(format_json(value)));
    files.insert(*file);
  }
  return files;
}

Weights open_weights(const std::string& folder) {
  const std::string one = "model.safetensors", index = folder + "/" + one + ".index.json";
  std::error_code none;
  const bool sharded =
      !std::filesystem::exists(folder + "/" + one, none) && std::filesystem::exists(index, none);
  Weights weights;
  for (const std::string& path : sharded ? read_index(index) : std::set<std::string>{one}) {
    const SafetensorsFile& file = weights.files.emplace_back(folder + "/" + path);
    for (const auto& [name, header] : file.tensors()) {
      const std::string known = short_name(name);
      if (!is_old_buffer(known) && !weights.tensors.emplace(known, Stored{&file, name}).second)
        weights.problem("given twice", printable_name(name));
    }
  }
  return weights;
}

void check_fits(Weights& weights, const nn::GPTConfig& config, const std::string& folder) {
  check<FileError>(
      std::cmp_less_equal(config.n_layer, weights.tensors.size() / fewest_layer_tensors),
      "{}: config.json asks for {} layers, and the weights have {}", folder, config.n_layer,
      counted(weights.tensors.size(), "tensor", "tensors"));
  const std::vector<PretrainedTensor> expected = pretrained_tensors(config);
  const std::string embedding = short_name(expected.front().name), head = "lm_head.weight";
  // A tied weight may come under either name, or under both.
  auto second =
      config.tied ? weights.tensors.extract(head) : decltype(weights.tensors)::node_type();
  if (second && !weights.tensors.contains(embedding)) {
    second.key() = embedding;
    weights.tensors.insert(std::move(second));
  }
  std::set<std::string> known;
  for (const PretrainedTensor& t : expected) {
    const std::string& name = *known.insert(short_name(t.name)).first;
    const auto stored = weights.tensors.find(name);
    if (stored == weights.tensors.end())
      weights.problem("missing", t.name);
    else if (const Shape& shape = stored->second.header().shape; shape != t.shape)
      weights.problem("wrong shape", fmt::format("{} is {} here and {} by config.json", t.name,
                                                 to_string(shape), to_string(t.shape)));
  }
  for (const auto& [name, stored] : weights.tensors) {
    const std::string& dtype = stored.header().dtype;
    if (!known.contains(name))
      weights.problem("unexpected", printable_name(stored.name));
    if (dtype != "F16" && dtype != "BF16" && dtype != "F32" && dtype != "F64")
      weights.problem("unsupported dtype (F16, BF16, F32 and F64 are supported)",
                      fmt::format("{} is {}", printable_name(stored.name), dtype));
  }
  std::string all;
  for (const auto& [kind, list] : weights.problems)
    all += fmt::format("\n  {}: {}", kind, listed(list));
  check<FileError>(all.empty(), "{}: the weights do not fit config.json{}", folder, all);
  if (second)
    check<FileError>(xgrad::detail::same_bits(weights.tensors.at(embedding).read(DType::float32),
                                              second.mapped().read(DType::float32)),
                     "{}: {} and {} differ, and config.json ties them (tie_word_embeddings)",
                     folder, expected.front().name, head);
}

// A model whose values follow.  In bfloat16 its large weights are left out: at no time are they all
// there in float32.
nn::GPT empty_model(const nn::GPTConfig& config, const PretrainedOptions& options) {
  const nn::init::SkipInit values_follow;
  if (!options.bfloat16) {
    nn::GPT model(config);
    nn::to(model, options.dtype);
    return model;
  }
  nn::GPTConfig small = config;
  small.n_layer = small.vocab_size = small.block_size = 1;
  nn::GPT model(small);
  nn::to_bfloat16(model);
  for (Size i = 1; i < config.n_layer; ++i)
    model.h.push_back(nn::clone(model.h[0]));
  model.config = config;
  return model;
}

// A matrix of the files, or several one below the other, read a megabyte at a time.
Bfloat16Matrix read_bfloat16(const Weights& weights, const std::vector<PretrainedTensor>& parts) {
  std::size_t rows = 0, row = 0;
  for (const PretrainedTensor& t : parts)
    rows += t.shape[t.transposed ? 1 : 0];
  Bfloat16Matrix matrix(Shape{rows, parts[0].shape[parts[0].transposed ? 0 : 1]});
  for (const PretrainedTensor& t : parts) {
    const Stored& stored = weights.tensors.at(short_name(t.name));
    const std::size_t n = t.shape[0], tile = std::max<std::size_t>(1, 262'144 / t.shape[1]);
    for (std::size_t i = 0; i < n; i += tile) {
      const Tensor x = stored.file->rows(stored.name, i, std::min(tile, n - i), DType::float32);
      check<FileError>(
          t.transposed ? matrix.put(row, i, transpose(x, 0, 1)) : matrix.put(row + i, 0, x),
          "{}: tensor '{}' holds a finite value that bfloat16 cannot", stored.file->path(), t.name);
    }
    row += t.shape[t.transposed ? 1 : 0];
  }
  return matrix;
}

}  // namespace

nn::GPT load_pretrained(const std::string& folder, const PretrainedOptions& options) {
  check<ValueError>(!options.bfloat16 || options.dtype == DType::float32,
                    "load_pretrained: bfloat16 weights are for a model in float32");
  check_weights_kind(folder);
  nn::GPTConfig config = read_pretrained_config(folder + "/config.json");
  config.dropout = options.dropout;
  checked(config, "load_pretrained");
  Weights weights = open_weights(folder);
  check_fits(weights, config, folder);
  for (const SafetensorsFile& file : weights.files)
    file.verify();

  nn::GPT model = empty_model(config, options);
  const NoGrad no_grad;
  std::map<std::string, std::vector<PretrainedTensor>> parts;
  for (PretrainedTensor& t : pretrained_tensors(config))
    parts[t.parameter].push_back(std::move(t));
  for (auto& [name, parameter] : nn::named_parameters(model)) {
    std::vector<Tensor> rows;
    for (const PretrainedTensor& t : parts.at(name)) {
      const Tensor x = weights.tensors.at(short_name(t.name)).read(options.dtype);
      rows.push_back(t.transposed ? transpose(x, 0, 1) : x);
    }
    parameter.set_value((rows.size() == 1 ? rows[0] : cat(rows, 0)).impl().value);
  }
  for (const nn::detail::Weight& weight : nn::detail::members(model).weights)
    if (weight.bfloat16->defined() && parts.contains(weight.name))
      *weight.bfloat16 = read_bfloat16(weights, parts.at(weight.name));
  if (options.bfloat16 && config.tied)
    model.lm_head.bfloat16 = model.wte.bfloat16;
  return model;
}

}  // namespace xgrad::io
