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
#include <xgrad/io/model.hpp>
#include <xgrad/io/pretrained_config.hpp>
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
  // Adds the weight and the bias of layer `name` of nn::GPT.  `parts` are Llama's layers, one below
  // the other, with their rows; GPT-2 has nn::GPT's name.  `in` is the number of columns, 0 for a
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
    layer(h + "attn.c_proj", {{attn + "o_proj", C}}, HD, gpt2 || proj || (llama && qkv), proj);
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

nn::StateDict to_pretrained(const nn::GPTConfig& config, const nn::StateDict& state) {
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
                    "to_pretrained: the state does not fit the configuration (nn::merge_lora() "
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

bool is_old_buffer(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

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

std::vector<SafetensorsFile> open_weights(const std::string& folder) {
  const std::string one = "model.safetensors", index = folder + "/" + one + ".index.json";
  std::error_code none;
  const bool sharded =
      !std::filesystem::exists(folder + "/" + one, none) && std::filesystem::exists(index, none);
  std::vector<SafetensorsFile> files;
  for (const std::string& path : sharded ? read_index(index) : std::set<std::string>{one})
    files.emplace_back(folder + "/" + path);
  return files;
}

const SafetensorsFile* find_file(const std::vector<SafetensorsFile>& files,
                                 const std::string& name) {
  const auto at =
      std::ranges::find_if(files, [&](const SafetensorsFile& file) { return file.contains(name); });
  return at == files.end() ? nullptr : &*at;
}

// Throws if the files do not hold these parameters; their tensors have the names of parts from then
// on.  A tied weight may come as the first parameter or as the head, or as both.
void check_weights(std::vector<SafetensorsFile>& files, std::vector<PretrainedTensor>& parameters,
                   bool tied, const std::string& folder) {
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
    for (const auto& [name, stored] : file.tensors())
      if (is_old_buffer(name))
        ignored.insert(name);
  }
  detail::check_fits(folder + ": the weights do not fit config.json", expected, files, ignored,
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

// A matrix, read a megabyte at a time.
Bfloat16Matrix read_bfloat16(const std::vector<SafetensorsFile>& files, const PretrainedTensor& p) {
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

}  // namespace

nn::GPT load_pretrained(const std::string& folder, const PretrainedOptions& options) {
  check<ValueError>(!options.bfloat16 || options.dtype == DType::float32,
                    "load_pretrained: bfloat16 weights are for a model in float32");
  check_weights_kind(folder);
  nn::GPTConfig config = read_pretrained_config(folder + "/config.json");
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

  nn::GPT model = empty_model(config, options);
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
    parameter.set_value((rows.size() == 1 ? rows[0] : cat(rows, 0)).impl().value);
  }
  for (const nn::detail::Weight& weight : nn::detail::members(model).weights)
    if (weight.bfloat16->defined() && by_name.contains(weight.name))
      *weight.bfloat16 = read_bfloat16(files, *by_name.at(weight.name));
  if (options.bfloat16 && config.tied)
    model.lm_head.bfloat16 = model.wte.bfloat16;
  return model;
}

}  // namespace xgrad::io
