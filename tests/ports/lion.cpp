// Lion: the library's, and one written from the paper.  Chen et al., 2023, algorithm 2.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct HandwrittenLion {
  std::vector<Tensor> params;
  double lr, b1, b2;
  std::vector<Tensor> m = {};

  void step() {
    m.resize(params.size());
    for (std::size_t i = 0; i < params.size(); ++i) {
      Tensor& p = params[i];
      const Tensor g = p.grad();
      if (!m[i].defined())
        m[i] = zeros_like(g);
      const double weight_decay = p.dim() > 1 ? 0.3 : 0;
      p.copy_(p * (1 - lr * weight_decay) - lr * m[i].lerp(g, 1 - b1).sign());
      m[i] = m[i].lerp(g, 1 - b2);
    }
  }
};

template <class Make>
void train_with_lion(testing::Port& port, const Make& make) {
  nn::Sequential model{nn::Linear(4, 8), nn::GELU{}, nn::Linear(8, 3)};
  port.start(model);
  auto optimizer = make(nn::parameters(model));
  std::vector<Tensor> losses;
  for (int i = 0; i < 6; ++i) {
    const Tensor loss = cross_entropy(model(port["x"]), port.indices("target"));
    nn::zero_grad(model);
    loss.backward();
    optimizer.step();
    losses.push_back(loss);
  }
  port.compare("losses", stack(losses));
  port.compare_trained(model);
}

}  // namespace

TEST_CASE("port: Lion", "[ports]") {
  testing::run_port("lion", [](testing::Port& port) {
    train_with_lion(port, [](const std::vector<Tensor>& params) {
      std::vector<Tensor> matrices, others;
      for (const Tensor& p : params)
        (p.dim() > 1 ? matrices : others).push_back(p);
      return optim::Lion({{matrices, {.lr = 0.02, .weight_decay = 0.3}}, {others, {.lr = 0.02}}});
    });
    train_with_lion(port, [](const std::vector<Tensor>& params) {
      return HandwrittenLion{params, 0.02, 0.9, 0.99};
    });
  });
}
