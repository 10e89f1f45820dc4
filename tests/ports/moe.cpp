// A mixture of experts, two for each row.  Shazeer et al., 2017; the balance loss is that of Fedus
// et al., 2021.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct MixtureOfExperts {
  nn::Linear router;
  std::vector<nn::Sequential> experts;

  MixtureOfExperts(std::size_t width, std::size_t hidden, std::size_t n) : router(width, n, false) {
    for (std::size_t e = 0; e < n; ++e)
      experts.push_back({nn::Linear(width, hidden), nn::GELU{}, nn::Linear(hidden, width)});
  }
  // The experts' output, and a measure of their uneven use.
  std::pair<Tensor, Tensor> operator()(const Tensor& x) const {
    const Tensor p = router(x).softmax(-1);
    auto [weights, chosen] = p.topk(2);
    weights /= weights.sum(-1, true);
    Tensor y = zeros_like(x);
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const Mask mask = chosen == e, rows = mask.any(-1);
      y = y.index_add(0, rows.nonzero().squeeze(-1),
                      weights[mask].unsqueeze(-1) * experts[e](x[rows]));
    }
    const Tensor load = one_hot(chosen, experts.size()).to(x.dtype()).sum(1).mean(0);
    return {y, experts.size() * (load * p.mean(0)).sum()};
  }
  static void visit(auto& self, auto&& v) { v("router", self.router), v("experts", self.experts); }
};

}  // namespace

TEST_CASE("port: a mixture of experts", "[ports]") {
  testing::run_port("moe", [](testing::Port& port) {
    MixtureOfExperts model(6, 8, 4);
    port.start(model);
    const auto [y, balance] = model(port["x"]);
    const Tensor loss = mse_loss(y, port["target"]) + 0.01 * balance;
    loss.backward();
    port.compare("y", y), port.compare("balance", balance), port.compare("loss", loss);
    port.compare_gradients(model);
  });
}
