// Weights from and for other programs, as a user moves them.

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/lm/gpt.hpp>

#include "helpers/paths.hpp"
#include "helpers/safetensors.hpp"
#include "lm/program/run.hpp"

using namespace xgrad;

namespace {

/// A text with the eleven characters of the golden models.
std::string eleven_characters() { return times(40, "abcdefghijk"); }

/// Changes a file.
template <class F>
void change(const std::string& path, F&& f) {
  io::TensorFile file = io::load_safetensors(path);
  f(file);
  io::save_safetensors(path, file);
}

}  // namespace

TEST_CASE("xgrad: a model that is exported is the same") {
  const TrainedFolder folder;
  const std::string model = folder / "model.safetensors";
  const Result exported = run_well(folder, "export --checkpoint " + folder.checkpoint);
  CHECK_THAT(exported.out, Catch::Matchers::Matches("model.safetensors: [0-9]+ tensors\n"));
  const io::TensorFile file = io::load_safetensors(model);
  const io::Checkpoint checkpoint = io::load_checkpoint(folder / folder.checkpoint);
  CHECK(file.tensors.size() == checkpoint.model.size());
  for (const auto& [name, x] : file.tensors)
    CHECK_THAT(name, StartsWith("transformer."));
  CHECK(io::parse_json(file.metadata.at("config")) == *checkpoint.user.find("config"));
  CHECK(file.metadata.at("characters") == *checkpoint.user.find<std::string>("characters"));

  // It is accepted in place of a checkpoint, and a run can begin with its weights.
  const Arguments begin = {
      "train --init-from model.safetensors --data text --max-iters 0 --out new"};
  CHECK_THAT(run_well(folder, begin).err,
             ContainsSubstring("From:  model.safetensors, weights alone."));
  const io::Checkpoint fresh = io::load_checkpoint(folder / "new/checkpoint.safetensors");
  CHECK(fresh.step == 0);
  for (const std::string same : {"model.safetensors", "new"}) {
    CAPTURE(same);
    CHECK(run_well(folder, {"eval", "--checkpoint", same, "--data", "text"}).out ==
          run_well(folder, {"eval", "--checkpoint", folder.checkpoint, "--data", "text"}).out);
    CHECK(run_well(folder, {"sample", "--checkpoint", same}).out ==
          run_well(folder, "sample --checkpoint " + folder.checkpoint).out);
  }
  check_refused(folder, "eval model.safetensors", 1, {"--data FILE names a text"});
}

TEST_CASE("xgrad: a run begins with PyTorch's state dicts", "[golden]") {
  const TemporaryFolder folder;
  write_bytes(folder / "text", eleven_characters());
  const io::TensorFile outputs = io::load_safetensors(golden_weights("outputs"));
  for (const std::string name : {"gpt_f64", "gpt_f16", "gpt_bf16", "gpt"}) {
    INFO(name);
    const Result result =
        run_well(folder, {"train", "--init-from", golden_weights(name), "--out", name, "--data",
                          "text", "--n-head", "2", "--max-iters", "0"});
    const std::string dtype = name == "gpt_f64" ? "F64" : name == "gpt_f16" ? "F16" : "BF16";
    if (name == "gpt")
      CHECK(result.err.find("converted") == std::string::npos);
    else
      check_contains(result.err, {"converted: " + dtype + " -> float32 (9 tensors).\n"});

    const io::Checkpoint checkpoint =
        io::load_checkpoint(folder / (name + "/checkpoint.safetensors"));
    lm::GPT model({.block_size = 8,
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

TEST_CASE("xgrad: nanoGPT's causal masks are no weights") {
  const TrainedFolder folder;
  run_well(folder, "export --checkpoint " + folder.checkpoint);
  change(folder / "model.safetensors", [](io::TensorFile& file) {
    file.tensors["transformer.h.0.attn.bias"] = ones({1, 1, 8, 8});
  });
  CHECK(run_well(folder, "eval --checkpoint model.safetensors --data text").out ==
        run_well(folder, {"eval", "--checkpoint", folder.checkpoint, "--data", "text"}).out);
}

TEST_CASE("xgrad: names as torch.compile and DataParallel make them") {
  const TrainedFolder folder;
  run_well(folder, "export --checkpoint " + folder.checkpoint);
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
  const std::string expected = run_well(folder, "sample --checkpoint " + folder.checkpoint).out;
  for (const std::string& prefix : std::vector<std::string>{
           "_orig_mod.", "module.", "_orig_mod.module.", "module._orig_mod.", "module.module."}) {
    CAPTURE(prefix);
    prefixed(prefix, 1000);
    CHECK(run_well(folder, "sample --checkpoint model.safetensors").out == expected);
    prefixed(prefix, 2);  // not all of them: another model
    check_refused(folder, "sample --checkpoint model.safetensors", 1,
                  {"a state dict of another model"});
  }
}

TEST_CASE("xgrad: files that no run can begin with") {
  const TrainedFolder folder;
  const std::string path = folder / "model.safetensors";
  run_well(folder, "export --checkpoint " + folder.checkpoint);
  const std::string good = read_bytes(path);
  const auto refused = [&](auto&& f, const std::vector<std::string>& fragments,
                           const Arguments& more = {}) {
    change(path, f);
    check_refused(folder,
                  overridden("train --init-from model.safetensors --data text --out new", more), 1,
                  fragments);
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
  refused([](io::TensorFile& file) { file.metadata.erase("config"); },
          {"model.safetensors: its width 16 is not a multiple of n_head 3\n"}, "--n-head 3");
  refused([](io::TensorFile&) {}, {"--n-head 4 is given, but the model has 2"}, "--n-head 4");
  refused([](io::TensorFile& file) { file.metadata.erase("characters"); },
          {"no 'characters'", "--data FILE"}, "--data -");
  refused([](io::TensorFile& file) { file.metadata.at("characters") = "ba"; }, {"'characters'"});
  refused([](io::TensorFile& file) { file.metadata.at("characters") = "ab"; },
          {"transformer.wte.weight is (23, 16) here and (2, 16)"});
  refused([](io::TensorFile& file) { file.tensors.erase("transformer.wpe.weight"); },
          {"not a checkpoint"});
  refused([](io::TensorFile& file) { file.tensors["transformer.wpe.weight"] = ones({20}); },
          {"no transformer.wpe.weight of rank 2"});
  refused([](io::TensorFile& file) { file.tensors["transformer.wte.weight"] = ones({20}); },
          {"asks for 3568 weights, and it has "});
  refused(
      [](io::TensorFile& file) {
        file.tensors["transformer.h.0.attn.c_attn.weight"] = ones({48, 17});
      },
      {"transformer.h.0.attn.c_attn.weight is (48, 17) here and (48, 16)"});
  write_bytes(folder / "other", "abc");
  refused([](io::TensorFile& file) { file.metadata.erase("characters"); },
          {"transformer.wte.weight is (23, 16) here and (3, 16)"}, "--data other");
}
