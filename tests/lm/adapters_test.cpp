// Adapters compared with HuggingFace's PEFT (tests/lm/golden/adapters.py), and folders that do not
// fit.

#include <filesystem>
#include <set>
#include <string>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/adapters.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "golden/file.hpp"
#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

std::string golden_folder(const std::string& name) {
  return source_dir + "/tests/lm/golden/pretrained/" + name;
}

lm::GPT base_model(const std::string& name, DType dtype = DType::float32) {
  return lm::load_pretrained(golden_folder(name), {.dtype = dtype});
}

// The adapters of a folder: "llama_head" has some of llama's lm_head.
lm::GPT adapted(const std::string& name, DType dtype = DType::float32) {
  lm::GPT model = base_model(name.substr(0, name.find('_')), dtype);
  lm::load_adapters(golden_folder("adapters_" + name), model);
  return model;
}

double relative_to(const Tensor& ours, const Tensor& expected) {
  return testing::distance(ours, reshape(expected, ours.shape()), testing::ErrorUnit::relative);
}

// A model's adapters by PEFT's names.
io::TensorFile saved(const lm::GPT& model) {
  const TemporaryFolder folder;
  lm::save_adapters(folder / "new", model, "base");
  return io::load_safetensors(folder / "new/adapter_model.safetensors");
}

}  // namespace

TEST_CASE("adapters: logits, merged weights and 20 steps are PEFT's", "[adapters]") {
  for (const std::string name : {"llama", "gpt2", "llama_head", "qwen2_head"}) {
    INFO(name);
    const testing::GoldenFile expected("../lm/golden/pretrained/adapters_" + name + "/expected");
    const Indices ids = expected.indices("ids");
    CHECK(relative_to(adapted(name)(ids), expected.tensor("f32.logits")) < 1e-6);
    lm::GPT model = adapted(name, DType::float64);
    CHECK(relative_to(model(ids), expected.tensor("logits")) < 1e-9);

    lm::GPT merged = nn::clone(model);
    lm::merge_lora(merged);
    CHECK(relative_to(merged(ids), expected.tensor("logits")) < 1e-9);
    for (const auto& [key, x] : lm::to_pretrained(merged.config, nn::state_dict(merged)))
      if (expected.contains("merged." + key))
        CHECK(relative_to(x, expected.tensor("merged." + key)) < 1e-12);

    const nn::StateDict before = nn::state_dict(model);
    optim::AdamW optimizer(nn::parameters(model), {.lr = 0.01, .weight_decay = 0.1});
    for (Size step = 0; step < 20; ++step) {
      optimizer.zero_grad();
      const Tensor loss = model.loss(ids.slice(1, 0, -1), ids.slice(1, 1, {}));
      loss.backward();
      optimizer.step();
      CHECK(relative_to(loss, select(expected.tensor("losses"), 0, step)) < 1e-9);
    }
    for (const auto& [key, x] : saved(model).tensors)
      CHECK(relative_to(x, expected.tensor("after." + key)) < 1e-9);
    CHECK(expected.unused().empty());
    CHECK(lm::base_checksum(nn::state_dict(model)) == lm::base_checksum(before));
  }
}

TEST_CASE("adapters: saved ones are those that were loaded", "[adapters]") {
  for (const std::string name : {"llama", "gpt2", "llama_head", "qwen2_head"}) {
    INFO(name);
    const TemporaryFolder out;
    const std::string folder = golden_folder("adapters_" + name);
    const lm::GPT model = adapted(name);
    lm::save_adapters(out / "new", model, "some/base");
    const auto ours = io::load_safetensors(out / "new/adapter_model.safetensors").tensors,
               theirs = io::load_safetensors(folder + "/adapter_model.safetensors").tensors;
    const bool head = name.ends_with("_head");  // whose own weight is not written
    REQUIRE(ours.size() + (head ? 1 : 0) == theirs.size());
    for (const auto& [key, x] : ours)
      CHECK(same_bits(theirs.at(key), x));
    const io::Json a = lm::read_json_file(out / "new/adapter_config.json"),
                   b = lm::read_json_file(folder + "/adapter_config.json");
    for (const char* const key : {"peft_type", "task_type", "r", "target_modules", "bias",
                                  "fan_in_fan_out", "inference_mode", "lora_dropout"})
      CHECK(*a.find(key) == *b.find(key));
    CHECK(*a.find("base_model_name_or_path") == io::Json("some/base"));
    // The scale of use_rslora is that of another alpha.
    CHECK(a.number("lora_alpha").value() == Approx(head              ? 8
                                                   : name == "llama" ? 6
                                                                     : 5 * std::sqrt(2.0))
                                                .epsilon(1e-15));
    lm::GPT again = base_model(name.substr(0, name.find('_')));
    CHECK(lm::load_adapters(out / "new", again).base == "some/base");
    const Indices ids{{1, 5, 3, 0, 6, 2}};
    CHECK(same_bits(again(ids), model(ids)));
    CHECK_THROWS_WITH(lm::save_adapters(out / "new", model, ""),
                      ContainsSubstring("exists already"));
    lm::save_adapters(out / "new", model, "", true);
  }
}

