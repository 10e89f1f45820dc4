// Models from and for other programs, as a user moves them.

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/optim/adam.hpp>

#include "char_transformer/corpus.hpp"
#include "examples/char_transformer_run.hpp"
#include "helpers/paths.hpp"
#include "helpers/safetensors.hpp"

using namespace xgrad;

namespace {

/// A text with the eleven characters of the golden models.
std::string eleven_characters() {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "abcdefghijk";
  return text;
}

void check_refused(const TemporaryFolder& folder, const Arguments& arguments,
                   const std::vector<std::string>& fragments) {
  check_refused(folder, arguments, 1, fragments);
  CHECK_FALSE(std::filesystem::exists(folder / "new.safetensors"));
}

/// Changes a file.
template <class F>
void change(const std::string& path, F&& f) {
  io::TensorFile file = io::load_safetensors(path);
  f(file);
  io::save_safetensors(path, file);
}

}  // namespace

TEST_CASE("char_transformer: a model that is exported and imported is the same") {
  const TrainedFolder folder;
  const std::string model = folder / "model.safetensors";
  const Result exported = run_well(folder, {"export", "--checkpoint", folder.checkpoint});
  CHECK_THAT(exported.out, Catch::Matchers::Matches("model.safetensors: [0-9]+ tensors\n"));
  check_refused(folder, {"export", "--checkpoint", folder.checkpoint, "--out", folder.checkpoint},
                1, {"is the same file as run"});
  const io::TensorFile file = io::load_safetensors(model);
  const io::Checkpoint checkpoint = io::load_checkpoint(folder / folder.checkpoint);
  CHECK(file.tensors.size() == checkpoint.model.size());
  for (const auto& [name, x] : file.tensors)
    CHECK_THAT(name, StartsWith("transformer."));
  CHECK(io::parse_json(file.metadata.at("config")) == *checkpoint.user.find("config"));
  CHECK(file.metadata.at("characters") == *checkpoint.user.find<std::string>("characters"));

  const Result imported =
      run_well(folder, {"import", "--state", "model.safetensors", "--out", "new.safetensors"});
  CHECK(imported.out == "new.safetensors: n_layer 1, n_head 2, n_embd 16\n");
  CHECK(run_well(folder, {"eval", "--checkpoint", "new.safetensors", "--data", "text"}).out ==
        run_well(folder, {"eval", "--checkpoint", folder.checkpoint, "--data", "text"}).out);
  CHECK(run_well(folder, {"sample", "--checkpoint", "new.safetensors"}).out ==
        run_well(folder, {"sample", "--checkpoint", folder.checkpoint}).out);

  // A run can go on from it.
  const io::Checkpoint fresh = io::load_checkpoint(folder / "new.safetensors");
  CHECK(fresh.step == 0);
  nn::GPT gpt({.block_size = 8,
               .vocab_size = characters_in(fresh).size(),
               .n_layer = 1,
               .n_head = 2,
               .n_embd = 16,
               .bias = false});
  optim::AdamW optimizer(optim::decay_matrices(nn::parameters(gpt), {}));
  io::restore(fresh, gpt, optimizer);
}

TEST_CASE("char_transformer: PyTorch's state dicts are imported", "[golden]") {
  const TemporaryFolder folder;
  write_bytes(folder / "text", eleven_characters());
  const io::TensorFile outputs = io::load_safetensors(golden_weights("outputs"));
  for (const std::string name : {"gpt_f64", "gpt_f16", "gpt_bf16", "gpt"}) {
    INFO(name);
    const Result result =
        run_well(folder, {"import", "--state", golden_weights(name), "--out", name + ".safetensors",
                          "--data", "text", "--n-head", "2"});
    const std::string dtype = name == "gpt_f64" ? "F64" : name == "gpt_f16" ? "F16" : "BF16";
    if (name == "gpt")
      CHECK(result.out.find("Converted") == std::string::npos);
    else
      CHECK_THAT(result.out, StartsWith("Converted: " + dtype + " -> float32 (9 tensors).\n"));
    run_well(folder, {"eval", "--checkpoint", name + ".safetensors", "--data", "text"});

    const io::Checkpoint checkpoint = io::load_checkpoint(folder / (name + ".safetensors"));
    nn::GPT model({.block_size = 8,
                   .vocab_size = 11,
                   .n_layer = name == "gpt" ? 2 : 1,
                   .n_head = 2,
                   .n_embd = 16,
                   .bias = name == "gpt"});
    io::load_state(model, checkpoint.model, "test");
    const Tensor logits = model(outputs.indices.at("gpt.in0"));
    const Tensor expected = outputs.tensors.at(name + ".out0");
    REQUIRE(logits.shape() == expected.shape());
    double largest = 0;
    for (Size i = 0; i < logits.numel(); ++i)
      largest = std::max(
          largest, std::abs(double{logits.data<float>()[i]} - double{expected.data<float>()[i]}));
    CHECK(largest < 1e-5);
  }
}

