// The flags of all commands, and --config's file.

#include "flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <sstream>
#include <utility>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/json.hpp>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "hints.hpp"
#include "output.hpp"
#include "run_dir.hpp"
#include "sample.hpp"
#include "training.hpp"

namespace program {
namespace {

/// Command lines at the end of each command's help; the first four are for the program's.
constexpr std::string_view examples[] = {
    "train --data book.txt --preset nano",
    "train --resume runs/000 --max-iters 5000",
    "eval runs/000",
    "sample runs/000 --prompt Once --temperature 0.5",
    "train --data book.txt --dry-run",
    "train --init-from runs/000 --data letters.txt --learning-rate 1e-4",
    "explain runs/000 --prompt Once",
    "graph runs/000 --prompt Once --format dot --out once.dot",
    "export runs/000 --out folder/",
    "report runs/000 --overwrite",
    "compare runs/000 runs/001 --out both.html",
    "compare runs/000 runs/001 --out losses.svg",
    "playground --out engine.html"};

std::string for_example(std::span<const std::string_view> some, const std::string& command = "") {
  std::string text = "For example:";
  for (const std::string_view example : some)
    if (example.starts_with(command))
      text += fmt::format("\n  xgrad {}", example);
  return text;
}

enum class Kind { number, boolean, text, texts };  ///< texts: given several times, or a list

/// A row of the table of flags.
struct Flag {
  std::string names;  ///< "--data"; "run,--checkpoint" is also the first word without a flag
  Kind kind;
  std::string type, help;                              ///< as --help shows them
  std::function<void(const std::string& given)> read;  ///< throws CLI::ValidationError
  bool alone = false;                                  ///< the value may be missing

  std::string flag() const { return names.substr(names.rfind(',') + 1); }
};
struct Group {
  const char* title;  ///< of --help; empty: none
  std::vector<Flag> flags;
};

/// A command: its flags are on `app`; `run` executes it and returns the exit code.
struct Command {
  CLI::App* app;
  std::function<int()> run;
  std::set<std::string>* given = nullptr;  ///< flags with a value, --config's too
  std::map<std::string, Kind> kinds = {};  ///< by flag
};

/// The number of letters to insert, remove or change that turn a into b (Levenshtein, 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(
          row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] == b[j] ? 0 : 1)}));
  }
  return row.back();
}

HasFlag flags_of(const CLI::App& app) {
  return [&app](const std::string& flag) { return app.get_option_no_throw(flag) != nullptr; };
}

/// The counterpart of a flag or a command in hints.hpp, or "; did you mean NAME?" if one is
/// similar, or contains the word.
std::string suggestion(const std::string& written, const CLI::App& app) {
  if (std::string hint = word_hint(written, flags_of(app)); !hint.empty())
    return hint;
  const std::string letters =
      written.substr(std::min(written.find_first_not_of('-'), written.size()));
  std::string nearest;
  std::size_t least = 3;
  const auto consider = [&](const std::string& name) {
    const bool part = letters.size() > 2 && name.find(letters) != name.npos;
    const std::size_t wrong = part ? 0 : edit_distance(written.substr(0, 100), name);
    if (wrong < least)
      nearest = fmt::format("; did you mean {}?", name);
    least = std::min(least, wrong);
  };
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    consider(command->get_name());
  for (const CLI::Option* const option : app.get_options())
    for (const std::string& name : option->get_lnames())
      consider("--" + name);
  return nearest;
}

/// An unknown word is reported first, because other complaints often follow from it.
[[noreturn]] void refuse_line(const CLI::App& program, const CLI::ParseError& error) {
  const auto chosen = program.get_subcommands();
  const bool before = !program.remaining().empty();  // words before the command
  const CLI::App& app = before || chosen.empty() ? program : *chosen.front();
  if (const auto unknown = app.remaining(); !unknown.empty()) {
    const std::string word = unknown[0].substr(0, unknown[0].find('='));
    const bool flag = word.starts_with('-') && word.find_first_not_of('-') != word.npos;
    if (!flag && &app != &program)
      fail<UsageError>("unexpected argument '{}'{}", unknown[0],
                       argument_hint(unknown[0], flags_of(app)));
    fail<UsageError>("unknown {} '{}'{}", flag ? "flag" : "command", word, suggestion(word, app));
  }
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)  // "--n-layer: ..."
    throw UsageError(what.substr(0, what.find(':')) + " needs one value, once");
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !chosen.empty())
    throw UsageError("RUN is needed: " + app.get_option("runs")->get_description());
  throw UsageError(chosen.empty() ? "a command is needed" : what);
}

