// The output on a terminal.

#include "lm/program/terminal.hpp"

#include <algorithm>

#include "lm/program/run.hpp"

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

Arguments endless_at(const std::string& out) {
  return tiny_train({"--out", out, "--max-iters", "1000000", "--eval-interval", "1000000"});
}

void wait_for_steps(Terminal& terminal) {
  wait_until([&] { return terminal.bytes().find("\rstep ") != std::string::npos; });
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
  CHECK_THAT(training.bytes(),
             ContainsSubstring("\rstep 1/1 100 %") && ContainsSubstring("validation over all "));
  // (no regular expression: std::regex takes a stack frame for each character)
  const std::string& shown = training.bytes();
  const auto of_validation = [&](std::size_t last_digit) {
    const std::size_t blank = shown.find_last_not_of("0123456789", last_digit);
    return blank != std::string::npos && blank >= 10 &&
           shown.compare(blank - 10, 11, "validation ") == 0;
  };
  bool percentage = false;
  for (std::size_t at = shown.find(" %"); at != std::string::npos; at = shown.find(" %", at + 1))
    percentage |= of_validation(at - 1);
  CHECK(percentage);
  CHECK(run_on(evaluating, folder, "eval --checkpoint run --split val") == 0);
  CHECK_THAT(evaluating.bytes(), ContainsSubstring("\reval | validation "));
}

TEST_CASE("xgrad: output fits the width", "[terminal]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  for (const std::size_t columns : {40, 80, 200}) {
    CAPTURE(columns);
    Terminal terminal(static_cast<unsigned short>(columns));
    const std::string out = "run" + std::to_string(columns);
    CHECK(run_on(terminal, folder, tiny_train({"--out", out, "--max-iters", "20"})) == 0);
    INFO(terminal.bytes());
    std::string line;
    for (const std::string& row : terminal.rows())
      if (row.starts_with("step 20/20 100 %"))
        line = row;
    CHECK(line.size() < columns);
    check_contains(line, {"| loss ", "| eta "});
    CHECK((line.find(" lr ") != std::string::npos) == (columns == 200));
    CHECK((line.find(" tok/s") != std::string::npos) == (columns > 40));
  }
}

TEST_CASE("xgrad: a terminal that takes nothing but text", "[terminal]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  Terminal terminal(80);
  CHECK(run_on(terminal, folder, tiny_train("--out run"), [&] { ::setenv("TERM", "dumb", 1); }) ==
        0);
  CHECK(terminal.bytes().find('\x1b') == std::string::npos);
  CHECK_THAT(terminal.bytes(), ContainsSubstring("\nstep 10/40 25 % | loss "));
}

TEST_CASE("xgrad: Ctrl-C on a terminal", "[terminal][stop]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  Terminal terminal(400);
  Process process(folder, endless_at("run"), [&] { terminal.take(); });
  wait_for_steps(terminal);
  terminal.type("\x03");
  wait_until([&] {
    terminal.bytes();
    return process.ended();
  });
  CHECK(process.wait().code == 128 + SIGINT);
  INFO(terminal.bytes());
  const std::size_t steps = metrics_of(folder / "run").size();
  CHECK_THAT(
      from_row(terminal, "Run:"),
      Catch::Matchers::Matches("Run:   run\n"
                               "step [^\n]*\\^C\n"
                               "Finishing this step and saving; once more leaves at once\\.\n"
                               "Stopped by SIGINT after [0-9,]+ steps?; the model is in "
                               "run/checkpoint.safetensors.  To resume:\n"
                               "  [^\n]*xgrad train --resume run\n\n"));
  CHECK(xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors").step == steps);
}

TEST_CASE("xgrad: a terminal that is closed ends a run with its model saved", "[terminal][stop]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  Terminal terminal(80);
  Process process(folder, endless_at("run"), [&] { terminal.take(); });
  wait_for_steps(terminal);
  terminal.close();
  CHECK(process.wait().code == 128 + SIGHUP);
  CHECK(xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors").step ==
        metrics_of(folder / "run").size());
}

TEST_CASE("xgrad: a terminal gets no control characters of names and models", "[terminal]") {
  if (!Terminal::available())
    return;
  const TinyFolder folder;
  const std::string hostile = "\x1b]0;title\a\x1b[2J";
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += hostile;
  write_bytes(folder / hostile, text);
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
  // A file gets the samples as they are, control characters included.
  CHECK_THAT(run_well(folder, {"sample", "--checkpoint", checkpoint}).out,
             ContainsSubstring("\x1b"));
}