TEST_CASE("adapters: the base's own weights may be among PEFT's, if they are the base's",
          "[adapters]") {
  const TemporaryFolder folder;
  const std::string path = folder / "new", prefix = "base_model.model.";
  // PEFT adds the weights of an embedding or a head that has adapters, is in modules_to_save, or
  // with save_embedding_layers=True.
  for (const std::string base : {"llama", "qwen2"}) {  // tied, and untied
    std::filesystem::remove_all(path);
    std::filesystem::copy(golden_folder("adapters_" + base + "_head"), path);
    const io::TensorFile file = io::load_safetensors(path + "/adapter_model.safetensors");
    REQUIRE(file.tensors.contains(prefix + "lm_head.base_layer.weight"));
    const lm::GPT model = base_model(base), same = adapted(base + "_head");
    const Tensor head = model.lm_head.weight.detach(), embedding = model.wte.weight.detach(),
                 up = model.h[0].mlp.c_fc.weight.detach();
    const auto load_with = [&](const std::string& name, const Tensor& x) {
      io::TensorFile more = file;
      more.tensors.insert_or_assign(prefix + name, x);
      io::save_safetensors(path + "/adapter_model.safetensors", more);
      lm::GPT loaded = base_model(base);
      lm::load_adapters(path, loaded);
      CHECK(same_bits(loaded({{1, 5, 3}}), same({{1, 5, 3}})));
    };
    for (const auto& [name, x] : {std::pair<std::string, Tensor>("lm_head.weight", head),
                                  {"lm_head.base_layer.weight", head},
                                  {"model.embed_tokens.weight", embedding},
                                  {"model.embed_tokens.base_layer.weight", embedding},
                                  {"model.layers.0.mlp.up_proj.base_layer.weight", up}}) {
      INFO(name);
      load_with(name, clone(x));
      for (const Tensor& other : {clone(x) + 1e-3, cat({x, x}, 0)})
        check_contains(
            message_of<FileError>([&, &name = name] { load_with(name, other); }),
            {"new: these adapters change the model's own weights (" + prefix + name + ")",
             "merge_and_unload()"});
    }
    // The folder may name them, too.
    const auto listed = [&](const char* module) {
      std::string json =
          read_bytes(golden_folder("adapters_" + base + "_head/adapter_config.json"));
      const std::string none = "\"modules_to_save\": null";
      REQUIRE(json.find(none) != json.npos);
      json.replace(json.find(none), none.size(),
                   "\"modules_to_save\": [\"" + std::string(module) + "\"]");
      write_bytes(path + "/adapter_config.json", json);
    };
    listed("lm_head");
    load_with("lm_head.weight", clone(head));
    listed("embed_tokens");
    check_contains(message_of<FileError>([&] { load_with("lm_head.weight", clone(head)); }),
                   {"modules_to_save names embed_tokens", "has no weight of it"});
    check_contains(message_of<FileError>(
                       [&] { load_with("model.embed_tokens.lora_embedding_A", ones({2, 11})); }),
                   {"lora_embedding_A", "an embedding has none here",
                    base == "llama" ? "the tied lm_head" : "merge_and_unload()"});
  }
}

