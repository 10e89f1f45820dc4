#include "training.hpp"

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/trace.hpp>

// The program itself: its model and text.  Steps and samples are as in its main(), which a test
// compares.
#define main char_transformer_main
#include "../char_transformer/char_transformer.cpp"
#undef main

namespace playground {

using io::Json;
using io::JsonArray;
using io::JsonObject;

namespace {

constexpr std::size_t most_text = 2 << 20;

struct Training {
  Text text;
  std::size_t seed, steps;
  std::size_t step = 0;
  CharTransformer model;
  optim::AdamW optimizer;

  Training(const std::string& bytes, std::size_t seed_, std::size_t steps_)
      : text(bytes),
        seed(seed_),
        steps(steps_),
        model((manual_seed(seed), std::ssize(text.characters))),
        optimizer(optim::decay_matrices(nn::parameters(model),
                                        {.betas = {0.9, 0.99}, .weight_decay = 0.1})) {}

  double make_step() {
    const auto rate = optim::warmup_cosine({.warmup_iters = steps / 20, .lr_decay_iters = steps});
    const Indices starts = randint(text.train.numel() - block_size, {batch_size, 1});
    const auto loss_of = [&](const Indices& shard) { return model.loss(text.train, shard); };
    optimizer.zero_grad();
    const double loss = parallel::backward(loss_of, starts);
    optim::clip_grad_norm_(optimizer.params(), 1, {.error_if_nonfinite = true});
    optimizer.set_learning_rate(rate(step++));
    optimizer.step();
    return loss;
  }

  std::string run() const {
    return fmt::format("{} {} {} {}", text.checksum, seed, batch_size, n_head);
  }
  Indices ids(const std::string& prompt) const {
    io::format_json(prompt);  // throws unless it is UTF-8
    std::vector<Size> list;
    for (std::size_t i = 0, n = 0; i < prompt.size(); i += n) {
      for (n = 1; i + n < prompt.size() && (prompt[i + n] & 0xC0) == 0x80;)
        ++n;
      const std::string c = prompt.substr(i, n);
      const auto found = std::ranges::lower_bound(text.characters, c);
      check<ValueError>(found != text.characters.end() && *found == c,
                        "the prompt's `{}` does not occur in the text", c);
      list.push_back(found - text.characters.begin());
    }
    return list.empty() ? text.train[Slice{0, 1}] : Indices(list);
  }
};

std::unique_ptr<Training>& current() {
  static std::unique_ptr<Training> training;
  return training;
}

// The same weights under the names of lm::GPT, whose Linears have biases if its norms have: zeros,
// because this model's have none.
struct AsGpt {
  CharTransformer model;
  explicit AsGpt(const CharTransformer& original) : model(original) {
    for (Block& block : model.h)
      for (nn::Linear* const linear :
           {&block.attn.c_attn, &block.attn.c_proj, &block.c_fc, &block.c_proj})
        linear->bias = zeros({linear->weight.size(0)});
  }
  static void visit(auto& self, auto&& v) {
    v("transformer.wte", self.model.wte), v("transformer.wpe", self.model.wpe);
    for (std::size_t i = 0; i < self.model.h.size(); ++i) {
      auto& block = self.model.h[i];
      const std::string h = fmt::format("transformer.h.{}.", i);
      v(h + "ln_1", block.ln_1), v(h + "attn", block.attn), v(h + "ln_2", block.ln_2);
      v(h + "mlp.c_fc", block.c_fc), v(h + "mlp.c_proj", block.c_proj);
    }
    v("transformer.ln_f", self.model.ln_f);
  }
};

JsonObject save(const Training& t, const std::string& path) {
  std::string characters;
  for (const std::string& c : t.text.characters)
    characters += c;
  const JsonObject config{{"block_size", block_size}, {"n_layer", n_layer}, {"n_head", n_head},
                          {"n_embd", n_embd},         {"dropout", 0.0},     {"bias", true}};
  io::save_checkpoint(
      path, AsGpt(t.model), t.optimizer,
      {.step = t.step,
       .user = JsonObject{{"config", config}, {"characters", characters}, {"run", t.run()}}});
  return {{"step", t.step}};
}

JsonObject start(const Json& request) {
  const std::string text = text_of(request, "text");
  check<ValueError>(text.size() <= most_text, "the text has {} bytes: the page takes {}",
                    text.size(), most_text);
  const Generator before = default_generator();
  try {
    auto training = std::make_unique<Training>(text.empty() ? verses : text,
                                               count_of(request, "seed", 1'000'000),
                                               count_of(request, "steps", 1'000'000, 1));
    if (const auto* const path = request.find<std::string>("path")) {
      const io::Checkpoint checkpoint = io::load_checkpoint(*path);
      const auto* const run = checkpoint.user.find<std::string>("run");
      check<FileError>(
          run != nullptr && *run == training->run(),
          "the checkpoint is of another text or seed: paste the text that it was trained on");
      AsGpt model(training->model);
      io::restore(checkpoint, model, training->optimizer);  // and the generator
      training->step = checkpoint.step;
    }
    current() = std::move(training);
  } catch (...) {  // the transformer before goes on
    default_generator() = before;
    throw;
  }
  return {{"characters", current()->text.characters.size()},
          {"parameters", nn::num_parameters(current()->model)},
          {"step", current()->step}};
}

// The weights that each head gives to the characters of a prompt: softmax of its scores.
JsonObject attention(const Training& t, const std::string& prompt) {
  const NoGrad no_grad;
  const Indices ids = t.ids(prompt)[Slice{-block_size}];
  const Trace trace;
  t.model(ids.unsqueeze(0));
  JsonArray layers, characters;
  for (const Trace::Event& event : trace.events())
    if (event.op == "softmax") {  // (1, H, T, T)
      JsonArray heads;
      for (Size head = 0; head < event.output.size(1); ++head)
        heads.push_back(numbers(event.output.select(0, 0)[head]));
      layers.emplace_back(std::move(heads));
    }
  for (Size i = 0; i < ids.numel(); ++i)
    characters.emplace_back(t.text.characters[ids[i].item()]);
  return {{"characters", std::move(characters)}, {"layers", std::move(layers)}};
}

}  // namespace

JsonObject trained(const std::string& what, const Json& request) {
  if (what == "start")
    return start(request);
  check<ValueError>(std::set<std::string>{"step", "sample", "attention", "save"}.contains(what),
                    "the request's \"do\" is none of those of playground.hpp: {}", what);
  check<ValueError>(current() != nullptr, "nothing is trained yet: start with a text");
  Training& t = *current();
  if (what == "step") {
    const double loss = t.make_step();
    return {{"step", t.step - 1}, {"loss", loss}};
  }
  if (what == "sample") {
    const NoGrad no_grad;
    Generator generator = default_generator();  // training goes on as if nothing was drawn
    Indices ids = t.ids(text_of(request, "prompt"));
    std::string text;
    for (std::size_t left = count_of(request, "length", 10'000); left > 0; --left) {
      const Tensor logits = t.model(ids[Slice{-block_size}].unsqueeze(0)).select(1, -1);
      ids = cat({ids, multinomial(logits.softmax(-1), 1, false, generator).flatten()});
      text += t.text.characters[ids[-1].item()];
    }
    return {{"text", std::move(text)}};
  }
  if (what == "attention")
    return attention(t, text_of(request, "prompt"));
  return save(t, text_of(request, "path"));
}

}  // namespace playground
