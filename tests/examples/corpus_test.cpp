// The corpus that is trained on without --data, and the grammar that knows how probable it is.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <xgrad/autograd/error.hpp>

#include "char_transformer/corpus.hpp"
#include "examples/char_transformer_run.hpp"
#include "examples/corpus_nll.hpp"

using namespace corpus;

namespace {

/// How often a text came in many draws, and -log p of its last character.
struct Found {
  double count = 0, nll = 0;
};
using AllFound = std::map<std::string, Found>;

/// The first characters of texts with many seeds, and all beginnings of these.
template <class F>
AllFound draw_many(std::size_t characters, std::uint64_t times, const F& draw) {
  AllFound found;
  double disagreement = 0;
  for (std::uint64_t seed = 0; seed < times; ++seed) {
    const Corpus corpus = draw(characters, seed);
    for (std::size_t k = 0; k <= characters; ++k) {
      Found& f = found[corpus.text.substr(0, k)];
      const double nll = k == 0 ? 0 : corpus.nll[k - 1];
      if (f.count++ > 0)
        disagreement = std::max(disagreement, std::abs(nll - f.nll));
      f.nll = nll;
    }
  }
  CHECK(disagreement < 1e-12);  // it depends on the text alone
  return found;
}

/// Holds the probabilities of all characters that may follow a text to a sum of 1, and each to how
/// often it came, for every text that came often enough.  Returns how many did.
int check_next_characters(const AllFound& found, double often) {
  int checked = 0;
  double most_missing = 0, most_over = 0, worst = 0;
  for (auto text = found.begin(); text != found.end(); ++text) {
    const double n = text->second.count;
    double sum = 0;
    if (n < often)
      continue;
    for (auto next = std::next(text); next != found.end() && next->first.starts_with(text->first);
         ++next) {
      if (next->first.size() != text->first.size() + 1)
        continue;
      const double p = std::exp(-next->second.nll);
      sum += p;
      worst = std::max(worst, std::abs(next->second.count - n * p) /
                                  (5 * std::sqrt(n * p * (1 - p)) + 5));  // standard deviations
    }
    if (sum == 0)  // where the texts end
      continue;
    ++checked;
    most_over = std::max(most_over, sum - 1);
    most_missing = std::max(most_missing, n * (1 - sum));  // those that happened not to come
  }
  CHECK(most_over < 1e-12);
  CHECK(most_missing < 15);
  CHECK(worst < 1);
  return checked;
}

/// All of the notation, in a language of a few dozen texts of 45 characters.
const char* const pets = R"(scene: <x=pet>: <line><rest>~
  ---------------------------------------------
line: <x> <x.does> | 3 <y=pet !x> <deed>
deed: 2 hid
  ^<x.his> ball | met <z=x><x=y><y=z><x>
rest: . | ,^<t=toy>^and <x.his> <t>! | 2 ^but not <t=toy>
toy: 5 ball | bone
pet: 2 Rex | Puss | Polly
does: barks | purrs | says <toy>
his: his | her | her
)";

}  // namespace

TEST_CASE("a text's probability is the product of its choices", "[corpus]") {
  const AllFound found =
      draw_many(45, 20000, [](std::size_t n, std::uint64_t seed) { return grow(pets, n, seed); });
  const auto p = [&](const std::string& text) {
    double sum = 0;
    for (std::size_t k = 0; k <= text.size(); ++k)
      sum += found.at(text.substr(0, k)).nll;
    return std::exp(-sum);
  };
  // Rex, then the pair; of the other two Puss; hidden; then the longest ending, and a ball.
  CHECK(p("Rex: Puss hid his ball but not ball\n") ==
        Approx(2.0 / 4 * 3 / 4 * 1 / 2 * 2 / 3 * 2 / 4 * 5 / 6));
  // The slots have changed places: it is Puss who is met by herself, and whose toy it is.
  CHECK(p("Rex: Puss met Puss, bone and her bone!") ==
        Approx(2.0 / 4 * 3 / 4 * 1 / 2 * 1 / 3 * 1 / 4 * 1 / 6));
  // Polly herself, whose deed has a choice of its own; the last bone is remembered and free.
  CHECK(p("Polly: Polly says ball, bone and her bone!") ==
        Approx(1.0 / 4 * 1 / 4 * 5 / 6 * 1 / 4 * 1 / 6));
  // After "Polly: " come Polly herself (1/4), Rex (3/4 * 2/3) and Puss (3/4 * 1/3): the first
  // letter tells Rex, the second Puss from Polly.
  CHECK(p("Polly: P") / p("Polly: ") == Approx(0.5));
  CHECK(p("Polly: Po") / p("Polly: P") == Approx(0.5));

  double total = 0, worst = 0;
  for (const auto& [text, f] : found)
    total += text.size() == 45 ? p(text) : 0;
  CHECK(total == Approx(1).epsilon(1e-12));
  // And the probability of each beginning is that of all the texts that begin so.
  for (const auto& [begin, f] : found) {
    double mass = 0;
    for (auto text = found.find(begin); text != found.end() && text->first.starts_with(begin);
         ++text)
      mass += text->first.size() == 45 ? p(text->first) : 0;
    worst = std::max(worst, std::abs(mass - p(begin)));
  }
  CHECK(worst < 1e-12);
  CHECK(check_next_characters(found, 100) > 500);
}

