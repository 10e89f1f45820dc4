// The texts of --data and --val-data.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <utility>
#include <xgrad/io/file.hpp>
#include <xgrad/lm/text.hpp>

#include "checkpoint_info.hpp"
#include "output.hpp"
#include "sample.hpp"

namespace program {
namespace {

namespace lm = xgrad::lm;

std::string checksum(const lm::Ids& ids) {
  xgrad::io::Checksum sum;
  std::array<std::uint32_t, 4096> some;  // 32 bits each, for ids of any width
  for (std::size_t begin = 0; begin < ids.size(); begin += some.size()) {
    const std::size_t n = std::min(some.size(), ids.size() - begin);
    for (std::size_t i = 0; i < n; ++i)
      some[i] = static_cast<std::uint32_t>(ids[begin + i]);
    sum.add(some.data(), n * sizeof(some[0]));
  }
  return sum.digits();
}

/// A part of a text as UTF-8, without other copies of a long one.
std::string utf8_of(const lm::Characters& characters, const lm::Ids& part) {
  constexpr std::size_t some = 1 << 20;
  std::string all;
  for (std::size_t at = 0; at < part.size(); at += some)
    all += characters.decode(part.part(at, std::min(some, part.size() - at)));
  return all;
}

/// The characters that a text may have; none: any.
std::optional<lm::Characters> allowed(const std::optional<Vocabulary>& vocabulary) {
  return vocabulary && vocabulary->characters() ? std::optional(*vocabulary->characters())
                                                : std::nullopt;
}

/// A dataset without names and nll; the parameters are those of open_dataset().
Dataset make_dataset(const lm::Text& read, const std::optional<Vocabulary>& vocabulary,
                     std::size_t learn, bool splits) {
  Dataset dataset;
  if (vocabulary ? vocabulary->characters() != nullptr : learn == 0) {
    dataset.vocabulary = Vocabulary(read.characters);
    dataset.all = read.ids;
    dataset.ids = lm::split(read.ids);
    dataset.sum = checksum(read.ids);
    return dataset;
  }
  const lm::Split parts = splits ? lm::split(read.ids) : lm::Split{read.ids, {}};
  xgrad::io::Checksum sum;
  std::string utf8 = utf8_of(read.characters, parts.train);
  sum.add(utf8.data(), utf8.size());
  dataset.vocabulary = vocabulary ? *vocabulary : Vocabulary(lm::BytePairs::learn(utf8, learn));
  dataset.ids.train = dataset.vocabulary.encode_text(utf8, &dataset.unknown.train);
  warn_of_unknown("the text", utf8, dataset.unknown.train, dataset.vocabulary);
  utf8 = utf8_of(read.characters, parts.validation);
  sum.add(utf8.data(), utf8.size());
  dataset.ids.validation = dataset.vocabulary.encode_text(utf8, &dataset.unknown.validation);
  warn_of_unknown("the validation split", utf8, dataset.unknown.validation, dataset.vocabulary);
  dataset.all = utf8.empty() ? dataset.ids.train : lm::Ids();
  dataset.sum = sum.digits();
  return dataset;
}

}  // namespace

std::optional<double> Dataset::entropy(std::size_t asked) const {
  if (nll.empty())
    return std::nullopt;
  const auto begin = nll.begin() + 1;
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(asked), 0.0) /
         static_cast<double>(asked);
}

Dataset open_dataset(const std::string& path, const std::string& validation,
                     const std::string& preset, const std::optional<Vocabulary>& vocabulary,
                     std::size_t learn, bool splits) {
  Dataset dataset;
  std::vector<double> nll;
  std::string name = path;
  try {
    lm::Text read;
    if (path.empty()) {
      const bool names = find_preset(preset).names;
      name = names ? "the embedded names" : "the embedded corpus";
      corpus::Corpus corpus = names ? corpus::names_corpus() : corpus::scenes_corpus();
      const std::u32string decoded = lm::decode_utf8(corpus.text, name);
      read.characters = allowed(vocabulary) ? *allowed(vocabulary) : lm::Characters::of(decoded);
      read.ids = read.characters.encode(decoded);
      nll = std::move(corpus.nll);
    } else {
      read = lm::read_text(path, allowed(vocabulary));
    }
    dataset = make_dataset(read, vocabulary, learn, splits && validation.empty());
    dataset.name = name;
    dataset.training_name = fmt::format("the training split of {}", name);
    dataset.validation_name = fmt::format("the validation split of {}", name);
    if (!validation.empty()) {
      dataset.training_name = name;
      name = dataset.validation_name = validation;
      const Dataset other = make_dataset(lm::read_text(validation, allowed(dataset.vocabulary)),
                                         dataset.vocabulary, 0, false);
      dataset.ids = {dataset.all, other.all};
      dataset.unknown.validation = other.unknown.train;
      dataset.val_sum = other.sum;
    } else if (!nll.empty() && !dataset.vocabulary.pairs()) {
      dataset.nll.assign(nll.end() - static_cast<std::ptrdiff_t>(dataset.ids.validation.size()),
                         nll.end());
    }
  } catch (const lm::UnknownCharacter& error) {
    fail<FileError>("{}: {}; a model with --tokens bpe knows all", name, reason(error));
  } catch (const ValueError& error) {
    fail<FileError>("{}: {}", name, reason(error));
  }
  return dataset;
}

