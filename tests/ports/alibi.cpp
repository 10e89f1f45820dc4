// Attention with linear biases: no positions but a slope for each head.  Press et al., 2021.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct Alibi {
  std::size_t heads = 4;
  nn::Embedding wte{9, 12};
  nn::Linear qkv{12, 36}, proj{12, 12};

  Tensor operator()(const Indices& ids) const {
    const Tensor x = wte(ids);
    const Size T = ids.size(1);
    const auto split = [&](const Tensor& y) {
      return y.view({x.size(0), T, heads, -1}).transpose(1, 2);
    };
    const auto [q, k, v] = chunk<3>(qkv(x), -1);
    const Tensor bias = nn::alibi_bias(heads, T, T, 0, x.dtype());
    const Tensor y = scaled_dot_product_attention(split(q), split(k), split(v),
                                                  bias.masked_fill(nn::future(T, T), -INFINITY));
    return matmul(proj(y.transpose(1, 2).flatten(-2)), wte.weight.t());
  }
  static void visit(auto& self, auto&& v) {
    v("wte", self.wte), v("qkv", self.qkv), v("proj", self.proj);
  }
};

}  // namespace

TEST_CASE("port: attention with linear biases", "[ports]") {
  testing::run_port("alibi", [](testing::Port& port) {
    Alibi model;
    port.compare_next_token(model);
  });
}