TEST_CASE("adapters: those of a tied head leave the embedding as it is", "[adapters]") {
  const TemporaryFolder folder;
  const Indices ids{{1, 5, 3, 0, 6, 2}};
  lm::GPT model = base_model("llama");
  REQUIRE(model.config.tied);
  lm::add_adapters(model, {.rank = 2, .targets = {"lm_head"}});
  nn::init::normal_(model.lm_head.lora_B);
  const Tensor y = model(ids), embedding = clone(model.wte.weight.detach());
  lm::save_adapters(folder / "new", model, "");
  lm::GPT again = base_model("llama");
  lm::load_adapters(folder / "new", again);
  CHECK(same_bits(again(ids), y));
  CHECK_THROWS_WITH(nn::merge_lora(again), ContainsSubstring("is also transformer.wte.weight"));
  lm::merge_lora(model);
  CHECK(same_bits(model.wte.weight, embedding));
  CHECK_FALSE(model.config.tied);
  CHECK(allclose(model(ids), y, 1e-5, 1e-5));
  lm::save_pretrained(folder / "merged", model);
  CHECK(same_bits(lm::load_pretrained(folder / "merged")(ids), model(ids)));
}

TEST_CASE("adapters: new ones are those of each module, as PEFT names them", "[adapters]") {
  const auto names = [](const char* base, const nn::LoraOptions& options) {
    lm::GPT model = base_model(base);
    lm::add_adapters(model, options);
    std::set<std::string> found;
    for (const auto& [name, x] : saved(model).tensors)
      if (name.find(".1.") != name.npos && name.ends_with("lora_A.weight"))
        found.insert(name.substr(std::string("base_model.model.").size()));
    return found;
  };
  using Found = std::set<std::string>;
  const std::string l = "model.layers.1.", A = ".lora_A.weight";
  CHECK(names("llama", {.rank = 2}) == Found{l + "self_attn.q_proj" + A, l + "self_attn.k_proj" + A,
                                             l + "self_attn.v_proj" + A, l + "self_attn.o_proj" + A,
                                             l + "mlp.gate_proj" + A, l + "mlp.up_proj" + A,
                                             l + "mlp.down_proj" + A});
  CHECK(names("llama", {.rank = 2, .targets = {"k_proj", "model.layers.1.mlp.up_proj"}}) ==
        Found{l + "self_attn.k_proj" + A, l + "mlp.up_proj" + A});
  CHECK(names("gpt2", {.rank = 2, .targets = {"attn.c_proj"}}) ==
        Found{"transformer.h.1.attn.c_proj" + A});

  // Each has a matrix of its own; those of nn::add_lora share one for q, k and v.
  lm::GPT model = base_model("llama"), shared = base_model("llama");
  lm::add_adapters(model, {.rank = 2});
  CHECK(model.h[0].attn.c_attn.lora_A.shape() == Shape{6, 8});
  CHECK(model.h[0].attn.c_attn.lora_B.shape() == Shape{64, 2});
  nn::add_lora(shared, {.rank = 2});
  nn::init::normal_(shared.h[0].attn.c_attn.lora_B);
  const auto tensors = saved(shared).tensors;
  const std::string attn = "base_model.model.model.layers.0.self_attn.";
  CHECK(same_bits(tensors.at(attn + "q_proj" + A), tensors.at(attn + "v_proj" + A)));
  const TemporaryFolder folder;
  lm::save_adapters(folder / "new", shared, "");
  lm::GPT again = base_model("llama");
  lm::load_adapters(folder / "new", again);
  const Indices ids{{1, 5, 3, 0, 6, 2}};
  CHECK(allclose(again(ids), shared(ids), 1e-5, 1e-6));
}

