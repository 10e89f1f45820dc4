// Pages about a trained model: its attention, of a checkpoint or of all that a run's folder holds
// (explain, pages/attention.hpp), and the graph of one loss (graph, pages/graph.hpp).

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <string_view>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/pages/attention.hpp>
#include <xgrad/pages/graph.hpp>

#include "command.hpp"
#include "output.hpp"
#include "prompt.hpp"
#include "run_dir.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;
namespace pages = xgrad::pages;
namespace text = xgrad::text;
using xgrad::counted;
using xgrad::FileError;
using xgrad::ValueError;

struct PageOptions {
  std::string checkpoint, out;
  std::optional<std::string> prompt;
  bool overwrite = false;
  std::size_t threads = 0;
};

struct ExplainOptions : PageOptions {
  std::string data;  ///< empty: what the checkpoint was validated on
  std::optional<std::size_t> length;
  std::string layers, heads;  ///< empty: all
  std::optional<std::size_t> position;
  double max_mb = 20;
};

struct GraphOptions : PageOptions {
  std::string format = "html";
  bool decompose = false;
  std::size_t max_nodes = 20'000;
};

/// The ids of --prompt, of which a model takes 2 to so many.
std::vector<std::int64_t> ids_of_prompt(const std::string& prompt, const text::Characters& known,
                                        std::size_t most, const char* why = "") {
  std::vector<std::int64_t> ids = list_of(encode_given("--prompt", prompt, known));
  if (ids.size() < 2 || ids.size() > most)
    throw ValueError(fmt::format("--prompt has {}; this model takes 2 to {}{}",
                                 counted(ids.size(), "character", "characters"), most, why));
  return ids;
}

/// The checkpoints of a run's folder by their steps, or the one file, with a name for each: "after
/// 300 steps (best)".
std::vector<std::pair<std::string, std::string>> find_checkpoints(const std::string& path) {
  const auto after = [](std::uint64_t step) { return "after " + counted(step, "step", "steps"); };
  std::error_code none;
  if (!fs::is_directory(path, none))
    return {{path, after(step_of(path))}};
  std::map<std::uint64_t, std::pair<std::string, std::string>> by_step;
  for (const auto& entry : fs::directory_iterator(path, none)) {
    const std::string name = entry.path().filename().string(), file = entry.path().string();
    if (!is_checkpoint_name(name))
      continue;
    const std::uint64_t step = step_of(file);
    by_step.try_emplace(step, file, after(step)).first->second.second +=
        name == best_name         ? " (best)"
        : name == checkpoint_name ? " (last)"
                                  : "";
  }
  if (by_step.empty())
    throw FileError(fmt::format("{}: the folder holds no checkpoint", path));
  std::vector<std::pair<std::string, std::string>> all;
  for (auto& [step, saved] : by_step)
    all.push_back(std::move(saved));
  return all;
}

/// What the model reads, and the character that follows each; none for -100.
struct Piece {
  std::vector<std::int64_t> ids, targets;
  std::string name;
};

/// The prompt, or the first characters of the file --data, or of the text that the model was
/// validated on.
Piece read_piece(const ExplainOptions& options, const TrainedModel& trained) {
  const std::size_t block_size = trained.model.config.block_size;
  if (options.prompt) {
    const auto ids = ids_of_prompt(*options.prompt, trained.notes.characters, block_size);
    Piece piece{ids, {ids.begin() + 1, ids.end()}, "the prompt"};
    piece.targets.push_back(-100);  // nobody knows what follows
    return piece;
  }
  if (options.length.value_or(2) > block_size)
    throw ValueError(fmt::format("--length {}: this model takes 2 to {} characters",
                                 *options.length, block_size));
  const bool given = !options.data.empty();
  const Source source = given ? open_source(options.data, "", "", trained.notes.characters)
                              : open_text("", "", trained.path, trained.notes);
  const text::Ids& ids = given ? source.all : source.ids.validation;
  const std::string& name = given ? source.name : source.validation_name;
  const std::size_t most = std::min(block_size, ids.size() - 1);
  const std::size_t length = options.length.value_or(std::clamp<std::size_t>(most, 2, 64));
  if (length > most)
    throw ValueError(fmt::format(
        "{}: {} too few for --length {}: each needs one that follows it", name,
        ids.size() == 1 ? "1 character is" : fmt::format("{} characters are", ids.size()), length));
  const auto list = list_of(ids);
  const auto begin = list.begin(), end = begin + static_cast<std::ptrdiff_t>(length);
  return {{begin, end},
          {begin + 1, end + 1},
          fmt::format("the first {} characters of {}", length, name)};
}

