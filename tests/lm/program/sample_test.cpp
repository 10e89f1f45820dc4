// The input and output of `xgrad sample`.

#include <fcntl.h>
#include <sys/socket.h>

#include <filesystem>
#include <set>
#include <xgrad/autograd/random.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/lm/tokenizer.hpp>

#include "lm/program/run.hpp"

namespace {

Arguments sampling(const Arguments& more) {
  return overridden({"sample --checkpoint run/checkpoint.safetensors"}, more);
}

/// A run with this text on standard input.
Result run_with(const TemporaryFolder& folder, const std::string& input,
                const Arguments& arguments) {
  write_bytes(folder / ".in", input);
  return Process(folder, arguments,
                 [] {
                   if (std::freopen(".in", "r", stdin) == nullptr)
                     ::_exit(96);
                 })
      .wait();
}

std::string sampled(const TemporaryFolder& folder, const Arguments& more) {
  return run_well(folder, sampling(more)).out;
}

}  // namespace

TEST_CASE("xgrad: prompts from files and standard input", "[sample]") {
  const TrainedFolder folder;
  const Arguments few = {"--tokens 30 --seed 5"};
  const auto with = [&](Arguments more) {
    more = overridden(more, few);
    return more;
  };
  const std::string expected = sampled(folder, with({"--prompt", "cat\nsat"}));
  CHECK_THAT(expected, StartsWith("cat\nsat"));
  for (const std::string text : {"cat\nsat", "cat\nsat\n",
                                 "\xEF\xBB\xBF"
                                 "cat\r\nsat\r\n"}) {
    write_bytes(folder / "prompt", text);
    CHECK(sampled(folder, with("--file prompt")) == expected);
    CHECK(run_with(folder, text, sampling(with("--file -"))).out == expected);
  }
  for (const std::string text : {"cat\r\nsat", "cat\rsat",
                                 "\xEF\xBB\xBF"
                                 "cat\nsat"})
    CHECK(sampled(folder, with({"--prompt", text})) == expected);
  const Arguments to_line_end = with({"--prompt", "cat", "--stop", "\nthe"});
  Arguments to_other = to_line_end;
  to_other[3] = "\r\nthe";
  CHECK(sampled(folder, to_other) == sampled(folder, to_line_end));
  const std::string begun = sampled(folder, few);
  CHECK_THAT(begun, StartsWith("\n"));
  CHECK(sampled(folder, with("--prompt ''")) == begun);

  // The model sees only the last characters of a prompt that is longer than a block.
  std::string longer = "on mat 0,\nthe dog did not.\nthe cat";
  const Result seen = ran(folder, sampling(with({"--prompt", longer})));
  CHECK_THAT(seen.out, StartsWith(longer));
  CHECK_THAT(seen.err,
             ContainsSubstring("the prompt has 34 characters, of which the model sees the last 8"));
  CHECK(seen.out.substr(longer.size()) ==
        sampled(folder, with({"--prompt", longer.substr(26)})).substr(8));

  write_bytes(folder / "empty", "");
  const auto refused = [&](const Arguments& more, int code,
                           const std::vector<std::string>& fragments) {
    check_refused(folder, sampling(more), code, fragments);
  };
  refused("--file none", 1, {"none: no such file"});
  refused("--file .", 1, {".: is a directory, not a text"});
  refused("--file prompt --prompt x", 2, {"--prompt and --file are both prompts"});
  refused("--file empty", 1, {"empty: the file is empty"});
  write_bytes(folder / "prompt", "the Zo\xC3\xAB");
  refused("--file prompt", 1,
          {"prompt: ", "lacks 'Z' (U+005A), 'ë' (U+00EB); it knows \\x0a ,.0123456"});
  write_bytes(folder / "prompt", "a\xFF");
  refused("--file prompt", 1, {"prompt: not UTF-8 at byte 1"});
  refused("--stop Z", 1, {"--stop: ", "lacks 'Z' (U+005A); it knows \\x0a ,."});
  refused("--top-p 0", 2, {"--top-p: '0' is not a number from 1e-09 to 1"});
  refused("--min-p 1.1", 2, {"--min-p: '1.1' is not a number from 0 to 1"});
  const Result closed = Process(folder, sampling("--file -"), [] { ::close(STDIN_FILENO); }).wait();
  CHECK(closed.code == 1);
  CHECK_THAT(closed.err, ContainsSubstring("/dev/stdin: is neither a file nor a pipe"));
}

