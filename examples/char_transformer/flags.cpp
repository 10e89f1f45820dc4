// Recipes, and the flags of `train`.

#include <fmt/format.h>

#include <algorithm>

#include "output.hpp"
#include "training.hpp"

namespace char_transformer {

const Preset& find_preset(std::string_view name) {
  const auto* const found = std::ranges::find(presets, name, &Preset::name);
  return found == presets.end() ? presets.front() : *found;
}

xgrad::io::JsonObject to_json(const TrainOptions& options, std::size_t vocab_size) {
  xgrad::io::JsonObject config{{"preset", options.preset}};
  if (const std::size_t size = options.vocab_size.value_or(vocab_size); size > 0)
    config.emplace_back("vocab_size", size);
  for_each_field([&](const Field& field, auto member) {
    config.emplace_back(key_of(field.flag), options.recipe.*member);
  });
  if (options.lora_rank > 0)
    config.emplace_back("lora_rank", options.lora_rank);
  config.emplace_back("seed", options.seed);
  return config;
}

Recipe read_recipe(const xgrad::io::Json& config, const std::string& path, bool sizes_only) {
  Recipe recipe;
  for_each_field([&]<class T>(const Field& field, T Recipe::*member) {
    if (sizes_only && field.keeps != Keeps::size)
      return;
    const std::optional<T> value = value_in<T>(config, field.flag, field.range);
    if (!value)
      fail<FileError>(
          "{}: its configuration has no '{}', or one that {} does not take: it does not say {}",
          path, key_of(field.flag), field.flag,
          sizes_only ? "what model it is" : "how it is trained");
    recipe.*member = *value;
  });
  return recipe;
}

void check_recipe(const Recipe& r) {
  if (r.n_embd % r.n_head != 0)
    fail<UsageError>("--n-embd {} is not divisible by --n-head {}", r.n_embd, r.n_head);
  if (r.min_lr > r.learning_rate)
    fail<UsageError>("--min-lr {} is above --learning-rate {}", r.min_lr, r.learning_rate);
  if (r.warmup_iters > r.lr_decay_iters)
    fail<UsageError>("--warmup-iters {} is beyond --lr-decay-iters {}", r.warmup_iters,
                     r.lr_decay_iters);
}

namespace {

/// Flags that are not given take the preset's value.  UsageError for those that do not go together.
void complete(const CLI::App& app, TrainOptions& train) {
  for (const CLI::Option* const option : app.get_options())
    if (option->count() > 0)
      train.given.insert("--" + option->get_lnames().front());
  const Recipe& preset = find_preset(train.preset).recipe;
  for_each_field([&](const Field& field, auto member) {
    if (train.given.count(field.flag) == 0)
      train.recipe.*member = preset.*member;
  });
  Recipe& recipe = train.recipe;
  if (train.given.count("--min-lr") == 0)  // 0.0003 of 0.003, and not the double next to it
    recipe.min_lr = std::strtod(fmt::format("{:.15g}", recipe.learning_rate / 10).c_str(), nullptr);
  if (train.given.count("--lr-decay-iters") == 0)
    recipe.lr_decay_iters = recipe.max_iters;
  if (train.given.count("--warmup-iters") == 0)
    recipe.warmup_iters =
        std::min({preset.warmup_iters, recipe.max_iters / 20, recipe.lr_decay_iters});

  if (train.tokens == "bpe")
    train.vocab_size = train.vocab_size.value_or(usual_vocab_size);
  else if (train.vocab_size)
    throw UsageError(
        "--vocab-size is for --tokens bpe, which is to be said with it: of characters there are as "
        "many as the text has");

  if (!train.init_from.empty() && train.resumes_by_name())
    fail<UsageError>(
        "--init-from begins a new run, and --resume {} goes on with one: leave one of them out",
        *train.resume);
  // Values, for a run's config.json says of all flags that it has what it would have without them.
  if (train.overfit_one_batch &&
      (train.resume || !train.out.empty() || train.save_interval || train.profile))
    throw UsageError(
        "--overfit-one-batch is a check that keeps nothing: leave out --resume, --out, "
        "--save-interval and --profile");
  if (!train.resume && train.init_from.empty())
    check_recipe(train.recipe);
}

void add_recipe(CLI::App& app, Recipe& recipe) {
  const Recipe& nano = presets.front().recipe;
  for_each_field([&]<class T>(const Field& field, T Recipe::*member) {
    std::string usual = fmt::format("{}", nano.*member);
    for (const Preset& preset : presets)
      if (const T its = preset.recipe.*member; its != nano.*member)
        usual += fmt::format(", {}: {}", preset.name, its);
    for (const auto& [flag, follows] :
         {std::pair<std::string_view, const char*>("--min-lr", "a tenth of --learning-rate"),
          {"--lr-decay-iters", "--max-iters"},
          {"--warmup-iters", "a twentieth of --max-iters, at most 100; micro: 0"}})
      if (field.flag == flag)
        usual = follows;
    const std::string help = fmt::format("{} [{}]", field.help, usual);
    app.option_defaults()->group(field.group);
    if constexpr (std::is_same_v<T, bool>)
      add_bool(app, field.flag, recipe.*member, help);
    else
      add_number(app, field.flag, recipe.*member, field.range, help);
  });
}

}  // namespace

Command add_train(CLI::App& program, Ranks& ranks) {
  CLI::App& app = *program.add_subcommand("train", "train a model; it goes to a folder");
  const auto options = std::make_shared<TrainOptions>();
  TrainOptions& train = *options;
  app.option_defaults()->group("What and where");
  add_path(app, "--data", train.data,
           "any UTF-8 text; -: standard input [scenes that the program invents itself; "
           "micro: names]");
  add_path(app, "--val-data", train.val_data,
           "another text to validate on [the last tenth of --data]");
  add_path(app, "--out", train.out, "folder for the run [runs/000, runs/001, ...]", "DIR");
  add_preset(app, train.preset, "a recipe, which other flags change: nano, baby or micro [nano]");
  add_seed(app, train.seed);
  add_threads(app, train.threads);
  add_bool(app, "--dry-run", train.dry_run,
           "print what would be trained, and how long it would take; write nothing");
  add_bool(app, "--overfit-one-batch", train.overfit_one_batch,
           "check whether the model can learn one batch by heart; write nothing");
  add_bool(app, "--profile", train.profile,
           "print where ten steps spend their time; and DIR/trace.json");
  add_bool(app, "-q,--quiet", train.quiet, "results, warnings and errors only");
  app.option_defaults()->group("Saving and going on");
  app.add_option_function<std::string>(
         "--resume", [options](const std::string& given) { options->resume = given; },
         "go on with a run; auto: the latest unfinished one, or with --out the one there, if any")
      ->type_name("[DIR|FILE|auto]")
      ->expected(0, 1);
  add_path(
      app, "--init-from", train.init_from,
      "begin a new run with the weights of a checkpoint, of a pretrained model's folder, or of "
      "a safetensors file with nanoGPT's names, as export writes it",
      "FILE|DIR");
  add_number(app, "--lora-rank", train.lora_rank, {1, 65536},
             "train adapters of this rank (LoRA) beside its weights; checkpoints hold them alone");
  for (const Count& count : counts)
    add_number(app, count.flag, train.*count.member, {count.least, many}, count.help);
  app.add_option("--sample-prompt", train.sample_prompt,
                 "what samples continue [a newline, or what the tokenizer begins a text with]");
  add_recipe(app, train.recipe);
  app.option_defaults()->group("Model");
  add_name(app, "--tokens", train.tokens, {"characters", "bpe"},
           "bpe: pairs of bytes that come often become one token [characters]");
  add_number(app, "--vocab-size", train.vocab_size, vocab_sizes,
             fmt::format("tokens that bpe learns from what is trained on [{}]", usual_vocab_size));
  return {&app, [options, &app, &ranks] {
            TrainOptions& given = *options;
            ranks.together([&] { complete(app, given); });
            given.program = app.get_parent()->get_name();
            given.launcher = ranks.launcher();
            if (given.quiet)
              be_quiet();
            return char_transformer::train(given, ranks);
          }};
}

}  // namespace char_transformer