[[noreturn]] void refuse_value(const std::string& flag, const std::string& given,
                               const std::string& rule) {
  throw CLI::ValidationError(flag,
                             fmt::format("'{}' is not {}", xgrad::printable_name(given), rule));
}

/// At most four threads a processor, because more would only take turns; warns of fewer.
std::size_t useful_threads(const std::string& asked, std::size_t n) {
  const std::size_t processors = xgrad::num_processors(), most = 4 * processors;
  if (n > most)
    warn(fmt::format("{}: {} are used, four for each of the {}", asked,
                     format_count(most, "thread"), format_count(processors, "processor")));
  return std::min(n, most);
}

/// --config's file and the position of a byte; lines and columns of characters count from 1.
std::string place(std::size_t byte) {
  const std::string_view before = std::string_view(config_file.text).substr(0, byte);
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; };
  return fmt::format("{}: line {}, column {}", config_file.path,
                     1 + std::ranges::count(before, '\n'), 1 + std::ranges::count_if(line, begins));
}

/// The position of a key: a string before a colon.  Only the file if the key is written with
/// escapes.
std::string place(const std::string& key) {
  const std::string& text = config_file.text;
  for (std::size_t at = 0; (at = text.find('"' + key + '"', at)) != text.npos; ++at) {
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + key.size() + 2);
    if (next != text.npos && text[next] == ':' && (at == 0 || text[at - 1] != '\\'))
      return place(at);
  }
  return config_file.path;
}

/// Flags that the command line does not have get their values from --config's file, in which '_'
/// may stand for '-'.
void apply_config(const Command& command) {
  CLI::App& app = *command.app;
  const std::string& path = config_file.path;
  xgrad::io::Json json;
  try {
    config_file.text = runs::read_small_file(path);
    json = xgrad::io::parse_json(config_file.text, 0, 16);
  } catch (const xgrad::io::NotJson& error) {
    throw UsageError(place(error.byte) + ": is not JSON");
  } catch (const FileError& error) {
    throw UsageError(error.what());
  } catch (const ValueError& error) {
    fail<UsageError>("{}: {}", path, error.what());
  }
  const auto* const object = json.as<xgrad::io::JsonObject>();
  check<UsageError>(object != nullptr, "{}: is not a JSON object, as {{\"n_layer\": 4}} is", path);
  // The size of a vocabulary of characters is in a run's config.json, but has no flag.
  const CLI::Option* const given = app.get_option_no_throw("--tokens");
  const auto* const tokens = json.find<std::string>("tokens");
  const bool pairs = given != nullptr && given->count() > 0 ? given->as<std::string>() == "bpe"
                                                            : tokens != nullptr && *tokens == "bpe";
  std::set<std::string> seen;
  for (const auto& [key, value] : *object) {
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    CLI::Option* const option = app.get_option_no_throw(flag);
    if (!seen.insert(flag).second)
      fail<UsageError>("{}: has '{}' twice, with '-' and with '_'", place(key), key);
    if (flag == "--vocab-size" && !pairs)
      continue;
    if (option == nullptr || flag == "--config" || flag == "--help")
      fail<UsageError>("{}: '{}' is no flag of {}{}", place(key), xgrad::printable_name(key),
                       app.get_name(), suggestion(flag, app));
    if (value.as<std::nullptr_t>() != nullptr || option->count() > 0)
      continue;
    const auto written = [](const xgrad::io::Json& one) {
      const auto* const text = one.as<std::string>();
      return text != nullptr ? *text
                             : xgrad::io::format_json(one, xgrad::io::InvalidUtf8::replaced);
    };
    const auto* const list = value.as<xgrad::io::JsonArray>();
    const Kind kind = command.kinds.at(flag);
    if (list != nullptr && kind == Kind::text)  // a number's message says what it is
      fail<UsageError>("{}: {} has one value, not a list; several are one text, as \"a,b\"",
                       place(key), flag);
    try {
      const bool several = list != nullptr && kind == Kind::texts;
      for (const xgrad::io::Json& one : several ? *list : xgrad::io::JsonArray{value})
        option->add_result(written(one));
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      fail<UsageError>("{}: {}", place(key), xgrad::printable(error.what()));
    }
  }
}

