// Pretrained decoders compared with HuggingFace's transformers (tests/lm/golden/pretrained.py), and
// folders that do not fit.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/pretrained.hpp>

#include "golden/file.hpp"
#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

const char* const families[] = {"gpt2", "llama", "qwen2", "mistral", "qwen3"};

std::string golden_folder(const std::string& name) {
  return source_dir + "/tests/lm/golden/pretrained/" + name;
}

double relative_to(const Tensor& ours, const Tensor& expected) {
  return testing::distance(ours.to(DType::float64),
                           reshape(expected, ours.shape()).to(DType::float64),
                           testing::ErrorUnit::relative);
}

Tensor next_token_loss(const lm::GPT& model, const Indices& ids) {
  return model.loss(ids.slice(1, 0, -1), ids.slice(1, 1, {}));
}

Indices greedy_text(const lm::GPT& model, const Indices& prompt, Size n) {
  Generator generator(1);
  return model.generate(prompt, n, generator, {.temperature = 0}).slice(1, prompt.size(1), {});
}

// The gradients of a model by the names of the pretrained files.
nn::StateDict pretrained_gradients(const lm::GPT& model) {
  nn::StateDict gradients;
  for (const auto& [name, p] : nn::named_parameters(model))
    gradients.emplace_back(name, p.grad());
  return lm::to_pretrained(model.config, gradients);
}

// A copy of a golden folder, with a changed config.json or other weights.
class Pretrained {
 public:
  explicit Pretrained(const std::string& name) {
    for (const char* const file : {"config.json", "model.safetensors"})
      std::filesystem::copy_file(golden_folder(name) + "/" + file, folder_ / file);
    weights = io::load_safetensors(folder_ / "model.safetensors");
  }
  std::string path(const std::string& file = "") const { return folder_ / file; }
  void config(const std::string& key, const std::string& value) {
    io::Json json = io::parse_json(read_bytes(path("config.json")), 0, 16);
    io::JsonObject object = *json.as<io::JsonObject>();
    std::erase_if(object, [&](const auto& entry) { return entry.first == key; });
    if (!value.empty())
      object.emplace_back(key, io::parse_json(value, 0, 16));
    write_bytes(path("config.json"), io::format_json(object));
  }
  void write() const { io::save_safetensors(path("model.safetensors"), weights); }
  lm::GPT load() const { return lm::load_pretrained(path()); }
  std::string error() const {
    return message_of<FileError>([&] { load(); });
  }

  io::TensorFile weights;  // of model.safetensors; write() saves them

 private:
  TemporaryFolder folder_;
};

void check_same_model(const lm::GPT& a, const lm::GPT& b) {
  const nn::StateDict x = nn::state_dict(a), y = nn::state_dict(b);
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(x[i].first);
    CHECK(x[i].first == y[i].first);
    CHECK(same_bits(x[i].second, y[i].second));
  }
  const Indices ids{{1, 5, 3, 0, 6, 2}};
  CHECK(same_bits(a(ids), b(ids)));
}

}  // namespace

TEST_CASE("pretrained: logits, loss and gradients are those of transformers", "[pretrained]") {
  for (const std::string name : families) {
    const testing::GoldenFile expected("../lm/golden/pretrained/" + name + "/expected");
    const Indices ids = expected.indices("ids");
    const lm::GPT narrow = lm::load_pretrained(golden_folder(name));
    CHECK(relative_to(narrow(ids), expected.tensor("f32.logits")) < 1e-5);
    CHECK(narrow.lm_head.weight.dtype() == DType::float32);
    const lm::GPT wide = lm::load_pretrained(golden_folder(name), {.dtype = DType::float64});
    CHECK(relative_to(wide(ids), expected.tensor("logits")) < 1e-9);
    const Tensor loss = next_token_loss(wide, ids);
    CHECK(relative_to(loss, expected.tensor("loss")) < 1e-9);
    loss.backward();
    for (const auto& [key, gradient] : pretrained_gradients(wide)) {
      INFO(name << " " << key);
      CHECK(relative_to(gradient, expected.tensor("grad." + key)) < 1e-9);
    }
    if (wide.config.sliding_window > 0) {  // the text goes past it, with a cache and without
      const Indices greedy = expected.indices("greedy");
      const Indices prompt = ids.narrow(0, 0, 1).narrow(1, 0, 4);
      REQUIRE(std::cmp_less(wide.config.sliding_window, greedy.size(1)));
      CHECK(numbers(greedy_text(narrow, prompt, 12)) == numbers(greedy));
      CHECK(numbers(greedy_text(wide, prompt, 12)) == numbers(greedy));
      const NoGrad no_grad;
      const Indices all = cat({prompt, greedy}, 1);
      CHECK(numbers(wide(all).argmax(-1).slice(1, 3, -1)) == numbers(greedy));
    }
    CHECK(expected.unused().empty());
  }
}

