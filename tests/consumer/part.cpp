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

// A user's observer, which may have no RTTI.
struct Count final : Observer {
  int ops = 0;
  void on_forward(std::string_view, std::span<const Tensor>, const Tensor&,
                  const Forward&) override {
    ++ops;
  }
};
static int ops_of_checkpoint(const nn::Sequential& net) {
  Count count;
  const ModeGuard guard({true, &count});
  checkpoint(net, ones({1, 2}));
  return count.ops;
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
  const nn::Sequential layers{nn::Linear(2, 3), nn::Tanh{}};
  if (ops_of_checkpoint(layers) != 2 || layers.at<nn::Linear>(0).weight.size(0) != 3)
    return 1;
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
