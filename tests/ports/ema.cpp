// Averages of weights, updated in each step and used for evaluation.

#include "ports/port.hpp"

using namespace xgrad;

TEST_CASE("port: an exponential moving average of weights", "[ports]") {
  testing::run_port("ema", [](testing::Port& port) {
    nn::Sequential model{nn::Linear(3, 8), nn::SiLU{}, nn::Linear(8, 2)};
    port.start(model);
    const auto average = nn::clone(model);
    const std::vector<Tensor> parameters = nn::parameters(model);
    optim::SGD optimizer(parameters, {.lr = 0.1, .momentum = 0.9, .nesterov = true});
    const Tensor x = port["x"], target = port["target"];
    std::vector<Tensor> losses;
    for (int step = 0; step < 6; ++step) {
      const Tensor loss = mse_loss(model(x), target);
      optimizer.zero_grad();
      loss.backward();
      optim::clip_grad_norm_(parameters, 0.5);
      optimizer.step();
      const double decay = std::min(0.9, (1.0 + step) / (10.0 + step));
      std::size_t i = 0;
      for (Tensor& a : nn::parameters(average))
        a.copy_(a.lerp(parameters[i++], 1 - decay));
      losses.push_back(loss);
    }
    port.compare("losses", stack(losses)), port.compare("y", average(x));
    for (const auto& [key, value] : nn::state_dict(average))
      port.compare("average." + key, value);
    port.compare_trained(model);
  });
}
