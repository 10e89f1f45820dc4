// User-defined layers: parts, a call, and visit; functions that follow from these; messages for
// layers with a mistake.

#include <fmt/format.h>

#include <optional>
#include <vector>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

// A feed-forward layer with a gate: down(silu(W x) * up(x)), no biases.  Shazeer, 2020.
struct GatedMLP {
  nn::Sequential gate;
  nn::Linear up, down;
  GatedMLP(Size width, Size hidden)
      : gate{nn::Linear(width, hidden, false), nn::SiLU{}},
        up(width, hidden, false),
        down(hidden, width, false) {}
  Tensor operator()(const Tensor& x) const { return down(gate(x) * up(x)); }
  static void visit(auto& self, auto&& v) {
    v("gate", self.gate);
    v("up", self.up);
    v("down", self.down);
  }
};

// A sequence of blocks.  `scales` is a parameter of its own, `shift` a constant that is saved with
// the model; dropout depends on the training flag.
struct Tower {
  std::vector<GatedMLP> blocks;
  Tensor scales = ones({4}).requires_grad_();
  Tensor shift = zeros({4});
  nn::Dropout dropout{0.1};
  explicit Tower(Size n) {
    for (Size i = 0; i < n; ++i)
      blocks.emplace_back(4, 8);
  }
  Tensor operator()(Tensor x) const {
    for (const GatedMLP& block : blocks)
      x = x + dropout(block(x));
    return x * scales + shift;
  }
  static void visit(auto& self, auto&& v) {
    v("blocks", self.blocks);
    v("scales", self.scales);
    v("shift", nn::buffer(self.shift));
    v("dropout", self.dropout);
  }
};

// The output's weight is the embedding's: one line names the member, another declares the tie.
struct Tied {
  nn::Embedding embedding{5, 4};
  nn::Linear output{4, 5, false};
  Tied() { output.weight = embedding.weight; }
  Tensor operator()(const Indices& x) const { return output(embedding(x)); }
  static void visit(auto& self, auto&& v) {
    v("embedding", self.embedding);
    v("output", self.output);
    v("output.weight", nn::tied_to("embedding.weight"));
  }
};

// A mistake: visit omits the scales.
struct Forgetful {
  nn::Linear inner{4, 4};
  Tensor scales = ones({4}).requires_grad_();
  Tensor operator()(const Tensor& x) const { return inner(x) * scales; }
  static void visit(auto& self, auto&& v) { v("inner", self.inner); }
};

// A mistake: the mean is taken over the batch and detached from the graph.
struct Nosy {
  nn::Linear inner{4, 4};
  Tensor operator()(const Tensor& x) const { return inner(x) - mean(x.detach(), {0}, true); }
  static void visit(auto& self, auto&& v) { v("inner", self.inner); }
};

}  // namespace

int main() {
  manual_seed(1337);
  Tower tower(2);
  fmt::print("{}\n", nn::summary(tower));

  for (const auto& [name, tensor] : nn::state_dict(tower))
    fmt::print("{:<24} {}\n", name, to_string(tensor.shape()));
  fmt::print("\n");

  const Tensor x = randn({2, 3, 4});
  fmt::print("{}\n", nn::check_layer(tower, x).table());

  fmt::print("{}\n", nn::check_layer(Forgetful(), x).line("state_dict").found);
  const nn::LayerReport report = nn::check_layer(Nosy(), x);
  for (const char* check : {"check_batch_independence", "gradcheck"})
    fmt::print("{}\n", report.line(check).found);
  fmt::print("\n{}", nn::summary(Tied()));
}