/// A decimal number; CLI::ValidationError for a text that is none, or a number out of range.
double read_number(const std::string& flag, const std::string& given, Range range, bool whole) {
  // Decimal digits only: CLI11's own conversion reads 010 as eight, and accepts "nan".
  const bool digits =
      given.find_first_not_of(whole ? "0123456789" : "0123456789.eE+-") == given.npos;
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(given.c_str(), &end);
  if (digits && !given.empty() && end == given.data() + given.size() && range.contains(value) &&
      (errno == 0 || value != 0))  // 1e-400 would be 0
    return value;
  refuse_value(flag, given,
               fmt::format("{} from {} to {}", whole ? "a whole number" : "a number", range.low,
                           range.high));
}

// ---- rows of the table: each reads its value, and explains a wrong one ----

/// A whole number, also an optional one, or a double.
template <class T>
Flag number(const std::string& flag, T& target, Range range, const std::string& help) {
  using Number = std::conditional_t<std::is_same_v<T, double>, double, std::size_t>;
  constexpr bool whole = !std::is_same_v<T, double>;
  return {flag, Kind::number, whole ? "N" : "X", help,
          [&target, flag, range](const std::string& given) {
            target = static_cast<Number>(read_number(flag, given, range, whole));
          }};
}

/// `--flag`, `--flag true`, `--flag=false`.
Flag boolean(const std::string& names, bool& target, const std::string& help) {
  const auto read = [&target, flag = names.substr(names.rfind(',') + 1)](const std::string& given) {
    target = given == "true" || given == "True";
    if (!target && given != "false" && given != "False")
      refuse_value(flag, given, "true or false");
  };
  return {names, Kind::boolean, "[BOOL]", help, read, true};
}

template <class T>  // a text, an optional one, or several
Flag text(const char* flag, T& target, const std::string& help, const char* type = "TEXT") {
  constexpr bool several = std::is_same_v<T, std::vector<std::string>>;
  const auto read = [&target](const std::string& given) {
    if constexpr (several)
      target.push_back(given);
    else
      target = given;
  };
  return {flag, several ? Kind::texts : Kind::text, type, help, read};
}

/// A path; "-" is standard input.
Flag path(const std::string& names, std::string& target, const std::string& help,
          const char* type = "FILE") {
  const auto read = [&target, flag = names.substr(names.rfind(',') + 1)](const std::string& given) {
    if (given.empty() || given.find('\0') != given.npos)
      refuse_value(flag, given, "a path");
    target = given == "-" ? standard_input : given;
  };
  return {names, Kind::text, type, help, read};
}

/// One of a few names.
Flag name(const std::string& flag, std::string& target, const std::vector<std::string>& names,
          const std::string& help) {
  const auto read = [&target, flag, names](const std::string& given) {
    if (std::ranges::count(names, given) == 0)
      refuse_value(flag, given, fmt::format("one of {}", fmt::join(names, ", ")));
    target = given;
  };
  return {flag, Kind::text, "NAME", help, read};
}

/// Numbers that commas separate.
Flag numbers(const char* flag, std::vector<std::size_t>& target, const char* help) {
  const auto read = [flag, &target](const std::string& given) {
    std::istringstream list(given + ',');
    for (std::string one; std::getline(list, one, ',');)
      target.push_back(static_cast<std::size_t>(read_number(flag, one, {0, 999}, true)));
  };
  return {flag, Kind::text, "N,N,...", help, read};
}

// ---- rows of several commands ----

Flag model(std::string& target) {
  return path("run,--checkpoint", target,
              "a checkpoint.safetensors, a run's folder: its last checkpoint, or that of a "
              "pretrained model or of PEFT's adapters (needed)",
              "FILE|DIR");
}

Flag base(std::string& target) {
  return path("--base", target, "the model that adapters are for [where they say]", "FILE|DIR");
}

template <class T>
Flag document_end(T& target, const char* usual) {
  return text("--document-end", target,
              fmt::format("a text, or id:N (with byte pairs a number is always an id): positions "
                          "after it see none before, and count from there; the first token after "
                          "it is predicted from it; \"\": the text is one document [{}]",
                          usual),
              "TEXT|id:N");
}

