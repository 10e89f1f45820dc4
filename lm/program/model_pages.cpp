// Pages about a trained model: its attention (explain, viz/attention.hpp) and the graph of one
// loss (graph, viz/graph.hpp).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/viz/attention.hpp>
#include <xgrad/viz/graph.hpp>

#include "checkpoint_info.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "run_dir.hpp"
#include "sample.hpp"

namespace program {
namespace {

namespace fs = std::filesystem;
namespace viz = xgrad::viz;
namespace lm = xgrad::lm;

/// The ids of --prompt, from 2 to the model's maximum.
std::vector<std::int64_t> ids_of_prompt(const std::string& prompt, const Vocabulary& known,
                                        std::size_t most) {
  std::vector<std::int64_t> ids = known.in_template(encode("--prompt", prompt, known));
  if (ids.size() < 2 || ids.size() > most)
    fail<ValueError>("--prompt has {}; this model takes 2 to {}", known.count(ids.size()), most);
  return ids;
}

/// The ids that the model reads, and the id that follows each; -100 if it is unknown.
struct Piece {
  std::vector<std::int64_t> ids;
  std::string name;
};

/// The prompt, or the beginning of the text --data or of the text that the model was validated on.
Piece read_piece(const ExplainOptions& options, const TrainedModel& trained) {
  const std::size_t block_size = trained.model.config.block_size;
  if (options.prompt) {
    auto ids = ids_of_prompt(*options.prompt, trained.info.vocabulary, block_size);
    ids.push_back(-100);
    return {std::move(ids), "the prompt"};
  }
  const bool given = !options.data.empty();
  const Dataset dataset =
      given ? open_dataset(options.data, "", "", trained.info.vocabulary, 0, false)
            : open_run_dataset("", "", trained.path, trained.info);
  const lm::Ids& ids = given ? dataset.all : dataset.ids.validation;
  const std::string& name = given ? dataset.name : dataset.validation_name;
  const std::size_t most = std::min(block_size, std::max<std::size_t>(ids.size(), 1) - 1);
  const std::size_t length = options.length.value_or(std::clamp<std::size_t>(most, 2, 64));
  check<ValueError>(length <= most, "--length {}: this model and {} allow {}", length, name, most);
  std::vector<std::int64_t> list(length + 1);
  ids.copy(0, length + 1, list.data());
  return {std::move(list),
          fmt::format("the first {} of {}", trained.info.vocabulary.count(length), name)};
}

/// The loss on ids; all but the first are targets.  FileError if it is not finite: there is nothing
/// to explain.
xgrad::Tensor loss_on(const TrainedModel& trained, std::span<const std::int64_t> ids) {
  const xgrad::Tensor loss =
      trained.model.loss(as_row(ids.first(ids.size() - 1)), as_row(ids.subspan(1)));
  if (!std::isfinite(loss.item()))
    fail<FileError>("{}: the model's loss on this text is {}", trained.path, loss.item());
  return loss;
}

}  // namespace

void explain(const ExplainOptions& options) {
  need_run(options.checkpoint);
  if (options.prompt && (!options.data.empty() || options.length))
    throw UsageError("--prompt is the whole text: omit --data and --length, or it");
  viz::AttentionOptions page{.title = fmt::format("Attention of {}", options.checkpoint),
                             .layers = options.layers,
                             .heads = options.heads,
                             .position = options.position,
                             .max_bytes = static_cast<std::size_t>(1e6 * options.max_mb)};
  std::vector<std::string> read = files_of(options.checkpoint, options.base);
  read.push_back(options.data);
  check_output(options.out, options.overwrite, read);
  const TrainedModel trained = load_trained_model(options.checkpoint, options.base, options.raw);
  const Piece piece = read_piece(options, trained);
  const auto ids = std::span(piece.ids);
  const Vocabulary& vocabulary = trained.info.vocabulary;
  for (xgrad::Size id = 0; id < trained.model.config.vocab_size; ++id)
    page.classes.push_back(vocabulary.piece(id));
  page.tokens = vocabulary.labels(ids);
  page.tokens.pop_back();                       // a target that is not read
  for (const std::int64_t id : ids.subspan(1))  // unknown ids count as targets out of range
    page.targets.push_back(id < 0 ? page.classes.size() : static_cast<std::size_t>(id));
  page.about =
      fmt::format("{}, {} each, on {}. The loss is the mean of −log p of the next {}.",
                  format_count(trained.model.config.n_layer, "layer"),
                  format_count(trained.model.config.n_head, "head"), piece.name, vocabulary.unit());
  if (vocabulary.pairs())
    page.about += fmt::format(" The text: {}",
                              xgrad::printable_name(vocabulary.decode(ids.first(ids.size() - 1))));
  auto run = viz::trace_attention([&] { return loss_on(trained, ids); }, page);
  run.name = trained.about;
  try {
    viz::write_attention_html(options.out, run, page);
  } catch (const viz::PageTooLarge&) {
    fail<ValueError>(
        "the page would have more than {:.3g} MB, and would be of little use: --length, --layers "
        "and --heads make it smaller; --max-mb allows it",
        options.max_mb);
  }
  say(fmt::format("{}: {}\n", options.out, vocabulary.count(page.tokens.size())));
}

/// The ids that the model writes without a prompt, always the likeliest.
static std::vector<std::int64_t> own_text(const TrainedModel& trained) {
  xgrad::Generator generator(0);
  const xgrad::Indices written = trained.model.generate(
      as_row(encode_prompt("", "", trained.info.vocabulary)),
      std::min<xgrad::Size>(8, trained.model.config.block_size), generator, {.temperature = 0});
  return {written.data(), written.data() + written.numel()};
}

void graph(const GraphOptions& options) {
  need_run(options.checkpoint);
  const bool html = options.format == "html";
  const std::string out = options.out.empty() && html ? "graph.html" : options.out;
  if (!out.empty())
    check_output(out, options.overwrite, files_of(options.checkpoint, options.base));
  const TrainedModel trained = load_trained_model(options.checkpoint, options.base, options.raw);
  const Vocabulary& vocabulary = trained.info.vocabulary;
  const std::vector<std::int64_t> ids =
      options.prompt
          ? ids_of_prompt(*options.prompt, vocabulary, trained.model.config.block_size + 1)
          : own_text(trained);
  const auto loss = [&] {
    std::optional<xgrad::Decompose> by_ordinary_ops;
    if (options.decompose)
      by_ordinary_ops.emplace();
    return loss_on(trained, ids);
  };
  const std::string read =
      fmt::format("{}", fmt::join(vocabulary.labels(ids), vocabulary.pairs() ? "|" : ""));
  std::string written;
  std::size_t nodes = 0;
  try {
    const auto recorded = viz::run_graph(
        loss, {.names = xgrad::nn::named_parameters(trained.model),
               .title = fmt::format("The loss on \"{}\"", xgrad::printable_name(read)),
               .max_nodes = options.max_nodes});
    nodes = recorded.nodes.size();
    written = html                      ? viz::graph_html(recorded)
              : options.format == "dot" ? viz::graph_dot(recorded)
                                        : to_string(recorded);
  } catch (const ValueError& error) {
    const std::string why = reason(error);
    if (why.find(".max_") == why.npos)  // a member's name, for which there are flags
      throw;
    fail<ValueError>("{}: it takes a shorter --prompt, or a larger --max-nodes",
                     why.substr(0, why.find(':')));
  }
  if (out.empty())
    return say(written);
  xgrad::io::write_file(out, written);
  say(fmt::format("{}: {}, {}\n", out, format_count(nodes, "node"),
                  format_si(static_cast<double>(written.size()), "B")));
}

}  // namespace program