TEST_CASE("pretrained: a saved model equals the loaded one", "[pretrained]") {
  for (const std::string name : families) {
    const TemporaryFolder folder;
    const lm::GPT model = lm::load_pretrained(golden_folder(name));
    lm::save_pretrained(folder / "new", model);
    const lm::GPT again = lm::load_pretrained(folder / "new");
    check_same_model(model, again);
    CHECK(again.config.rotary.has_value() == model.config.rotary.has_value());

    // The names are exactly those that transformers wrote.
    const io::SafetensorsFile ours(folder / "new/model.safetensors"),
        theirs(golden_folder(name) + "/model.safetensors");
    CHECK(ours.metadata().at("format") == "pt");
    REQUIRE(ours.tensors().size() == theirs.tensors().size());
    for (const auto& [key, stored] : theirs.tensors())
      CHECK(ours.tensors().at(key).shape == stored.shape);

    CHECK_THROWS_WITH(lm::save_pretrained(folder / "new", model),
                      ContainsSubstring("exists already"));
    lm::save_pretrained(folder / "new", model, true);
    write_bytes(folder / "file", "");
    CHECK_THROWS_WITH(lm::save_pretrained(folder / "file", model),
                      ContainsSubstring("this folder cannot be made"));
  }
}

TEST_CASE("pretrained: every option comes back", "[pretrained]") {
  const lm::GPTConfig sizes{
      .block_size = 8, .vocab_size = 7, .n_layer = 1, .n_head = 2, .n_embd = 4, .n_inner = 6};
  lm::GPTConfig biased = lm::GPTConfig::llama(sizes), qwen2 = biased, gpt2 = sizes;
  lm::GPTConfig mistral = biased, qwen3 = biased;
  mistral.sliding_window = 3;
  mistral.head_dim = 6;
  qwen3.qk_norm = qwen3.tied = true;
  lm::GPTConfig qwen2_window = qwen2, qwen3_window = qwen3;
  qwen2_window.qkv_bias = true;
  qwen2_window.sliding_window = qwen3_window.sliding_window = 3;
  qwen3_window.qkv_bias = qwen3_window.proj_bias = true;
  biased.qkv_bias = biased.proj_bias = biased.mlp_bias = true;
  biased.n_kv_head = 1;
  biased.head_dim = 6;
  biased.norm_eps = 1e-3;
  biased.rotary = {.theta = 50, .factor = 2.5};
  qwen2.qkv_bias = qwen2.tied = true;
  gpt2.tied = false;
  gpt2.norm_eps = 1e-4;
  const std::pair<lm::GPTConfig, const char*> configs[] = {
      {biased, "llama"}, {qwen2, "qwen2"},        {gpt2, "gpt2"},         {mistral, "mistral"},
      {qwen3, "qwen3"},  {qwen2_window, "qwen2"}, {qwen3_window, "qwen3"}};
  for (const auto& [config, family] : configs) {
    INFO(family);
    CHECK(lm::pretrained_family(config) == family);
    const TemporaryFolder folder;
    lm::GPT model(config);
    for (Tensor p : nn::parameters(model))
      p.copy_(p + normal(p.shape(), 3, DType::float32));
    lm::save_pretrained(folder / "x", model);
    const lm::GPT again = lm::load_pretrained(folder / "x");
    check_same_model(model, again);
    CHECK(again.config.sliding_window == config.sliding_window);
    CHECK(again.config.qk_norm == config.qk_norm);
  }
}

TEST_CASE("pretrained: biases that a model lacks and its family has are zeros", "[pretrained]") {
  const lm::GPTConfig sizes{
      .block_size = 8, .vocab_size = 7, .n_layer = 2, .n_head = 2, .n_embd = 4, .bias = false};
  std::vector<lm::GPTConfig> configs(4, sizes);
  configs[1].mlp_bias = true;
  for (std::size_t i : {2, 3}) {
    configs[i] = lm::GPTConfig::llama(sizes);
    (i == 2 ? configs[i].proj_bias : configs[i].qkv_bias) = true;
  }
  configs[3].mlp_bias = true;
  for (const lm::GPTConfig& config : configs) {
    const TemporaryFolder folder;
    lm::GPT model(config);
    for (Tensor p : nn::parameters(model))
      p.copy_(p + normal(p.shape(), 3, DType::float32));
    lm::save_pretrained(folder / "x", model);
    const lm::GPT again = lm::load_pretrained(folder / "x");
    CHECK(nn::num_parameters(again) > nn::num_parameters(model));
    const nn::StateDict given = nn::state_dict(model);
    std::size_t zero = 0;
    for (const auto& [name, x] : nn::state_dict(again)) {
      INFO(name);
      const auto at = std::ranges::find(given, name, [](const auto& named) { return named.first; });
      zero += at == given.end() ? 1 : 0;
      CHECK(same_bits(x, at == given.end() ? zeros(x.shape()) : at->second));
    }
    CHECK(zero > 0);
    const Indices ids{{1, 5, 3, 0, 6, 2}};
    CHECK(relative_to(again(ids), model(ids)) < 1e-6);
  }
}

