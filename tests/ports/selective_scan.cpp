// The heart of Mamba.  Gu and Dao, 2023, section 3.2.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct SelectiveScan {
  std::size_t rank = 2, states = 4;
  nn::Linear in_proj{6, 12, false}, x_proj{6, 10, false}, dt_proj{2, 6}, out_proj{6, 6, false};
  Tensor A_log = zeros({6, 4}).requires_grad_(), D = ones(6).requires_grad_();

  Tensor operator()(const Tensor& u) const {
    auto [x, z] = chunk<2>(in_proj(u), -1);
    x = silu(x);
    auto [dt, B, C] = split<3>(x_proj(x), {rank, states, states}, -1);
    dt = softplus(dt_proj(dt)).unsqueeze(-1);  // (B, T, width, 1)
    const Tensor decay = exp(dt * -exp(A_log));
    const Tensor drive = dt * B.unsqueeze(-2) * x.unsqueeze(-1);
    Tensor h = zeros_like(drive.select(1, 0));
    std::vector<Tensor> ys;
    for (Size t = 0; t < u.size(1); ++t) {
      h = decay.select(1, t) * h + drive.select(1, t);
      ys.push_back(matmul(h, C.select(1, t).unsqueeze(-1)).squeeze(-1));
    }
    return out_proj((stack(ys, 1) + D * x) * silu(z));
  }
  static void visit(auto& self, auto&& v) {
    v("in_proj", self.in_proj), v("x_proj", self.x_proj), v("dt_proj", self.dt_proj);
    v("A_log", self.A_log), v("D", self.D), v("out_proj", self.out_proj);
  }
};

}  // namespace

TEST_CASE("port: a selective scan", "[ports]") {
  testing::run_port("selective_scan", [](testing::Port& port) {
    SelectiveScan model;
    port.start(model);
    const Tensor y = model(port["u"]);
    const Tensor loss = smooth_l1_loss(y, port["target"]);
    loss.backward();
    port.compare("y", y), port.compare("loss", loss);
    port.compare_gradients(model);
  });
}