Flag raw(bool& target) {
  return boolean("--raw", target,
                 "without the tokens that the tokenizer adds around a text, such as "
                 "<|begin_of_text|>");
}

Flag out(std::string& target, const std::string& usual) {
  return path("--out", target, fmt::format("the file that is written [{}]", usual));
}

Flag overwrite(bool& target) { return boolean("--overwrite", target, "replace an existing file"); }

Flag seed(std::uint64_t& target) {
  return number("--seed", target, {0, 0xFFFFFFFF},
                fmt::format("of the random numbers [{}]", target));
}

Flag dtype(std::string& target, const char* usual) {
  return name("--dtype", target, {"float32", "bfloat16"},
              fmt::format("bfloat16: matrix products round their operands to it, which is faster "
                          "on processors that multiply it [{}]",
                          usual));
}

/// Sets the number, too.
Flag threads(std::size_t& target) {
  const auto use = [&target](const std::string& given) {
    const double n = read_number("--threads", given, {1, 1024}, true);
    xgrad::set_num_threads(target =
                               useful_threads("--threads " + given, static_cast<std::size_t>(n)));
  };
  return {"--threads", Kind::number, "N",
          "threads, at most four a core; the numbers do not depend on them [all cores]", use};
}

/// The rows of a recipe's table (recipe.hpp) that are in a group.
Group recipe_flags(Recipe& recipe, const char* title) {
  const Recipe& nano = presets.front().recipe;
  Group group{title, {}};
  for_each_field([&]<class T>(const Field& field, T Recipe::* member) {
    if (field.group != std::string_view(title))
      return;
    std::string usual = fmt::format("{}", nano.*member);
    for (const Preset& preset : presets)
      if (const T its = preset.recipe.*member; its != nano.*member)
        usual += fmt::format(", {}: {}", preset.name, its);
    if (field.follows[0] != 0)
      usual = field.follows;
    const std::string help = fmt::format("{} [{}]", field.help, usual);
    if constexpr (std::is_same_v<T, bool>)
      group.flags.push_back(boolean(field.flag, recipe.*member, help));
    else
      group.flags.push_back(number(field.flag, recipe.*member, field.range, help));
  });
  return group;
}

std::vector<Group> train_flags(TrainOptions& train) {
  std::vector<std::string> names;
  for (const Preset& preset : presets)
    names.emplace_back(preset.name);
  std::vector<Group> groups{
      {"What and where",
       {path("--data", train.data,
             "any UTF-8 text; -: standard input [scenes that the program invents itself; "
             "micro: names]"),
        path("--val-data", train.val_data,
             "another text to validate on [the last tenth of --data]"),
        document_end(train.document_end, "\"\""),
        path("--out", train.out, "folder for the run [runs/000, runs/001, ...]", "DIR"),
        name("--preset", train.preset, names,
             "a recipe, which other flags change: nano, baby or micro [nano]"),
        dtype(train.dtype, "float32"), seed(train.seed), threads(train.threads),
        boolean("--dry-run", train.dry_run,
                "print what a run would train, and its time; write nothing"),
        boolean("--overfit-one-batch", train.overfit_one_batch,
                "check whether the model can learn one batch by heart; write nothing"),
        boolean("--profile", train.profile,
                "print where ten steps spend their time; and DIR/trace.json"),
        boolean("-q,--quiet", train.quiet, "results, warnings and errors only")}},
      {"Saving and going on",
       {text("--resume", train.resume,
             "resume a run; auto: the latest unfinished one, or with --out the one there, if any",
             "[DIR|FILE|auto]"),
        path("--init-from", train.init_from,
             "begin a new run with the weights of a checkpoint, of a pretrained model's folder, "
             "of a safetensors file with nanoGPT's names, as export writes it, or with PEFT's "
             "adapters",
             "FILE|DIR"),
        base(train.base),
        number("--lora-rank", train.lora_rank, {1, 65536},
               "train adapters of this rank (LoRA) to its weights; checkpoints hold only these"),
        number("--lora-alpha", train.lora_alpha, {1e-9, 1e9},
               "they are scaled by alpha / rank [--lora-rank]"),
        text("--lora-targets", train.lora_targets,
             "which layers get them, as PEFT's target_modules [all-linear: all of the blocks]",
             "NAME,NAME,...")}},
      recipe_flags(train.recipe, "Model"),
      recipe_flags(train.recipe, "Training"),
      recipe_flags(train.recipe, "Evaluation")};
  std::vector<Flag>& saving = groups[1].flags;
  saving.front().alone = true;
  for (const Count& count : counts)
    saving.push_back(number(count.flag, train.*count.member, {count.least, many}, count.help));
  saving.push_back(
      text("--sample-prompt", train.sample_prompt,
           "the text that samples continue [a newline, or the tokenizer's first tokens]"));
  std::vector<Flag>& sizes = groups[2].flags;
  sizes.push_back(name("--tokens", train.tokens, {"characters", "bpe"},
                       "bpe: pairs of bytes that come often become one token [characters]"));
  sizes.push_back(
      number("--vocab-size", train.vocab_size, vocab_sizes,
             fmt::format("tokens that bpe learns from the training split [{}]", usual_vocab_size)));
  return groups;
}