/// FileError if the model's loss is not finite: there is nothing to explain.
xgrad::Tensor finite(const TrainedModel& trained, const xgrad::Tensor& loss) {
  if (!std::isfinite(loss.item()))
    throw FileError(
        fmt::format("{}: the model's loss on this text is {}", trained.path, loss.item()));
  return loss;
}

/// The numbers of a list as "0,2-4".
std::vector<std::size_t> read_list(const char* flag, const std::string& list) {
  static const std::regex whole("\\d{1,3}(-\\d{1,3})?(,\\d{1,3}(-\\d{1,3})?)*"),
      part("(\\d+)(-(\\d+))?");
  std::vector<std::size_t> numbers;
  bool right = list.empty() || std::regex_match(list, whole);
  for (std::sregex_iterator at(list.begin(), list.end(), part), end; right && at != end; ++at) {
    const std::size_t first = std::stoul((*at)[1]),
                      last = (*at)[3].matched ? std::stoul((*at)[3]) : first;
    right = first <= last;
    for (std::size_t n = first; n <= last; ++n)
      if (std::ranges::find(numbers, n) == numbers.end())
        numbers.push_back(n);
  }
  if (!right)
    throw UsageError(
        fmt::format("{} '{}': a list of numbers up to 999, as 0,2-4, is expected", flag, list));
  return numbers;
}

void explain(const ExplainOptions& options) {
  pages::AttentionOptions page{.title = fmt::format("Attention of {}", options.checkpoint),
                               .layers = read_list("--layers", options.layers),
                               .heads = read_list("--heads", options.heads),
                               .position = options.position,
                               .max_bytes = static_cast<std::size_t>(1e6 * options.max_mb)};
  const auto checkpoints = find_checkpoints(options.checkpoint);
  std::vector<std::string> read = {options.data};
  for (const auto& [path, name] : checkpoints)
    read.push_back(path);
  check_output(options.out, options.overwrite, read);
  const TrainedModel first = load_trained_model(checkpoints.front().first);
  const xgrad::nn::GPTConfig& config = first.model.config;
  const Piece piece = read_piece(options, first);
  for (const char32_t c : first.notes.characters.list())
    page.classes.push_back(text::encode_utf8({&c, 1}));
  for (const std::int64_t id : piece.ids)
    page.tokens.push_back(page.classes[static_cast<std::size_t>(id)]);
  for (const std::int64_t id : piece.targets)  // one that nobody knows is beyond all classes
    page.targets.push_back(id < 0 ? page.classes.size() : static_cast<std::size_t>(id));
  page.about =
      fmt::format("{}, {} each, on {}. The loss is the mean of −log p of the next character.",
                  counted(config.n_layer, "layer", "layers"),
                  counted(config.n_head, "head", "heads"), piece.name);
  std::vector<pages::AttentionRun> runs;
  for (const auto& [path, name] : checkpoints) {
    const TrainedModel trained = runs.empty() ? first : load_trained_model(path);
    if (trained.notes.characters != first.notes.characters ||
        to_json(trained.model.config) != to_json(config))
      throw FileError(fmt::format("{}: a checkpoint of another model than {}", path, first.path));
    runs.push_back(pages::trace_attention(
        [&] {
          return finite(trained, trained.model.loss(as_row(piece.ids), as_row(piece.targets)));
        },
        page));
    runs.back().name = name;
  }
  try {
    pages::write_attention_html(options.out, runs, page);
  } catch (const pages::PageTooLarge&) {
    throw ValueError(fmt::format(
        "the page would have more than {:.3g} MB, and would be of little use: --length, --layers "
        "and --heads make it smaller{}; --max-mb allows it",
        options.max_mb, runs.size() > 1 ? ", and one checkpoint instead of the folder" : ""));
  }
  say(fmt::format("{}: {}, {} each, {}, {}, {}\n", options.out,
                  counted(runs.front().layers.size(), "layer", "layers"),
                  counted(runs.front().layers.front().heads.size(), "head", "heads"),
                  counted(piece.ids.size(), "character", "characters"),
                  counted(runs.size(), "checkpoint", "checkpoints"),
                  format_si(static_cast<double>(fs::file_size(options.out)), "B")));
}

