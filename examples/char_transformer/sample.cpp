#include "sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/text.hpp>

#include "checkpoint_info.hpp"
#include "output.hpp"

namespace char_transformer {

namespace text = xgrad::text;

std::vector<std::int64_t> encode(const std::string& what, const std::string& given,
                                 const Vocabulary& vocabulary) {
  std::u32string decoded = text::decode_utf8(given, what);
  if (decoded.starts_with(U'\uFEFF'))
    decoded.erase(0, 1);
  text::normalize_newlines(decoded);
  try {
    const std::string utf8 = text::encode_utf8(decoded);
    warn_of_dropped(what, utf8, vocabulary);
    const text::Ids ids = vocabulary.encode(utf8);
    std::vector<std::int64_t> list(ids.size());
    ids.copy(0, ids.size(), list.data());
    return list;
  } catch (const ValueError& error) {
    fail<ValueError>("{}: {}; it knows {}", what, reason(error),
                     xgrad::printable_name(text::encode_utf8(vocabulary.characters()->list())));
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
  const bool newline = vocabulary.pairs() ? vocabulary.dropped_bytes("\n") == 0
                                          : vocabulary.characters()->contains(U'\n');
  return newline ? encode(what, "\n", vocabulary) : std::vector<std::int64_t>{0};
}

xgrad::Indices as_row(std::span<const std::int64_t> ids) {
  auto list = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, ids.size()});
  std::ranges::copy(ids, list.data());
  return xgrad::Indices(std::move(list));
}

void print_samples(const xgrad::nn::GPT& model, const Vocabulary& vocabulary,
                   const SampleOptions& options) {
  std::string what = "--prompt", given = options.prompt;
  if (!options.file.empty()) {
    const text::Text read = text::read_text(what = options.file);
    given = read.characters.decode(read.ids);
    if (given.ends_with('\n'))
      given.pop_back();
  }
  const std::vector<std::int64_t> prompt = encode_prompt(what, given, vocabulary);
  const std::string end = vocabulary.decode(encode("--stop", options.stop, vocabulary));
  if (vocabulary.dropped_bytes(options.stop) > 0)
    throw ValueError("--stop: the vocabulary has no tokens for some of it");
  if (std::cmp_greater(prompt.size(), model.config.block_size))
    warn(fmt::format("the prompt has {} {}s, of which the model sees the last {}", prompt.size(),
                     vocabulary.unit(), model.config.block_size));
  xgrad::Generator generator(options.seed);
  for (std::size_t i = 0; i < options.num_samples && output_error() == 0; ++i) {
    text::Utf8Stream characters;
    std::string begun = i > 0 ? "---------------\n" : "";
    for (const std::int64_t id : prompt)
      begun += vocabulary.bytes(id);
    say(characters.add(begun));
    std::string written;  // its end, where the stop text may begin
    bool stopped = false;
    xgrad::nn::GenerateOptions drawing = options.drawing;
    drawing.on_token = [&](std::span<const std::int64_t> token) {
      std::string more = vocabulary.bytes(token[0]);
      const std::size_t before = written.size(), at = (written += more).find(end);
      if ((stopped = !end.empty() && at != written.npos))  // a token may extend beyond it
        more.resize(at + end.size() - before);
      written.erase(0, written.size() - std::min(written.size(), end.size()));
      say(characters.add(more));
    };
    drawing.stop = [&] { return output_error() != 0 || stopped; };
    try {
      model.generate(as_row(prompt), options.tokens, generator, drawing);
    } catch (const ValueError& error) {
      fail<ValueError>("it cannot write on: {}", reason(error));
    }
    say(characters.finish() + "\n");
  }
}

void sample(const SampleOptions& given) {
  need("--checkpoint", given.checkpoint);
  if (!given.file.empty() && !given.prompt.empty())
    throw UsageError("--prompt and --file are both prompts: omit one of them");
  const TrainedModel trained = load_trained_model(given.checkpoint, given.raw);
  SampleOptions options = given;
  if (!given.ignore_eos)
    options.drawing.eos_token_id = end_of_text(trained.info);
  print_samples(trained.model, trained.info.vocabulary, options);
}

}  // namespace char_transformer
