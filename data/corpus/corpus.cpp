#include <numeric>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/corpus/corpus.hpp>

namespace xgrad::text {

double EmbeddedCorpus::mean_nll(std::size_t begin, std::size_t end) const {
  check<ValueError>(begin < end && end <= nll.size(),
                    "mean_nll: [{}, {}) is not a part of a text of {} characters", begin, end,
                    nll.size());
  const auto at = nll.begin();
  const double sum = std::accumulate(at + static_cast<std::ptrdiff_t>(begin),
                                     at + static_cast<std::ptrdiff_t>(end), 0.0);
  return sum / static_cast<double>(end - begin);
}

namespace {

EmbeddedCorpus grow(const char* name, const Grammar& grammar, std::size_t characters,
                    std::uint64_t seed) {
  check<ValueError>(characters > 0, "{}: at least one character is needed", name);
  Generator generator(seed);
  Sample sample = grammar.generate(characters, [&] { return generator.random(); });
  return {std::move(sample.text), std::move(sample.nll)};
}

}  // namespace

EmbeddedCorpus embedded_corpus(std::size_t characters, std::uint64_t seed) {
  return grow("embedded_corpus", corpus_grammar(), characters, seed);
}

EmbeddedCorpus names_corpus(std::size_t characters, std::uint64_t seed) {
  return grow("names_corpus", names_grammar(), characters, seed);
}

}  // namespace xgrad::text
