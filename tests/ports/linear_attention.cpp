// Causal linear attention by running sums.  Katharopoulos et al., 2020.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct LinearAttention {
  std::size_t heads = 2;
  nn::Linear qkv{8, 24}, proj{8, 8};

  Tensor operator()(const Tensor& x, const Mask& padding) const {
    const auto split = [&](const Tensor& y) {
      return y.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
    };
    auto [q, k, v] = chunk<3>(qkv(x), -1);
    q = elu(split(q)) + 1;
    k = (elu(split(k)) + 1).masked_fill(padding.unsqueeze(1).unsqueeze(-1), 0);
    const Tensor state = einsum("bhtd,bhte->bhtde", {k, split(v)}).cumsum(2);
    const Tensor y = einsum("bhtd,bhtde->bhte", {q, state});
    const Tensor norm = (q * k.cumsum(2)).sum(-1, true);
    return proj((y / maximum(norm, 1e-6)).transpose(1, 2).flatten(-2));
  }
  static void visit(auto& self, auto&& v) { v("qkv", self.qkv), v("proj", self.proj); }
};

}  // namespace

TEST_CASE("port: linear attention", "[ports]") {
  testing::run_port("linear_attention", [](testing::Port& port) {
    LinearAttention model;
    port.start(model);
    const Tensor x = port["x"];
    const Mask padding = arange_indices(0, x.size(1)) >= port.indices("lengths").unsqueeze(1);
    const Tensor y = model(x, padding);
    const Tensor loss = y[~padding].square().mean();
    loss.backward();
    port.compare("y", y), port.compare("loss", loss);
    port.compare_gradients(model);
  });
}
