// What a training step costs when the model is tiny: micrograd's example, a multilayer perceptron
// 2-16-16-1 with ReLU and the max-margin loss on two moons of 50 points each, all in one batch.
//   moons STEPS    prints the median microseconds of a step, and the last loss
// moons_vs_peers.py runs PyTorch and micrograd beside it.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <vector>
#include <xgrad/xgrad.hpp>

int main(int argc, char** argv) {
  using namespace xgrad;
  const int steps = argc > 1 ? std::atoi(argv[1]) : 0;
  if (steps < 1) {
    std::fputs("usage: moons STEPS, of which there must be at least one\n", stderr);
    return 2;
  }
  std::vector<float> points, labels;
  for (const int sign : {-1, 1})  // one moon, then the other
    for (int i = 0; i < 50; ++i) {
      const double angle = std::numbers::pi * i / 49, x = std::cos(angle), y = std::sin(angle);
      points.push_back(static_cast<float>(sign < 0 ? x : 1 - x));
      points.push_back(static_cast<float>(sign < 0 ? y : 0.5 - y));
      labels.push_back(static_cast<float>(sign));
    }
  const Tensor x(points, {100, 2}), y(labels, {100, 1});

  manual_seed(1337);
  const nn::Sequential net{nn::Linear(2, 16), nn::ReLU{}, nn::Linear(16, 16), nn::ReLU{},
                           nn::Linear(16, 1)};
  optim::SGD optimizer(nn::parameters(net), {.lr = 0.1});
  std::vector<double> times;
  double last = 0;
  for (int step = 0; step < steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    const Tensor loss = relu(1 - y * net(x)).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item();
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - start;
    times.push_back(taken.count());
  }
  std::ranges::nth_element(times, times.begin() + steps / 2);
  fmt::print("{:.2f} us loss {:.9g}\n", times[static_cast<std::size_t>(steps / 2)], last);
}
