// Attention to itself and the two before (Child et al., 2019), of queries and keys of length 1
// (Henry et al., 2020), and GroupNorm.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct SlidingWindow {
  std::size_t heads = 2, window = 3;
  nn::Linear qkv{8, 24, false}, proj{8, 8};
  Tensor temperature = zeros(heads).requires_grad_();
  nn::GroupNorm norm{2, 8};

  Tensor operator()(const Tensor& x) const {
    const Size T = x.size(1);
    const auto split = [&](const Tensor& y) {
      return y.view({x.size(0), T, heads, -1}).transpose(1, 2);
    };
    auto [q, k, v] = chunk<3>(qkv(x), -1);
    q = normalize(split(q), {.dim = -1}) * temperature.exp().view({-1, 1, 1});
    k = normalize(split(k), {.dim = -1});
    const Tensor y = scaled_dot_product_attention(q, k, split(v), nn::sliding_window(T, T, window),
                                                  {.scale = 1});
    return norm((x + proj(y.transpose(1, 2).flatten(-2))).transpose(1, 2)).transpose(1, 2);
  }
  static void visit(auto& self, auto&& v) {
    v("qkv", self.qkv), v("proj", self.proj);
    v("temperature", self.temperature), v("norm", self.norm);
  }
};

}  // namespace

TEST_CASE("port: sliding-window attention", "[ports]") {
  testing::run_port("sliding_window", [](testing::Port& port) {
    SlidingWindow model;
    port.start(model);
    const Tensor y = model(port["x"]);
    const Tensor loss = (1 - cosine_similarity(y, port["target"], -1)).mean();
    loss.backward();
    port.compare("y", y), port.compare("loss", loss);
    port.compare_gradients(model);
  });
}