TEST_CASE("pretrained: options that no family has are refused by name", "[pretrained]") {
  const auto refused = [](const lm::GPTConfig& config, const std::vector<std::string>& parts) {
    const TemporaryFolder folder;
    check_contains(
        message_of<ValueError>([&] { lm::save_pretrained(folder / "x", lm::GPT(config)); }), parts);
    CHECK(folder.count() == 0);
  };
  const lm::GPTConfig sizes{
      .block_size = 4, .vocab_size = 5, .n_layer = 1, .n_head = 2, .n_embd = 4};
  lm::GPTConfig c = sizes;
  c.n_kv_head = 1;
  refused(c, {"learned positions", "n_kv_head (n_head)"});
  c = sizes;
  c.norm = lm::NormKind::rms;
  c.activation = lm::Activation::swiglu;
  c.head_dim = 4;
  refused(c, {"norm (layer), activation (gelu, gelu_tanh), head_dim"});
  c = sizes;
  c.sliding_window = 2;
  c.qk_norm = true;
  refused(c, {"learned positions and this model's sliding_window (0), qk_norm (false)"});
  c = lm::GPTConfig::llama(sizes);
  c.sliding_window = 2;
  c.proj_bias = c.mlp_bias = true;
  refused(c, {"mlp_bias with sliding_window (false), proj_bias with sliding_window (false)"});
  c.qk_norm = true;
  refused(c, {"this model's mlp_bias with qk_norm (false) (in parentheses"});
  c = lm::GPTConfig::llama(sizes);
  c.rotary->pairs = nn::RotaryPairs::interleaved;
  c.norm = lm::NormKind::layer;
  c.activation = lm::Activation::gelu;
  refused(c, {"rotary positions", "rotary.pairs (half), norm (rms), activation (swiglu)"});
  c = lm::GPTConfig::llama(sizes);
  c.head_dim = 4;
  c.rotary->partial_rotary_factor = 0.5;
  refused(c, {"this model's rotary.partial_rotary_factor (1) (in parentheses"});
  c = lm::GPTConfig::llama(sizes);
  c.sliding_window = -1;
  CHECK_THROWS_WITH(lm::GPT(c), ContainsSubstring("sliding_window is -1; it must be 0 or above"));
  // A state with other sizes than the configuration's, and a value that no file holds.
  const TemporaryFolder folder;
  lm::GPT model(lm::GPTConfig::llama(sizes));
  model.config.n_kv_head = 1;
  CHECK_THROWS_WITH(lm::save_pretrained(folder / "x", model),
                    ContainsSubstring("attn.c_attn.weight is (12, 4) here and (8, 4) by the"));
  model.config.n_kv_head = 0;
  nn::to(model, DType::float64);
  model.wte.weight.fill_(1e300);
  CHECK_THROWS_WITH(lm::save_pretrained(folder / "x", model),
                    ContainsSubstring("holds a finite value that float32 cannot"));
  CHECK(folder.count() == 0);
  c = sizes;
  c.norm_eps = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(lm::GPT(c), ContainsSubstring("norm_eps nan must be positive"));
  c = lm::GPTConfig::llama(sizes);
  c.rotary->theta = -1;
  CHECK_THROWS_WITH(lm::GPT(c), ContainsSubstring("theta -1"));
  CHECK_THROWS_WITH(lm::to_pretrained(sizes, {}),
                    ContainsSubstring("missing: transformer.wte.weight"));
  CHECK_THROWS_WITH(lm::to_pretrained(sizes, {{"transformer.wte.weight", ones({5, 3})}}),
                    ContainsSubstring("wte.weight is (5, 3) here and (5, 4)"));
}

TEST_CASE("pretrained: configurations of every age, and their defaults", "[pretrained]") {
  Pretrained old("llama");  // before version 5
  const lm::GPT model = old.load();
  CHECK(model.config.rotary->original_max_position_embeddings == 24);
  old.config("rope_parameters", "");
  old.config("rope_theta", "100");
  old.config("rope_scaling", R"({"rope_type": "llama3", "factor": 4, "low_freq_factor": 0.2,
                                 "high_freq_factor": 3, "original_max_position_embeddings": 24})");
  check_same_model(model, old.load());
  old.config("rope_scaling", R"({"type": "linear", "factor": 2.5})");
  CHECK(old.load().config.rotary->factor == 2.5);
  old.config("rope_scaling", "null");
  old.config("rope_theta", "");
  CHECK(old.load().config.rotary->theta == 10000);
  CHECK(old.load().config.rotary->factor == 1);

  Pretrained gpt2("gpt2");
  for (const char* const key : {"activation_function", "layer_norm_epsilon", "tie_word_embeddings"})
    gpt2.config(key, "");
  check_same_model(lm::load_pretrained(golden_folder("gpt2")), gpt2.load());
  gpt2.config("activation_function", "\"gelu\"");
  CHECK(gpt2.load().config.activation == lm::Activation::gelu);
  CHECK(lm::load_pretrained(gpt2.path(), {.dropout = 0.5}).config.dropout == 0.5);
}

