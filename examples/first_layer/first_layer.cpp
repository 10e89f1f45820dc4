#include <filesystem>
#include <iostream>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

// A layer of your own: its parts, what it computes, and one line that lists the parts.
struct Gated {
  nn::Linear value, gate;
  Gated(Size in, Size out) : value(in, out), gate(in, out) {}
  Tensor operator()(const Tensor& x) const { return value(x) * sigmoid(gate(x)); }
  static void visit(auto& self, auto&& v) { v("value", self.value), v("gate", self.gate); }
};

int main(int argc, char** argv) try {
  manual_seed(1337);
  nn::Sequential net{Gated(1, 32), Gated(32, 32), nn::Linear(32, 1)};
  std::cout << nn::summary(net);

  const Tensor x = linspace(-3, 3, 256).unsqueeze(1), y = sin(2 * x);
  optim::AdamW optimizer(nn::parameters(net), {.lr = 1e-2});
  const std::string file = argc > 1 ? argv[1] : "";  // with one, it resumes a stopped run
  std::uint64_t step = std::filesystem::exists(file) ? io::restore(file, net, optimizer).step : 0;
  for (; step <= 500; ++step) {
    const Tensor loss = mse_loss(net(x), y);
    if (step % 100 == 0) {
      std::cout << "step " << step << "  loss " << loss.item() << '\n';
      if (!file.empty())
        io::save_checkpoint(file, net, optimizer, {.step = step});
    }
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }

  nn::to(net, DType::float64);  // is its gradient right?
  std::cout << nn::gradcheck(net, {randn({4, 1}, DType::float64)}).message << '\n';
} catch (const std::exception& error) {  // a file that cannot be read or written
  std::cerr << "first_layer: " << error.what() << '\n';
  return 1;
}
