// A language model with an LSTM, trained on a text in chunks, each from the final state of the one
// before.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct RecurrentText {
  nn::Embedding embedding{10, 5};
  nn::LSTM lstm{5, 6, {.num_layers = 2, .batch_first = true}};
  nn::Linear head{6, 10};

  nn::LSTM::Result operator()(const Indices& ids, const nn::LSTM::State& state = {}) const {
    const auto [y, h, c] = lstm(embedding(ids), state);
    return {head(y), h, c};
  }
  static void visit(auto& self, auto&& v) {
    v("embedding", self.embedding), v("lstm", self.lstm), v("head", self.head);
  }
};

}  // namespace

TEST_CASE("port: an LSTM on chunks of a text", "[ports]") {
  testing::run_port("lstm", [](testing::Port& port) {
    RecurrentText model;
    port.start(model);
    const Indices ids = port.indices("ids"), target = ids.slice(1, 1, {});
    const auto first = model(ids.slice(1, 0, 4));
    const auto second = model(ids.slice(1, 4, -1), {first.h_n.detach(), first.c_n.detach()});
    const Tensor logits = cat({first.output, second.output}, 1);
    const Tensor losses = cross_entropy(logits.transpose(1, 2), target,
                                        {.ignore_index = 0, .reduction = Reduction::none});
    const Tensor loss = losses.sum() / (target != 0).sum().item();
    loss.backward();
    port.compare("logits", logits), port.compare("loss", loss);
    port.compare("h", second.h_n), port.compare("c", second.c_n);
    port.compare_gradients(model);
  });
}