TEST_CASE("char_transformer: nanoGPT's causal masks are no weights") {
  const TrainedFolder folder;
  run_well(folder, {"export", "--checkpoint", folder.checkpoint});
  change(folder / "model.safetensors", [](io::TensorFile& file) {
    file.tensors["transformer.h.0.attn.bias"] = ones({1, 1, 8, 8});
  });
  run_well(folder, {"import", "--state", "model.safetensors", "--out", "new.safetensors"});
  CHECK(run_well(folder, {"eval", "--checkpoint", "new.safetensors", "--data", "text"}).out ==
        run_well(folder, {"eval", "--checkpoint", folder.checkpoint, "--data", "text"}).out);
}

TEST_CASE("char_transformer: names as torch.compile and DataParallel make them are imported") {
  const TrainedFolder folder;
  run_well(folder, {"export", "--checkpoint", folder.checkpoint});
  const std::string good = read_bytes(folder / "model.safetensors");
  const auto prefixed = [&](const std::string& prefix, std::size_t but) {
    write_bytes(folder / "model.safetensors", good);
    change(folder / "model.safetensors", [&](io::TensorFile& file) {
      std::map<std::string, Tensor> tensors;
      for (const auto& [name, x] : file.tensors)
        tensors.emplace((but-- == 0 ? "" : prefix) + name, x);
      tensors.emplace(prefix + "transformer.h.0.attn.bias", ones({1, 1, 8, 8}));
      file.tensors = tensors;
    });
  };
  const Arguments import = {"import", "--state", "model.safetensors", "--out", "new.safetensors"};
  const std::string expected = run_well(folder, {"sample", "--checkpoint", folder.checkpoint}).out;
  for (const std::string& prefix : std::vector<std::string>{
           "_orig_mod.", "module.", "_orig_mod.module.", "module._orig_mod.", "module.module."}) {
    CAPTURE(prefix);
    prefixed(prefix, 1000);
    run_well(folder, import);
    CHECK(run_well(folder, {"sample", "--checkpoint", "new.safetensors"}).out == expected);
    std::filesystem::remove(folder / "new.safetensors");
    prefixed(prefix, 2);  // not all of them: it is another model
    check_refused(folder, import, {"a state dict of another model"});
  }
}

TEST_CASE("char_transformer: files that cannot be imported") {
  const TrainedFolder folder;
  const std::string path = folder / "model.safetensors";
  run_well(folder, {"export", "--checkpoint", folder.checkpoint});
  const std::string good = read_bytes(path);
  const Arguments import = {"import", "--state", "model.safetensors", "--out", "new.safetensors"};
  const auto refused = [&](auto&& f, const std::vector<std::string>& fragments,
                           const Arguments& more = {}) {
    change(path, f);
    Arguments all = import;
    all = overridden(all, more);
    check_refused(folder, all, fragments);
    write_bytes(path, good);
  };
  refused(
      [](io::TensorFile& file) {
        file.tensors.erase("transformer.ln_f.weight");
        file.tensors["transformer.h.0.attn.bias"] = ones({8, 8});
        file.tensors["transformer.h.0.ln_1.weight"] = ones({15});
      },
      {"model.safetensors: does not fit the model", "missing: transformer.ln_f.weight",
       "unexpected: transformer.h.0.attn.bias",
       "transformer.h.0.ln_1.weight is (15,) here and (16,)"});
  refused([](io::TensorFile& file) { file.metadata.erase("config"); },
          {"number of heads", "--n-head N"});
  refused([](io::TensorFile& file) { file.metadata.at("config") = "{"; }, {"--n-head N"});
  refused([](io::TensorFile& file) { file.metadata.erase("characters"); },
          {"no 'characters'", "--data FILE"});
  refused([](io::TensorFile& file) { file.metadata.at("characters") = "ba"; }, {"'characters'"});
  refused([](io::TensorFile& file) { file.metadata.at("characters") = "ab"; },
          {"transformer.wte.weight is (23, 16) here and (2, 16)"});
  refused([](io::TensorFile& file) { file.tensors.erase("transformer.wpe.weight"); },
          {"no transformer.wpe.weight of rank 2"});
  refused([](io::TensorFile& file) { file.tensors["transformer.wte.weight"] = ones({20}); },
          {"asks for 3568 weights, and it has "});
  refused(
      [](io::TensorFile& file) {
        file.tensors["transformer.h.0.attn.c_attn.weight"] = ones({48, 17});
      },
      {"transformer.h.0.attn.c_attn.weight is (48, 17) here and (48, 16)"});
  refused([](io::TensorFile&) {},
          {"model.safetensors: its width 16 is not a multiple of --n-head 3\n"}, {"--n-head", "3"});
  refused([](io::TensorFile&) {}, {"none: no such file"}, {"--data", "none"});
  write_bytes(folder / "other", "abc");
  refused([](io::TensorFile&) {}, {"transformer.wte.weight is (23, 16) here and (3, 16)"},
          {"--data", "other"});
  check_refused(folder, {"import", "--state", "none"}, {"none: "});
  check_refused(folder, {"export", "--checkpoint", "model.safetensors", "--out", "none"},
                {"not a checkpoint"});
}

TEST_CASE("char_transformer: the corpus is printed as it is trained on") {
  const TemporaryFolder folder;
  CHECK(run_well(folder, {"corpus"}).out == corpus::scenes_corpus().text);
}
