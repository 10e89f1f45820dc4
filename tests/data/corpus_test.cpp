// The embedded corpus, and the grammar that knows how probable it is.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <xgrad/autograd/error.hpp>
#include <xgrad/data/corpus/corpus.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"

using namespace xgrad;
using namespace xgrad::data;

namespace {

RandomBits bits(std::uint32_t seed) {
  return [engine = std::mt19937(seed)]() mutable { return static_cast<std::uint32_t>(engine()); };
}

std::string complaint(std::string_view source) {
  return message_of<ValueError>([source] { const Grammar grammar(source); });
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

TEST_CASE("surprise is shared out over the characters that cause it", "[corpus]") {
  const Grammar grammar("scene: <word>.\\n\nword: 2 cat | cow | hen\n");
  // After nothing: c has 3/4; then a 2/3, o 1/3; all else is certain.
  const Score cat = grammar.score("cat.\n"), cow = grammar.score("cow.\n"),
              hen = grammar.score("hen.\n");
  const double c = -std::log(0.75), a = -std::log(2.0 / 3), o = -std::log(1.0 / 3),
               h = -std::log(0.25);
  const std::vector<std::vector<double>> expected = {
      {c, a, 0, 0, 0}, {c, o, 0, 0, 0}, {h, 0, 0, 0, 0}};
  const Score* const scores[] = {&cat, &cow, &hen};
  for (std::size_t word = 0; word < 3; ++word) {
    for (std::size_t i = 0; i < 5; ++i)
      CHECK(scores[word]->per_character[i] == Approx(expected[word][i]).margin(1e-12));
  }
  CHECK(cat.nll == Approx(std::log(2.0)));
  CHECK(cat.complete);

  const Score begun = grammar.score("hen.\nc");
  CHECK_FALSE(begun.complete);
  CHECK(begun.nll == Approx(h + c));
  CHECK(grammar.score("").nll == 0);
}

namespace {

// All of the notation, in a language of a few dozen texts.
const char* const pets = R"(
# A comment.
scene: <p=pet>: <line[p]><rest[p]>\n
line[x]: <x> <x.does> | 3 <pair[x]>
pair[x]{q}: <q=pet!x> hid
  <x.his> ball
rest[x]{t}: . | ,_<t=toy>_and <x.his> <t>! | 2 _but not <t=toy>
toy: 5 ball | bone
table pet: name | does | his
  2 Rex | barks | his
  Puss | purrs | her
  Polly | says <toy> | her
)";

/// Every text of one sentence that turns up in many draws, with its -log p.
std::map<std::string, double> sentences(const Grammar& grammar) {
  std::map<std::string, double> result;
  const RandomBits random = bits(7);
  for (int i = 0; i < 20000; ++i) {
    const Sample sample = grammar.generate(1, random);
    result.emplace(sample.text, sample.nll);
  }
  return result;
}

}  // namespace

TEST_CASE("a sentence's probability is the product of its choices", "[corpus]") {
  const Grammar grammar(pets);
  // Rex, then the pair; of the other two Puss; then the longest ending, and a ball.
  CHECK(grammar.score("Rex: Puss hid his ball but not ball\n").nll ==
        Approx(-std::log(2.0 / 4 * 3 / 4 * 1 / 2 * 2 / 4 * 5 / 6)));
  // Polly herself, in whose cell a choice is made anew; the last bone is remembered and free.
  const Score polly = grammar.score("Polly: Polly says ball, bone and her bone!\n");
  CHECK(polly.nll == Approx(-std::log(1.0 / 4 * 1 / 4 * 5 / 6 * 1 / 4 * 1 / 6)));
  // After "Polly: " come Polly herself (1/4), Rex (3/4 * 2/3) and Puss (3/4 * 1/3).
  CHECK(polly.per_character[7] == Approx(-std::log(0.5)));
  CHECK(polly.per_character[8] == Approx(-std::log(0.5)));
}

TEST_CASE("the probabilities of all texts, and of all their beginnings, are right", "[corpus]") {
  const Grammar grammar(pets);
  const auto all = sentences(grammar);
  double total = 0;
  for (const auto& [text, nll] : all)
    total += std::exp(-nll);
  CHECK(all.size() == (3 + 3 + 4) * 5);
  CHECK(total == Approx(1));
  double worst = 0;
  for (const auto& [text, nll] : all) {
    const Score score = grammar.score(text);
    CHECK(score.complete);
    double so_far = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      so_far += score.per_character[i];
      double mass = 0;  // of the texts that begin so, by going through them all
      for (const auto& [other, other_nll] : all)
        mass += other.compare(0, i + 1, text, 0, i + 1) == 0 ? std::exp(-other_nll) : 0;
      worst = std::max(worst, std::abs(so_far + std::log(mass)));
    }
  }
  CHECK(worst < 1e-12);
}