TEST_CASE("pretrained: rope_scaling with rope_parameters, as transformers 5.24 reads both",
          "[pretrained]") {
  Pretrained files("llama");
  const auto rotary_of = [&](const std::vector<std::string>& values) {
    const char* const keys[] = {"rope_parameters", "rope_scaling", "rope_theta",
                                "original_max_position_embeddings"};
    for (std::size_t i = 0; i < 4; ++i)
      files.config(keys[i], i < values.size() ? values[i] : "");
    return *files.load().config.rotary;
  };
  const std::string llama3 = R"("factor": 4, "low_freq_factor": 0.2, "high_freq_factor": 3)",
                    named = R"("rope_type": "llama3", )" + llama3,
                    v5 = R"({"rope_type": "default", "rope_theta": 100})",
                    linear = R"({"type": "linear", "factor": 2.5})",
                    original = R"(, "original_max_position_embeddings": 24)";
  struct Row {
    std::vector<std::string> values;
    double theta, factor;
    std::size_t original;
  };
  const Row rows[] = {
      {{}, 10000, 1, 0},
      {{"{}", "", "50"}, 50, 1, 0},
      {{v5, "", "50"}, 100, 1, 0},
      {{v5, "{}", "50"}, 100, 1, 0},
      {{v5, "null"}, 100, 1, 0},
      {{R"({"rope_type": "linear", "factor": 2.5})", "", "50"}, 50, 2.5, 0},
      {{v5, linear}, 10000, 2.5, 0},
      {{v5, linear, "50"}, 50, 2.5, 0},
      {{v5, R"({"type": "linear", "factor": 2, "rope_theta": 30})", "50"}, 30, 2, 0},
      {{"", R"({"type": "linear", "factor": 2, "rope_theta": 30})", "50"}, 30, 2, 0},
      {{"{" + named + original + "}", R"({"rope_type": "default"})", "50"}, 50, 1, 0},
      {{"", R"({"type": "linear", )" + named + "}", "50"}, 50, 4, 16},
      {{"{" + named + "}", "", "50", "12"}, 50, 4, 12},
      {{"{" + named + original + "}", "", "50", "12"}, 50, 4, 12},
      {{v5, "{" + named + original + "}", "50"}, 50, 4, 24}};
  for (const auto& [values, theta, factor, length] : rows) {
    const nn::RotaryOptions rotary = rotary_of(values);
    INFO(read_bytes(files.path("config.json")));
    CHECK(rotary.theta == theta);
    CHECK(rotary.factor == factor);
    CHECK(std::cmp_equal(rotary.original_max_position_embeddings, length));
  }
  // The golden model's own, whose logits are known.
  rotary_of({linear, R"({"type": "llama3", "rope_theta": 100, )" + llama3 + original + "}", "7"});
  check_same_model(lm::load_pretrained(golden_folder("llama")), files.load());
}

TEST_CASE("pretrained: other names of supported options", "[pretrained]") {
  const auto loads = [](const std::string& family, const io::JsonObject& changes) {
    Pretrained files(family);
    const lm::GPT model = files.load();
    for (const auto& [key, value] : changes)
      files.config(key, io::format_json(value));
    INFO(read_bytes(files.path("config.json")));
    check_same_model(model, files.load());
  };
  const auto full = std::string("full_attention"), sliding = std::string("sliding_attention");
  loads("llama", {{"hidden_act", std::string("swish")}});
  for (const char* const name : {"gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast"})
    loads("gpt2", {{"activation_function", std::string(name)}});
  // Mistral is Llama if its window has no effect: over 16 positions.
  const auto mistral = std::string("mistral");
  loads("llama", {{"model_type", mistral}, {"sliding_window", nullptr}});
  for (const std::uint64_t window : {16, 4096})
    loads("llama", {{"model_type", mistral}, {"sliding_window", window}});
  loads("llama", {{"model_type", mistral}, {"attention_bias", true}});  // Mistral has none
  // Qwen2's layers slide from max_window_layers on, of 1.
  const io::JsonArray one_full{full}, one_sliding{sliding};
  for (const io::JsonObject& more :
       {io::JsonObject{{"layer_types", one_full}, {"sliding_window", std::uint64_t{2}}},
        {{"layer_types", nullptr},
         {"max_window_layers", std::uint64_t{1}},
         {"sliding_window", std::uint64_t{2}}},
        {{"layer_types", nullptr},
         {"max_window_layers", nullptr},
         {"sliding_window", std::uint64_t{2}}},
        {{"layer_types", nullptr},
         {"max_window_layers", std::uint64_t{0}},
         {"sliding_window", nullptr}},
        {{"layer_types", one_sliding}, {"sliding_window", std::uint64_t{16}}}}) {
    io::JsonObject changes = more;
    changes.emplace_back("use_sliding_window", true);
    loads("qwen2", changes);
  }
  // The same windows in other words.
  const io::JsonArray two_sliding{sliding, sliding};
  loads("qwen3", {{"layer_types", two_sliding}, {"max_window_layers", std::uint64_t{1}}});
  loads("qwen3", {{"layer_types", nullptr}});
  loads("mistral", {{"layer_types", one_full}, {"max_window_layers", std::uint64_t{1}}});
  Pretrained mistral_7b("mistral");
  mistral_7b.config("sliding_window", "");
  mistral_7b.config("max_position_embeddings", "4097");
  CHECK(mistral_7b.load().config.sliding_window == 4096);
  mistral_7b.config("max_position_embeddings", "4096");
  CHECK(mistral_7b.load().config.sliding_window == 0);
  Pretrained qwen3("qwen3");
  qwen3.config("use_sliding_window", "");
  qwen3.config("layer_types", "");
  CHECK(qwen3.load().config.sliding_window == 0);
  qwen3.config("head_dim", "");
  check_contains(qwen3.error(), {"self_attn.q_norm.weight is (6,) here and (128,)"});
}

