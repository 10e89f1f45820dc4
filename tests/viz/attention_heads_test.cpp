// Labels of heads, and the file.

#include <map>
#include <string>
#include <utility>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/viz/attention.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

// Causal weights (T, T): query i gives key `key` the weight w, and the rest evenly to the others.
template <class F>
Tensor looks_at(std::size_t T, double w, const F& key) {
  std::vector<double> values;
  for (std::size_t i = 0; i < T; ++i)
    for (std::size_t j = 0; j < T; ++j) {
      const double rest = i == 0 ? 1 : (1 - w) / static_cast<double>(i);
      values.push_back(j > i ? not_a_number : i > 0 && std::cmp_equal(j, key(i)) ? w : rest);
    }
  return reshape(Tensor(std::move(values)), {static_cast<Size>(T), static_cast<Size>(T)});
}

std::map<std::string, double> scores(const Tensor& weights) {
  std::map<std::string, double> result;
  for (const auto& p : viz::head_patterns(weights))
    result[p.name] = p.score;
  return result;
}

std::string best(const Tensor& weights) {
  const auto patterns = viz::head_patterns(weights);
  return patterns.empty() || patterns[0].score < 0.5 ? "no clear pattern" : patterns[0].name;
}

}  // namespace

TEST_CASE("labels of heads: a pattern that is there scores 1, chance scores 0", "[pages]") {
  const Tensor previous = looks_at(12, 1, [](std::size_t i) { return i - 1; });
  CHECK(scores(previous).at("previous position") == Approx(1));
  CHECK(scores(previous).at("itself") < 0);
  CHECK(best(previous) == "previous position");
  CHECK(best(looks_at(12, 1, [](std::size_t i) { return i; })) == "itself");
  CHECK(best(looks_at(12, 1, [](std::size_t) { return 0; })) == "first position");

  // Query 0 has no choice and does not count.
  double chance = 0;
  for (std::size_t i = 1; i < 12; ++i)
    chance += 1 / static_cast<double>(i + 1) / 11;
  CHECK(scores(looks_at(12, 0.75, [](std::size_t) { return 0; })).at("first position") ==
        Approx((0.75 - chance) / (1 - chance)));

  // Query i has i + 1 keys: w = 1 / (i + 1) is even, and fits no pattern.
  std::vector<double> even;
  for (std::size_t i = 0; i < 12; ++i)
    for (std::size_t j = 0; j < 12; ++j)
      even.push_back(j > i ? not_a_number : 1 / static_cast<double>(i + 1));
  for (const auto& [name, score] : scores(reshape(Tensor(std::move(even)), {12, 12}))) {
    INFO(name);
    CHECK(score == Approx(0).margin(1e-12));
  }
}

TEST_CASE("labels of heads: no more is said than the numbers hold", "[pages]") {
  const auto previous = [](std::size_t i) { return i - 1; };
  CHECK(best(looks_at(12, 0.75, previous)) == "previous position");
  CHECK(best(looks_at(12, 0.4, previous)) == "no clear pattern");
  CHECK(best(looks_at(4, 1, previous)) == "no clear pattern");  // three queries have a choice
  CHECK(scores(looks_at(4, 1, [](std::size_t) { return 0; })).count("first position") == 0);
  CHECK(viz::head_patterns(looks_at(1, 1, previous)).empty());
  CHECK(best(looks_at(12, 1, [](std::size_t i) { return i * 7 % (i + 1); })) == "no clear pattern");
  CHECK(scores(softmax(normal({5, 8}, 1), -1)).size() == 1);  // keys that are not the queries
}

TEST_CASE("attention page: the file's contents", "[pages]") {
  const TemporaryFolder folder;
  const std::string path = folder / "page.html";
  const Tensor q = normal({5, 4}, 1).requires_grad_(), v = normal({5, 3}, 2);
  const auto loss = [&] { return sum(scaled_dot_product_attention(q, q, v, {.is_causal = true})); };
  const std::vector<std::string> tokens{"</script>", "\"", "\xff", "e\u0301", "\u05d0"};
  viz::AttentionOptions options{.title = "<b>", .tokens = tokens};
  viz::write_attention_html(path, loss, options);
  const std::string html = read_bytes(path);
  const auto has = [&](const char* text) { return html.find(text) != std::string::npos; };
  CHECK_FALSE(has("<b>"));
  CHECK(has("\\u003c/script>"));
  CHECK(has("<noscript>"));
  const auto run = viz::trace_attention(loss, options);
  const auto refused = [&](const viz::AttentionRun& one, const char* why) {
    CHECK_THAT(message_of<ValueError>([&] { viz::write_attention_html(path, one, options); }),
               ContainsSubstring(why));
    CHECK(read_bytes(path) == html);
  };
  refused({}, "the run has no layers");
  options.max_bytes = 1000;
  refused(run, "above .max_bytes (0.0 MB): fewer tokens, layers or heads");
  CHECK_THROWS_AS(viz::write_attention_html(path, run, options), viz::PageTooLarge);
  options.max_bytes = 1 << 20;
  CHECK_THROWS_AS(viz::write_attention_html(folder / "page.txt", run, options), ValueError);
}

// For tests/viz/attention.py: a user's model with keys that are not the queries, a bias, a key
// that no query sees and a query without keys; and scores that are not q kᵀ.
TEST_CASE("attention page: writes own.html", "[.attention-page]") {
  const Tensor q = normal({2, 2, 5, 3}, 1).requires_grad_(), k = normal({2, 2, 7, 3}, 2),
               v = normal({2, 2, 7, 4}, 3), w = normal({2, 2, 5, 4}, 4);
  Tensor bias = normal({5, 7}, 5).clone();
  for (std::size_t i = 0; i < 7; ++i)
    set_element(bias, 2 * 7 + i, -inf);
  for (std::size_t i = 0; i < 5; ++i)
    set_element(bias, i * 7 + 4, -inf);
  viz::write_attention_html("own.html",
                            [&] {
                              const Tensor a = scaled_dot_product_attention(q, k, v, bias);
                              const Scope scope("squares");
                              const Tensor scores = matmul(q, transpose(k, -2, -1));
                              return sum((a + matmul(softmax(scores * scores, -1), v)) * w);
                            },
                            {.title = "A model of one's own",
                             .about = "<script>throw new Error('read as HTML')</script>",
                             .keys = {"k0", "</script>", "k2", "k3", "k4", "k5", "k6"},
                             .item = 1,
                             .position = 1});
  // As many keys as queries; without the first head the loss is not finite.
  const Tensor p = narrow(k, -2, 0, 5);
  viz::write_attention_html(
      "across.html",
      [&] {
        const Tensor a = softmax(matmul(q, transpose(p, -2, -1)), -1);
        const Tensor y = matmul(a, ones({5, 1}, DType::float64));
        const Tensor first = narrow(y, 1, 0, 1), other = narrow(y, 1, 1, 1);
        return sum(log(first)) - sum(other) - 1.0;
      },
      {.tokens = {"a", "b", "c", "d", "e"}, .keys = {"v", "w", "x", "y", "z"}});
  // Weights that are named: those of both signs, and after them a softmax.
  viz::write_attention_html(
      "named.html",
      [&] {
        const Tensor scores = masked_fill(matmul(q, transpose(p, -2, -1)), nn::future(5, 5), -inf);
        const Tensor both = softmax(scores, -1) - 0.8 * softmax(2.0 * scores, -1);
        const Tensor y = matmul(named(both, "attention"), narrow(v, -2, 0, 5));
        return sum((y + matmul(softmax(scores * 1.0, -1), y)) * w);
      },
      {.title = "Differential attention"});
}
