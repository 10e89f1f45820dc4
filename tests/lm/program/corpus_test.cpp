// The texts for training without --data, and their stated probabilities.

#include <cmath>
#include <map>
#include <set>
#include <xgrad/autograd/error.hpp>

#include <xgrad/lm/program/corpus.hpp>
#include "lm/program/corpus_nll.hpp"
#include "lm/program/run.hpp"

using namespace corpus;

TEST_CASE("the corpus depends on the seed and on nothing else", "[corpus]") {
  const Corpus a = scenes_corpus(20000);
  CHECK(a.text != scenes_corpus(20000, 1338).text);
  // A shorter text is the beginning of a longer one, cut anywhere.
  for (const std::size_t size : {1, 77, 1234, 10001, 20000}) {
    const Corpus cut = scenes_corpus(size);
    CHECK(cut.text == a.text.substr(0, size));
    CHECK(std::equal(cut.nll.begin(), cut.nll.end(), a.nll.begin()));
  }
  // The same on every machine: FNV-1a of the text.  It changes when the words of the corpus do.
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : a.text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  CHECK(hash == 0xe0269e2e98aedc81u);
}

TEST_CASE("the corpus is as large, as plain and as surprising as it says", "[corpus]") {
  for (const auto& [corpus, size, characters, entropy] :
       {std::tuple{scenes_corpus(), 1'000'000U, 54U, 0.3154435031},
        {names_corpus(), 100'000U, 25U, 1.6341815164}}) {
    CHECK(corpus.text.size() == size);
    CHECK(corpus.nll.size() == size);
    CHECK(std::set<char>(corpus.text.begin(), corpus.text.end()).size() == characters);
    CHECK(corpus.text.find("  ") == std::string::npos);
    CHECK(mean_nll(corpus, size / 10 * 9 + 1, size) == Approx(entropy).epsilon(1e-9));
  }
}

TEST_CASE("a text is as probable as it says, whatever was chosen to write it", "[corpus]") {
  for (const auto& draw : {names_corpus, scenes_corpus}) {
    // Equal words have equal probability, so the text reveals the choices.
    const Corpus corpus = draw(1'000'000, 1);
    std::map<std::string, double> found;
    std::size_t again = 0;
    for (std::size_t begin = 0, end = 0; (end = corpus.text.find('\n', begin)) != corpus.text.npos;
         begin = end + 1) {
      const std::string line = corpus.text.substr(begin, end - begin);
      // A choice may have been made before its first character.
      const double nll = begin < end ? mean_nll(corpus, begin + 1, end + 1) : 0;
      const auto [at, is_new] = found.emplace(line, nll);
      again += !is_new;
      if (std::abs(at->second - nll) > 1e-12)
        FAIL_CHECK(line << " was written in two ways");
    }
    CHECK(again > 1000);
    // First lines are as frequent as stated.
    std::map<std::string, std::pair<double, double>> counts;  // and their -log p
    constexpr std::uint64_t seeds = 20000;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Corpus one = draw(40, seed);
      const std::size_t end = std::min<std::size_t>(one.text.find('\n'), 39);
      auto& [count, nll] = counts[one.text.substr(0, end)];
      ++count;
      nll = mean_nll(one, 0, end + 1) * static_cast<double>(end + 1);
    }
    std::size_t checked = 0;
    for (const auto& [text, found_of] : counts) {
      const double expected = static_cast<double>(seeds) * std::exp(-found_of.second);
      if (expected < 30)
        continue;
      ++checked;
      CAPTURE(text);
      CHECK(std::abs(found_of.first - expected) < 5 * std::sqrt(expected));
    }
    CHECK(checked > 30);
  }
}

TEST_CASE("the vowels of a name are in harmony", "[corpus]") {
  std::istringstream lines(names_corpus(10'000).text);
  std::set<std::string> names;
  for (std::string name; std::getline(lines, name) && !lines.eof();) {
    names.insert(name);
    if ((name.find_first_of("aou") != name.npos) == (name.find_first_of("ei") != name.npos))
      FAIL_CHECK(name << " is not in harmony");
  }
  CHECK(names.size() > 1000);
}