TEST_CASE("alternatives come as often as their weights say", "[corpus]") {
  const Grammar grammar("scene: 6 a | 3 b | c");
  const std::string text = grammar.generate(100000, bits(3)).text;
  const auto share = [&](char c) {
    return static_cast<double>(std::count(text.begin(), text.end(), c)) / 1e5;
  };
  CHECK(share('a') == Approx(0.6).margin(0.008));  // five standard deviations
  CHECK(share('b') == Approx(0.3).margin(0.008));
  CHECK(share('c') == Approx(0.1).margin(0.005));

  // A draw that would favour small numbers is drawn again: of 2^32 values one is too many for three
  // alternatives.
  const Grammar three("scene: a | b | c");
  std::vector<std::uint32_t> draws = {0xFFFFFFFF, 0xFFFFFFFE, 1};
  CHECK(three.generate(2, [&, i = 0u]() mutable { return draws.at(i++); }).text == "cb");
}

TEST_CASE("ambiguous grammars are rejected, and the rule is named", "[corpus]") {
  const std::pair<const char*, const char*> planted[] = {
      {"scene: hat | hatbox", "rule scene"},
      {"scene: <x>.\nx: the <y> | the cat\ny: cat | dog", "rule x"},
      {"scene: <x>.\nx: a | <y>\ny: b | <z>\nz: c | ab", "rule x"},
      {"scene: <x> | b\nx: a | <x>b", "begin with itself"},
      {"scene: a | <scene>", "begin with itself"},
      {"scene: <p=t> <q=t>: <x[p,q]>\nx[p,q]: <p> | <q>\ntable t: n\n  a\n  b", "rule x[p,q]"},
      {"scene: <p=t>: <x[p]>\nx[p]: <p> | <q=t>\ntable t: n\n  a\n  b", "rule x[p]"},
      {"scene: <p=t>: <x[p]>\nx[p]: <p.m> | cap\ntable t: n | m\n  a | fez\n  b | capable",
       "rule x[p]"},
  };
  for (const auto& [source, rule] : planted)
    CHECK_THAT(complaint(source), ContainsSubstring(rule) && !ContainsSubstring(nothing_thrown));

  // The same with two that are sure to differ, in either order of binding, is no mistake.
  CHECK(complaint("scene: <p=t> <q=t!p>: <x[p,q]>\nx[p,q]: <p> | <q>\ntable t: n\n  a\n  b") ==
        nothing_thrown);
  CHECK(complaint("scene: <p=t>: <x[p]>\nx[p]: <p> | <q=t!p>\ntable t: n\n  a\n  b") ==
        nothing_thrown);
}

TEST_CASE("slots that may be unbound, or bound twice, are rejected", "[corpus]") {
  const std::pair<const char*, const char*> planted[] = {
      {"scene: a <s>", "<s>"},
      {"scene: <x> <s>\nx: a | <s=y>\ny: b | c", "<s>"},
      {"scene: <x> <s>\nx{s}: <s=y>\ny: b | c", "<s>"},
      {"scene: <s=y> <s=y>\ny: b | c", "may be bound already"},
      {"scene: <x> <x>\nx: <s=y>\ny: b | c", "may be bound already"},
      {"scene: <q=t!p>\ntable t: n\n  a\n  b", "slot p"},
      {"scene: <p=t> <q=t!p> <r=t!p!q>\ntable t: n\n  a\n  b", "nothing left"},
      {"scene: <p=t> <q=u!p>\ntable t: n\n  a\n  b\ntable u: n\n  a\n  b", "different tables"},
      {"scene: <x> <y>\nx{s}: <s=t>\ny: <s=u>\ntable t: n\n  a\ntable u: n\n  a", nothing_thrown},
      {"scene: <s=t> | b <s=u>\ntable t: n\n  a\ntable u: n\n  a", "also bound"},
  };
  for (const auto& [source, wanted] : planted)
    CHECK_THAT(complaint(source), ContainsSubstring(wanted));
}

TEST_CASE("mistakes in the notation are rejected, and the line is named", "[corpus]") {
  const std::pair<const char*, const char*> planted[] = {
      {"rule: a", "no rule scene"},
      {"scene: a\nscene: b", "line 2: scene is defined twice"},
      {"  a", "line 1: a continuation"},
      {"scene a", "line 1: expected"},
      {"scene: a\n\nsc ene: b", "line 3: 'sc ene'"},
      {"# one\nscene: a | | b", "line 2: scene has an empty alternative"},
      {"scene: a <b", "no '>'"},
      {"scene: a\\t", "backslash"},
      {"scene: 0 a", "weight of 0"},
      {"scene: 12", "weight"},
      {"scene: <x[a]>\nx: b", "takes 0 slots, not 1"},
      {"scene: <s=x.y>\nx: b", "is not a rule"},
      {"scene: <p=t> <p.m>\ntable t: n\n  a", "no column m"},
      {"scene: <p=x> <p.m>\nx: a", "bound to a table"},
      {"scene: <p=t>\ntable t: n | m\n  a", "2 columns, but a row has 1"},
      {"scene: <p=t>\ntable t: n", "no rows"},
      {"scene: a <x>\nx: b<x><x> | c", "not finite"},
      {"scene: a <x>\nx: 2 b<x><x> | c", "rule x: it calls itself so often"},
  };
  for (const auto& [source, wanted] : planted)
    CHECK_THAT(complaint(source), ContainsSubstring(wanted));
  CHECK(complaint("scene: a <x>\nx: b<x><x> | 2 c") == nothing_thrown);
}

