// Stage 9: a block, a model, Adam by hand.

#include <fmt/format.h>

#include <cmath>
#include <vector>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

// Attention lets positions exchange what they know; the two Linears work on each by itself.  Both
// add to what is there.
struct Block {
  nn::LayerNorm norm1, norm2;
  nn::Linear qkv, out, up, down;
  Size n_head;
  Block(Size width, Size heads)
      : norm1(width),
        norm2(width),
        qkv(width, 3 * width),
        out(width, width),
        up(width, 4 * width),
        down(4 * width, width),
        n_head(heads) {}
  Tensor operator()(Tensor x) const {
    x = x + out(causal_self_attention(qkv(norm1(x)), n_head));
    return x + down(gelu(up(norm2(x))));
  }
  static void visit(auto& self, auto&& v) {
    v("norm1", self.norm1), v("norm2", self.norm2), v("qkv", self.qkv), v("out", self.out);
    v("up", self.up), v("down", self.down);
  }
};

// Tokens become vectors, positions too; at the end each vector becomes a score for each token.
struct Model {
  nn::Embedding tokens, positions;
  Block block;
  nn::Linear head;
  Model(Size vocabulary, Size length, Size width)
      : tokens(vocabulary, width),
        positions(length, width),
        block(width, 2),
        head(width, vocabulary) {}
  Tensor operator()(const Indices& ids) const {  // (B, T) -> (B, T, V)
    return head(block(tokens(ids) + positions(arange_indices(0, ids.size(1)))));
  }
  static void visit(auto& self, auto&& v) {
    v("tokens", self.tokens), v("positions", self.positions), v("block", self.block);
    v("head", self.head);
  }
};

// Adam for one parameter: running means of the gradient and of its square.
struct Adam {
  Tensor p, m, v;
  explicit Adam(const Tensor& parameter)
      : p(parameter), m(zeros_like(parameter)), v(zeros_like(parameter)) {}
  void step(int t, double lr) {
    const NoGrad off;
    const Tensor g = p.grad();
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const Tensor m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.999, t));
    p.copy_(p - lr * m_hat / (sqrt(v_hat) + 1e-8));
  }
};

}  // namespace

int main() {
  manual_seed(1337);
  Model model(5, 4, 8);
  fmt::print("{}\n", nn::summary(model));

  const Indices ids = {{0, 1, 2, 3}}, next = {1, 2, 3, 4};
  const auto loss = [&](const Model& m) { return cross_entropy(m(ids).reshape({4, 5}), next); };
  fmt::print("a guess costs ln 5 = {:.2f}, this model {:.2f}\n\n", std::log(5), loss(model).item());

  // Adam by hand, and the library's on a copy.
  Model copy = nn::clone(model);
  optim::Adam library(nn::parameters(copy), {.lr = 0.01});
  std::vector<Adam> mine;
  for (const Tensor& p : nn::parameters(model))
    mine.emplace_back(p);
  for (int t = 1; t <= 3; ++t) {
    nn::zero_grad(model);
    loss(model).backward();
    for (Adam& adam : mine)
      adam.step(t, 0.01);
    library.zero_grad();
    loss(copy).backward();
    library.step();
    fmt::print("step {}: loss by hand {:.3f}, with optim::Adam {:.3f}\n", t, loss(model).item(),
               loss(copy).item());
  }
}