Dataset open_run_dataset(const std::string& data, const std::string& val_data,
                         const std::string& checkpoint, const CheckpointInfo& info, bool splits) {
  if (const bool adapters = !adapters_folder(checkpoint).empty();
      adapters || !pretrained_folder(checkpoint).empty())
    fail<FileError>("{}: {}, whose text is unknown; --data FILE names a text", checkpoint,
                    adapters ? "adapters" : "a pretrained model");
  const xgrad::io::Json config =
      read_object((std::filesystem::path(checkpoint).parent_path() / "config.json").string());
  // The configuration may be a stranger's, and reading a pipe would wait.
  const auto noted = [&](const char* key, const char* flag) {
    const std::string path = text_in(config, key);
    if (std::error_code none; !path.empty() && !std::filesystem::is_regular_file(path, none))
      fail<FileError>("{}: no such file{}; {} FILE names the text", path,
                      path == standard_input ? ", it was standard input" : "", flag);
    return path;
  };
  const std::string path = data.empty() ? noted("data", "--data") : data;
  const std::string validation = val_data.empty() ? noted("val_data", "--val-data") : val_data;
  const bool known = !path.empty() || config.find<std::nullptr_t>("data") != nullptr;
  try {
    Dataset dataset =
        open_dataset(path, validation, text_in(info.config, "preset"), info.vocabulary, 0, splits);
    if (known || (!info.text.empty() && other_text(dataset, info).empty()))
      return dataset;
  } catch (const FileError&) {
    if (known)
      throw;  // otherwise it has other characters
  }
  throw FileError(checkpoint +
                  ": there is no config.json beside it that names its text; --data "
                  "FILE names a text");
}

std::string end_id(const std::string& given, const Vocabulary& vocabulary) {
  const bool marked = given.starts_with("id:");
  std::string number = given.substr(marked ? 3 : 0);
  const auto is_text = [characters = vocabulary.characters()](char c) {
    return characters != nullptr && characters->contains(static_cast<unsigned char>(c));
  };
  if (number.find_first_not_of("0123456789") != number.npos ||
      (!marked && std::ranges::all_of(number, is_text)))
    number.clear();
  check<ValueError>(!marked || !number.empty(), "--document-end {}: an id is a number, as in id:0",
                    xgrad::printable_name(given));
  return number;
}

std::vector<std::int64_t> document_end_of(const std::string& given, const Vocabulary& vocabulary) {
  if (given.empty())
    return {};
  const std::string number = end_id(given, vocabulary);
  if (number.empty()) {
    check<ValueError>(vocabulary.unknown_bytes(given) == 0,
                      "--document-end '{}': the vocabulary has no tokens for some of it",
                      xgrad::printable_name(given));
    return encode("--document-end", given, vocabulary);
  }
  const double id = std::strtod(number.c_str(), nullptr);
  check<ValueError>(id < static_cast<double>(vocabulary.size()),
                    "--document-end {}: the vocabulary has {}; a number is an id", given,
                    vocabulary.count(vocabulary.size()));
  return {static_cast<std::int64_t>(id)};
}

std::size_t count_documents(const lm::Ids& text, std::span<const std::int64_t> end) {
  std::size_t n = 0;
  for (std::size_t i = 0; !end.empty() && i + end.size() <= text.size(); ++i) {
    std::size_t same = 0;
    while (same < end.size() && text[i + same] == end[same])
      ++same;
    n += same == end.size() ? 1 : 0;
  }
  return n;
}

void check_document_end(const std::string& given, const lm::Ids& ids, const std::string& name,
                        const Vocabulary& vocabulary) {
  if (given.empty())
    return;
  const std::size_t found = count_documents(ids, document_end_of(given, vocabulary));
  std::size_t written = 0;
  if (vocabulary.pairs() != nullptr && end_id(given, vocabulary).empty()) {
    const std::string all = vocabulary.pairs()->decode(ids);
    for (std::size_t at = 0; (at = all.find(given, at)) != all.npos; at += given.size())
      ++written;
  }
  if (written > found)
    fail<FileError>(
        "{}: --document-end '{}' is there {}, but only {} as tokens of its own: elsewhere a token "
        "holds a part of it and of the text beside it. Give a special token, or an id, as id:0",
        name, xgrad::printable_name(given), format_count(written, "time"),
        format_count(found, "time"));
  check<FileError>(found > 0, "{}: no document ends with --document-end '{}'", name,
                   xgrad::printable_name(given));
}

void check_block(const lm::Ids& ids, const std::string& name, std::size_t block_size,
                 const Vocabulary& vocabulary) {
  if (ids.size() <= block_size)
    fail<FileError>("{}: {}: too few for --block-size {}, which needs one more", name,
                    vocabulary.count(ids.size()), block_size);
}

std::string other_text(const Dataset& dataset, const CheckpointInfo& info) {
  const auto is_other = [](const std::string& sum, const std::string& noted) {
    return !noted.empty() && sum != noted;
  };
  return is_other(dataset.sum, info.text)           ? "--data"
         : is_other(dataset.val_sum, info.val_text) ? "--val-data"
                                                    : "";
}

}  // namespace program