TEST_CASE("pretrained: weights of other formats are called by their names", "[pretrained]") {
  struct Case {
    const char* file;
    std::vector<std::string> says;
  };
  for (const auto& [file, says] : std::vector<Case>{
           {"x.gguf", {"x.gguf is a GGUF file", "gguf_file=NAME"}},
           {"pytorch_model.bin", {"pytorch_model.bin holds Python pickles", "save_pretrained("}},
           {"pytorch_model-00001-of-00002.bin", {"00002.bin holds Python pickles"}},
           {"adapter_model.bin", {"adapter_model.bin holds Python pickles", "AutoPeftModel"}}}) {
    INFO(file);
    Pretrained files("llama");
    write_bytes(files.path(file), "{}");
    CHECK_NOTHROW(files.load());  // its weights are there, too
    std::filesystem::remove(files.path("model.safetensors"));
    check_contains(files.error(), says);
  }
  const TemporaryFolder folder;
  write_bytes(folder / "adapter_config.json", "{}");
  CHECK_THROWS_WITH(lm::load_pretrained(folder / ""),
                    ContainsSubstring("is of a PEFT adapter: load the model that it belongs to"));
  for (const auto& [begin, says] :
       {std::pair("GGUF\3", "GGUF file"), {"PK\3\4", "Python pickles"}}) {
    write_bytes(folder / "weights", begin);
    check_contains(message_of<FileError>([&] { lm::check_weights_kind(folder / "weights"); }),
                   {says});
  }
  lm::check_weights_kind(folder / "none");
}

TEST_CASE("pretrained: names with and without prefix, old buffers, a tied weight twice",
          "[pretrained]") {
  for (const std::string name : families) {
    INFO(name);
    Pretrained files(name);
    const lm::GPT model = files.load();
    const std::string prefix = name == "gpt2" ? "transformer." : "model.";
    io::TensorFile bare;
    for (const auto& [key, x] : files.weights.tensors)
      bare.tensors.emplace(key.starts_with(prefix) ? key.substr(prefix.size()) : key, x);
    bare.tensors.emplace("h.0.attn.bias", ones({1, 1, 16, 16}));
    bare.tensors.emplace("h.0.attn.masked_bias", zeros(Dims()));
    bare.tensors.emplace("layers.0.self_attn.rotary_emb.inv_freq", ones({2}));
    io::save_safetensors(files.path("model.safetensors"), bare);
    check_same_model(model, files.load());
    const auto& [key, x] = *files.weights.tensors.rbegin();
    bare.tensors.emplace(key, x.clone());
    io::save_safetensors(files.path("model.safetensors"), bare);
    check_contains(files.error(), {"tensor '" + key + "' is given twice, once with a prefix"});
  }
  Pretrained tied("llama");
  const lm::GPT model = tied.load();
  const std::string embedding = "model.embed_tokens.weight", head = "lm_head.weight";
  tied.weights.tensors[head] = tied.weights.tensors.at(embedding).clone();
  tied.write();
  check_same_model(model, tied.load());
  tied.weights.tensors.erase(embedding);
  tied.write();
  check_same_model(model, tied.load());
  tied.weights.tensors[embedding] = tied.weights.tensors.at(head) + 1;
  tied.write();
  check_contains(tied.error(),
                 {"model.embed_tokens.weight and lm_head.weight differ", "tie_word_embeddings"});
}

