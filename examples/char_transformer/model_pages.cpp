// The attention of a checkpoint, or of all that a run's folder holds, as a page.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/pages/attention.hpp>

#include "command.hpp"
#include "output.hpp"
#include "prompt.hpp"
#include "run_dir.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

struct ExplainOptions {
  std::string checkpoint;             ///< a file, or a run's folder
  std::optional<std::string> prompt;  ///< none: a piece of text
  std::string data;                   ///< empty: what the checkpoint was validated on
  std::string out = "explain.html";
  bool overwrite = false;
  std::optional<std::size_t> length;
  std::vector<std::size_t> layers, heads;  ///< empty: all
  std::optional<std::size_t> position;
  double max_mb = 20;  ///< of the page
  std::size_t threads = 0;
};

namespace fs = std::filesystem;
namespace text = xgrad::text;
using xgrad::FileError;
using xgrad::ValueError;

constexpr std::size_t usual_length = 64;

struct Saved {
  std::string path;
  std::string name;  ///< "after 300 steps (best)"
};

/// The checkpoints of a run's folder by their steps, or the one file.
std::vector<Saved> find_checkpoints(const std::string& path) {
  const auto after = [](std::uint64_t step) {
    return fmt::format("after {}", xgrad::counted(step, "step", "steps"));
  };
  std::error_code none;
  if (!fs::is_directory(path, none))
    return {{path, after(step_of(path))}};
  std::map<std::uint64_t, Saved> by_step;
  for (const auto& entry : fs::directory_iterator(path, none)) {
    const std::string name = entry.path().filename().string(), file = entry.path().string();
    if (!is_checkpoint_name(name))
      continue;
    const std::uint64_t step = step_of(file);
    Saved& saved = by_step.try_emplace(step, Saved{file, after(step)}).first->second;
    saved.name += name == best_name ? " (best)" : name == checkpoint_name ? " (last)" : "";
  }
  if (by_step.empty())
    throw FileError(fmt::format("{}: the folder holds no checkpoint", path));
  std::vector<Saved> all;
  for (auto& [step, saved] : by_step)
    all.push_back(std::move(saved));
  return all;
}

/// What the model reads, and the character that follows each; none for -100.
struct Piece {
  std::vector<std::int64_t> ids, targets;
  std::string name;
};

Piece piece_of_prompt(const std::string& prompt, const text::Characters& characters,
                      std::size_t block_size) {
  std::vector<std::int64_t> ids = list_of(encode_given("--prompt", prompt, characters));
  if (ids.size() < 2 || ids.size() > block_size)
    throw ValueError(fmt::format("--prompt has {}; this model takes 2 to {}",
                                 xgrad::counted(ids.size(), "character", "characters"),
                                 block_size));
  Piece piece{ids, {ids.begin() + 1, ids.end()}, "the prompt"};
  piece.targets.push_back(-100);  // nobody knows what follows
  return piece;
}

/// The first characters of the file --data, or of the text that the model was validated on.
Piece read_piece(const ExplainOptions& options, const std::string& checkpoint, const Notes& notes,
                 std::size_t block_size) {
  if (options.length && (*options.length < 2 || *options.length > block_size))
    throw ValueError(fmt::format("--length {}: this model takes 2 to {} characters",
                                 *options.length, block_size));
  text::Ids text;
  std::string name = options.data;
  if (name.empty()) {
    const Source source = open_text("", "", checkpoint, notes);
    text = source.ids.validation;
    name = source.validation_name;
  } else {
    text = open_source(name, "", "", notes.characters).all;
  }
  const std::size_t most = std::min(block_size, text.size() - 1);
  const std::size_t length = options.length.value_or(std::min(usual_length, most));
  if (length > most || length < 2)
    throw ValueError(fmt::format(
        "{}: {} too few for --length {}: each needs one that follows it", name,
        text.size() == 1 ? "1 character is" : fmt::format("{} characters are", text.size()),
        std::max<std::size_t>(length, 2)));
  Piece piece{std::vector<std::int64_t>(length), std::vector<std::int64_t>(length),
              fmt::format("the first {} characters of {}", length, name)};
  text.copy(0, length, piece.ids.data());
  text.copy(1, length, piece.targets.data());
  return piece;
}