/// What the model writes by itself, always the likeliest.
std::vector<std::int64_t> own_text(const TrainedModel& trained) {
  xgrad::Generator generator(0);
  const xgrad::Indices written = trained.model.generate(
      as_row(list_of(encode_prompt("", "", trained.notes.characters))),
      std::min<std::size_t>(8, trained.model.config.block_size), generator, {.temperature = 0});
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
  const std::vector<std::int64_t> ids =
      options.prompt ? ids_of_prompt(*options.prompt, trained.notes.characters,
                                     trained.model.config.block_size + 1,
                                     ": of each the next one is the target")
                     : own_text(trained);
  const auto all = std::span(ids);
  const auto loss = [&] {
    std::optional<xgrad::Decompose> by_ordinary_ops;
    if (options.decompose)
      by_ordinary_ops.emplace();
    return finite(trained,
                  trained.model.loss(as_row(all.first(all.size() - 1)), as_row(all.subspan(1))));
  };
  const std::string read = trained.notes.characters.decode(text::Ids(ids));
  const auto recorded = in_flags(".max_nodes", "a shorter --prompt, or a larger --max-nodes", [&] {
    return pages::run_graph(
        loss, {.names = xgrad::nn::named_parameters(trained.model),
               .title = fmt::format("The loss on \"{}\"", xgrad::printable_name(read)),
               .max_nodes = options.max_nodes});
  });
  const std::string written = in_flags(".max_bytes", "a shorter --prompt", [&] {
    return options.format == "html"  ? pages::graph_html(recorded)
           : options.format == "dot" ? pages::graph_dot(recorded)
                                     : to_string(recorded);
  });
  if (out.empty())
    return say(written);
  xgrad::io::AtomicFile file(out);
  file.write(written);
  file.commit();
  say(fmt::format("{}: {}, {}{}\n", xgrad::printable_name(out),
                  counted(recorded.nodes.size(), "node", "nodes"),
                  format_si(static_cast<double>(written.size()), "B"),
                  recorded.wrong().empty() ? "" : "; differences contradict some gradients"));
}

void add_page_flags(CLI::App& app, PageOptions& options, const char* read, const char* out) {
  const auto keep = [&options](const std::string& given) { options.prompt = given; };
  app.add_option_function<std::string>("--prompt", keep, read);
  add_path(app, "--out", options.out, fmt::format("where to [{}]", out));
  add_overwrite(app, options.overwrite);
  add_threads(app, options.threads);
}

void check_ending(const std::string& out, const char* what, const char* ending) {
  if (!out.empty() && !out.ends_with(ending))
    throw UsageError(fmt::format("--out {}: a {}'s name ends in {}", out, what, ending));
}

}  // namespace

Command add_explain(CLI::App& program) {
  CLI::App& app = *program.add_subcommand(
      "explain", "write a page that shows a model's attention and its gradients");
  const auto options = std::make_shared<ExplainOptions>();
  options->out = "explain.html";
  add_path(app, "--checkpoint", options->checkpoint,
           "a checkpoint.safetensors, or a run's folder: all that it keeps (needed)", "FILE|DIR");
  add_page_flags(app, *options, "what the model reads [a piece of text]", "explain.html");
  add_data(app, "--data", options->data,
           "read its beginning instead [what the model was validated on]");
  add_number(app, "--length", options->length, {2, many},
             "characters of the text [64, or as many as the model can]");
  app.add_option("--layers", options->layers, "which layers, as 0,2-4 [all]")->type_name("LIST");
  app.add_option("--heads", options->heads, "which heads of each layer [all]")->type_name("LIST");
  add_number(app, "--position", options->position, {0, many},
             "the character that is looked at first [that of the largest |A dL/dA|]");
  add_number(app, "--max-mb", options->max_mb, {0, 1000, true},
             fmt::format("the largest page that is written [{}]", options->max_mb));
  return {&app, [options] {
            need("--checkpoint", options->checkpoint);
            if (options->prompt && (!options->data.empty() || options->length))
              throw UsageError(
                  "--prompt is all that the model reads: leave out --data and --length, or it");
            check_ending(options->out, "page", ".html");
            explain(*options);
            return 0;
          }};
}

Command add_graph(CLI::App& program) {
  CLI::App& app = *program.add_subcommand(
      "graph", "write a page that goes through a model's backward pass, step by step");
  const auto options = std::make_shared<GraphOptions>();
  add_checkpoint(app, options->checkpoint);
  add_page_flags(app, *options,
                 "what the loss is of, a few characters [what the model writes by itself]",
                 "graph.html; dot and text: standard output");
  app.add_option("--format", options->format, "a page, a graph for Graphviz, or tables [html]")
      ->type_name("NAME")
      ->check(CLI::IsMember({"html", "dot", "text"}).description(""));
  add_bool(app, "--decompose", options->decompose,
           "fused ops as the ops that they fuse: attention with its scores");
  add_number(app, "--max-nodes", options->max_nodes, {1, many},
             fmt::format("refuse a larger graph [{}]", options->max_nodes));
  return {&app, [options] {
            need("--checkpoint", options->checkpoint);
            const bool page = options->format == "html", dot = options->format == "dot";
            check_ending(options->out,
                         page  ? "page"
                         : dot ? "graph"
                               : "text",
                         page  ? ".html"
                         : dot ? ".dot"
                               : ".txt");
            graph(*options);
            return 0;
          }};
}

}  // namespace char_transformer