TEST_CASE("xgrad: several prompts at once are as each alone", "[sample]") {
  const TrainedFolder folder;
  const Arguments how = {"--tokens", "30", "--seed", "5", "--stop", ",\n"};
  const std::vector<std::string> prompts = {"the d", "c", "on mat 3, the cat"};
  const std::string line = "---------------\n";
  std::string first, second;  // samples
  Arguments all = {"sample run"};
  for (const std::string& prompt : prompts) {
    Arguments one = {"sample", "run", "--num-samples", "2", "--prompt", prompt};
    one.insert(one.end(), how.begin(), how.end());
    const Result result = ran(folder, one);
    const std::size_t at = result.out.find(line);
    first += result.out.substr(0, at) + line;
    second += (second.empty() ? "" : line) + result.out.substr(at + line.size());
    all.insert(all.end(), {"--prompt", prompt});
  }
  all.insert(all.end(), how.begin(), how.end());
  all.insert(all.end(), {"--num-samples", "2"});
  const Result together = ran(folder, all);
  CHECK(together.out == first + second);  // a prompt that has ended draws no more
  write_bytes(folder / "prompts", R"({"prompt": ["c", "the d"], "tokens": 2})");
  check_contains(run(folder, "sample run --config prompts").out, {line + "the d"});
  write_bytes(folder / "list", R"({"stop": ["a", "b"]})");
  check_refused(folder, "sample run --config list", 2, {"--stop has one value, not a list"});
  // One that cannot go on loses nothing of the others.
  const Result failed =
      run(folder, "sample run --prompt 'the dog' --prompt c --tokens 60 --no-repeat-ngram 1");
  CHECK(failed.code == 1);
  check_contains(failed.out, {"the dog", line + "c"});
  all.insert(all.end(), {"--prompt", "Q"});
  check_refused(folder, all, 1, {"--prompt", "'Q'"});
}

TEST_CASE("xgrad: sampling ends at --stop", "[sample]") {
  const TrainedFolder folder;
  const Arguments few = {"--tokens 400 --prompt 'the dog'"};
  const std::string whole = sampled(folder, few);
  const auto stopped = [&](const std::string& text) {
    Arguments more = few;
    more.insert(more.end(), {"--stop", text});
    return sampled(folder, more);
  };
  // It does not count in the prompt.
  for (const std::string& text : {std::string("e"), std::string("\n"), whole.substr(150, 3)}) {
    CAPTURE(text);
    REQUIRE(whole.find(text, 7) != std::string::npos);
    CHECK(stopped(text) == whole.substr(0, whole.find(text, 7) + text.size()) + "\n");
  }
  CHECK(stopped("6666666666666666") == whole);
  CHECK(stopped("") == whole);
}

TEST_CASE("xgrad: --stop is a text, with its blanks and across tokens", "[sample]") {
  const TemporaryFolder folder;
  for (const auto spaces :
       {lm::CharacterTokens::Spaces::first, lm::CharacterTokens::Spaces::prepended}) {
    lm::BytePairs::Parts parts;
    parts.tokens = {"\u2581", "b", "u", "i", "l", "d", "\u2581b", "ui", "\u00E9", "<|eot|>"};
    parts.merges = {{0, 1}, {2, 3}};
    parts.added = {{"<|eot|>", 9}};
    parts.splits.clear();
    parts.characters = {.size = 9, .spaces = spaces, .byte_fallback = false};
    xgrad::manual_seed(3);
    std::filesystem::remove_all(folder / "base");
    xgrad::lm::save_pretrained(folder / "base",
                               xgrad::lm::GPT(xgrad::lm::GPTConfig::llama({.block_size = 8,
                                                                           .vocab_size = 10,
                                                                           .n_layer = 1,
                                                                           .n_head = 1,
                                                                           .n_embd = 8,
                                                                           .n_inner = 8})));
    xgrad::lm::write_tokenizer(folder / "base/tokenizer.json", lm::BytePairs(parts));
    const std::string prompt = "build";
    const auto written = [&](const Arguments& more) {
      return run(folder,
                 overridden({"sample", "base", "--prompt", prompt, "--tokens", "300"}, more))
          .out;
    };
    const std::string whole = written({}), shown = written("--special-tokens true");
    CHECK_THAT(whole, StartsWith(prompt) && !ContainsSubstring("<|eot|>"));
    REQUIRE(shown.find("<|eot|>") != shown.npos);
    for (std::size_t k = 5, i = 0; i < 6; ++i) {
      REQUIRE((k = shown.find(' ', k + 1)) != shown.npos);
      if (shown[k + 1] == '<')  // of a special token
        continue;
      const bool ascii = static_cast<unsigned char>(shown[k + 1]) < 0x80;
      const std::string stop = shown.substr(k, ascii ? 2 : 3);
      INFO(stop);
      const std::size_t at = shown.find(stop, prompt.size());
      CHECK(written({"--stop", stop, "--special-tokens", "true"}) ==
            shown.substr(0, at + stop.size()) + "\n");
    }
    // A special token ends it, too, and is printed on request alone.
    const std::string before = shown.substr(0, shown.find("<|eot|>"));
    CHECK(written("--stop <|eot|>") == before + "\n");
    CHECK(written("--stop <|eot|> --special-tokens true") == before + "<|eot|>\n");
  }
}

