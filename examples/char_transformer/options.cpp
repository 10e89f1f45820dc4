#include "options.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "command_line/command_line.hpp"

namespace char_transformer {
namespace {

using command_line::CommandLine;
using command_line::Flags;

/// Adds the flags of a recipe.
void add_recipe(Flags& flags, Recipe& recipe) {
  const auto add = [&]<class T>(const Field<T>& field) {
    const T usual = nano.*field.member, babys = baby.*field.member;
    const std::string help = field.flag == std::string_view("--min-lr")
                                 ? fmt::format("{} [a tenth of --learning-rate]", field.help)
                             : usual == babys
                                 ? fmt::format("{} [{}]", field.help, usual)
                                 : fmt::format("{} [{}, baby: {}]", field.help, usual, babys);
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
  const Recipe& preset = options.preset == "baby" ? baby : nano;
  for_each_field([&](const auto& field) {
    if (flags.given(field.flag))
      options.given.insert(field.flag);
    else
      options.recipe.*field.member = preset.*field.member;
  });
  for (const char* const flag : {"--preset", "--seed", "--data"})
    if (flags.given(flag))
      options.given.insert(flag);
  if (!flags.given("--min-lr"))
    options.recipe.min_lr = options.recipe.learning_rate / 10;
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

  TrainOptions train;
  Flags train_flags = line.command("train", "train a model; it goes to a folder");
  train_flags.group("What and where");
  train_flags.path("--data", train.data, "FILE",
                   "any UTF-8 text [scenes that the program invents itself]");
  train_flags.path("--out", train.out, "DIR", "folder for the run [runs/000, runs/001, ...]");
  train_flags.choice("--preset", train.preset, {"nano", "baby"},
                     "a recipe, which other flags change [nano]");
  add_seed(train_flags, train.seed);
  add_threads(train_flags, train.threads);
  train_flags.boolean("--profile", train.profile,
                      "print where ten steps spend their time; and DIR/trace.json");
  train_flags.boolean("--check-memory", train.check_memory,
                      "refuse to start what seems to need more memory than there is [true]");
  train_flags.group("Saving and going on");
  train_flags.optional_text(
      "--resume", train.resume, "[DIR|FILE|auto]",
      "go on with a run; auto: that in --out, or the latest unfinished one, or else a new one");
  train_flags.path("--init-from", train.init_from, "FILE",
                   "begin a new run with the weights of a checkpoint");
  train_flags.number("--save-interval", train.save_interval, {1, many},
                     "steps between saves [each evaluation]");
  train_flags.number("--keep", train.keep, {0, many}, "keep the last N saves, too [0]");
  add_recipe(train_flags, train.recipe);

  EvalOptions eval;
  Flags eval_flags = line.command("eval", "print a model's loss over a whole validation split");
  eval_flags.path("--checkpoint", eval.checkpoint, "FILE", "a checkpoint.safetensors (needed)");
  eval_flags.path("--data", eval.data, "FILE", "any UTF-8 text [what the model was trained on]");
  add_threads(eval_flags, eval.threads);

  SampleOptions sample;
  Flags sample_flags = line.command("sample", "let a model write");
  sample_flags.path("--checkpoint", sample.checkpoint, "FILE", "a checkpoint.safetensors (needed)");
  sample_flags.text("--prompt", sample.prompt, "TEXT", "what it continues [a newline]");
  sample_flags.number("--tokens", sample.tokens, {0, many},
                      fmt::format("characters that it adds [{}]", sample.tokens));
  sample_flags.number(
      "--temperature", sample.temperature, {0, 100},
      fmt::format("0: always the likeliest; higher: wilder [{}]", sample.temperature));
  sample_flags.number("--top-k", sample.top_k, {1, many},
                      "draw among the k likeliest characters [all]");
  add_seed(sample_flags, sample.seed);
  add_threads(sample_flags, sample.threads);

  ExportOptions exported;
  Flags export_flags =
      line.command("export", "write a model's weights to a file that PyTorch users open");
  export_flags.path("--checkpoint", exported.checkpoint, "FILE",
                    "a checkpoint.safetensors (needed)");
  export_flags.path("--out", exported.out, "FILE", fmt::format("where to [{}]", exported.out));

  ImportOptions imported;
  Flags import_flags =
      line.command("import", "make a checkpoint of a state dict that PyTorch users saved");
  import_flags.path("--state", imported.state, "FILE",
                    "a safetensors file with nanoGPT's names (needed)");
  import_flags.path("--out", imported.out, "FILE", fmt::format("where to [{}]", imported.out));
  import_flags.path("--data", imported.data, "FILE",
                    "the text that it was trained on, for its characters [the file's metadata]");
  import_flags.number("--n-head", imported.n_head, {1, 1024},
                      "attention heads of a block [the file's metadata]");

  ReportOptions report;
  Flags report_flags = line.command("report", "write DIR/report.html: what a run has left");
  report_flags.paths("runs", report.runs, "the folder of each run");

  CompareOptions compare;
  Flags compare_flags = line.command("compare", "lay runs over each other: a table and a chart");
  compare_flags.paths("runs", compare.runs, "the folder of each run, or its metrics.jsonl");
  compare_flags.path("--out", compare.out, "FILE", "also write a page, FILE.html, with all curves");

  line.command("corpus",
               "print the scenes that are trained on "
               "without --data");

  if (const auto help = line.parse(argc, argv))
    return Help{*help};

  if (train_flags.given()) {
    apply_preset(train_flags, train);
    train.program = argv[0];
    if (!train.init_from.empty() && train.resumes_by_name())
      line.refuse(fmt::format(
          "--init-from begins a new run, and --resume {} goes on with one: leave one of them out",
          *train.resume));
    const bool from_file = train.resume || !train.init_from.empty();
    if (const auto wrong = contradiction(train.recipe); wrong && !from_file)
      line.refuse(*wrong);
    return train;
  }
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
    return sample;
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
  return CorpusOptions();
}

}  // namespace char_transformer
