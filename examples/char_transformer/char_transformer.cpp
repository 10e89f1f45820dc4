// A small transformer that learns to continue a text, character by character.
//   char_transformer [TEXT] [--steps N] [--every N] [--seed N] [--out FILE]
// README.md goes through this file; gradcheck.cpp checks the gradient of the attention.

#include <fmt/format.h>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

// Shapes: B blocks of text in a batch, T characters in a block, C channels of a character, H heads,
// D = C / H channels of a head, V characters in the vocabulary.
constexpr Size batch_size = 12, block_size = 64, n_embd = 128, n_head = 4, n_layer = 4;

// Each character looks at itself and the characters before it: softmax(Q Kᵀ / sqrt(D)) V.
struct CausalSelfAttention {
  nn::Linear c_attn, c_proj;
  Size H;
  CausalSelfAttention(Size C, Size heads)
      : c_attn(C, 3 * C, false), c_proj(C, C, false), H(heads) {}
  Tensor operator()(const Tensor& x) const {  // (B, T, C) -> (B, T, C)
    const Size B = x.size(0), T = x.size(1), C = x.size(2), D = C / H;
    const Tensor qkv = c_attn(x).view({B, T, 3, H, D}).permute({2, 0, 3, 1, 4});  // (3, B, H, T, D)
    const Tensor q = qkv[0], k = qkv[1], v = qkv[2];                              // (B, H, T, D)
    const Tensor scores = matmul(q / std::sqrt(D), k.mT());                       // (B, H, T, T)
    const Tensor past = scores.masked_fill(nn::future(T, T), -INFINITY);          // (B, H, T, T)
    const Tensor y = matmul(past.softmax(-1), v);                                 // (B, H, T, D)
    return c_proj(y.transpose(1, 2).reshape({B, T, C}));
  }
  static void visit(auto& self, auto&& v) { v("c_attn", self.c_attn), v("c_proj", self.c_proj); }
};

// Attention and MLP each read x through a norm and add to it.
struct Block {
  nn::LayerNorm ln_1{n_embd}, ln_2{n_embd};
  CausalSelfAttention attn{n_embd, n_head};
  nn::Linear c_fc{n_embd, 4 * n_embd, false}, c_proj{4 * n_embd, n_embd, false};
  Tensor operator()(const Tensor& x) const {  // (B, T, C) -> (B, T, C)
    const Tensor y = x + attn(ln_1(x));
    return y + c_proj(gelu(c_fc(ln_2(y))));
  }
  static void visit(auto& self, auto&& v) {
    v("ln_1", self.ln_1), v("attn", self.attn), v("ln_2", self.ln_2);
    v("c_fc", self.c_fc), v("c_proj", self.c_proj);
  }
};

struct CharTransformer {
  nn::Embedding wte, wpe{block_size, n_embd};  // of characters, and of their places in a block
  std::vector<Block> h = std::vector<Block>(n_layer);
  nn::LayerNorm ln_f{n_embd};
  explicit CharTransformer(Size V) : wte(V, n_embd) {
    // The results of 2 * n_layer c_proj are added to x, so their weights start smaller.
    const double residual = 0.02 / std::sqrt(2.0 * n_layer);
    for (const auto& [name, p] : nn::named_parameters(*this))
      if (p.dim() == 2)
        nn::init::normal_(p, 0, name.ends_with("c_proj.weight") ? residual : 0.02);
  }
  Tensor operator()(const Indices& idx) const {              // (B, T)
    Tensor x = wte(idx) + wpe(arange_indices(idx.size(1)));  // (B, T, C)
    for (const Block& block : h)
      x = block(x);
    return linear(ln_f(x), wte.weight);  // (B, T, V): the head is tied to the embedding
  }
  // The mean loss over the blocks of ids that begin at `starts`, (B, 1).
  Tensor loss(const Indices& ids, const Indices& starts) const {
    const Indices at = starts + arange_indices(block_size);  // (B, T), each predicts the next
    return cross_entropy((*this)(index(ids, {at})).flatten(0, 1), index(ids, {at + 1}).flatten());
  }
  static void visit(auto& self, auto&& v) {
    v("wte", self.wte), v("wpe", self.wpe), v("h", self.h), v("ln_f", self.ln_f);
  }
};

const char* const verses =
    R"(The river does not know the word for stone, it only learns to go around, alone;
the reader does not know what comes at last, and guesses it from what is in the past.
A letter asks the letters gone before which one of them will open the next door,
is wrong, is told by how much it was wrong, and leans a little toward the coming song.
So slowly, step by step, the random ink begins to rhyme before it learns to think;
the loss comes down like evening on a hill, and what was noise is slowly growing still.
No one has told it what a river is, or stone, or song: it knows the gaps, and this:
that after q there mostly is a u, and after all the old there comes the new.)";