TEST_CASE("xgrad: filters and threads of sample", "[sample]") {
  const TrainedFolder folder;
  const auto sample = [&](Arguments more) {
    more.insert(more.end(), {"--tokens", "60"});
    return sampled(folder, more);
  };
  const std::string likeliest = sample("--temperature 0");
  CHECK(sample("--top-p 1e-9 --seed 1") == likeliest);
  CHECK(sample("--min-p 1 --seed 2") == likeliest);
  CHECK(sample("--temperature 1e-300") == likeliest);
  CHECK(sample("--top-k 1 --seed 3") == likeliest);
  const std::string drawn = sample("--seed 1");
  CHECK(drawn.size() == 62);  // newline, 60 characters, newline
  CHECK((drawn != likeliest && drawn != sample("--seed 2")));
  CHECK(drawn != sample("--seed 1 --temperature 50"));
  CHECK(sampled(folder, "--prompt 'the cat' --tokens 0") == "the cat\n");
  const std::string greedy = sample("--temperature 0 --no-repeat-ngram 2");
  std::set<std::string> pairs;
  for (std::size_t i = 0; i + 2 < greedy.size(); ++i)
    CHECK(pairs.insert(greedy.substr(i, 2)).second);
  CHECK(sample("--temperature 0 --repetition-penalty 1.0") == likeliest);
  const std::string few = sample("--temperature 0 --repetition-penalty 1000");
  CHECK(std::set<char>(few.begin(), few.end()).size() >
        std::set<char>(likeliest.begin(), likeliest.end()).size());
  check_refused(folder, "sample --checkpoint run --no-repeat-ngram 1", 1,
                {"it cannot write on: the changed logits exclude all tokens"});
  check_refused(folder, "sample --checkpoint run --no-repeat-ngram 0", 2,
                {"--no-repeat-ngram: '0' is not a whole number from 1"});
  check_refused(folder, "sample --checkpoint run --repetition-penalty 0", 2,
                {"--repetition-penalty: '0' is not a number from"});
  const Arguments all = {"--temperature 1.2 --top-k 9 --top-p 0.9 --min-p 0.1 --seed 11"};
  const std::string one = sample(all);
  for (const char* const threads : {"1", "3"}) {
    Arguments more = all;
    more.insert(more.end(), {"--threads", threads});
    CHECK(sample(more) == one);
  }
}

TEST_CASE("xgrad: characters come whole", "[sample]") {
  const TemporaryFolder folder;
  write_bytes(folder / "text", times(200, "\xE6\xBC\xA2\xF0\x9F\x98\x80\xC3\xA9"));
  run_well(folder, tiny_train("--out run --max-iters 2"));
  // One datagram for each write.
  int sockets[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
  Process process(folder, sampling({"--tokens", "20", "--prompt", "\xC3\xA9"}), [&] {
    ::close(sockets[0]);
    ::dup2(sockets[1], STDOUT_FILENO);
  });
  ::close(sockets[1]);
  std::size_t pieces = 0, tokens = 0;
  char some[4096];
  for (ssize_t n = 0; (n = ::read(sockets[0], some, sizeof(some))) > 0; ++pieces) {
    const std::string piece(some, static_cast<std::size_t>(n));
    CAPTURE(piece);
    tokens += xgrad::lm::decode_utf8(piece, "a piece").size();  // throws if it is cut
  }
  ::close(sockets[0]);
  CHECK(process.wait().code == 0);
  CHECK(pieces == 22);
  CHECK(tokens == 22);
}

TEST_CASE("xgrad: sampling ends when nobody reads", "[sample]") {
  const TrainedFolder folder;
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  Process process(folder, sampling("--tokens 1000000000"), [&] {
    ::signal(SIGPIPE, SIG_IGN);  // as under some shells and servers
    ::dup2(pipe[1], STDOUT_FILENO);
  });
  ::close(pipe[1]);
  char some[64];
  REQUIRE(::read(pipe[0], some, sizeof(some)) > 0);
  ::close(pipe[0]);
  CHECK(process.wait().code == 128 + SIGPIPE);
}
