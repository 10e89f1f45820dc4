#include "source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <xgrad/data/text.hpp>

#include "output.hpp"
#include "recipe.hpp"

namespace char_transformer {

namespace text = xgrad::text;

std::optional<double> Source::entropy(std::size_t asked) const {
  if (nll.empty())
    return std::nullopt;
  const auto begin = nll.begin() + 1;
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(asked), 0.0) /
         static_cast<double>(asked);
}

corpus::Corpus corpus_of(const std::string& preset) {
  return find_preset(preset).names ? corpus::names_corpus() : corpus::scenes_corpus();
}

Source open_source(const std::string& path, const std::string& validation,
                   const std::string& preset, const std::optional<text::Characters>& characters) {
  Source source;
  std::vector<double> nll;
  std::string name = path;
  try {
    if (path.empty()) {
      name = find_preset(preset).names ? "the embedded names" : "the embedded corpus";
      corpus::Corpus corpus = corpus_of(preset);
      const std::u32string decoded = text::decode_utf8(corpus.text, name);
      source.characters = characters ? *characters : text::Characters::of(decoded);
      source.all = source.characters.encode(decoded);
      nll = std::move(corpus.nll);
    } else {
      text::Text text = text::read_text(path, characters);
      source.characters = std::move(text.characters);
      source.all = std::move(text.ids);
    }
    source.name = name;
    source.ids = text::split(source.all);
    source.validation_name = fmt::format("the validation split of {}", name);
    if (!validation.empty()) {
      name = source.validation_name = validation;
      source.ids = {source.all, text::read_text(validation, source.characters).ids};
    } else if (!nll.empty()) {
      source.nll.assign(nll.end() - static_cast<std::ptrdiff_t>(source.ids.validation.size()),
                        nll.end());
    }
  } catch (const xgrad::ValueError& error) {
    throw xgrad::FileError(fmt::format("{}: {}", name, reason(error)));
  }
  return source;
}

void check_blocks(const Source& source, std::size_t block_size, bool fixed) {
  const text::Split& ids = source.ids;
  try {
    text::block_count(ids.train, block_size, "training");
    text::block_count(ids.validation, block_size, "validation");
  } catch (const xgrad::ValueError& error) {
    std::string advice;
    if (ids.train.size() < source.all.size()) {  // a tenth is to validate on
      advice = fmt::format(": give at least {} characters", 10 * block_size + 1);
      if (const std::size_t most = std::min(ids.train.size(), ids.validation.size());
          most > 1 && !fixed)
        advice += fmt::format(", or --block-size {} or less", most - 1);
    }
    const bool validation = ids.train.size() > block_size && advice.empty();
    throw xgrad::FileError(fmt::format(
        "{}: {}{}", validation ? source.validation_name : source.name, reason(error), advice));
  }
}

Command add_corpus(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("corpus", "print what is trained on without --data");
  const auto preset = std::make_shared<std::string>("nano");
  add_preset(app, *preset, "micro: names; the others: scenes [nano]");
  return {&app, [preset] {
            say(corpus_of(*preset).text);
            return 0;
          }};
}

}  // namespace char_transformer
