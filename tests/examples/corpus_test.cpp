// The embedded corpus, and the grammar that knows how probable it is.

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <xgrad/autograd/error.hpp>
#include <xgrad/data/corpus/corpus.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"

using namespace xgrad;
using namespace xgrad::text;

namespace {

RandomBits bits(std::uint32_t seed) {
  return [engine = std::mt19937(seed)]() mutable { return static_cast<std::uint32_t>(engine()); };
}

/// How often a text came in many draws, and -log p of its last character.
struct Found {
  double count = 0, nll = 0;
};

/// What follows the first `from` characters of a text (or some more: up to where the next draw
/// decides) in many draws, and all beginnings of that.
std::map<std::string, Found> draw_many(const Grammar& grammar, std::size_t from,
                                       std::size_t characters, int times) {
  const auto bits_of = [&](std::size_t n) {
    std::vector<std::uint32_t> used;
    grammar.generate(n, [&, random = bits(42)] { return used.emplace_back(random()); });
    return used;
  };
  while (bits_of(from).size() == bits_of(from + 1).size())
    ++from;
  const std::vector<std::uint32_t> first = bits_of(from);
  std::map<std::string, Found> found;
  double disagreement = 0;
  for (int i = 0; i < times; ++i) {
    const Sample sample = grammar.generate(
        from + characters,
        [&, used = std::size_t{0}, rest = bits(static_cast<std::uint32_t>(i))]() mutable {
          return used < first.size() ? first[used++] : rest();
        });
    for (std::size_t k = 0; k <= characters; ++k) {
      Found& f = found[sample.text.substr(from, k)];
      const double nll = k == 0 ? 0 : sample.nll[from + k - 1];
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
int check_next_characters(const std::map<std::string, Found>& found, double often) {
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
const char* const pets = R"(
# A comment.
scene: <p=pet>: <line p><rest p>\n
  ---------------------------------------------
line x: <x> <x.does> | 3 <q=pet !x> <deed xq>
deed xy: 2 hid
  <x.his> ball | met <r=pet !xy>
rest x: . | ,_<t=toy>_and <x.his> <t>! | 2 _but not <t=toy>
toy: 5 ball | bone

pet.does.his: 2 Rex / barks / his | Puss / purrs / her
  | Polly / says <toy> / her
)";

std::string complaint(std::string_view source) {
  try {
    Grammar(source).generate(200, bits(1));
  } catch (const ValueError& error) {
    return error.what();
  }
  return "(accepted)";
}

}  // namespace

TEST_CASE("surprise is shared out over the characters that cause it", "[corpus]") {
  auto found = draw_many(Grammar("scene: <word>.\\n\nword: 2 cat | cow | hen\n"), 0, 6, 1000);
  // After nothing: c has 3/4; then a 2/3, o 1/3; all else is certain.
  const double c = -std::log(0.75), a = -std::log(2.0 / 3), o = -std::log(1.0 / 3),
               h = -std::log(0.25);
  const std::pair<std::string, std::vector<double>> expected[] = {
      {"cat.\nc", {c, a, 0, 0, 0, c}}, {"cow.\nh", {c, o, 0, 0, 0, h}}, {"hen", {h, 0, 0}}};
  for (const auto& [text, nll] : expected) {
    for (std::size_t i = 0; i < nll.size(); ++i)
      CHECK(found.at(text.substr(0, i + 1)).nll == Approx(nll[i]).margin(1e-12));
  }
}

TEST_CASE("a text's probability is the product of its choices", "[corpus]") {
  auto found = draw_many(Grammar(pets), 0, 45, 20000);
  const auto p = [&](const std::string& text) {
    double sum = 0;
    for (std::size_t k = 0; k <= text.size(); ++k)
      sum += found.at(text.substr(0, k)).nll;
    return std::exp(-sum);
  };
  // Rex, then the pair; of the other two Puss; hidden; then the longest ending, and a ball.
  CHECK(p("Rex: Puss hid his ball but not ball\n") ==
        Approx(2.0 / 4 * 3 / 4 * 1 / 2 * 2 / 3 * 2 / 4 * 5 / 6));
  // The third is certain.
  CHECK(p("Rex: Puss met Polly.") == Approx(2.0 / 4 * 3 / 4 * 1 / 2 * 1 / 3 * 1 / 4));
  // Polly herself, in whose cell a choice is made anew; the last bone is remembered and free.
  CHECK(p("Polly: Polly says ball, bone and her bone!") ==
        Approx(1.0 / 4 * 1 / 4 * 5 / 6 * 1 / 4 * 1 / 6));
  // After "Polly: " come Polly herself (1/4), Rex (3/4 * 2/3) and Puss (3/4 * 1/3).
  CHECK(p("Polly: P") / p("Polly: ") == Approx(0.5));
  CHECK(p("Polly: Po") / p("Polly: P") == Approx(0.5));

  double total = 0, worst = 0;
  int texts = 0;
  for (const auto& [text, f] : found) {
    if (text.size() != 45)
      continue;
    ++texts;
    total += p(text);
  }
  CHECK(texts == (5 + 5 + 6) * 5);
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

TEST_CASE("the next character of the corpus comes as often as is said", "[corpus]") {
  // In a title, and where a scene is under way.
  for (const std::size_t from : {0, 50, 130, 300, 420}) {
    CAPTURE(from);
    CHECK(check_next_characters(draw_many(corpus_grammar(), from, 30, 2000), 30) > 30);
  }
}

TEST_CASE("small numbers are not favoured", "[corpus]") {
  // Of 2^32 draws one is too many for three alternatives, and drawn again.
  std::vector<std::uint32_t> draws = {0xFFFFFFFF, 0xFFFFFFFE, 1};
  const auto random = [&, i = 0u]() mutable { return draws.at(i++); };
  CHECK(Grammar("scene: a | b | c").generate(2, random).text == "cb");
}

TEST_CASE("a text that does not tell what was chosen is rejected, and the rule is named",
          "[corpus]") {
  const std::pair<const char*, const char*> planted[] = {
      {"scene: hat | hatbox", "scene"},
      {"scene: hatbox | hat", "scene"},
      {"scene: cat | cat", "scene"},
      {"scene: <xx>.\nxx: the <yy> | the cat\nyy: cat | dog", "of scene"},
      {"scene: <xx>.\nxx: a | <yy>\nyy: b | <zz>\nzz: c | ab", "of scene"},
      {"scene: <p=tt> <q=tt>: <xx pq>\nxx pq: <p> | <q>\ntt: a | b", "of xx"},
      {"scene: <p=tt>: <xx p>\nxx p: <p> | <q=tt>\ntt: a | b", "of xx"},
      {"scene: <p=tt>: <xx p>\nxx p: <p.m> | cap\ntt.m: a / fez | b / capable", "of xx"},
  };
  for (const auto& [source, rule] : planted)
    CHECK_THAT(complaint(source), ContainsSubstring("does not tell") && ContainsSubstring(rule));
  // Whichever of the two is taken.
  const auto first = [] { return 0u; };
  CHECK_THROWS_AS(Grammar("scene: hat | hatbox").generate(6, first), ValueError);
  CHECK_THROWS_AS(Grammar("scene: hatbox | hat").generate(6, first), ValueError);
  // The same with two that are sure to differ is no mistake.
  CHECK(complaint("scene: <p=tt> <q=tt !p>: <xx pq>\nxx pq: <p> | <q>\ntt: a | b") == "(accepted)");
}

TEST_CASE("mistakes in a grammar are rejected", "[corpus]") {
  const std::pair<const char*, const char*> planted[] = {
      {"rule: a", "<scene> names no rule"},
      {"scene: a <xx", "<xx> names no rule"},
      {"scene: a\nscene: b", "scene is defined twice"},
      {"scene: a | | b", "scene has an empty cell"},
      {"scene:", "scene has an empty cell"},
      {"scene: 12", "scene has an empty cell"},
      {"scene: <p=tt>\ntt.m: a / b | c", "tt has an empty cell"},
      {"scene: <p=tt>\ntt.m: a / b / c", "tt has too many cells"},
      {"scene: <p=tt> <p.n>\ntt.m: a / b", "tt has no column n"},
      {"scene: a\\t", "backslash"},
      {"scene P: a", "'P' in 'P' is not a slot"},
      {"scene: <xx a>\nxx: b", "<xx a> gives 1 slots, but the rule takes 0"},
      {"scene: a <s>", "slot s is not bound"},
      {"scene: a <s.m>", "slot s is not bound"},
      {"scene: a <q=tt !s>\ntt: b", "slot s is not bound"},
      {"scene: a <p=tt> <xx p><s>\nxx p: <s=tt>\ntt: b", "slot s is not bound"},
      {"scene: <p=tt> <q=tt !p>\ntt: a", "nothing of tt is left"},
  };
  for (const auto& [source, wanted] : planted)
    CHECK_THAT(complaint(source), ContainsSubstring(wanted));
}

TEST_CASE("the corpus depends on the seed and on nothing else", "[corpus]") {
  const EmbeddedCorpus a = embedded_corpus(20000, 1337), b = embedded_corpus(20000, 1337);
  CHECK(a.text == b.text);
  CHECK(a.nll == b.nll);
  CHECK(a.text != embedded_corpus(20000, 1338).text);
  // A shorter one is the beginning of a longer one, cut anywhere.
  for (const std::size_t size : {1, 77, 1234, 10001}) {
    const EmbeddedCorpus cut = embedded_corpus(size, 1337);
    CHECK(cut.text == a.text.substr(0, size));
    CHECK(std::equal(cut.nll.begin(), cut.nll.end(), a.nll.begin()));
  }
  CHECK_THROWS_AS(embedded_corpus(0), ValueError);
  // The same on every machine: FNV-1a of the text.  It changes when the words of the corpus do.
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : a.text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  CHECK(hash == 0x26bb8e9dcad3c066u);
}

TEST_CASE("names are short, in harmony, and as probable as they say", "[corpus]") {
  const EmbeddedCorpus corpus = names_corpus();
  CHECK(corpus.text.size() == 100000);
  CHECK(corpus.nll.size() == 100000);
  CHECK(std::set<char>(corpus.text.begin(), corpus.text.end()).size() == 25);
  CHECK(corpus.mean_nll(90001, 100000) == Approx(1.543041332584).epsilon(1e-10));
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
  for (const std::size_t from : {0, 5, 100})
    CHECK(check_next_characters(draw_many(names_grammar(), from, 12, 4000), 30) > 30);
  CHECK_THROWS_AS(names_corpus(0), ValueError);
  CHECK(names_corpus(1000, 7).text != corpus.text.substr(0, 1000));
  CHECK(names_corpus(1000).text == corpus.text.substr(0, 1000));
}

TEST_CASE("the corpus is as large, as plain and as surprising as it says", "[corpus]") {
  const EmbeddedCorpus corpus = embedded_corpus();
  CHECK(corpus.text.size() == 1000000);
  CHECK(corpus.nll.size() == 1000000);
  const std::set<char> used(corpus.text.begin(), corpus.text.end());
  CHECK(used.size() == 61);
  CHECK((*used.begin() == '\n' && *std::next(used.begin()) == ' ' && *used.rbegin() == 'z'));
  CHECK(corpus.text.find("  ") == std::string::npos);
  CHECK(corpus.text.find("\n\n\n") == std::string::npos);
  CHECK(*std::min_element(corpus.nll.begin(), corpus.nll.end()) >= 0);
  CHECK(corpus.mean_nll(900001, 1000000) == Approx(0.463252032230).epsilon(1e-10));
  CHECK(corpus.mean_nll(10, 12) == Approx((corpus.nll[10] + corpus.nll[11]) / 2));
  CHECK_THROWS_AS(corpus.mean_nll(5, 5), ValueError);
  CHECK_THROWS_AS(corpus.mean_nll(0, 1000001), ValueError);
}
