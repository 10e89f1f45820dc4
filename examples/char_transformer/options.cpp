#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "command_line/command_line.hpp"
#include "manual.hpp"
#include "resume.hpp"

namespace char_transformer {
namespace {

using command_line::CommandLine;
using command_line::Flags;

/// Adds the flags of a recipe.
void add_recipe(Flags& flags, Recipe& recipe) {
  const auto add = [&]<class T>(const Field<T>& field) {
    std::string usual = fmt::format("{}", nano.*field.member);
    for (const Preset& preset : presets)
      if (const T its = preset.recipe.*field.member; its != nano.*field.member)
        usual += fmt::format(", {}: {}", preset.name, its);
    if (field.flag == std::string_view("--min-lr"))
      usual = "a tenth of --learning-rate";
    const std::string help = fmt::format("{} [{}]", field.help, usual);
    if constexpr (std::is_same_v<T, bool>)
      flags.boolean(field.flag, recipe.*field.member, help);
    else
      flags.number(field.flag, recipe.*field.member, field.range, help);
  };
  for (const FieldGroup& group : recipe_fields()) {
    flags.group(group.heading);
    for (const auto& field : group.fields)
      std::visit(add, field);
  }
}

/// Flags that are not given take the preset's value.
void apply_preset(const Flags& flags, TrainOptions& options) {
  const Recipe& preset = find_preset(options.preset).recipe;
  for_each_field([&](const auto& field) {
    if (flags.given(field.flag))
      options.given.insert(field.flag);
    else
      options.recipe.*field.member = preset.*field.member;
  });
  for (const char* const flag : {"--preset", "--seed", "--data", "--sample-prompt"})
    if (flags.given(flag))
      options.given.insert(flag);
  if (!flags.given("--min-lr"))
    options.recipe.min_lr = options.recipe.learning_rate / 10;
}

/// The numbers of a list as "0,2-4"; none if it is not such a list.
std::optional<std::vector<std::size_t>> read_list(const std::string& text) {
  constexpr std::size_t most = 1023;
  std::vector<std::size_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto read = [&](std::size_t& n) {
    const auto [stop, error] = std::from_chars(at, end, n);
    at = stop;
    return error == std::errc() && n <= most;
  };
  do {
    std::size_t first = 0, last = 0;
    if (!read(first))
      return std::nullopt;
    last = first;
    if (at != end && *at == '-' && (++at, !read(last) || last < first))
      return std::nullopt;
    for (std::size_t n = first; n <= last; ++n)
      if (std::ranges::find(numbers, n) == numbers.end())
        numbers.push_back(n);
  } while (at != end && *at++ == ',');
  return at == end && text.back() != ',' ? std::optional(numbers) : std::nullopt;
}

/// Which of the values that a message names come from the file of --config.
std::string origins(const Flags& flags, const Recipe& recipe, const std::string& message) {
  std::string said;
  for_each_field([&](const auto& field) {
    if (const std::string file = flags.file_of(field.flag);
        !file.empty() &&
        message.find(fmt::format("{} {}", field.flag, recipe.*field.member)) != std::string::npos)
      said += fmt::format("; {} is from {}", field.flag, file);
  });
  return said;
}

void add_overwrite(Flags& flags, bool& overwrite) {
  flags.boolean("--overwrite", overwrite, "replace the file if it is there");
}

void add_preset(Flags& flags, std::string& preset, const char* help) {
  std::vector<std::string> names;
  for (const Preset& known : presets)
    names.push_back(known.name);
  flags.choice("--preset", preset, names, help);
}

void add_threads(Flags& flags, std::size_t& threads) {
  flags.number("--threads", threads, {1, 1024},
               "threads; the numbers do not depend on them [all cores]");
}

void add_seed(Flags& flags, std::uint64_t& seed) {
  static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
  flags.number("--seed", seed, {0, 0xFFFFFFFF}, fmt::format("of the random numbers [{}]", seed));
}

}  // namespace

Command parse_command(int argc, const char* const* argv) {
  CommandLine line(
      "char_transformer", "Trains a character-level transformer, and lets it write.",
      "\nFor example:\n"
      "  char_transformer train --data shakespeare.txt --preset nano\n"
      "  char_transformer train --resume runs/000\n"
      "  char_transformer eval --checkpoint runs/000/checkpoint.safetensors\n"
      "  char_transformer sample --checkpoint runs/000/checkpoint.safetensors --prompt \"To "
      "be\"\n\n"
      "'char_transformer train --help' and so on list the flags.");

  constexpr const char* checkpoint_help = "a checkpoint.safetensors, or a run's folder (needed)";
  TrainOptions train;
  Flags train_flags = line.command("train", "train a model; it goes to a folder");
  train_flags.group("What and where");
  train_flags.path("--data", train.data, "FILE",
                   "any UTF-8 text; -: standard input [scenes that the program invents itself; "
                   "micro: names]");
  train_flags.path("--val-data", train.val_data, "FILE",
                   "another text to validate on [the last tenth of --data]");
  train_flags.path("--out", train.out, "DIR", "folder for the run [runs/000, runs/001, ...]");
  add_preset(train_flags, train.preset,
             "a recipe, which other flags change: nano, baby or micro [nano]");
  add_seed(train_flags, train.seed);
  add_threads(train_flags, train.threads);
  train_flags.boolean("--dry-run", train.dry_run,
                      "print what would be trained, and how long it would take; write nothing");
  train_flags.boolean("--overfit-one-batch", train.overfit_one_batch,
                      "check whether the model can learn one batch by heart; write nothing");
  train_flags.boolean("--profile", train.profile,
                      "print where ten steps spend their time; and DIR/trace.json");
  train_flags.boolean("--check-memory", train.check_memory,
                      "refuse to start what seems to need more memory than there is [true]");
  train_flags.group("What is shown");
  train_flags.boolean("-q,--quiet", train.quiet, "results, warnings and errors only");
  train_flags.boolean("-v,--verbose", train.verbose, "also each parameter, save and whole sample");
  train_flags.number("--sample-interval", train.sample_interval, {0, many},
                     "steps between samples of DIR/samples.jsonl; 0: none [each evaluation]");
  train_flags.text("--sample-prompt", train.sample_prompt, "TEXT",
                   "what they continue [a newline]");
  train_flags.group("Saving and going on");
  train_flags.optional_text(
      "--resume", train.resume, "[DIR|FILE|auto]",
      "go on with a run; auto: the latest unfinished one, or with --out the one there, if any");
  train_flags.boolean("--allow-changes", train.allow_changes,
                      "--resume with another learning rate, schedule or --eval-interval");
  train_flags.path("--init-from", train.init_from, "FILE|DIR",
                   "begin a new run with the weights of a checkpoint");
  train_flags.number("--save-interval", train.save_interval, {1, many},
                     "steps between saves [each evaluation]");
  train_flags.number("--keep", train.keep, {0, many}, "keep the last N saves, too [0]");
  train_flags.number(
      "--val-blocks", train.val_blocks, {0, many},
      fmt::format("blocks of the validation after the last step; 0: all [{}]", usual_val_blocks));
  add_recipe(train_flags, train.recipe);
  train_flags.passed_over("vocab_size");  // in config.json: the text decides it

  EvalOptions eval;
  Flags eval_flags = line.command("eval", "print a model's loss over a text");
  eval_flags.path("--checkpoint", eval.checkpoint, "FILE|DIR", checkpoint_help);
  eval_flags.path("--data", eval.data, "FILE",
                  "any UTF-8 text; -: standard input [what the model was trained on]");
  eval_flags.choice("--split", eval.split, {"train", "val", "all"},
                    "the part of it [all of --data, or without it val]");
  add_threads(eval_flags, eval.threads);

  SampleOptions sample;
  Flags sample_flags = line.command("sample", "let a model write");
  sample_flags.path("--checkpoint", sample.checkpoint, "FILE|DIR", checkpoint_help);
  sample_flags.group("What it continues, and how far");
  sample_flags.text("--prompt", sample.prompt, "TEXT", "what it continues [a newline]");
  sample_flags.path("--file", sample.file, "FILE", "a file with the prompt; -: standard input");
  sample_flags.boolean("--interactive", sample.interactive,
                       "each line of standard input is a prompt, until its end (Ctrl-D)");
  sample_flags.number("--tokens", sample.tokens, {0, many},
                      fmt::format("characters that it adds, at most [{}]", sample.tokens));
  sample_flags.number("--num-samples", sample.num_samples, {1, many},
                      "samples of each prompt, one after another [1]");
  sample_flags.text("--stop", sample.stop, "TEXT", "end where it has written this");
  sample_flags.group("How it draws, in this order");
  sample_flags.number(
      "--temperature", sample.temperature, {0, 100},
      fmt::format("0: always the likeliest; higher: wilder [{}]", sample.temperature));
  sample_flags.number("--top-k", sample.top_k, {1, many},
                      "draw among the k likeliest characters [all]");
  sample_flags.number("--top-p", sample.top_p, {0, 1, true, false},
                      "draw among the likeliest that have this probability together [1: all]");
  sample_flags.number("--min-p", sample.min_p, {0, 1},
                      "draw among those at least this many times as likely as the likeliest [0]");
  sample_flags.group("Flags");
  sample_flags.boolean("--show-probs", sample.show_probs,
                       "a table of the characters: probability, rank, what else could have been");
  add_seed(sample_flags, sample.seed);
  add_threads(sample_flags, sample.threads);

  ExplainOptions explain;
  std::string prompt, layers, heads;
  Flags explain_flags =
      line.command("explain", "write a page that shows a model's attention and its gradients");
  explain_flags.path("--checkpoint", explain.checkpoint, "FILE|DIR",
                     "a checkpoint.safetensors, or a run's folder: all that it keeps (needed)");
  explain_flags.text("--prompt", prompt, "TEXT", "what the model reads [a piece of text]");
  explain_flags.path("--data", explain.data, "FILE",
                     "read its beginning instead [what the model was validated on]");
  explain_flags.path("--out", explain.out, "FILE", fmt::format("where to [{}]", explain.out));
  add_overwrite(explain_flags, explain.overwrite);
  explain_flags.number("--length", explain.length, {2, many},
                       "characters of the text [64, or as many as the model can]");
  explain_flags.text("--layers", layers, "LIST", "which layers, as 0,2-4 [all]");
  explain_flags.text("--heads", heads, "LIST", "which heads of each layer [all]");
  explain_flags.number("--position", explain.position, {0, many},
                       "the character that is looked at first [that of the largest |A dL/dA|]");
  explain_flags.number("--max-mb", explain.max_mb, {0, 1000, true},
                       fmt::format("the largest page that is written [{}]", explain.max_mb));
  add_threads(explain_flags, explain.threads);

  GraphOptions graph;
  std::string graph_prompt;
  Flags graph_flags =
      line.command("graph", "write a page that goes through a model's backward pass, step by step");
  graph_flags.path("--checkpoint", graph.checkpoint, "FILE|DIR", checkpoint_help);
  graph_flags.text("--prompt", graph_prompt, "TEXT",
                   "what the loss is of, a few characters [what the model writes by itself]");
  graph_flags.choice("--format", graph.format, {"html", "dot", "text"},
                     "a page, a graph for Graphviz, or tables [html]");
  graph_flags.path("--out", graph.out, "FILE",
                   "where to [graph.html; dot and text: standard output]");
  add_overwrite(graph_flags, graph.overwrite);
  graph_flags.boolean("--decompose", graph.decompose,
                      "fused ops as the ops that they fuse: attention with its scores");
  graph_flags.number("--max-nodes", graph.max_nodes, {1, many},
                     fmt::format("refuse a larger graph [{}]", graph.max_nodes));
  add_threads(graph_flags, graph.threads);

  ExportOptions exported;
  Flags export_flags =
      line.command("export", "write a model's weights to a file that PyTorch users open");
  export_flags.path("--checkpoint", exported.checkpoint, "FILE|DIR", checkpoint_help);
  export_flags.path("--out", exported.out, "FILE", fmt::format("where to [{}]", exported.out));
  add_overwrite(export_flags, exported.overwrite);

  ImportOptions imported;
  Flags import_flags =
      line.command("import", "make a checkpoint of a state dict that PyTorch users saved");
  import_flags.path("--state", imported.state, "FILE",
                    "a safetensors file with nanoGPT's names (needed)");
  import_flags.path("--out", imported.out, "FILE", fmt::format("where to [{}]", imported.out));
  add_overwrite(import_flags, imported.overwrite);
  import_flags.path("--data", imported.data, "FILE",
                    "the text that it was trained on, for its characters [the file's metadata]");
  import_flags.number("--n-head", imported.n_head, {1, 1024},
                      "attention heads of a block [the file's metadata]");

  ReportOptions report;
  Flags report_flags = line.command("report", "write DIR/report.html: what a run has left");
  report_flags.paths("runs", report.runs, "the folder of each run");
  add_overwrite(report_flags, report.overwrite);

  CompareOptions compare;
  Flags compare_flags = line.command("compare", "lay runs over each other: a table and a chart");
  compare_flags.paths("runs", compare.runs, "the folder of each run, or its metrics.jsonl");
  compare_flags.path("--out", compare.out, "FILE", "also write a page, FILE.html, with all curves");
  add_overwrite(compare_flags, compare.overwrite);

  CorpusOptions corpus;
  Flags corpus_flags = line.command("corpus", "print what is trained on without --data");
  add_preset(corpus_flags, corpus.preset, "micro: names; the others: scenes [nano]");

  std::string shell;
  Flags completion_flags =
      line.command("completion", "print what makes a shell complete this program's command lines");
  completion_flags.argument("SHELL", shell, {"bash", "zsh", "fish"}, "bash, zsh or fish");
  Flags man_flags = line.command("man", "print the manual page, for man -l");

  if (const auto help = line.parse(argc, argv))
    return Help{*help};
  if (completion_flags.given())
    return Help{line.completion(shell)};
  if (man_flags.given())
    return Help{line.man_page(manual())};

  for (std::string* const text :
       {&train.data, &train.val_data, &eval.data, &explain.data, &imported.data})
    if (*text == "-")
      *text = standard_input;

  if (train_flags.given()) {
    apply_preset(train_flags, train);
    train.program = argv[0];
    if (!train.init_from.empty() && train.resumes_by_name())
      line.refuse(fmt::format(
          "--init-from begins a new run, and --resume {} goes on with one: leave one of them out",
          *train.resume));
    if (train.quiet && train.verbose)
      line.refuse("-q and -v contradict each other: leave one of them out");
    // Values, for a run's config.json says of all flags that it has what it would have without
    // them.
    for (const auto& [flag, set] : {std::pair("--resume", train.resume.has_value()),
                                    {"--out", !train.out.empty()},
                                    {"--save-interval", train.save_interval.has_value()},
                                    {"--keep", train.keep.has_value()},
                                    {"--profile", train.profile},
                                    {"--sample-interval", train.sample_interval.has_value()},
                                    {"--sample-prompt", !train.sample_prompt.empty()}})
      if (train.overfit_one_batch && set)
        line.refuse(
            fmt::format("--overfit-one-batch is a check that keeps nothing: leave {} out", flag));
    const bool from_file = train.resume || !train.init_from.empty();
    if (auto wrong = contradiction(train.recipe); wrong && !from_file)
      line.refuse(*wrong + origins(train_flags, train.recipe, *wrong));
    if (line.prints_configuration()) {
      train = resolved(train);
      return Help{line.configuration()};
    }
    train.configuration_file = line.configuration_file();
    return train;
  }
  if (line.prints_configuration())
    return Help{line.configuration()};
  const auto need = [&line](const char* flag, const std::string& value) {
    if (value.empty())
      line.refuse(fmt::format("{} FILE is needed", flag));
  };
  if (eval_flags.given()) {
    need("--checkpoint", eval.checkpoint);
    return eval;
  }
  if (sample_flags.given()) {
    need("--checkpoint", sample.checkpoint);
    if (!sample.file.empty() && !sample.prompt.empty())
      line.refuse("--prompt and --file are both prompts: leave one of them out");
    if (sample.interactive && (!sample.file.empty() || !sample.prompt.empty()))
      line.refuse("--interactive reads prompts from standard input: leave --prompt and --file out");
    return sample;
  }
  if (explain_flags.given()) {
    need("--checkpoint", explain.checkpoint);
    if (explain_flags.given("--prompt"))
      explain.prompt = prompt;
    if (explain.prompt && (!explain.data.empty() || explain.length))
      line.refuse("--prompt is all that the model reads: leave out --data and --length, or it");
    if (!explain.out.ends_with(".html"))
      line.refuse(fmt::format("--out {}: a page's name ends in .html", explain.out));
    const auto read = [&](const char* flag, const std::string& list) {
      if (!explain_flags.given(flag))
        return std::vector<std::size_t>();
      const auto numbers = read_list(list);
      if (!numbers)
        line.refuse(fmt::format("{} '{}': a list of numbers up to 1023, as 0,2-4, is expected",
                                flag, list));
      return *numbers;
    };
    explain.layers = read("--layers", layers);
    explain.heads = read("--heads", heads);
    return explain;
  }
  if (graph_flags.given()) {
    need("--checkpoint", graph.checkpoint);
    if (graph_flags.given("--prompt"))
      graph.prompt = graph_prompt;
    const bool page = graph.format == "html", dot = graph.format == "dot";
    if (const char* const ending = page  ? ".html"
                                   : dot ? ".dot"
                                         : ".txt";
        !graph.out.empty() && !graph.out.ends_with(ending))
      line.refuse(fmt::format("--out {}: {} name ends in {}", graph.out,
                              page  ? "a page's"
                              : dot ? "a graph's"
                                    : "a text's",
                              ending));
    return graph;
  }
  if (export_flags.given()) {
    need("--checkpoint", exported.checkpoint);
    return exported;
  }
  if (import_flags.given()) {
    need("--state", imported.state);
    return imported;
  }
  if (report_flags.given())
    return report;
  if (compare_flags.given())
    return compare;
  return corpus;
}

}  // namespace char_transformer