std::vector<Group> eval_flags(EvalOptions& options) {
  return {{"",
           {model(options.checkpoint), base(options.base),
            path("--data", options.data,
                 "any UTF-8 text; -: standard input [the model's training text]"),
            name("--split", options.split, {"train", "val", "all"},
                 "the part of it [all of --data, or without it val]"),
            document_end(options.document_end, "as in training"), raw(options.raw),
            number("--block-size", options.block_size, {1, many},
                   "the loss is the mean over whole blocks of this length, side by side [as in "
                   "training; of --data, with a pretrained model or what was made of one, as long "
                   "as it can, up to 1024]"),
            dtype(options.dtype, "as in training"), threads(options.threads)}}};
}

std::vector<Group> sample_flags(SampleOptions& options) {
  auto& drawing = options.drawing;
  return {
      {"", {model(options.checkpoint), base(options.base)}},
      {"What it continues, and how far",
       {text("--prompt", options.prompts,
             "the text to continue; given several times: several, together [a newline, or the "
             "tokenizer's first tokens]"),
        path("--file", options.file, "a file with the prompt; -: standard input"), raw(options.raw),
        number("--tokens", options.tokens, {0, many},
               fmt::format("characters or tokens that it adds, at most [{}]", options.tokens)),
        number("--num-samples", options.num_samples, {1, many}, "samples, one after another [1]"),
        text("--stop", options.stop, "end where it has written this"),
        boolean("--ignore-eos", options.ignore_eos, "continue after the model's end of text"),
        boolean("--special-tokens", options.special_tokens,
                "print special tokens, such as <|endoftext|>, too")}},
      {"How it draws, in this order; generation_config.json has defaults",
       {number("--repetition-penalty", options.repetition_penalty, {1e-6, 1e6},
               "above 1: what has occurred becomes less likely [1]"),
        number("--no-repeat-ngram", options.no_repeat_ngram, {1, many},
               "no N characters or tokens occur twice"),
        number("--temperature", drawing.temperature, {0, 100},
               fmt::format("0: always the likeliest; higher: wilder [{}]", drawing.temperature)),
        number("--top-k", drawing.top_k, {1, many}, "draw among the k likeliest [all]"),
        number("--top-p", drawing.top_p, {1e-9, 1},
               "draw among the likeliest that have this probability together [1: all]"),
        number("--min-p", drawing.min_p, {0, 1},
               "draw among those at least this many times as likely as the likeliest [0]")}},
      {"Options", {seed(options.seed), threads(options.threads)}}};
}

std::vector<Group> explain_flags(ExplainOptions& options) {
  options.out = "explain.html";
  return {
      {"",
       {model(options.checkpoint), base(options.base),
        text("--prompt", options.prompt, "the text that the model reads [a part of its text]"),
        raw(options.raw), out(options.out, options.out), overwrite(options.overwrite),
        threads(options.threads),
        path("--data", options.data, "read its beginning instead [the model's validation text]"),
        number("--length", options.length, {2, many},
               "characters or tokens of the text [64, or as many as the model can]"),
        numbers("--layers", options.layers, "which layers [all]"),
        numbers("--heads", options.heads, "which heads of each layer [all]"),
        number("--position", options.position, {0, many},
               "the place that is looked at first [that of the largest |A dL/dA|]"),
        number("--max-mb", options.max_mb, {0.001, 1000},
               fmt::format("the largest page that is written [{}]", options.max_mb))}}};
}

