// A user's source: the header of the whole library, a user's layer and op.
#include <cstdio>
#include <xgrad/autograd/custom_op.hpp>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

struct Net {
  nn::Linear hidden{2, 8}, out{8, 1};
  Tensor operator()(const Tensor& x) const { return out(tanh(hidden(x))); }
  static void visit(auto& self, auto&& v) {
    v("hidden", self.hidden);
    v("out", self.out);
  }
};

static Tensor cube(const Tensor& x) {
  return elementwise(
      "cube", x, [](const auto& a) { return a * a * a; },
      partial<Uses::A>([](const auto& g, const auto& a) { return g * (c(a, 3) * a * a); }));
}

extern "C" int part() {
  manual_seed(1);
  Net net;
  optim::AdamW optimizer(nn::parameters(net), {.lr = 0.05});
  const Tensor x = tensor({{0, 0}, {0, 1}, {1, 0}, {1, 1}}), y = tensor({{0}, {1}, {1}, {0}});
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    const Tensor loss = mse_loss(net(x), y);
    last = loss.item();
    if (step == 0)
      first = last;
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  // The array crosses the boundary between differently compiled code: allocator, alignment and
  // layout must agree.
  Tensor a = randn({64, 33});
  a.update([](auto& array) { array.data()[0] = 2; });
  a.requires_grad_();
  const Tensor b = cube(a).sum();
  b.backward();
  const Tensor g = a.grad();
  std::printf("loss %.4f -> %.4f, d cube at 2: %g\n", first, last,
              static_cast<double>(g.array<float>()(0, 0)));
  return last < 0.01 && g.array<float>()(0, 0) == 12.0F ? 0 : 1;
}
