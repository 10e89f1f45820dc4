// What a model computes on a short text, and each gradient with its reason: pages/graph.hpp.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/pages/graph.hpp>

#include "command.hpp"
#include "output.hpp"
#include "prompt.hpp"
#include "run_dir.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

struct GraphOptions {
  std::string checkpoint;
  std::optional<std::string> prompt;  ///< none: what the model writes by itself
  std::string out;                    ///< empty: graph.html, or standard output for dot and text
  bool overwrite = false;
  std::string format = "html";
  bool decompose = false;
  std::size_t max_nodes = 20'000;
  std::size_t threads = 0;
};

using xgrad::Indices;
using xgrad::ValueError;

/// What the model writes by itself, always the likeliest.
std::vector<std::int64_t> own_text(const TrainedModel& trained) {
  constexpr std::size_t written_by_itself = 9;
  const std::int64_t first = trained.notes.characters.contains(U'\n')
                                 ? list_of(trained.notes.characters.encode(U"\n"))[0]
                                 : 0;
  const std::size_t length = std::min(written_by_itself, trained.model.config.block_size + 1);
  xgrad::Generator generator(0);
  const Indices written =
      trained.model.generate(as_row({&first, 1}), length - 1, generator, {.temperature = 0});
  return {written.data(), written.data() + written.numel()};
}

/// Calls f; where that says that something is too large, with a member's name for what allows more,
/// it says which flags do.
template <class F>
auto in_flags(std::string_view member, const char* cure, const F& f) {
  try {
    return f();
  } catch (const ValueError& error) {
    const std::string why = reason(error);
    if (why.find(member) == std::string::npos)
      throw;
    throw ValueError(fmt::format("{}: it takes {}", why.substr(0, why.find(':')), cure));
  }
}

void graph(const GraphOptions& options) {
  const std::string out =
      options.out.empty() && options.format == "html" ? "graph.html" : options.out;
  if (!out.empty())
    check_output(out, options.overwrite, {find_checkpoint(options.checkpoint)});
  const TrainedModel trained = load_trained_model(options.checkpoint);
  const xgrad::nn::GPT& model = trained.model;
  const std::size_t longest = model.config.block_size + 1;
  const auto ids =
      options.prompt ? list_of(encode_given("--prompt", *options.prompt, trained.notes.characters))
                     : own_text(trained);
  if (ids.size() < 2 || ids.size() > longest)
    throw ValueError(
        fmt::format("--prompt has {}; this model takes 2 to {}: of each the next one is the target",
                    xgrad::counted(ids.size(), "character", "characters"), longest));
  const std::string text = trained.notes.characters.decode(xgrad::text::Ids(ids));
  const auto all = std::span<const std::int64_t>(ids);
  const Indices x = as_row(all.first(all.size() - 1)), y = as_row(all.subspan(1));
  const auto loss = [&] {
    std::optional<xgrad::Decompose> by_ordinary_ops;
    if (options.decompose)
      by_ordinary_ops.emplace();
    return model.loss(x, y);
  };
  check_loss(model, x, y, options.checkpoint);
  const auto recorded = in_flags(".max_nodes", "a shorter --prompt, or a larger --max-nodes", [&] {
    return xgrad::pages::run_graph(
        loss, {.names = xgrad::nn::named_parameters(model),
               .title = fmt::format("The loss on \"{}\"", xgrad::printable_name(text)),
               .max_nodes = options.max_nodes});
  });
  const std::string written = in_flags(".max_bytes", "a shorter --prompt", [&] {
    return options.format == "html"  ? xgrad::pages::graph_html(recorded)
           : options.format == "dot" ? xgrad::pages::graph_dot(recorded)
                                     : to_string(recorded);
  });
  if (out.empty())
    return say(written);
  xgrad::io::AtomicFile file(out);
  file.write(written);
  file.commit();
  say(fmt::format("{}: {}, {:.1f} MB{}\n", xgrad::printable_name(out),
                  xgrad::counted(recorded.nodes.size(), "node", "nodes"),
                  static_cast<double>(written.size()) / 1e6,
                  recorded.wrong().empty() ? "" : "; differences contradict some gradients"));
}

}  // namespace

Command add_graph(CLI::App& program) {
  CLI::App& app = *program.add_subcommand(
      "graph", "write a page that goes through a model's backward pass, step by step");
  const auto options = std::make_shared<GraphOptions>();
  add_checkpoint(app, options->checkpoint);
  app.add_option_function<std::string>(
      "--prompt", [options](const std::string& text) { options->prompt = text; },
      "what the loss is of, a few characters [what the model writes by itself]");
  app.add_option("--format", options->format, "a page, a graph for Graphviz, or tables [html]")
      ->type_name("NAME")
      ->check(CLI::IsMember({"html", "dot", "text"}).description(""));
  add_path(app, "--out", options->out, "where to [graph.html; dot and text: standard output]");
  add_overwrite(app, options->overwrite);
  add_bool(app, "--decompose", options->decompose,
           "fused ops as the ops that they fuse: attention with its scores");
  add_number(app, "--max-nodes", options->max_nodes, {1, many},
             fmt::format("refuse a larger graph [{}]", options->max_nodes));
  add_threads(app, options->threads);
  return {&app, [options] {
            need("--checkpoint", options->checkpoint);
            const bool page = options->format == "html", dot = options->format == "dot";
            const char* const ending = page ? ".html" : dot ? ".dot" : ".txt";
            if (!options->out.empty() && !options->out.ends_with(ending))
              throw UsageError(fmt::format("--out {}: {} name ends in {}", options->out,
                                           page  ? "a page's"
                                           : dot ? "a graph's"
                                                 : "a text's",
                                           ending));
            graph(*options);
            return 0;
          }};
}

}  // namespace char_transformer