TEST_CASE("pretrained: shards are as good as one file", "[pretrained]") {
  Pretrained files("llama");
  const lm::GPT model = files.load();
  const auto shard = [](int i) {
    return "model-0000" + std::to_string(i) + "-of-00002.safetensors";
  };
  io::TensorFile parts[2];
  io::JsonObject map;
  for (const auto& [name, x] : files.weights.tensors) {
    const bool second = name.find("layers.1") != std::string::npos;
    parts[second].tensors.emplace(name, x);
    map.emplace_back(name, shard(second ? 2 : 1));
  }
  std::filesystem::remove(files.path("model.safetensors"));
  const auto write_index = [&](const io::Json& index) {
    write_bytes(files.path("model.safetensors.index.json"), io::format_json(index));
  };
  for (const int i : {0, 1})
    io::save_safetensors(files.path(shard(i + 1)), parts[i]);
  write_index(io::JsonObject{{"weight_map", map}});
  check_same_model(model, files.load());

  // A name in two shards, and shards that are cut off or missing.
  parts[1].tensors.emplace("model.norm.weight", ones({8}));
  io::save_safetensors(files.path(shard(2)), parts[1]);
  check_contains(files.error(), {"given twice: model.norm.weight"});
  const std::string bytes = read_bytes(files.path(shard(2)));
  write_bytes(files.path(shard(2)), bytes.substr(0, bytes.size() - 1));
  check_contains(files.error(), {shard(2), "tensor 'model."});
  write_bytes(files.path(shard(2)), bytes.substr(0, 5));
  check_contains(files.error(), {shard(2), "not a safetensors file"});
  std::filesystem::remove(files.path(shard(2)));
  check_contains(files.error(), {shard(2)});

  for (const char* const bad : {"../model.safetensors", "/etc/x.safetensors", "a/b.safetensors",
                                "..", "", "x.bin", ".safetensors", "a\\b.safetensors"}) {
    map.front().second = std::string(bad);
    write_index(io::JsonObject{{"weight_map", map}});
    check_contains(files.error(), {"index.json: '", "must be a .safetensors file in the index"});
  }
  map.front().second = std::uint64_t{7};
  write_index(io::JsonObject{{"weight_map", map}});
  check_contains(files.error(), {"is in 7; it must be"});
  write_index(io::JsonObject{{"weight_map", io::JsonObject{}}});
  check_contains(files.error(), {"has no 'weight_map' that names files"});
  write_bytes(files.path("model.safetensors.index.json"), "{\"weight_map\": ");
  check_contains(files.error(), {"index.json: is not JSON"});
}

TEST_CASE("pretrained: half-precision weights are read as they are", "[pretrained]") {
  Pretrained files("qwen2");
  const lm::GPT model = files.load();
  std::string header, data;
  for (const auto& [name, x] : files.weights.tensors) {
    const std::size_t begin = data.size();
    for (Size i = 0; i < x.numel(); ++i) {  // the upper half of a float32, truncated
      const auto* const bytes = reinterpret_cast<const char*>(x.data<float>() + i);
      data.append(bytes + 2, 2);
    }
    std::string shape;
    for (const std::size_t n : x.shape())
      shape += (shape.empty() ? "" : ",") + std::to_string(n);
    header += (header.empty() ? "{" : ",") + ("\"" + name) + R"(":{"dtype":"BF16","shape":[)" +
              shape + "],\"data_offsets\":[" + std::to_string(begin) + "," +
              std::to_string(data.size()) + "]}";
  }
  write_bytes(files.path("model.safetensors"), file_of(header + "}", data));
  const lm::GPT half = files.load();
  const auto a = nn::state_dict(model), b = nn::state_dict(half);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(b[i].second.dtype() == DType::float32);
    CHECK(allclose(a[i].second, b[i].second, 1.0 / 128, 0));
  }

  // In bfloat16 they are the file's values: these are not rounded.
  const NoGrad no_grad;
  const Indices ids{{1, 5, 3, 0, 6, 2}};
  const Tensor logits = lm::load_pretrained(files.path(), {.bfloat16 = true})(ids);
  CHECK(relative_to(logits, half(ids)) < 1e-5);
}