TEST_CASE("a text that does not tell what was chosen is rejected", "[corpus]") {
  for (const char* const planted :
       {"scene: hat | hatbox", "scene: hatbox | hat", "scene: cat | cat",
        "scene: <xx>.\nxx: the <yy> | the cat\nyy: cat | dog",
        "scene: <xx>.\nxx: a | <yy>\nyy: b | <zz>\nzz: c | ab",
        "scene: <p=tt> <q=tt>: <xx>\nxx: <p> | <q>\ntt: a | b",
        "scene: <p=tt>: <xx>\nxx: <p.mm> | cap\ntt: a | b\nmm: fez | capable"})
    CHECK_THROWS_AS(grow(planted, 200, 1), xgrad::ValueError);
  // The same with two that are sure to differ is no mistake.
  CHECK_NOTHROW(grow("scene: <p=tt> <q=tt !p>: <xx>\nxx: <p> | <q>\ntt: a | b", 200, 1));
}

TEST_CASE("the corpus depends on the seed and on nothing else", "[corpus]") {
  const Corpus a = scenes_corpus(20000);
  CHECK(a.text != scenes_corpus(20000, 1338).text);
  // A shorter one is the beginning of a longer one, cut anywhere.
  for (const std::size_t size : {1, 77, 1234, 10001, 20000}) {
    const Corpus cut = scenes_corpus(size);
    CHECK(cut.text == a.text.substr(0, size));
    CHECK(std::equal(cut.nll.begin(), cut.nll.end(), a.nll.begin()));
  }
  // The same on every machine: FNV-1a of the text.  It changes when the words of the corpus do.
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : a.text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  CHECK(hash == 0x0ce873e202b46f79u);
}

TEST_CASE("the corpus is as large, as plain and as surprising as it says", "[corpus]") {
  const Corpus corpus = scenes_corpus();
  CHECK(corpus.text.size() == 1000000);
  CHECK(corpus.nll.size() == 1000000);
  const std::set<char> used(corpus.text.begin(), corpus.text.end());
  CHECK(used.size() == 61);
  CHECK((*used.begin() == '\n' && *std::next(used.begin()) == ' ' && *used.rbegin() == 'z'));
  CHECK(corpus.text.find("  ") == std::string::npos);
  CHECK(corpus.text.find("\n\n\n") == std::string::npos);
  CHECK(*std::min_element(corpus.nll.begin(), corpus.nll.end()) >= 0);
  CHECK(mean_nll(corpus, 900001, 1000000) == Approx(0.337456302084).epsilon(1e-10));
  // The next character comes as often as is said.
  CHECK(check_next_characters(draw_many(60, 4000, scenes_corpus), 30) > 100);
}

TEST_CASE("names are short, in harmony, and as probable as they say", "[corpus]") {
  const Corpus corpus = names_corpus();
  CHECK(corpus.text.size() == 100000);
  CHECK(std::set<char>(corpus.text.begin(), corpus.text.end()).size() == 25);
  CHECK(mean_nll(corpus, 90001, 100000) == Approx(1.543041332584).epsilon(1e-10));
  std::set<std::string> names;
  std::size_t count = 0, longest = 0, shortest = 100;
  std::istringstream lines(corpus.text.substr(0, corpus.text.rfind('\n')));
  for (std::string name; std::getline(lines, name); ++count) {
    longest = std::max(longest, name.size());
    shortest = std::min(shortest, name.size());
    names.insert(name);
    const bool dark = name.find_first_of("aou") != name.npos;
    const bool bright = name.find_first_of("ei") != name.npos;
    if (dark == bright)
      FAIL_CHECK(name << " is not in harmony");
  }
  CHECK(longest <= 11);
  CHECK(shortest >= 2);
  CHECK(names.size() > 4000);
  CHECK(names.size() < count);  // the frequent ones come again
  CHECK(check_next_characters(draw_many(15, 4000, names_corpus), 30) > 30);
}
