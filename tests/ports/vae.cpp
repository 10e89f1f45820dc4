// A variational autoencoder.  Kingma and Welling, 2013.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct VAE {
  nn::Sequential encoder{nn::Linear(12, 8), nn::ReLU{}, nn::Linear(8, 6)};
  nn::Sequential decoder{nn::Linear(3, 8), nn::ReLU{}, nn::Linear(8, 12)};
  static void visit(auto& self, auto&& v) {
    v("encoder", self.encoder), v("decoder", self.decoder);
  }
};

}  // namespace

TEST_CASE("port: a variational autoencoder", "[ports]") {
  testing::run_port("vae", [](testing::Port& port) {
    VAE model;
    port.start(model);
    const Tensor x = port["x"];
    const auto [mu, log_variance] = chunk<2>(model.encoder(x), -1);
    const Tensor logits = model.decoder(mu + exp(log_variance / 2) * port["noise"]);
    const Tensor bce = binary_cross_entropy_with_logits(logits, x, {.reduction = Reduction::sum});
    const Tensor kl = -0.5 * (1 + log_variance - mu.square() - log_variance.exp()).sum();
    const Tensor loss = (bce + kl) / x.size(0);
    loss.backward();
    port.compare("pixels", sigmoid(logits)), port.compare("loss", loss);
    port.compare("bce", bce), port.compare("kl", kl);
    port.compare_gradients(model);
  });
}
