// Runs of PyTorch (tests/golden/weights.py) as compare()'s reference, and files that are none.

#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/reference.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/layers.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

/// The port of that script's Block, with planted mistakes.
struct PortedBlock {
  nn::LayerNorm ln_1{4}, ln_2{4};
  nn::MultiHeadAttention attn{4, 2};
  nn::Sequential mlp{nn::Linear(4, 8), nn::GELU{}, nn::Linear(8, 4)};
  bool causal = true, after_norm = false;
  double scale = 1;

  Tensor operator()(const Tensor& x) const {
    const Tensor h = ln_1(x) * scale;
    const Tensor y = x + attn(h, h, h, {.is_causal = causal, .need_weights = false}).output;
    const Tensor normed = ln_2(y);
    return (after_norm ? normed : y) + mlp(normed);
  }
  static void visit(auto& self, auto&& v) {
    v("ln_1", self.ln_1);
    v("ln_2", self.ln_2);
    v("attn", self.attn);
    v("mlp", self.mlp);
  }
};

}  // namespace

TEST_CASE("a run of PyTorch is the reference of its port", "[io][compare]") {
  const ReferenceRun reference = io::load_reference(golden_weights("run"));
  REQUIRE(reference.inputs.size() == 1);
  CHECK(reference.indices.empty());
  CHECK(reference.results.size() == 1);
  CHECK(reference.results[0].shape() == Shape{2, 3, 4});
  CHECK(reference.state.size() == 12);
  PortedBlock block;
  nn::load_state_dict(block, reference.state);
  const auto message = [&](const std::string& scope) {
    const Comparison found = compare(block, reference);
    CHECK_FALSE(found);
    REQUIRE(found.reference.has_value());
    CHECK(found.reference->scope == scope);
    return found.message;
  };
  const Comparison same = compare(block, reference);
  INFO(same.message);
  CHECK(same);
  CHECK(same.ops == reference.events.size());
  block.causal = false;
  CHECK_THAT(message("attn"), ContainsSubstring(" in attn, is the first that you do not have") &&
                                  ContainsSubstring("yours differs first at op "));
  block.causal = true;
  block.scale = 2;
  CHECK_THAT(message("attn"), ContainsSubstring("mm in attn, is the first that you do not have"));
  block.scale = 1;
  block.after_norm = true;
  CHECK_THAT(message(""), ContainsSubstring("add, is the first that you do not have"));
  block.after_norm = false;
  Tensor& weight = block.mlp.at<nn::Linear>(2).weight;
  weight.copy_(weight.detach() * 0.5);
  CHECK_THAT(message("mlp.2"), ContainsSubstring("t in mlp.2, is the first that you do not"));
}

TEST_CASE("files that are no run are refused", "[io][compare]") {
  const TemporaryFolder folder;
  const auto refused = [&](const io::TensorFile& content, const std::string& why) {
    io::save_safetensors(folder / "run.safetensors", content);
    CHECK_THAT(message_of<FileError>([&] { io::load_reference(folder / "run.safetensors"); }),
               ContainsSubstring("run.safetensors: ") && ContainsSubstring(why));
  };
  const Tensor x = ones({2});
  const std::string exp = "000001 layer exp", sin = "000002  sin";
  io::TensorFile good{
      {{exp, x * 2.0}, {sin, x * 3.0}, {"input 0", x}, {"000000  zeros", x * 0.0}},
      {{"input 1", Indices{1, 2}}},
      {{exp, "input 0\ninput 1"}, {sin, exp + "\n000000  zeros"}, {"results", sin + "\ninput 0"}}};
  io::save_safetensors(folder / "good.safetensors", good);
  const ReferenceRun run = io::load_reference(folder / "good.safetensors");
  REQUIRE(run.events.size() == 2);
  CHECK(run.events[0].op == "exp");
  CHECK(run.events[0].scope == "layer");
  CHECK(run.events[0].inputs.size() == 1);
  CHECK(run.events[1].scope.empty());
  CHECK(run.events[1].made_by == std::vector<std::optional<std::size_t>>{0, std::nullopt});
  CHECK(run.indices.size() == 1);
  CHECK(run.results.size() == 2);

  io::TensorFile later = good, unknown = good, none = good, plain = good;
  later.metadata[exp] = sin;
  refused(later, "'000001 layer exp' is computed from '000002  sin', which is no earlier value");
  unknown.metadata[sin] = "x\n";
  refused(unknown, "'000002  sin' is computed from 'x', which is no earlier value");
  none.metadata.erase("results");
  refused(none, "no result of floating-point numbers");
  plain.tensors.emplace("h.0.weight", x * 4.0);
  refused(plain, "the tensor 'h.0.weight' is not of a run that scripts/pytorch/dump.py wrote");
}
