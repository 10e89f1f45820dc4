// A Wasserstein GAN with gradient penalty.  Gulrajani et al., 2017.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct WGAN {
  nn::Sequential generator{nn::Linear(3, 8), nn::ReLU{}, nn::Linear(8, 4)};
  nn::Sequential critic{nn::Linear(4, 8), nn::LeakyReLU{0.2}, nn::Linear(8, 8), nn::LeakyReLU{0.2},
                        nn::Linear(8, 1)};
  static void visit(auto& self, auto&& v) {
    v("generator", self.generator), v("critic", self.critic);
  }
};

Tensor gradient_penalty(const nn::Sequential& critic, const Tensor& real, const Tensor& fake,
                        const Tensor& u) {
  const Tensor between = lerp(real, fake, u).requires_grad_();
  const Tensor g = grad({critic(between).sum()}, {between}, {.create_graph = true})[0];
  return (g.norm(2, 1) - 1).square().mean();
}

}  // namespace

TEST_CASE("port: a Wasserstein GAN with gradient penalty", "[ports]") {
  testing::run_port("wgan", [](testing::Port& port) {
    WGAN model;
    port.start(model);
    auto& [generator, critic] = model;
    optim::Adam optimizer_g(nn::parameters(generator), {.lr = 1e-2, .betas = {0.5, 0.9}});
    optim::Adam optimizer_c(nn::parameters(critic), {.lr = 1e-2, .betas = {0.5, 0.9}});
    const Tensor real = port["real"], z = port["z"], u = port["u"];
    std::vector<Tensor> losses;
    const auto step = [&](optim::Optimizer& optimizer, const Tensor& loss) {
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      losses.push_back(loss.detach());
    };
    for (Size i = 0; i < z.size(0); ++i) {
      const Tensor fake = generator(z[i]).detach();
      step(optimizer_c, critic(fake).mean() - critic(real).mean() +
                            10 * gradient_penalty(critic, real, fake, u[i]));
      if (i % 3 == 2)
        step(optimizer_g, -critic(generator(z[i])).mean());
    }
    port.compare("losses", stack(losses));
    port.compare_trained(model);
  });
}