struct Text {
  std::vector<std::string> characters;  // sorted; the id of a character is its place
  Indices train, validation;            // ids of the first nine tenths, and of the rest
  std::string checksum;
  explicit Text(const std::string& bytes) {
    try {
      io::format_json(bytes);  // throws unless the text is UTF-8, as JSON must be
    } catch (const ValueError&) {
      throw ValueError("the text is not UTF-8");
    }
    std::vector<std::string> text;
    for (const char byte : bytes) {
      if ((byte & 0xC0) != 0x80)  // this byte begins a character; others continue it
        text.emplace_back();
      text.back() += byte;
    }
    const Size size = std::ssize(text), cut = size * 9 / 10;
    if (size - cut <= block_size)
      throw ValueError("the text is too short: its last tenth must be longer than a block");
    const std::set<std::string> distinct(text.begin(), text.end());
    characters.assign(distinct.begin(), distinct.end());
    std::vector<Size> ids;
    for (const std::string& c : text)
      ids.push_back(std::ranges::lower_bound(characters, c) - characters.begin());
    train = Indices(ids)[Slice{0, cut}];
    validation = Indices(ids)[Slice{cut, size}];
    io::Checksum sum;
    sum.add(bytes.data(), bytes.size());
    checksum = sum.digits();
  }
};

double validation_loss(const CharTransformer& model, const Indices& ids) {
  const Size blocks = std::min<Size>((ids.numel() - 1) / block_size, 2048);
  const auto loss = [&](std::size_t first, std::size_t last) {
    return model.loss(ids, arange_indices(first, last).unsqueeze(1) * block_size);
  };
  return parallel::mean_loss(blocks, loss, blocks / 16 + 1);  // without gradients
}

// Draws each character from the probabilities that the model gives it after those before.
void print_sample(const CharTransformer& model, const Text& text, int length) {
  const NoGrad no_grad;
  Indices ids = text.train[Slice{0, 1}];
  for (int i = 0; i < length; ++i) {
    const Tensor logits = model(ids[Slice{-block_size}].unsqueeze(0)).select(1, -1);  // (1, V)
    ids = cat({ids, multinomial(logits.softmax(-1), 1).flatten()});
    fmt::print("{}", text.characters[ids[-1].item()]);
  }
  fmt::print("\n");
}

int main(int argc, char** argv) try {
  std::string out = "char_transformer.safetensors";
  std::map<std::string, std::size_t> numbers{{"--steps", 2000}, {"--every", 100}, {"--seed", 1337}};
  const bool has_text = argc > 1 && argv[1][0] != '-';
  for (int i = has_text ? 2 : 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    std::size_t n = 0;
    std::from_chars(value.data(), value.data() + value.size(), n);
    if (flag == "--out" && !value.empty())
      out = value;
    else if (numbers.contains(flag) && value == std::to_string(n))  // a whole number
      numbers[flag] = n;
    else
      throw ValueError(flag + " " + value + ": use --steps N, --every N, --seed N, --out FILE");
  }
  const std::size_t steps = numbers["--steps"], every = numbers["--every"],
                    seed = numbers["--seed"];
  const Text text(has_text ? io::read_file(argv[1], 64 << 20) : verses);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // lines appear at once, in a pipe too

  manual_seed(seed);
  CharTransformer model(std::ssize(text.characters));
  optim::AdamW optimizer(
      optim::decay_matrices(nn::parameters(model), {.betas = {0.9, 0.99}, .weight_decay = 0.1}));
  const auto rate = optim::warmup_cosine({.warmup_iters = steps / 20, .lr_decay_iters = steps});
  const std::string run = fmt::format("{} {} {} {}", text.checksum, seed, batch_size, n_head);
  std::size_t step = 0;
  if (std::filesystem::exists(out)) {
    const io::Checkpoint checkpoint = io::restore(out, model, optimizer);  // and the generator
    if (checkpoint.user != io::Json(run))
      throw FileError(out + ": is of another text, seed or size; name another with --out");
    step = checkpoint.step;
  }
  io::save_checkpoint(out, model, optimizer, {.step = step, .user = run});  // fails now, not later
  static volatile std::sig_atomic_t interrupted = 0;
  std::signal(SIGINT, [](int) { interrupted = 1; });  // Ctrl-C ends the loop below
  for (; step < steps && !interrupted; ++step) {
    const Indices starts = randint(text.train.numel() - block_size, {batch_size, 1});
    const auto loss_of = [&](const Indices& shard) { return model.loss(text.train, shard); };
    optimizer.zero_grad();
    const double loss = parallel::backward(loss_of, starts);  // in shards, on all cores
    optim::clip_grad_norm_(optimizer.params(), 1, {.error_if_nonfinite = true});
    optimizer.set_learning_rate(rate(step));
    optimizer.step();
    if (every > 0 && step % every == 0)
      fmt::print("step {} loss {:.6f}\n", step, loss);
  }
  io::save_checkpoint(out, model, optimizer, {.step = step, .user = run});
  if (interrupted) {
    fmt::print("{} steps are in {}; the same command continues\n", step, out);
    return 130;
  }
  fmt::print("validation loss {:.6f}\n", validation_loss(model, text.validation));
  print_sample(model, text, 500);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "char_transformer: {}\n", error.what());
  return 1;
}
