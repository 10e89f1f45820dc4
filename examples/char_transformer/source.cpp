#include "source.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/data/text.hpp>

#include "command.hpp"
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

namespace {

/// What to do about a text that has no whole block to train on or to validate on.
std::string advice(const text::Split& ids, std::size_t block_size, bool fixed) {
  const auto least = [](std::size_t size) { return 10 * size + 1; };  // a tenth is to validate on
  std::string longer = fmt::format("give at least {} characters", least(block_size));
  const std::size_t most = std::min(ids.train.size(), ids.validation.size());
  if (fixed)
    return longer;
  return most > 1 ? fmt::format("{}, or --block-size {} or less", longer, most - 1)
                  : fmt::format("{}, or {} with --block-size 1", longer, least(1));
}

text::Text read_named(const std::string& path, const std::optional<text::Characters>& characters) {
  try {
    return text::read_text(path, characters);
  } catch (const xgrad::ValueError& error) {
    throw xgrad::FileError(fmt::format("{}: {}", path, reason(error)));
  }
}

}  // namespace

corpus::Corpus corpus_of(const std::string& preset) {
  return find_preset(preset).names ? corpus::names_corpus() : corpus::scenes_corpus();
}

Source open_source(const std::string& path, const std::string& validation,
                   const std::string& preset, const std::optional<text::Characters>& characters) {
  Source source;
  std::vector<double> nll;
  source.name = !path.empty()               ? path
                : find_preset(preset).names ? "the embedded names"
                                            : "the embedded corpus";
  text::Text text;
  if (path.empty()) {
    corpus::Corpus corpus = corpus_of(preset);
    const std::u32string decoded = text::decode_utf8(corpus.text, source.name);
    text.characters = characters ? *characters : text::Characters::of(decoded);
    try {
      text.ids = text.characters.encode(decoded);
    } catch (const xgrad::ValueError& error) {
      throw xgrad::FileError(fmt::format("{}: {}", source.name, reason(error)));
    }
    nll = std::move(corpus.nll);
  } else {
    text = read_named(path, characters);
  }
  source.characters = std::move(text.characters);
  source.all = text.ids;
  if (!validation.empty()) {
    source.ids = {source.all, read_named(validation, source.characters).ids};
    source.validation_name = validation;
    return source;
  }
  source.ids = text::split(source.all);
  source.validation_name = fmt::format("the validation split of {}", source.name);
  if (!nll.empty())
    source.nll.assign(nll.end() - static_cast<std::ptrdiff_t>(source.ids.validation.size()),
                      nll.end());
  return source;
}

void check_blocks(const Source& source, std::size_t block_size, bool fixed) {
  try {
    text::block_count(source.ids.train, block_size, "training");
    text::block_count(source.ids.validation, block_size, "validation");
  } catch (const xgrad::ValueError& error) {
    const bool split = source.ids.train.size() < source.all.size();
    throw xgrad::FileError(fmt::format(
        "{}: {}{}",
        source.ids.train.size() > block_size && !split ? source.validation_name : source.name,
        reason(error), split ? ": " + advice(source.ids, block_size, fixed) : ""));
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