/// ValueError unless all of a flag's numbers are below `count`.
void check_numbers(const char* flag, const char* what, const std::vector<std::size_t>& list,
                   std::size_t count) {
  for (const std::size_t n : list)
    if (n >= count)
      throw ValueError(fmt::format("{} {}: {} 0 to {}", flag, n, what, count - 1));
}

/// ValueError for a page that would be too large, before anything is computed.
void check_size(const ExplainOptions& options, const xgrad::nn::GPTConfig& config,
                std::size_t length, std::size_t checkpoints) {
  const auto chosen = [](const std::vector<std::size_t>& list, std::size_t all) {
    return list.empty() ? all : list.size();
  };
  const std::size_t heads =
      checkpoints * chosen(options.layers, config.n_layer) * chosen(options.heads, config.n_head);
  const double megabytes = static_cast<double>(heads) *
                           static_cast<double>(xgrad::pages::attention_head_bytes(
                               length, length, config.n_embd / config.n_head, true)) /
                           1e6;
  if (megabytes > options.max_mb)
    throw ValueError(fmt::format(
        "the page would have {:.3g} MB, and above {:.3g} MB it is of little use: --length, "
        "--layers and --heads make it smaller{}; --max-mb allows it",
        megabytes, options.max_mb,
        checkpoints > 1 ? ", and one checkpoint instead of the folder" : ""));
}

void explain(const ExplainOptions& options) {
  const std::vector<Saved> checkpoints = find_checkpoints(options.checkpoint);
  std::vector<std::string> read = {options.data};
  for (const Saved& saved : checkpoints)
    read.push_back(saved.path);
  check_output(options.out, options.overwrite, read);
  xgrad::pages::AttentionOptions page{.title = fmt::format("Attention of {}", options.checkpoint),
                                      .layers = options.layers,
                                      .heads = options.heads,
                                      .position = options.position,
                                      .max_bytes = std::numeric_limits<std::size_t>::max()};
  std::vector<xgrad::pages::AttentionRun> runs;
  Piece piece;
  text::Characters characters;
  xgrad::nn::GPTConfig config;
  for (const Saved& saved : checkpoints) {
    const TrainedModel trained = load_trained_model(saved.path);
    const xgrad::nn::GPT& model = trained.model;
    if (runs.empty()) {
      config = model.config;
      characters = trained.notes.characters;
      check_numbers("--layers", "this model has layers", options.layers, config.n_layer);
      check_numbers("--heads", "this model has heads", options.heads, config.n_head);
      piece = options.prompt ? piece_of_prompt(*options.prompt, characters, config.block_size)
                             : read_piece(options, saved.path, trained.notes, config.block_size);
      check_size(options, config, piece.ids.size(), checkpoints.size());
      if (options.position)
        check_numbers("--position", "this text has positions", {*options.position},
                      piece.ids.size());
      for (const char32_t c : characters.list())
        page.classes.push_back(text::encode_utf8({&c, 1}));
      for (const std::int64_t id : piece.ids)
        page.tokens.push_back(page.classes[static_cast<std::size_t>(id)]);
      for (const std::int64_t id : piece.targets)  // one that nobody knows is beyond all classes
        page.targets.push_back(id < 0 ? page.classes.size() : static_cast<std::size_t>(id));
    } else if (trained.notes.characters != characters || model.config.n_layer != config.n_layer ||
               model.config.n_head != config.n_head || model.config.n_embd != config.n_embd) {
      throw FileError(fmt::format("{}: a checkpoint of another model than {}", saved.path,
                                  checkpoints.front().path));
    }
    check_loss(model, as_row(piece.ids), as_row(piece.targets), saved.path);
    runs.push_back(xgrad::pages::trace_attention(
        [&] { return model.loss(as_row(piece.ids), as_row(piece.targets)); }, page));
    runs.back().name = saved.name;
  }
  page.about =
      fmt::format("{}, {} each, on {}. The loss is the mean of −log p of the next character.",
                  xgrad::counted(config.n_layer, "layer", "layers"),
                  xgrad::counted(config.n_head, "head", "heads"), piece.name);
  xgrad::pages::write_attention_html(options.out, runs, page);
  say(fmt::format("{}: {}, {} each, {}, {}, {:.1f} MB\n", options.out,
                  xgrad::counted(runs.front().layers.size(), "layer", "layers"),
                  xgrad::counted(runs.front().layers.front().heads.size(), "head", "heads"),
                  xgrad::counted(piece.ids.size(), "character", "characters"),
                  xgrad::counted(runs.size(), "checkpoint", "checkpoints"),
                  static_cast<double>(fs::file_size(options.out)) / 1e6));
}

