// Low-rank adaptation: frozen layers, and what is learned beside them.  Hu et al., 2021.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct LoRALinear {
  nn::Linear base;
  double scale;
  Tensor lora_A, lora_B;

  LoRALinear(nn::Linear layer, std::size_t rank, double alpha)
      : base(std::move(layer)),
        scale(alpha / static_cast<double>(rank)),
        lora_A(nn::init::kaiming_uniform_(zeros({rank, base.weight.size(1)})).requires_grad_()),
        lora_B(zeros({base.weight.size(0), rank}).requires_grad_()) {
    for (Tensor& p : nn::parameters(base))
      p.requires_grad_(false);
  }
  Tensor operator()(const Tensor& x) const {
    return base(x) + scale * linear(linear(x, lora_A), lora_B);
  }
  nn::Linear merged() const {
    nn::Linear layer = nn::clone(base);
    layer.weight.copy_(layer.weight + scale * matmul(lora_B, lora_A));
    return layer;
  }
  static void visit(auto& self, auto&& v) {
    v("base", self.base), v("lora_A", self.lora_A), v("lora_B", self.lora_B);
  }
};

}  // namespace

TEST_CASE("port: low-rank adaptation", "[ports]") {
  testing::run_port("lora", [](testing::Port& port) {
    nn::Sequential model{LoRALinear(nn::Linear(5, 8), 2, 4), nn::Tanh{},
                         LoRALinear(nn::Linear(8, 3), 2, 4)};
    port.start(model);
    optim::AdamW optimizer(nn::parameters(model), {.lr = 0.05, .weight_decay = 0.1});
    const Tensor x = port["x"];
    std::vector<Tensor> losses;
    for (int i = 0; i < 4; ++i) {
      const Tensor loss = huber_loss(model(x), port["target"]);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      losses.push_back(loss);
    }
    const nn::Sequential merged{model.at<LoRALinear>(0).merged(), nn::Tanh{},
                                model.at<LoRALinear>(2).merged()};
    port.compare("losses", stack(losses));
    port.compare("before_merge", model(x)), port.compare("after_merge", merged(x));
    port.compare_trained(model);
  });
}
