// The corners of the program that a terminal has: one row that is drawn again, its width, its keys,
// and no control characters but ours.

#include "lm/program/terminal.hpp"

#include <fcntl.h>

#include "lm/program/corners.hpp"

namespace {

/// Runs the program on a terminal to its end; returns the exit code.
int run_on(
    Terminal& terminal, const TemporaryFolder& folder, const Arguments& arguments,
    const std::function<void()>& before = [] {}) {
  Process process(folder, arguments, [&] {
    terminal.take();
    before();
  });
  wait_until([&] {
    terminal.bytes();
    return process.ended();
  });
  return process.wait().code;
}

/// The rows from the first one that begins so.
std::string from_row(Terminal& terminal, std::string_view begin) {
  std::string text;
  for (const std::string& row : terminal.rows())
    if (!text.empty() || row.starts_with(begin))
      text += row + "\n";
  return text;
}

}  // namespace

TEST_CASE("xgrad: on a terminal one row shows how far it is", "[terminal]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  Terminal terminal(60);
  const Arguments train =
      tiny_train("--out run --max-iters 300 --lr-decay-iters 300 --eval-interval 100");
  CHECK(run_on(terminal, folder, train) == 0);
  INFO(terminal.bytes());
  std::size_t drawn = 0;
  for (std::size_t at = 0; (at = terminal.bytes().find("\rstep ", at)) != std::string::npos; ++at)
    ++drawn;
  CHECK(drawn >= 2);
  // The line is cut to the width, and erased completely.
  CHECK_THAT(
      from_row(terminal, "Run:"),
      Catch::Matchers::Matches("Run:   run\n"
                               "after 100 steps: validation loss [0-9.]+ \\(estimate\\), "
                               "lowest\n"
                               "after 100 steps it writes: [^\n]*\n[^\n]*\n"
                               "after 200 steps: validation loss [0-9.]+ \\(estimate\\)"
                               "(, lowest)?\n"
                               "after 200 steps it writes: [^\n]*\n[^\n]*\n"
                               "step 300/300 100 % \\| loss [0-9.]+ \\| eta 0s \\| "
                               "val [0-9.]+[^\n]*\n"
                               "after 300 steps: validation loss [0-9.]+ \\(estimate\\)"
                               "(, lowest)?\n"
                               "validation over all 29 blocks\n"
                               "val_loss [0-9.]+ \\(perplexity [0-9.]+, [0-9.]+ bits[^)]*\\)\n"
                               "Over all 29 blocks of the validation split of text, 8 charac\n"
                               "ters each.\n"
                               "The run is in run\\. [^\n]*\n[^]*"));
  for (const std::string& row : terminal.rows())
    if (row.starts_with("step "))
      CHECK(row.size() < 60);

  // A warning has a row of its own as well.
  Terminal wide(200);
  CHECK(run_on(wide, folder, tiny_train("--out full"), limited(RLIMIT_FSIZE, 20000)) == 1);
  CHECK_THAT(from_row(wide, "xgrad:"),
             StartsWith("xgrad: full/best.safetensors: writing failed: File too large; "
                        "training continues\n"));
}

TEST_CASE("xgrad: a validation shows how far it is", "[terminal]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  std::string text;
  // Validating this text takes a moment, and less than a minute under a sanitizer.
  while (text.size() < 50'000)
    text += tiny_text();
  write_bytes(folder / "long", text);
  Terminal training(80), evaluating(80);
  CHECK(run_on(training, folder,
               {"train", "--data", "text", "--val-data", "long", "--max-iters", "1", "--eval-iters",
                "1", "--n-layer", XGRAD_SANITIZER ? "1" : "4", "--out", "run"}) == 0);
  check_contains(training.bytes(), {"\rstep 1/1 100 %", "validation over all "});
  std::string without_digits = training.bytes();
  std::erase_if(without_digits, [](char c) { return c >= '0' && c <= '9'; });
  CHECK_THAT(without_digits, ContainsSubstring("validation  %"));
  CHECK(run_on(evaluating, folder, "eval --checkpoint run --split val") == 0);
  check_contains(evaluating.bytes(), {"\reval | validation "});
}

TEST_CASE("xgrad: output fits the width, and a terminal that takes nothing but text",
          "[terminal]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  for (const std::size_t columns : {40, 80, 200}) {
    CAPTURE(columns);
    Terminal terminal(static_cast<unsigned short>(columns));
    const std::string out = "run" + std::to_string(columns);
    CHECK(run_on(terminal, folder, tiny_train({"--out", out, "--max-iters", "20"})) == 0);
    const std::string text = from_row(terminal, "step 20/20 100 %"),
                      line = text.substr(0, text.find('\n'));
    CHECK(line.size() < columns);
    check_contains(line, {"| loss ", "| eta "});
    CHECK((line.find(" lr ") != std::string::npos) == (columns == 200));
    CHECK((line.find(" tok/s") != std::string::npos) == (columns > 40));
  }
  Terminal dumb(80);
  CHECK(run_on(dumb, folder, tiny_train("--out run"), [] { ::setenv("TERM", "dumb", 1); }) == 0);
  CHECK(dumb.bytes().find('\x1b') == std::string::npos);
  check_contains(dumb.bytes(), {"\nstep 10/40 25 % | loss "});
}