TEST_CASE("reading a text finds exactly the probability it was written with", "[corpus]") {
  for (const std::uint32_t seed : {0u, 1u, 42u, 1337u}) {
    const Sample sample = corpus_grammar().generate(100000, bits(seed));
    const Score score = corpus_grammar().score(sample.text);
    CHECK(score.complete);
    CHECK(score.nll == Approx(sample.nll).epsilon(1e-11));
    CHECK(score.nll == Approx(sum(score.per_character)).epsilon(1e-11));
    CHECK(score.per_character.size() == sample.text.size());
    CHECK(*std::min_element(score.per_character.begin(), score.per_character.end()) >= 0);
  }
}

TEST_CASE("a text cut anywhere is scored as the whole is up to there", "[corpus]") {
  const std::string text = corpus_grammar().generate(3000, bits(5)).text;
  const std::vector<double> whole = corpus_grammar().score(text).per_character;
  double worst = 0;
  for (std::size_t end = 0; end < text.size(); end += 7) {
    const Score cut = corpus_grammar().score(std::string_view(text).substr(0, end));
    for (std::size_t i = 0; i < end; ++i)
      worst = std::max(worst, std::abs(cut.per_character[i] - whole[i]));
  }
  CHECK(worst == 0);
}

TEST_CASE("a text with a slip is rejected where the slip is", "[corpus]") {
  const std::string text = corpus_grammar().generate(2000, bits(11)).text;
  // In a title, in a name that is known already, and in the middle of a word.
  for (const std::size_t at :
       {std::size_t{0}, text.find("(") + 1, std::size_t{700}, std::size_t{1500}}) {
    std::string wrong = text;
    wrong[at] = '#';
    try {
      corpus_grammar().score(wrong);
      FAIL("a text with a slip was accepted");
    } catch (const ValueError& error) {
      const auto line =
          1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      CHECK_THAT(error.what(), ContainsSubstring("character " + std::to_string(at) + " ") &&
                                   ContainsSubstring("line " + std::to_string(line) + ")") &&
                                   ContainsSubstring("'#'"));
    }
  }
  // Grammatical, but not what was lost.
  const std::string loss =
      "The loss of the hat\nOn the wet bridge, in dry, dry fog.\n(Enter Barnaby, looking up the "
      "chimney.)\n"
      "Barnaby: Help! My hat is gone!\n";
  CHECK_FALSE(corpus_grammar().score(loss).complete);
  std::string other = loss;
  other.replace(other.rfind("hat"), 3, "boot");
  CHECK_THROWS_AS(corpus_grammar().score(other), ValueError);
}

TEST_CASE("the corpus depends on the seed and on nothing else", "[corpus]") {
  const EmbeddedCorpus a = embedded_corpus(20000, 1337), b = embedded_corpus(20000, 1337);
  CHECK(a.text == b.text);
  CHECK(a.nll == b.nll);
  CHECK(a.text != embedded_corpus(20000, 1338).text);
  // A shorter one is the beginning of a longer one.
  const EmbeddedCorpus half = embedded_corpus(10000, 1337);
  CHECK(half.text == a.text.substr(0, 10000));
  CHECK(std::equal(half.nll.begin(), half.nll.end(), a.nll.begin()));
  CHECK_THROWS_AS(embedded_corpus(0), ValueError);
  // The same on every machine: FNV-1a of the text.  It changes when the words of the corpus do.
  std::uint64_t hash = 14695981039346656037u;
  for (const char32_t c : a.text)
    hash = (hash ^ c) * 1099511628211u;
  CHECK(hash == 0x26bb8e9dcad3c066u);
}

TEST_CASE("the corpus is as large, as plain and as surprising as it says", "[corpus]") {
  const EmbeddedCorpus corpus = embedded_corpus(200000, 2);
  CHECK(corpus.text.size() == 200000);
  CHECK(corpus.nll.size() == 200000);
  const std::set<char32_t> used(corpus.text.begin(), corpus.text.end());
  CHECK(used.size() > 50);
  CHECK(used.size() <= 62);
  CHECK((*used.begin() == U'\n' && *std::next(used.begin()) == U' ' && *used.rbegin() == U'z'));
  CHECK(corpus.text.find(U"  ") == std::u32string::npos);
  CHECK(corpus.text.find(U"\n\n\n") == std::u32string::npos);
  CHECK(corpus.mean_nll(0, 200000) > 0.43);
  CHECK(corpus.mean_nll(0, 200000) < 0.48);
  CHECK(corpus.mean_nll(10, 12) == Approx((corpus.nll[10] + corpus.nll[11]) / 2));
  CHECK_THROWS_AS(corpus.mean_nll(5, 5), ValueError);
  CHECK_THROWS_AS(corpus.mean_nll(0, 200001), ValueError);
}
