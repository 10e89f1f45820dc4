// The command line of xgrad: words separated by line ends, then, after a zero byte, the
// contents of --config's file.

#include <algorithm>
#include <xgrad/autograd/error.hpp>

#include <xgrad/lm/program/flags.hpp>
#include <xgrad/lm/program/ranks.hpp>
#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  std::vector<std::string> words = {"xgrad", ""};
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  for (const char c : bytes.substr(0, end)) {
    if (c == '\n')
      words.emplace_back();
    else
      words.back() += c;
  }
  if (end < bytes.size()) {
    words.push_back("--config");
    words.push_back(file_with(bytes.substr(end + 1)));
  }
  std::vector<const char*> argv;
  for (const std::string& word : words)
    argv.push_back(word.c_str());
  program::Ranks alone;
  program::CommandLine line;
  refused<program::UsageError>(
      [&] { program::parse(static_cast<int>(argv.size()), argv.data(), alone, line); });
}

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  return {
      "train\n--n-layer\n2\0{\"n_layer\":3,\"n-head\":2,\"preset\":\"baby\",\"data\":null}"s,
      "train\n--quiet\0{\"dropout\":1e-3,\"bias\":true,\"resume\":\"auto\",\"sample_tokens\":0}"s,
      "train\0{\"learning_rate\":1e-300,\"n_head\":-1,\"seed\":[1],\"x\":{}}"s,
      "train\0{\"data\":\"\\u0000\\ud800\",\"vocab_size\":-1}"s,
      "sample\n--raw\n--stop\n\xff\0{\"top_p\":1,\"min-p\":-0.0,\"prompt\":\"\"}"s,
      "sample\n--file=-\n--top-p\n1e-9\n--min-p=0\n--stop=x",
      "train\n--init-from=x\n--quiet",
      "train\n--preset\nbaby\n--data\na.txt\n--out=b\n--n-layer\n2\n--n-head=2\n--n-embd=8",
      "train\n--dropout=1e-3\n--learning-rate\n1e1\n--bias\n--seed=0\n--threads\n2",
      "train\n--bias=false\n--bias\nTrue\n--profile\n--max-iters\n0\n--warmup-iters=99999999999",
      "train\n--dropout\nnan\n--beta1=inf\n--grad-clip=-0\n--block-size=0x10",
      "train\n-q\n--preset\nmicro\n--dry-run\n--sample-interval=0\n--sample-prompt\n\xff",
      "train\n--overfit-one-batch\n--out\nx\n--quiet",
      "eval\n--checkpoint\nc\n--data=d",
      "sample\n--checkpoint=c\n--prompt=\n--tokens=10\n--temperature\n0\n--top-k\n1",
      "explain\n--checkpoint=c\n--layers\n0,2\n--heads=1-\n--position\n0",
      "export\n--checkpoint\nc\n--out\n/dev/null",
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