std::vector<Group> graph_flags(GraphOptions& options) {
  return {{"",
           {model(options.checkpoint), base(options.base),
            text("--prompt", options.prompt,
                 "the text of the loss, a few characters [the model's own text]"),
            raw(options.raw), out(options.out, "graph.html; dot and text: standard output"),
            overwrite(options.overwrite), threads(options.threads),
            name("--format", options.format, {"html", "dot", "text"},
                 "html: a page; dot: a graph for Graphviz; text: tables [html]"),
            boolean("--decompose", options.decompose,
                    "fused ops as the ops that they fuse: attention with its scores"),
            number("--max-nodes", options.max_nodes, {1, many},
                   fmt::format("refuse a larger graph [{}]", options.max_nodes))}}};
}

std::vector<Group> export_flags(ExportOptions& options) {
  return {{"",
           {model(options.checkpoint), base(options.base),
            out(options.out, options.out + "; DIR/: a folder as transformers reads it"),
            overwrite(options.overwrite),
            boolean("--adapters", options.adapters,
                    "the adapters alone, as PEFT reads them, to --out DIR/")}}};
}

std::vector<Group> report_flags(RunsOptions& options) {
  return {{"",
           {overwrite(options.overwrite),
            text("runs", options.runs, "the folder of each run", "RUN")}}};
}

std::vector<Group> compare_flags(RunsOptions& options) {
  return {{"",
           {out(options.out, "no page; FILE.html: all curves; FILE.svg: the losses"),
            overwrite(options.overwrite),
            text("runs", options.runs, "the folder of each run, or its metrics.jsonl", "RUN")}}};
}

std::vector<Group> playground_flags(RunsOptions& options) {
  options.out = "playground.html";
  return {{"", {out(options.out, options.out), overwrite(options.overwrite)}}};
}

void add(CLI::App& app, const std::string& group, const Flag& flag) {
  const bool several = flag.kind == Kind::texts;
  const auto each = [read = flag.read](const std::vector<std::string>& given) {
    std::ranges::for_each(given, read);
  };
  CLI::Option* const option =
      several ? app.add_option_function<std::vector<std::string>>(flag.names, each, flag.help)
              : app.add_option_function<std::string>(flag.names, flag.read, flag.help);
  option->type_name(flag.type);
  if (!group.empty())
    option->group(group);
  if (flag.kind == Kind::boolean)
    option->default_str("true");  // alone
  if (flag.alone)
    option->expected(0, 1);
  else if (several && flag.names[0] == '-')
    option->allow_extra_args(false);
  else if (several)
    option->required();
}

/// A command that calls run(options), whose flags are those of groups(options).  The exit code is
/// the result of run, or 0 if it has none.
template <class Options, class Run>
Command command_of(CLI::App& program, const char* name, const char* what,
                   std::vector<Group> (*groups)(Options&), Run run) {
  const auto options = std::make_shared<Options>();
  const auto call = [options, run] {
    if constexpr (std::is_void_v<decltype(run(*options))>)
      return run(*options), 0;
    else
      return run(*options);
  };
  Command command{program.add_subcommand(name, what), call};
  std::vector<Group> all = groups(*options);
  all.push_back({"Configuration",
                 {path("--config", config_file.path,
                       "a JSON object with values of flags that are not given")}});
  for (const Group& group : all)
    for (const Flag& flag : group.flags) {
      add(*command.app, group.title, flag);
      command.kinds.emplace(flag.flag(), flag.kind);
    }
  if constexpr (requires { options->given; })
    command.given = &options->given;
  return command;
}

}  // namespace

