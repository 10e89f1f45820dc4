// A classifier with BatchNorm: batches in training, running statistics in evaluation.

#include "ports/port.hpp"

using namespace xgrad;

TEST_CASE("port: a classifier with BatchNorm", "[ports]") {
  testing::run_port("batch_norm", [](testing::Port& port) {
    nn::Sequential model{nn::Linear(4, 8, false), nn::BatchNorm1d(8), nn::ReLU{},
                         nn::Linear(8, 8, false), nn::BatchNorm1d(8), nn::ReLU{},
                         nn::Linear(8, 3)};
    port.start(model);
    optim::AdamW optimizer(nn::parameters(model), {.lr = 0.02});
    const Tensor x = port["x"];
    const Indices target = port.indices("target");
    std::vector<Tensor> losses;
    for (Size i = 0; i < x.size(0); i += 6) {
      const Slice batch{i, i + 6};
      const Tensor loss = cross_entropy(model(x[batch]), target[batch]);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      losses.push_back(loss);
    }
    nn::eval(model);
    const Tensor logits = model(x);
    const Tensor accuracy = (logits.argmax(-1) == target).to(x.dtype()).mean();
    port.compare("losses", stack(losses)), port.compare("logits", logits);
    port.compare("accuracy", accuracy);
    port.compare_trained(model);
  });
}
