// What shells complete, and the man page.

#include <algorithm>
#include <cstdlib>
#include <regex>

#include "examples/char_transformer_run.hpp"

namespace {

/// Whether the machine has a program.
bool there_is(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

Result run_other(const TemporaryFolder& folder, const Arguments& words) {
  return Process(
             folder, [] {}, words)
      .wait();
}

/// What bash offers where these words stand, the last of which is being written.
std::vector<std::string> offered(const TemporaryFolder& folder,
                                 const std::vector<std::string>& words) {
  std::string script = "set -u; source ./completion; COMP_WORDS=(char_transformer";
  for (const std::string& word : words)
    script += " '" + word + "'";
  script += "); COMP_CWORD=" + std::to_string(words.size()) +
            "; _char_transformer; printf '%s\\n' ${COMPREPLY[@]+\"${COMPREPLY[@]}\"}";
  const Result result = run_other(folder, {"bash", "--norc", "-c", script});
  INFO(script);
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  std::vector<std::string> lines = lines_of(result.out);
  if (lines == std::vector<std::string>{""})
    lines.clear();
  std::ranges::sort(lines);
  return lines;
}

}  // namespace

TEST_CASE("char_transformer: bash completes commands, flags and values", "[completion]") {
  using Words = std::vector<std::string>;
  const TemporaryFolder folder;
  write_bytes(folder / "book one.txt", "");
  write_bytes(folder / "book*", "");
  std::filesystem::create_directory(folder / "books");
  write_bytes(folder / "completion", run_well(folder, {"completion", "bash"}).out);
  CHECK(offered(folder, {"sa"}) == Words{"sample"});
  CHECK(offered(folder, {"exp"}) == Words{"explain", "export"});
  CHECK(offered(folder, {"--v"}) == Words{"--version"});
  CHECK(offered(folder, {"train", "--n-"}) == Words{"--n-embd", "--n-head", "--n-layer"});
  CHECK(offered(folder, {"train", "--print"}) == Words{"--print-config"});
  CHECK(offered(folder, {"train", "--preset", ""}).size() >= 2);
  CHECK(offered(folder, {"train", "--preset", "ba"}) == Words{"baby"});
  CHECK(offered(folder, {"train", "--preset", "=", "ba"}) == Words{"baby"});
  CHECK(offered(folder, {"train", "--preset", "="}).size() >= 2);
  CHECK(offered(folder, {"train", "--bias", "t"}) == Words{"true"});
  CHECK(offered(folder, {"train", "--bias", "--be"}) == Words{"--beta1", "--beta2"});
  CHECK(offered(folder, {"train", "--n-layer", ""}).empty());
  CHECK(offered(folder, {"train", "--n-layer", "2", "--se"}) == Words{"--seed"});
  CHECK(offered(folder, {"train", "--data", "b"}) == Words{"book one.txt", "book*", "books"});
  CHECK(offered(folder, {"train", "--out", "b"}) == Words{"books"});
  CHECK(offered(folder, {"train", "--resume", "book"}).size() == 3);
  CHECK(offered(folder, {"eval", "--n-"}).empty());
  CHECK(offered(folder, {"completion", ""}) == Words{"--help", "bash", "fish", "zsh"});
  CHECK(offered(folder, {"nonsense", ""}).empty());
  // All flags that help lists, and no others.
  for (const std::string command : {"train", "eval", "sample", "export", "import"}) {
    const Words flags = offered(folder, {command, "--"});
    const std::string help = run(folder, {command, "--help"}).out;
    static const std::regex line("  (-\\w,)?--\\w.*");
    CHECK(flags.size() == static_cast<std::size_t>(
                              std::ranges::count_if(lines_of(help), [](const std::string& row) {
                                return std::regex_match(row, line) ||
                                       row.starts_with("  -h,--help");
                              })));
    for (const std::string& flag : flags)
      CHECK_THAT(help, ContainsSubstring(flag + " "));
  }
}

TEST_CASE("char_transformer: completions are scripts of their shells", "[completion]") {
  const TemporaryFolder folder;
  for (const auto& [shell, check] : {std::pair<std::string, std::string>{"bash", "-n"},
                                     {"zsh", "-n"},
                                     {"fish", "--no-execute"}}) {
    const std::string script = run_well(folder, {"completion", shell}).out;
    for (const char* const word : {"sample", "learning-rate", "nano"})
      CHECK_THAT(script, ContainsSubstring(word));
    if (!there_is(shell)) {
      WARN("skipped: there is no " << shell);
      continue;
    }
    write_bytes(folder / shell, script);
    const Result result = run_other(folder, {shell, check, folder / shell});
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK(result.err.empty());
  }
  check_refused(folder, {"completion"}, 2, {"SHELL is required"});
  check_refused(folder, {"completion", "tcsh"}, 2, {"SHELL: 'tcsh' is not one of bash, zsh, fish"});
}

TEST_CASE("char_transformer: the man page", "[completion]") {
  const TemporaryFolder folder;
  const std::string page = run_well(folder, {"man"}).out;
  CHECK_THAT(page, StartsWith(".TH CHAR_TRANSFORMER 1 "));
  if (!there_is("groff")) {
    WARN("skipped: there is no groff");
    return;
  }
  write_bytes(folder / "page.1", page);
  const Result result = run_other(
      folder, {"groff", "-man", "-Tascii", "-ww", "-rLL=78n", "-P-cbou", folder / "page.1"});
  INFO(result.out << result.err);
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  check_contains(std::regex_replace(result.out, std::regex(" +"), " "),
                 {"char_transformer - trains", "--learning-rate X", "--bias [BOOL]",
                  "--config FILE", "EXIT STATUS", "CONFIGURATION FILES", "--prompt \"To be\""});
  for (const std::string command : {"train", "eval", "sample", "export", "import", "corpus"})
    CHECK_THAT(result.out, ContainsSubstring("\n   " + command + "\n"));
}