TEST_CASE("pretrained: weights that stay in bfloat16", "[pretrained][bfloat16]") {
  const NoGrad no_grad;
  const Indices ids{{1, 5, 3, 0, 6, 2}};
  const auto check_loads = [&](const std::string& folder) {
    lm::GPT expected = lm::load_pretrained(folder);
    nn::to_bfloat16(expected);
    const lm::GPT model = lm::load_pretrained(folder, {.bfloat16 = true});
    CHECK(nn::num_parameters(model) == nn::num_parameters(expected));
    CHECK(model.lm_head.bfloat16.defined());
    CHECK((model.lm_head.bfloat16.handle() == model.wte.bfloat16.handle()) == model.config.tied);
    CHECK(same_bits(model(ids), expected(ids)));
  };
  for (const std::string name : families)
    check_loads(golden_folder(name));

  // Matrices of several tiles, as they lie in the file and transposed.
  const TemporaryFolder folder;
  lm::GPTConfig c = lm::GPTConfig::llama(
      {.block_size = 8, .vocab_size = 34'000, .n_layer = 2, .n_head = 2, .n_embd = 8});
  lm::save_pretrained(folder / "llama", lm::GPT(c));
  check_loads(folder / "llama");
  c = lm::GPTConfig::gpt2(
      {.block_size = 8, .vocab_size = 9, .n_layer = 1, .n_head = 2, .n_embd = 8});
  c.n_inner = 40'000;
  lm::save_pretrained(folder / "gpt2", lm::GPT(c));
  check_loads(folder / "gpt2");

  CHECK_THROWS_WITH(
      lm::load_pretrained(folder / "gpt2", {.dtype = DType::float64, .bfloat16 = true}),
      ContainsSubstring("for a model in float32"));
  CHECK_THROWS_WITH(
      lm::save_pretrained(folder / "new", lm::load_pretrained(folder / "gpt2", {.bfloat16 = true})),
      ContainsSubstring("transformer.wte.weight is in bfloat16"));
  CHECK(folder.count() == 2);
  Pretrained files("llama");
  set_element(files.weights.tensors.at("model.layers.1.mlp.up_proj.weight"), 3, 3.4e38);
  files.write();
  check_contains(
      message_of<FileError>([&] { lm::load_pretrained(files.path(), {.bfloat16 = true}); }),
      {"model.safetensors: tensor 'model.layers.1.mlp.up_proj.weight' holds",
       "that bfloat16 cannot"});
}

TEST_CASE("pretrained: one error lists all that is wrong with the weights", "[pretrained]") {
  Pretrained files("qwen2");
  auto& tensors = files.weights.tensors;
  tensors.erase("model.norm.weight");
  tensors.erase("model.layers.0.self_attn.k_proj.bias");
  tensors["model.layers.0.mlp.up_proj.weight"] = zeros({10, 7});
  tensors["model.layers.1.mlp.up_proj.weight"] = zeros({10, 8});
  tensors.erase("lm_head.weight");
  files.weights.indices["lm_head.weight"] = Indices({1, 2});
  files.write();
  check_contains(
      files.error(),
      {files.path() + ": the weights do not fit config.json",
       "missing: model.layers.0.self_attn.k_proj.bias, model.norm.weight",
       "unexpected: model.layers.1.mlp.up_proj.weight",
       "model.layers.0.mlp.up_proj.weight is (10, 7) here and (10, 8) by config.json",
       "lm_head.weight is (2,) here and (11, 8) by config.json",
       "unsupported dtype (F16, BF16, F32 and F64 are supported): lm_head.weight is I64"});
  std::filesystem::remove(files.path("model.safetensors"));
  check_contains(files.error(), {"model.safetensors"});
}

TEST_CASE("pretrained: an unsupported configuration is rejected", "[pretrained]") {
  const auto refused = [](const std::string& family, const std::string& key,
                          const std::string& value, const std::vector<std::string>& parts) {
    Pretrained files(family);
    files.config(key, value);
    // The weights are not read.
    std::filesystem::remove(files.path("model.safetensors"));
    INFO(key << " " << value);
    check_contains(files.error(), parts);
    check_contains(files.error(), {"config.json: "});
  };
  refused("llama", "model_type", "\"mixtral\"",
          {"model_type is \"mixtral\"; supported: gpt2, llama, mistral, qwen2 and qwen3"});
  refused("llama", "model_type", "", {"model_type is missing; supported"});
  refused("llama", "model_type", "[1]", {"model_type is [1]; it must be a text"});
  refused("qwen2", "quantization_config", R"({"quant_method": "awq"})",
          {"quantised weights; supported: F16, BF16, F32 and F64"});
  refused("llama", "num_local_experts", "8", {"num_local_experts is 8; supported: none of it"});
  refused("llama", "alibi", "true", {"alibi is true"});
  refused("gpt2", "activation_function", "\"relu\"",
          {"activation_function is \"relu\"; supported: gelu, gelu_new and their other names"});
  refused("gpt2", "scale_attn_weights", "false", {"is false; supported: true"});
  refused("gpt2", "scale_attn_by_inverse_layer_idx", "true", {"is true; supported: false"});
  refused("gpt2", "add_cross_attention", "true", {"is true; supported: false"});
  refused("gpt2", "n_head", "3", {"n_embd 8 is not a multiple of n_head 3"});
  refused("gpt2", "n_layer", "", {"n_layer is missing; it must be a whole number from 1 to"});
  for (const char* const bad : {"0", "-3", "2.5", "\"2\"", "4294967296", "true", "[2]"})
    refused("gpt2", "n_layer", bad, {std::string("n_layer is ") + bad, "a whole number from 1"});
  refused("llama", "hidden_act", "\"gelu\"",
          {"hidden_act is \"gelu\"; supported: silu, also as swish"});
  refused("llama", "num_key_value_heads", "3", {"n_head 4 is not a multiple of n_kv_head 3"});
  refused("llama", "head_dim", "5", {"heads of 5 channels cannot rotate"});
  refused("llama", "rms_norm_eps", "0", {"rms_norm_eps is 0; it must be a positive number"});
  refused("llama", "attention_bias", "1", {"attention_bias is 1; it must be true or false"});
  refused("llama", "partial_rotary_factor", "0.5", {"is 0.5; supported: 1"});
  refused("llama", "rope_parameters", R"({"rope_type": "yarn", "rope_theta": 1e4, "factor": 4})",
          {"rope_parameters.rope_type is \"yarn\"; supported: default, linear and llama3"});
  refused("llama", "rope_parameters", R"({"full_attention": {"rope_theta": 1e4}})",
          {"rope_parameters.full_attention is {", "supported: one rotation for all layers"});
  refused("llama", "rope_parameters", R"({"rope_theta": 1e4, "rope_type": "linear"})",
          {"rope_parameters.factor is missing"});
  refused("llama", "rope_parameters",
          R"({"rope_theta": 1e4, "rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
              "high_freq_factor": 4, "original_max_position_embeddings": 8})",
          {"rope_parameters.low_freq_factor is 4", "must be below high_freq_factor"});
  refused("llama", "rope_parameters", "7", {"rope_parameters is 7; it must be an object"});
  const auto refused_window = [](const std::string& family, const io::JsonObject& changes,
                                 const std::vector<std::string>& parts) {
    Pretrained files(family);
    for (const auto& [key, value] : changes)
      files.config(key, io::format_json(value));
    check_contains(files.error(), parts);
  };
  const io::Json is_mistral = std::string("mistral");
  for (const char* const bad : {"0", "-1", "2.5", "\"3\"", "[3]"})
    refused_window("llama",
                   {{"model_type", is_mistral}, {"sliding_window", io::parse_json(bad, 0, 4)}},
                   {std::string("sliding_window is ") + bad, "a whole number from 1"});
  // Windows in some of two layers.
  const io::JsonArray some{std::string("full_attention"), std::string("sliding_attention")};
  for (const std::string family : {"qwen2", "qwen3"}) {
    const auto with = [&](io::JsonObject more) {
      more.emplace_back("model_type", family);
      more.emplace_back("use_sliding_window", true);
      more.emplace_back("sliding_window", std::uint64_t{15});
      return more;
    };
    for (const char* const bad : {"1", "-1", "1.5", "\"0\"", "true"})
      refused_window("llama", with({{"max_window_layers", io::parse_json(bad, 0, 4)}}),
                     {std::string("max_window_layers is ") + bad + "; supported: 0, and 2 and more",
                      "all layers slide or none"});
    for (const io::JsonArray& types :
         {some, {some[1]}, {some[1], some[1], some[0]}, {some[1], std::string("chunked")}})
      refused_window("llama", with({{"layer_types", types}}),
                     {"layer_types is [", "supported: full_attention in every layer",
                      "sliding_attention in every layer"});
    refused_window("llama", {{"model_type", family}, {"layer_types", some}},
                   {"layer_types is [", "with use_sliding_window and a sliding_window"});
  }
  refused("qwen2", "layer_types", R"(["sliding_attention"])",
          {"sliding_attention", "supported: full_attention in every layer"});

  Pretrained files("llama");
  write_bytes(files.path("config.json"), "{\"model_type\": ");
  check_contains(files.error(), {"config.json: is not JSON"});
  std::filesystem::remove(files.path("config.json"));
  check_contains(files.error(), {"config.json"});
  CHECK_THROWS_AS(lm::load_pretrained(files.path() + "/nowhere"), FileError);
}