TEST_CASE("adapters: modules are chosen by PEFT's rules", "[adapters]") {
  const TemporaryFolder folder;
  const std::string path = folder / "chosen", l0 = "model.layers.0.", l1 = "model.layers.1.",
                    up = "mlp.up_proj", q = "self_attn.q_proj", v = "self_attn.v_proj";
  using Names = std::vector<std::string>;
  const auto chosen_in = [](const lm::GPT& model) {
    std::set<std::string> names;
    const std::string begin = "base_model.model.", end = ".lora_A.weight";
    for (const auto& [name, x] : saved(model).tensors)
      if (name.ends_with(end))
        names.insert(name.substr(begin.size(), name.size() - begin.size() - end.size()));
    return names;
  };
  // Saves adapters of these modules with other keys in adapter_config.json, and loads them.
  const auto load = [&](const Names& modules, const io::JsonObject& keys) {
    lm::GPT model = base_model("llama"), loaded = base_model("llama"), again = base_model("llama");
    lm::add_adapters(model, {.rank = 2, .targets = modules});
    lm::save_adapters(path, model, "", true);
    io::JsonObject config = *lm::read_json_file(path + "/adapter_config.json").as<io::JsonObject>();
    for (const auto& entry : keys) {
      std::erase_if(config, [&](const auto& other) { return other.first == entry.first; });
      config.push_back(entry);
    }
    write_bytes(path + "/adapter_config.json", io::format_json(config));
    lm::load_adapters(path, loaded);
    CHECK(chosen_in(loaded) == std::set(modules.begin(), modules.end()));
    lm::save_adapters(path, loaded, "", true);
    lm::load_adapters(path, again);
    CHECK(chosen_in(again) == chosen_in(loaded));
  };
  const auto list = [](const io::JsonArray& array) { return io::Json(array); };
  // As check_target_module_exists() of PEFT 0.21.2 answers.
  struct Case {
    io::Json targets, layers, containers;
    Names chosen;
  };
  for (const auto& [targets, layers, containers, chosen] :
       {Case{".*\\.[qv]_proj", {}, {}, {l0 + q, l0 + v, l1 + q, l1 + v}},
        {"(?P<a>model\\.layers)\\.1\\..*(up|q)_proj", list({}), {}, {l1 + q, l1 + up}},
        {".*head", {}, {}, {"lm_head"}},
        {list({"q_proj", "lm_head"}), std::uint64_t{1}, {}, {l1 + q, "lm_head"}},
        {list({"q_proj", l0 + up}), list({std::uint64_t{1}}), {}, {l0 + up, l1 + q}},
        {list({"up_proj"}),
         list({std::uint64_t{0}, std::uint64_t{1}}),
         "layers",
         {l0 + up, l1 + up}},
        {list({"up_proj"}), list({std::uint64_t{1}}), list({"h", "l[a-z]+"}), {l1 + up}},
        {list({"up_proj"}), list({}), "h", {l0 + up, l1 + up}}}) {
    const io::JsonObject keys{{"target_modules", targets},
                              {"layers_to_transform", layers},
                              {"layers_pattern", containers}};
    INFO(io::format_json(keys));
    load(chosen, keys);
    Names more = chosen;
    more.push_back(l0 + "mlp.down_proj");
    check_contains(message_of<FileError>([&] { load(more, keys); }),
                   {"unexpected: base_model.model." + more.back() + ".lora_A.weight"});
    more = {more.back(), chosen.back()};
    check_contains(message_of<FileError>([&] { load(more, keys); }),
                   {"unexpected: ", chosen.size() > 1 ? "missing: " : ""});
  }
  lm::GPT all = base_model("llama");
  lm::add_adapters(all);
  const auto linear = chosen_in(all);  // all but lm_head
  CHECK(linear.size() == 14);
  load({linear.begin(), linear.end()}, {{"target_modules", "All-Linear"}});
  for (const auto& [pattern, says] :
       {std::pair("q_proj", "unexpected: "),
        {"(q_proj", "adapter_config.json: target_modules: the pattern '(q_proj' is not a"}})
    check_contains(message_of<FileError>([&, &pattern = pattern] {
                     load({"q_proj"}, {{"target_modules", pattern}});
                   }),
                   {says});
}