TEST_CASE("xgrad: Ctrl-C on a terminal, and a terminal that is closed", "[terminal]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  for (const bool closed : {false, true}) {
    const std::string out = closed ? "closed" : "run";
    Terminal terminal(400);
    Process process(
        folder, tiny_train({"--out", out, "--max-iters", "1000000", "--eval-interval", "1000000"}),
        [&] { terminal.take(); });
    wait_until([&] { return terminal.bytes().find("\rstep ") != std::string::npos; });
    if (closed)
      terminal.close();
    else
      terminal.type("\x03");
    wait_until([&] {
      terminal.bytes();
      return process.ended();
    });
    CHECK(process.wait().code == 128 + (closed ? SIGHUP : SIGINT));
    CHECK(xgrad::io::load_checkpoint(folder / (out + "/checkpoint.safetensors")).step ==
          metrics_of(folder / out).size());
    if (!closed)
      CHECK_THAT(
          from_row(terminal, "Run:"),
          Catch::Matchers::Matches("Run:   run\n"
                                   "step [^\n]*\\^C\n"
                                   "Finishing this step and saving; once more leaves at once\\.\n"
                                   "Stopped by SIGINT after [0-9,]+ steps?; the model is in "
                                   "run/checkpoint.safetensors.  To resume:\n"
                                   "  [^\n]*xgrad train --resume run\n\n"));
  }
}

TEST_CASE("xgrad: each stream is a terminal or not", "[terminal]") {
  if (!Terminal::available())
    return;
  const CornersFolder folder;
  const std::string escapes = "\r\x1b";
  for (const Use& use : uses())
    for (const int to_file : {0, STDOUT_FILENO, STDERR_FILENO}) {
      CAPTURE(use.words, to_file);
      folder.tidy();
      Terminal terminal(100);
      CHECK(run_on(terminal, folder, use.words, [=] {
              if (to_file != 0)
                ::dup2(::open("file", O_WRONLY | O_CREAT, 0600), to_file);
            }) == 0);
      terminal.rows();  // fails on other control characters
      CHECK(read_bytes(folder / "file").find_first_of(escapes) == std::string::npos);
      if (!use.run.empty())
        CHECK((terminal.bytes().find("\rstep ") != std::string::npos) ==
              (to_file != STDERR_FILENO));
    }
}

TEST_CASE("xgrad: a terminal gets no control characters of names and models", "[terminal]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  const std::string hostile = "\x1b]0;title\a\x1b[2J";
  write_bytes(folder / hostile, times(300, hostile));
  const std::string out = "run" + hostile;
  Terminal terminal(1000);
  const Arguments train = tiny_train({"--data", hostile, "--out", out, "--max-iters", "3"});
  CHECK(run_on(terminal, folder, train) == 0);
  const std::string checkpoint = out + "/checkpoint.safetensors";
  CHECK(run_on(terminal, folder, {"train", "--resume", out, "--max-iters", "4"}) == 0);
  CHECK(run_on(terminal, folder, {"train", "--resume", out}) == 0);
  CHECK(run_on(terminal, folder, {"sample", "--checkpoint", checkpoint}) == 0);
  CHECK(run_on(terminal, folder, {"eval", "--checkpoint", checkpoint}) == 0);
  CHECK(run_on(terminal, folder, {"eval", "--checkpoint", hostile}) == 1);
  std::string shown;
  for (const std::string& row : terminal.rows())
    shown += row + "\n";
  check_contains(shown,
                 {"Text:  \\x1b]0;title\\x07\\x1b[2J: ", "the model writes:\n",
                  "From:  run\\x1b]0;title\\x07\\x1b[2J/checkpoint.safetensors, after 3 steps",
                  "the run is finished", "val_loss "});
  // A file gets the samples as they are, control characters included, whatever the other stream is.
  CHECK_THAT(run_well(folder, {"sample", "--checkpoint", checkpoint}).out,
             ContainsSubstring("\x1b"));
  CHECK(run_on(terminal, folder, {"sample", "--checkpoint", checkpoint},
               [] { ::dup2(::open("file", O_WRONLY | O_CREAT, 0600), STDOUT_FILENO); }) == 0);
  CHECK_THAT(read_bytes(folder / "file"), ContainsSubstring("\x1b"));
}