void parse(int argc, const char* const* argv, Ranks& ranks, CommandLine& line) {
  CLI::App program("Trains a character-level transformer, and lets it write.", "xgrad");
  // CLI11 2.5 and newer would wrap lines.
  const auto lay_out = [](auto& formatter) {
    formatter.column_width(38);
    if constexpr (requires { formatter.right_column_width(1000); })
      formatter.right_column_width(1000);
    if constexpr (requires { formatter.enable_footer_formatting(false); })
      formatter.enable_footer_formatting(false);
    if constexpr (requires { formatter.long_option_alignment_ratio(0.16F); })
      formatter.long_option_alignment_ratio(0.16F);
  };
  lay_out(*program.get_formatter());
  program.set_version_flag(
      "--version",
      [] {
        return fmt::format(
            "{}\ninstructions: {}\nmatrix products: {}; in bfloat16: {}\nthreads: {}",
            describe_build(), xgrad::simd_name(), xgrad::blas_name(), xgrad::bfloat16_name(),
            xgrad::num_threads());
      },
      "Print the version, how it was built and what it runs on, and exit");
  program.footer(for_example(std::span(examples).first(4)) +
                 "\n\n'xgrad train --help' and so on list the flags.");
  const std::vector<Command> commands = {
      command_of(program, "train", "train a model; it goes to a folder", train_flags,
                 [&ranks, argv](TrainOptions& options) {
                   options.program = argv[0];
                   ranks.together([&] { complete(options); });
                   options.launcher = ranks.launcher();
                   if (options.quiet)
                     be_quiet();
                   return train(options, ranks);
                 }),
      command_of(program, "eval", "print a model's loss over a text", eval_flags, evaluate),
      command_of(program, "sample", "let a model write", sample_flags, sample),
      command_of(program, "explain",
                 "write a page that shows a model's attention and its gradients", explain_flags,
                 explain),
      command_of(program, "graph",
                 "write a page that goes through a model's backward pass, step by step",
                 graph_flags, graph),
      command_of(program, "export", "write a model's weights to a file that PyTorch users open",
                 export_flags, export_model),
      command_of(program, "report", "write DIR/report.html from a run's files", report_flags,
                 report),
      command_of(program, "compare", "compare runs in a table", compare_flags, compare),
      command_of(program, "playground",
                 "write a page with the engine in it: formulas, and a transformer that trains",
                 playground_flags, playground)};
  for (const Command& command : commands)
    command.app->footer(for_example(examples, command.app->get_name() + " "));
  config_file = {};
  program.require_subcommand(1);
  const auto name_command = [&] {
    if (const auto chosen = program.get_subcommands(); !chosen.empty())
      line.command += " " + chosen.front()->get_name();
  };
  std::vector<const char*> words(argv, argv + argc);
  if (argc > 1 && argv[1] == std::string_view("help")) {  // "help train" is "train --help"
    words.erase(words.begin() + 1);
    const auto named = [&](const Command& command) { return command.app->check_name(argv[2]); };
    if (argc == 2 || std::ranges::any_of(commands, named))
      words.push_back("--help");
  }
  try {
    program.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::CallForHelp&) {
    for (const Command& command : commands)
      for (CLI::Option* const option : command.app->get_options({}))
        option->default_str("");  // the texts name the defaults
    say(program.help());
    return;
  } catch (const CLI::CallForVersion&) {
    say(program.version() + "\n");
    return;
  } catch (const CLI::ParseError& error) {
    name_command();
    refuse_line(program, error);
  }
  name_command();
  const auto command =
      std::ranges::find(commands, program.get_subcommands().front(), &Command::app);
  if (!config_file.path.empty())
    apply_config(*command);
  const CLI::Option* const threads = command->app->get_option_no_throw("--threads");
  if (const char* const text = std::getenv("OMP_NUM_THREADS");
      text != nullptr && threads != nullptr && threads->count() == 0)
    if (const long n = std::strtol(text, nullptr, 10); n > 0)  // the library has applied it
      useful_threads("OMP_NUM_THREADS " + xgrad::printable_name(text), static_cast<std::size_t>(n));
  if (command->given != nullptr)
    for (const CLI::Option* const option : command->app->get_options())
      if (option->count() > 0)
        command->given->insert("--" + option->get_lnames().front());
  line.run = command->run;
}

std::string key_of(std::string_view flag) {
  std::string key(flag.substr(flag.find_first_not_of('-')));
  std::ranges::replace(key, '-', '_');
  return key;
}

void check_output(const std::string& path, bool overwrite, std::vector<std::string> inputs) {
  if (path == standard_input)
    throw UsageError("--out: - is no file that can be replaced in one piece: name one");
  inputs.push_back(config_file.path);
  xgrad::io::check_output(path, true, inputs);  // its message says that the file is an input
  check_no_file_of_run(path);
  xgrad::io::check_output(path, overwrite, inputs);
}

void need_run(const std::string& checkpoint) {
  check<UsageError>(!checkpoint.empty(),
                    "RUN is needed: the folder of a run or of a pretrained model, or a checkpoint");
}

}  // namespace program