TEST_CASE("adapters: others than those of the model are refused, and change nothing",
          "[adapters]") {
  const TemporaryFolder folder;
  const std::string path = folder / "bad";
  const auto fresh = [&] {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    for (const char* const file : {"/adapter_config.json", "/adapter_model.safetensors"})
      std::filesystem::copy_file(golden_folder("adapters_llama") + file, path + file);
  };
  const auto refused_by = [&](lm::GPT model, const std::vector<std::string>& says) {
    const std::string before = nn::summary(model);
    check_contains(message_of<FileError>([&] { lm::load_adapters(path, model); }), says);
    CHECK(nn::summary(model) == before);
  };
  const auto refused = [&](const std::vector<std::string>& says) {
    refused_by(base_model("llama"), says);
  };
  struct Case {
    const char* key;
    io::Json value;
    const char* says;
  };
  const io::JsonObject object{{"q_proj", 8.0}};
  const io::JsonArray list{"lm_head"};
  const char* const without = "supported: adapters without it";
  for (const auto& [key, value, says] :
       {Case{"r", 0.0, "0.0; it must be a whole number from 1"},
        {"r", 2.5, "2.5; it must be a whole number from 1"},
        {"lora_alpha", -1.0, "-1.0; it must be a positive number"},
        {"peft_type", "IA3", "\"IA3\"; supported: LORA"},
        {"task_type", "SEQ_CLS", "supported: CAUSAL_LM"},
        {"bias", "all", "\"all\"; supported: none"},
        {"init_lora_weights", "pissa", "\"pissa\"; supported: true, false and gaussian"},
        {"target_modules", 8.0, "8.0; it must be a list of names"},
        {"target_modules", "", "it must be a list of names"},
        {"use_dora", true, without},
        {"lora_bias", true, without},
        {"an_option_of_tomorrow", 1.0, without},
        {"rank_pattern", object, without},
        {"alpha_pattern", object, without},
        {"modules_to_save", object, "it must be a list of names"},
        {"layers_to_transform", list, "it must be a number, or a list of them"},
        {"layers_pattern", io::JsonArray{2.0}, "it must be a name, or a list"}}) {
    fresh();
    io::JsonObject config = *lm::read_json_file(path + "/adapter_config.json").as<io::JsonObject>();
    std::erase_if(config, [&, &k = key](const auto& entry) { return entry.first == k; });
    config.emplace_back(key, value);
    write_bytes(path + "/adapter_config.json", io::format_json(config));
    refused({"bad/adapter_config.json: " + std::string(key) + " is ", says});
  }

  const auto changed = [&](const auto& change, const std::vector<std::string>& says) {
    fresh();
    io::TensorFile file = io::load_safetensors(path + "/adapter_model.safetensors");
    change(file.tensors);
    io::save_safetensors(path + "/adapter_model.safetensors", file);
    refused(says);
  };
  using Tensors = std::map<std::string, Tensor>;
  const std::string key = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
  changed([&](Tensors& t) { t.erase(key + "A.weight"); },
          {"bad: the adapters do not fit the model", "missing: " + key + "A.weight"});
  changed([&](Tensors& t) { t.emplace("base_model.model.model.embed_tokens.weight", ones(3)); },
          {"bad: these adapters change the model's own weights"});
  changed([&](Tensors& t) { t.at(key + "B.weight") = ones({33, 3}); },
          {key + "B.weight is (33, 3) here and (32, 3) in the model"});
  fresh();
  refused_by(base_model("gpt2"),
             {"bad: the adapters do not fit the model",
              "unexpected: base_model.model.model.layers.0.mlp.down_proj.lora_A.weight"});
  // Another model of these sizes, if its weights are known.
  lm::GPT model = adapted("llama");
  lm::save_adapters(path, model, "", true);
  lm::GPT other = base_model("llama");
  other.ln_f.weight.copy_(other.ln_f.weight.detach() + 1);
  refused_by(other, {"bad: its adapters were trained to other weights than this model's"});
  // Twice, of another format, cut off, and without one of the files.
  CHECK_THROWS_WITH(lm::load_adapters(path, model), ContainsSubstring("has adapters already"));
  const std::string bytes = read_bytes(path + "/adapter_model.safetensors");
  write_bytes(path + "/adapter_model.safetensors", bytes.substr(0, bytes.size() - 1));
  refused({"bad/adapter_model.safetensors: "});
  std::filesystem::rename(path + "/adapter_model.safetensors", path + "/adapter_model.bin");
  refused({"bad: adapter_model.bin holds Python pickles", "AutoPeftModel"});
  std::filesystem::remove(path + "/adapter_model.bin");
  refused({"bad/adapter_model.safetensors: cannot be opened"});
  std::filesystem::remove(path + "/adapter_config.json");
  refused({"bad/adapter_config.json: cannot be opened"});

  lm::GPT plain = base_model("llama");
  CHECK_THROWS_WITH(lm::save_adapters(path, plain, ""), ContainsSubstring("has no adapters"));
  CHECK_THROWS_WITH(lm::add_adapters(plain, {.targets = {"q_proj", "query"}}),
                    ContainsSubstring("no layer is called 'query'; there are down_proj, "));
  CHECK_THROWS_WITH(lm::add_adapters(plain, {.rank = 9}), ContainsSubstring("rank is 9, above"));
  model.h[1].mlp.c_proj.lora_scale = 3;
  CHECK_THROWS_WITH(lm::save_adapters(path, model, ""), ContainsSubstring("another rank or scale"));
  CHECK_FALSE(std::filesystem::exists(path + "/adapter_config.json"));
}
