// Stage 10: training.

#include <fmt/format.h>

#include <span>
#include <string>
#include <xgrad/lm.hpp>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

int main() {
  // A text becomes numbers, one for each character that it has.
  const std::string text = "she sells sea shells on the sea shore. ";
  const std::u32string letters = lm::decode_utf8(text, "text");
  const lm::Characters characters = lm::Characters::of(letters);
  const lm::Ids ids = characters.encode(letters);
  fmt::print("{} characters, {} different\n\n", ids.size(), characters.size());

  // The model guesses each next character from those before it: y is x one character later.
  const auto T = static_cast<Size>(ids.size()) - 1;
  const lm::Batch batch = lm::block_batch(ids, T, 0);
  manual_seed(1337);
  lm::GPT model(
      {.block_size = T, .vocab_size = characters.size(), .n_layer = 2, .n_head = 2, .n_embd = 32});
  optim::AdamW optimizer(nn::parameters(model), {.lr = 1e-2});

  for (int step = 0; step <= 60; ++step) {
    const Tensor loss = model.loss(batch.x, batch.y);
    if (step % 20 == 0)
      fmt::print("step {:>2}  loss {:.1f}\n", step, loss.item());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  fmt::print("\n");

  // The trained model continues the text after its first letters.
  Generator generator(1);
  const Indices start = {{ids[0], ids[1], ids[2], ids[3], ids[4]}};
  const Indices all = model.generate(start, 20, generator, {.temperature = 0});
  fmt::print("\"{}\"\n", characters.decode(lm::Ids(std::span(all.data(), all.numel()))));
}