/// The numbers of a list as "0,2-4".
std::vector<std::size_t> read_list(const char* flag, const std::string& text) {
  constexpr std::size_t most = 1023;
  std::vector<std::size_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto read = [&] {
    std::size_t n = 0;
    const auto [stop, error] = std::from_chars(at, end, n);
    at = stop;
    if (error != std::errc() || n > most)
      at = nullptr;
    return n;
  };
  while (at != nullptr) {
    const std::size_t first = read();
    const std::size_t last = at != nullptr && at != end && *at == '-' ? (++at, read()) : first;
    for (std::size_t n = first; at != nullptr && n <= last; ++n)
      if (std::ranges::find(numbers, n) == numbers.end())
        numbers.push_back(n);
    if (at == end && last >= first)
      return numbers;
    at = at != nullptr && *at == ',' && last >= first ? at + 1 : nullptr;
  }
  throw UsageError(
      fmt::format("{} '{}': a list of numbers up to 1023, as 0,2-4, is expected", flag, text));
}

}  // namespace

Command add_explain(CLI::App& program) {
  CLI::App& app = *program.add_subcommand(
      "explain", "write a page that shows a model's attention and its gradients");
  const auto options = std::make_shared<ExplainOptions>();
  const auto lists = std::make_shared<std::pair<std::string, std::string>>();
  add_path(app, "--checkpoint", options->checkpoint,
           "a checkpoint.safetensors, or a run's folder: all that it keeps (needed)", "FILE|DIR");
  app.add_option_function<std::string>(
      "--prompt", [options](const std::string& text) { options->prompt = text; },
      "what the model reads [a piece of text]");
  add_data(app, "--data", options->data,
           "read its beginning instead [what the model was validated on]");
  add_path(app, "--out", options->out, fmt::format("where to [{}]", options->out));
  add_overwrite(app, options->overwrite);
  add_number(app, "--length", options->length, {2, many},
             "characters of the text [64, or as many as the model can]");
  app.add_option("--layers", lists->first, "which layers, as 0,2-4 [all]")->type_name("LIST");
  app.add_option("--heads", lists->second, "which heads of each layer [all]")->type_name("LIST");
  add_number(app, "--position", options->position, {0, many},
             "the character that is looked at first [that of the largest |A dL/dA|]");
  add_number(app, "--max-mb", options->max_mb, {0, 1000, true},
             fmt::format("the largest page that is written [{}]", options->max_mb));
  add_threads(app, options->threads);
  return {&app, [options, lists, &app] {
            need("--checkpoint", options->checkpoint);
            if (options->prompt && (!options->data.empty() || options->length))
              throw UsageError(
                  "--prompt is all that the model reads: leave out --data and --length, or it");
            if (!options->out.ends_with(".html"))
              throw UsageError(fmt::format("--out {}: a page's name ends in .html", options->out));
            if (app.count("--layers") > 0)
              options->layers = read_list("--layers", lists->first);
            if (app.count("--heads") > 0)
              options->heads = read_list("--heads", lists->second);
            explain(*options);
            return 0;
          }};
}

}  // namespace char_transformer
