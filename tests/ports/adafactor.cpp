// Adafactor, whose state does not have its parameter's shape.  Shazeer and Stern, 2018, as in
// PyTorch.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <xgrad/autograd/update_formula.hpp>

#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"
#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8, eps2 = 1e-3, d = 1, weight_decay = 0;

  static constexpr const char* name = "Adafactor";
  std::vector<optim::Option> options() {
    constexpr double any = -std::numeric_limits<double>::infinity();
    return {{"lr", &lr},
            {"beta2_decay", &beta2_decay, any},
            {"eps2", &eps2},
            {"d", &d, 1},
            {"weight_decay", &weight_decay}};
  }
  std::vector<std::string> state_names(const Tensor& p) const {
    if (p.dim() > 1)
      return {"step", "row_var", "col_var"};
    return {"step", "variance"};
  }
  bool state_fits(const std::string& which, const Tensor& state, const Tensor& p) const {
    Shape shape = p.shape();
    if (which == "row_var")
      shape[-1] = 1;
    else if (which == "col_var")
      shape[-2] = 1;
    return state.shape() == shape;
  }
  ElementUpdate update(const optim::Parameter& p) const {
    const double n = p.value.numel(), step = p.step;
    const double eps1 = p.value.dtype() == DType::float64 ? std::numeric_limits<double>::epsilon()
                                                          : std::numeric_limits<float>::epsilon();
    const double alpha =
        std::max(eps2, p.value.norm().item() / std::sqrt(n)) * std::min(lr, 1 / std::sqrt(step));
    const auto average = [&](Tensor& state, const Tensor& now) {
      state = (p.step == 1 ? zeros_like(now) : state).lerp(now, std::pow(step, beta2_decay));
    };
    const Tensor squares = p.gradient.square();
    Tensor variance;
    if (p.value.dim() > 1) {
      average(p.state[0], squares.mean(-1, true));
      average(p.state[1], squares.mean(-2, true));
      variance = matmul(p.state[0], p.state[1]) / maximum(p.state[0].mean(-2, true), eps1);
    } else {
      average(p.state[0], squares);
      variance = p.state[0];
    }
    const Tensor update = p.gradient * maximum(variance, eps1 * eps1).rsqrt();
    const double rate = alpha / std::max(1.0, update.norm().item() / (std::sqrt(n) * d));
    return element_update([rate, kept = 1 - lr * weight_decay](
                              auto x, auto u) { return c(x, kept) * x - c(x, rate) * u; },
                          p.value, update);
  }
};
using Adafactor = optim::OptimizerOf<AdafactorOptions>;

}  // namespace

TEST_CASE("port: Adafactor, stopped and resumed", "[ports][optim]") {
  testing::run_port("adafactor", [](testing::Port& port) {
    const AdafactorOptions options{.lr = 0.05, .weight_decay = 0.3};
    nn::Sequential model{nn::Linear(4, 8), nn::GELU{}, nn::Linear(8, 3)};
    port.start(model);
    std::optional<Adafactor> optimizer(std::in_place, nn::parameters(model), options);
    const TemporaryFolder folder;
    std::vector<Tensor> losses;
    for (int i = 0; i < 6; ++i) {
      if (i == 3) {
        io::save_checkpoint(folder / "three", model, *optimizer);
        io::restore(folder / "three", model, optimizer.emplace(nn::parameters(model)));
      }
      losses.push_back(cross_entropy(model(port["x"]), port.indices("target")));
      optimizer->zero_grad();
      losses.back().backward();
      optimizer->step();
    }
    port.compare("losses", stack(losses));
    port.compare_trained(model);
  });
}
