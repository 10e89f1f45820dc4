#include "sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <type_traits>
#include <utility>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/lm/pre_tokenizer.hpp>
#include <xgrad/lm/pretrained.hpp>

#include "checkpoint_info.hpp"
#include "output.hpp"

namespace program {

namespace lm = xgrad::lm;

/// UTF-8 as it is read from a text file, in the vocabulary's normal form.
static std::string normal(const std::string& what, const std::string& given,
                          const Vocabulary& vocabulary) {
  std::u32string decoded = lm::decode_utf8(given, what);
  if (decoded.starts_with(U'\uFEFF'))
    decoded.erase(0, 1);
  lm::normalize_newlines(decoded);
  const std::string utf8 = lm::encode_utf8(decoded);
  return vocabulary.pairs() && vocabulary.pairs()->parts().nfc ? lm::nfc(utf8) : utf8;
}

std::string document_end_text(const std::string& given, const Vocabulary& vocabulary) {
  if (end_id(given, vocabulary).empty())
    return normal("--document-end", given, vocabulary);
  return vocabulary.bytes(document_end_of(given, vocabulary).front());
}

std::vector<std::int64_t> encode(const std::string& what, const std::string& given,
                                 const Vocabulary& vocabulary) {
  const std::string utf8 = normal(what, given, vocabulary);
  try {
    UnknownBytes unknown;
    const lm::Ids ids = vocabulary.encode(utf8, &unknown);
    warn_of_unknown(what, utf8, unknown, vocabulary);
    std::vector<std::int64_t> list(ids.size());
    ids.copy(0, ids.size(), list.data());
    return list;
  } catch (const ValueError& error) {
    fail<ValueError>("{}: {}; it knows {}; a model with --tokens bpe knows all", what,
                     reason(error),
                     xgrad::printable_name(lm::encode_utf8(vocabulary.characters()->list())));
  }
}

std::vector<std::int64_t> encode_prompt(const std::string& what, const std::string& given,
                                        const Vocabulary& vocabulary) {
  const auto& before = vocabulary.text_template().before;
  std::vector<std::int64_t> ids = encode(what, given, vocabulary);
  check<ValueError>(given.empty() || !ids.empty(), "{}: the vocabulary has tokens for none of it",
                    what);
  if (!before.empty() && std::ranges::mismatch(before, ids).in1 == before.end())
    warn(fmt::format("{} begins with {}, which the tokenizer adds as well: omit it", what,
                     vocabulary.decode(before)));
  ids = vocabulary.in_template(std::move(ids));
  if (!ids.empty())
    return ids;
  const bool newline = vocabulary.pairs() ? vocabulary.unknown_bytes("\n") == 0
                                          : vocabulary.characters()->contains(U'\n');
  return newline ? encode(what, "\n", vocabulary) : std::vector<std::int64_t>{0};
}

/// Prompts as one batch, with 0 on the left of shorter ones: `padding` of them.
static xgrad::Indices as_batch(const std::vector<std::vector<std::int64_t>>& prompts,
                               std::vector<xgrad::Size>& padding) {
  const std::size_t longest = std::ranges::max(prompts, {}, std::ranges::size).size();
  auto batch = xgrad::empty_array<std::int64_t>(xgrad::Shape{prompts.size(), longest});
  std::int64_t* to = batch.data();
  for (const auto& ids : prompts) {
    padding.push_back(longest - ids.size());
    to = std::fill_n(to, longest - ids.size(), 0);
    to = std::ranges::copy(ids, to).out;
  }
  return xgrad::Indices(std::move(batch));
}

xgrad::Indices as_row(std::span<const std::int64_t> ids) {
  std::vector<xgrad::Size> none;
  return as_batch({{ids.begin(), ids.end()}}, none);
}

void print_samples(const xgrad::lm::GPT& model, const Vocabulary& vocabulary,
                   const SampleOptions& options) {
  std::vector<std::string> given = options.prompts;
  if (given.empty())
    given.emplace_back();
  std::string what = "--prompt";
  if (!options.file.empty()) {
    const lm::Text read = lm::read_text(what = options.file);
    given[0] = read.characters.decode(read.ids);
    if (given[0].ends_with('\n'))
      given[0].pop_back();
  }
  const std::size_t B = given.size();
  std::vector<std::vector<std::int64_t>> prompts;
  for (const std::string& prompt : given) {
    const auto& ids = prompts.emplace_back(encode_prompt(what, prompt, vocabulary));
    if (std::cmp_greater(ids.size(), model.config.block_size))
      warn(fmt::format("the prompt has {} {}s, of which the model sees the last {}", ids.size(),
                       vocabulary.unit(), model.config.block_size));
  }
  xgrad::lm::GenerateOptions drawing = options.drawing;
  const xgrad::Indices batch = as_batch(prompts, drawing.left_padding);
  if (std::ranges::count(drawing.left_padding, 0) == static_cast<std::ptrdiff_t>(B))
    drawing.left_padding.clear();
  std::vector<xgrad::Generator> generators(B, xgrad::Generator(options.seed));

  struct Row {
    lm::Utf8Stream characters = {};
    std::string text = {};     // what several prompts have written
    std::string written = {};  // its end, where the stop text may begin
    bool begins = true;        // nothing is printed yet
    bool ended = false;
  };
  const auto hidden = [&](std::int64_t id) {
    return !options.special_tokens && vocabulary.is_special(id);
  };
  const auto bytes_of = [&](Row& row, std::int64_t id) {
    std::string bytes = vocabulary.bytes(id);
    const bool first = !hidden(id) && !bytes.empty() && std::exchange(row.begins, false);
    if (first && vocabulary.pairs() && vocabulary.pairs()->strips() && bytes.starts_with(' '))
      bytes.erase(0, 1);
    return bytes;
  };
  for (std::size_t i = 0; i < options.num_samples && output_error() == 0; ++i) {
    std::vector<Row> rows(B);
    const auto add = [&](Row& row, const std::string& bytes) {
      if (B == 1)
        say(row.characters.add(bytes));
      else
        row.text += row.characters.add(bytes);
    };
    for (std::size_t b = 0; b < B; ++b) {
      std::string begin = i + b > 0 ? "---------------\n" : "";
      for (const std::int64_t id : prompts[b])
        if (const std::string bytes = bytes_of(rows[b], id); !hidden(id))
          begin += bytes;
      add(rows[b], begin);
    }
    drawing.on_token = [&](std::span<const std::int64_t> tokens) {
      for (std::size_t b = 0; b < B; ++b) {
        Row& row = rows[b];
        if (row.ended)
          continue;
        std::string more = bytes_of(row, tokens[b]);
        const std::size_t before = row.written.size(),
                          at = (row.written += more).find(options.stop);
        const bool stopped = !options.stop.empty() && at != row.written.npos;
        if (stopped)  // a token may extend beyond it
          more.resize(at + options.stop.size() - before);
        row.written.erase(0,
                          row.written.size() - std::min(row.written.size(), options.stop.size()));
        if (!hidden(tokens[b]))
          add(row, more);
        row.ended = stopped || std::ranges::find(drawing.eos_token_id, tokens[b]) !=
                                   drawing.eos_token_id.end();
      }
    };
    drawing.sequence_ends = [&](std::size_t b) { return rows[b].ended; };
    drawing.stop = [] { return output_error() != 0; };
    const auto print = [&] {
      for (Row& row : rows)
        say(row.text + row.characters.finish() + "\n");
    };
    try {
      model.generate(batch, options.tokens, generators, drawing);
    } catch (const ValueError& error) {
      if (B > 1)
        print();
      fail<ValueError>("it cannot write on: {}", reason(error));
    }
    print();
  }
}

// The changes of logits before the draw, in transformers' order; none if there are none.
static xgrad::lm::LogitsProcessor processor_of(const SampleOptions& options) {
  std::vector<xgrad::lm::LogitsProcessor> all;
  if (options.repetition_penalty != 1)
    all.push_back(xgrad::lm::repetition_penalty(options.repetition_penalty));
  if (options.no_repeat_ngram)
    all.push_back(xgrad::lm::no_repeat_ngram(*options.no_repeat_ngram));
  if (all.empty())
    return {};
  return [all](const xgrad::Indices& tokens, xgrad::Tensor logits) {
    for (const auto& processor : all)
      logits = processor(tokens, logits);
    return logits;
  };
}

// Gives options without a flag the values of generation_config.json, and says so in a line.
static void use_settings(SampleOptions& options, std::map<std::string, double> settings) {
  if (settings.empty())
    return;
  auto& drawing = options.drawing;
  std::string used;
  const auto use = [&](const char* flag, const char* key, auto& option) {
    const auto at = settings.find(key);
    if (options.given.contains(flag) || at == settings.end())
      return;
    if constexpr (std::is_same_v<decltype(option), double&>)
      option = at->second;
    else if (at->second > 0)
      option = static_cast<xgrad::Size>(at->second);
    used += fmt::format("{}{} {}", used.empty() ? "" : ", ", key, at->second);
  };
  constexpr const char* drawing_flags[] = {"--temperature", "--top-k", "--top-p", "--min-p"};
  if (settings["do_sample"] == 1 || std::ranges::any_of(drawing_flags, [&](const char* flag) {
        return options.given.contains(flag);
      })) {
    settings.insert({{"temperature", 1}, {"top_k", 50}});  // transformers' defaults
    use("--temperature", "temperature", drawing.temperature);
    use("--top-k", "top_k", drawing.top_k);
    use("--top-p", "top_p", drawing.top_p);
    use("--min-p", "min_p", drawing.min_p);
  } else {
    drawing.temperature = 0;
    used = "the likeliest token each time, because do_sample is not true";
  }
  use("--repetition-penalty", "repetition_penalty", options.repetition_penalty);
  use("--no-repeat-ngram", "no_repeat_ngram_size", options.no_repeat_ngram);
  if (!used.empty())
    warn(fmt::format("generation_config.json: {}; flags override it", used));
}

void sample(const SampleOptions& given) {
  need_run(given.checkpoint);
  if (!given.file.empty() && !given.prompts.empty())
    throw UsageError("--prompt and --file are both prompts: omit one of them");
  const TrainedModel trained = load_trained_model(given.checkpoint, given.base, given.raw);
  SampleOptions options = given;
  if (!given.ignore_eos)
    options.drawing.eos_token_id = end_of_text(trained.info);
  use_settings(options, xgrad::lm::generation_settings(metadata_of(trained.info), trained.path));
  options.drawing.logits_processor = processor_of(options);
  const Vocabulary& vocabulary = trained.info.vocabulary;
  options.stop = normal("--stop", given.stop, vocabulary);
  encode("--stop", given.stop, vocabulary);  // its errors
  check<ValueError>(vocabulary.unknown_bytes(given.stop) == 0,
                    "--stop: the vocabulary has no tokens for some of it");
  if (!given.ignore_eos && given.stop.empty())
    options.stop = document_end_text(text_in(trained.info.config, "document_end"), vocabulary);
  print_samples(trained.model, vocabulary, options);
}

}  // namespace program
