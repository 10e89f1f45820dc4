// xgrad explain: its inputs, its errors, and its page.

#include <filesystem>

#include "lm/program/run.hpp"

namespace {

Result explain(const TemporaryFolder& folder, const Arguments& more) {
  return ran(folder, overridden({"explain"}, more));
}

/// The data that the page's scripts read.
Json page_data(const std::string& path) {
  const std::string html = read_bytes(path), begin = "id=\"data\">";
  const std::size_t at = html.find(begin) + begin.size();
  return Json::parse(html.substr(at, html.find("</script>", at) - at));
}

std::string text_of(const Json& page) {
  std::string text;
  for (const std::string token : page["tokens"])
    text += token;
  return text;
}

}  // namespace

TEST_CASE("explain: a piece of the text, a prompt, layers and heads") {
  const TrainedFolder folder;
  const Result usual = explain(folder, "--checkpoint " + folder.checkpoint);
  CHECK_THAT(usual.out, StartsWith("explain.html: 8 characters\n"));
  const Json page = page_data(folder / "explain.html");
  const std::string text = tiny_text();
  const std::size_t validation = text.size() * 9 / 10;
  CHECK(text_of(page) == text.substr(validation, 8));
  const Json& run = page["run"];
  CHECK_THAT(std::string(run["name"]), ContainsSubstring("after 40 steps"));
  CHECK(run["layers"][0]["name"] == "h.0.attn");
  CHECK(run["layers"][0]["heads"].size() == 2);
  CHECK(run["layers"][0]["D"] == 8);
  const std::vector<std::string> classes = page["classes"];
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(classes.at(page["targets"][i]) == text.substr(validation + i + 1, 1));

  write_bytes(folder / "other", "the dog\nthe cat\n");
  explain(folder, "--checkpoint run --data other --length 3 --out a.html");
  CHECK(text_of(page_data(folder / "a.html")) == "the");
  explain(folder, {"--checkpoint", folder.checkpoint, "--prompt", "cat\n", "--heads", "1",
                   "--position", "2", "--out", "b.html"});
  const Json prompt = page_data(folder / "b.html");
  CHECK(text_of(prompt) == "cat\n");
  CHECK(prompt["position"] == 2);
  CHECK(prompt["targets"][3] == classes.size());  // the next one is unknown
  // Opens where weight times gradient is largest.
  for (const std::string given : {"cat\n", "cat\r\n"}) {  // line ends as in texts
    explain(folder, {"--checkpoint", folder.checkpoint, "--prompt", given, "--out", "c.html",
                     "--overwrite"});
    const Json opened = page_data(folder / "c.html");
    CHECK(text_of(opened) == "cat\n");
    CHECK(opened["position"] < 3);
  }
  REQUIRE(prompt["run"]["layers"][0]["heads"].size() == 1);
  CHECK(prompt["run"]["layers"][0]["heads"][0]["index"] == 1);
}

TEST_CASE("explain: errors name the existing layers, heads and positions") {
  const TrainedFolder folder;
  const auto refused = [&](const Arguments& more, int code,
                           const std::vector<std::string>& fragments) {
    Arguments all{"explain --checkpoint " + folder.checkpoint};
    all = overridden(all, more);
    check_refused(folder, all, code, fragments);
  };
  check_refused(folder, {"explain"}, 2, {"explain: RUN is needed"});
  check_refused(folder, "explain --checkpoint none", 1, {"none: ", "No such file"});
  check_refused(folder, "explain --checkpoint .", 1, {".: the folder holds no checkpoint"});
  check_refused(folder, "explain --checkpoint text", 1, {"text: "});
  refused("--prompt zebra!", 1, {"--prompt: ", "'z'", "'!'"});
  refused("--prompt ''", 1, {"--prompt has 0 characters; this model takes 2 to 8"});
  refused("--prompt t", 1, {"--prompt has 1 character; this model takes 2 to 8"});
  refused("--prompt 'the cat s'", 1, {"--prompt has 9 characters; this model takes 2 to 8"});
  refused({"--prompt", "\xff"}, 1, {"--prompt: ", "UTF-8"});
  refused("--prompt the --length 3", 2, {"omit --data and --length"});
  refused("--length 9", 1, {"--length 9: this model and the validation split of", " allow 8"});
  refused("--length 1", 2, {"--length", "from 2"});
  refused("--layers 1", 1, {"layer 1 does not exist", "layers 0 to 0"});
  refused("--heads 0,2", 1, {"head 2 does not exist", "heads 0 to 1"});
  refused("--position 8", 1, {"position 8"});
  for (const char* const list : {"a", "1-", "0 1", "1000"})
    refused({"--heads", list}, 2, {"--heads"});
  refused("--out page.txt", 1, {"page.txt: a page's name ends in .html"});
  refused("--out none/page.html", 1, {"none/page.html"});
  refused("--data none", 1, {"none: no such file"});
  write_bytes(folder / "short", "th");
  refused("--data short", 1, {"--length 2: this model and short allow 1"});
  write_bytes(folder / "unknown", "the zebra");
  refused("--data unknown", 1, {"unknown: ", "'z'"});
}

TEST_CASE("explain: a page that is too large is not written") {
  const TrainedFolder folder;
  check_refused(folder, {"explain", "--checkpoint", folder.checkpoint, "--max-mb", "0.01"}, 1,
                {"the page would have more than 0.01 MB", "--length, --layers and --heads",
                 "--max-mb allows it"});
}