TEST_CASE("pretrained: absurd sizes are held against the weights first", "[pretrained]") {
  const auto refused = [](const std::string& key, const std::vector<std::string>& parts) {
    Pretrained files("llama");
    files.config(key, "2000000000");
    check_contains(files.error(), parts);
  };
  refused("num_hidden_layers", {"config.json asks for 2000000000 layers, and the weights have 20"});
  refused("hidden_size", {"model.norm.weight is (8,) here and (2000000000,) by config.json"});
  refused("vocab_size", {"model.embed_tokens.weight is (11, 8) here and (2000000000, 8)"});
  refused("intermediate_size", {"mlp.up_proj.weight is (10, 8) here and (2000000000, 8)"});
  refused("head_dim", {"self_attn.k_proj.weight is (16, 8) here and (4000000000, 8)"});
  Pretrained files("llama");
  files.config("max_position_embeddings", "2000000000");  // no weight has it
  const lm::GPT model = files.load();
  Generator generator(1);
  CHECK(model.generate({{1}}, 3, generator).size(1) == 4);
}

// Models as transformers saves them, with numbers and greedy text in expected.safetensors.
TEST_CASE("pretrained: all reference models", "[pretrained][reference]") {
  const char* const root = std::getenv("XGRAD_PRETRAINED");
  if (root == nullptr) {
    WARN("skipped: XGRAD_PRETRAINED names no folder with reference models");
    return;
  }
  CHECK(!std::filesystem::is_empty(root));
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::string folder = entry.path().string();
    const io::SafetensorsFile expected(folder + "/expected.safetensors");
    const auto agrees = [&](const std::string& name, const Tensor& ours) {
      INFO(folder << " " << name);
      CHECK(relative_to(ours, expected.tensor(name)) < 1e-5);
    };
    const Indices ids = expected.indices("ids"), greedy = expected.indices("greedy");
    const lm::GPT model = lm::load_pretrained(folder);
    agrees("logits", model(ids));
    const Tensor loss = next_token_loss(model, ids);
    agrees("loss", loss);
    loss.backward();
    for (const auto& [name, gradient] : pretrained_gradients(model))
      if (expected.contains("grad." + name))  // a real model has none
        agrees("grad." + name, gradient);
    const Indices prompt = ids.narrow(0, 0, 1).narrow(1, 0, ids.size(0) == 1 ? 8 : 4);
    CHECK(numbers(greedy_text(model, prompt, greedy.numel()).flatten()) == numbers(greedy));
  }
}
