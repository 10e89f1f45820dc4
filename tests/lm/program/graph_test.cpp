// xgrad graph: a trained model's backward pass, as a page and as text.

#include <filesystem>

#include "lm/program/run.hpp"

TEST_CASE("xgrad graph: a page, DOT and text of one loss") {
  const TrainedFolder folder;
  const auto graph = [&](const Arguments& more) {
    return ran(folder, overridden("graph --checkpoint " + folder.checkpoint, more));
  };
  const Result page = graph("--prompt 'the cat'");
  CHECK_THAT(page.out,
             StartsWith("graph.html: ") && ContainsSubstring(" nodes, ") && EndsWith(" kB\n"));
  const std::string html = read_bytes(folder / "graph.html");
  check_contains(html, {"<title>The loss on \"the cat\"</title>", "\"wrong\":[]",
                        "\"name\":\"transformer.wte.weight\"", "cross_entropy"});

  const Result text = graph("--prompt 'the cat' --format text");
  check_contains(text.out, {"The loss on \"the cat\"", "causal_self_attention", "h.0.attn",
                            "backward (", "numeric ok"});
  CHECK(text.out.find("WRONG") == std::string::npos);
  CHECK(graph("--prompt 'the cat' --format text").out == text.out);
  CHECK(graph({"--prompt", "cat\r\nsat\r", "--format", "text"}).out ==
        graph({"--prompt", "cat\nsat\n", "--format", "text"}).out);
  const Result parts = graph("--prompt 'the cat' --format text --decompose true");
  check_contains(parts.out, {"softmax", "masked_fill"});
  CHECK(text.out.find("masked_fill") == std::string::npos);

  const Result dot = graph("--format dot --out graph.dot");  // of the model's own text
  CHECK_THAT(dot.out, StartsWith("graph.dot: "));
  CHECK_THAT(read_bytes(folder / "graph.dot"), StartsWith("digraph "));
}

TEST_CASE("xgrad graph: errors") {
  const TrainedFolder folder;
  const auto refused = [&](const Arguments& more, int code,
                           const std::vector<std::string>& fragments) {
    check_refused(folder, overridden("graph --checkpoint " + folder.checkpoint, more), code,
                  fragments);
  };
  check_refused(folder, {"graph"}, 2, {"graph: RUN is needed"});
  refused("--format svg", 2, {"--format: 'svg' is not one of html, dot, text"});
  refused("--max-nodes 0", 2, {"--max-nodes", "from 1"});
  refused("--prompt ''", 1, {"--prompt has 0 characters; this model takes 2 to 9"});
  refused("--prompt t", 1, {"--prompt has 1 character; this model takes 2 to 9"});
  refused("--prompt 'the cat sat'", 1, {"11 characters; this model takes 2 to 9"});
  refused("--prompt 'the Ω'", 1, {"--prompt: ", "Ω"});
  refused({"--prompt", "\xff\xfe"}, 1, {"--prompt: ", "UTF-8"});
  refused("--prompt the --max-nodes 5", 1,
          {"xgrad: more than 5 nodes: it takes a shorter --prompt, or a larger "
           "--max-nodes\n"});
  refused("--prompt the --out none/graph.html", 1, {"none/graph.html"});
}
