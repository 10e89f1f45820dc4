// The command line of char_transformer: words with line ends between them.

#include <cmath>
#include <variant>

#include "char_transformer/options.hpp"
#include "command_line/command_line.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  std::vector<std::string> words = {"char_transformer", ""};
  for (const char c : bytes) {
    if (c == '\n')
      words.emplace_back();
    else if (c != '\0')  // which no argument can hold
      words.back() += c;
  }
  std::vector<const char*> argv;
  for (const std::string& word : words)
    argv.push_back(word.c_str());
  refused<command_line::UsageError>([&] {
    const char_transformer::Command command =
        char_transformer::parse_command(static_cast<int>(argv.size()), argv.data());
    if (const auto* const train = std::get_if<char_transformer::TrainOptions>(&command)) {
      const char_transformer::Recipe& r = train->recipe;
      demand(r.n_head > 0 && r.n_embd % r.n_head == 0 && r.block_size > 0 && r.batch_size > 0,
             "sizes that do not go together");
      for (const double x : {r.dropout, r.learning_rate, r.min_lr, r.weight_decay, r.grad_clip})
        demand(x >= 0 && std::isfinite(x), "a number out of its range");
    }
  });
}

std::vector<std::string> seeds() {
  return {
      "train\n--preset\nbaby\n--data\na.txt\n--out=b\n--n-layer\n2\n--n-head=2\n--n-embd=8",
      "train\n--dropout=1e-3\n--learning-rate\n1e1\n--bias\n--seed=0\n--threads\n2",
      "train\n--bias=false\n--bias\nTrue\n--profile\n--max-iters\n0\n--warmup-iters=99999999999",
      "train\n--dropout\nnan\n--beta1=inf\n--grad-clip=-0\n--block-size=0x10",
      "train\n-q\n--preset\nmicro\n--dry-run\n--sample-interval=0\n--sample-prompt\n\xff",
      "train\n-v\n--overfit-one-batch\n--out\nx\n--quiet",
      "eval\n--checkpoint\nc\n--data=d",
      "sample\n--checkpoint=c\n--prompt=\n--tokens=10\n--temperature\n0\n--top-k\n1",
      "explain\n--checkpoint=c\n--layers\n0,2-3\n--heads=1-\n--position\n0",
      "export\n--checkpoint\nc\n--out\n/dev/null",
      "import\n--state\ns\n--n-head\n4\n--data\nd",
      "corpus\n--preset=micro",
      "--help",
      "train\n--help",
      "tarin",
      "train\n--n-layers\n\x1b[2J",
      "--",
      "-",
      "train\n@file\n--config=x\n-x\n--=\n--preset=\xff"};
}

}  // namespace

const Target flags{"flags", run, seeds};

}  // namespace fuzz
