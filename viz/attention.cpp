#include "attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include "../autograd/check/describe.hpp"
#include "../autograd/fail.hpp"
#include "../autograd/ops.hpp"
#include "../io/json.hpp"
#include "assets.hpp"
#include "attention_parts.hpp"
#include "svg.hpp"

namespace xgrad::viz {
namespace {

using io::Json;
using io::JsonArray;
using io::JsonObject;

/// float32 numbers, little-endian, in base64: four characters for three bytes.
std::string base64(const std::vector<double>& numbers) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  for (const double x : numbers) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    for (unsigned shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t three = 0;
    for (std::size_t b = 0; b < 3; ++b)
      three = three << 8 | (b < n ? bytes[i + b] : 0);
    for (std::size_t d = 0; d < 4; ++d)
      text += d <= n ? digits[three >> (18 - 6 * d) & 63] : '=';
  }
  return text;
}

std::string base64(const Tensor& x) { return base64(xgrad::detail::elements(x)); }

Tensor head_of(const Tensor& x, std::size_t h) {
  return select(x, 0, static_cast<std::int64_t>(h));
}

/// The elements, or if `causal` only those that are not masked; NaN where masked.
std::string packed(const Tensor& x, const std::vector<double>& scores, bool causal) {
  const std::vector<double> all = xgrad::detail::elements(x);
  std::vector<double> kept;
  for (std::size_t n = 0; n < all.size(); ++n)
    if (!is_masked(scores[n]))
      kept.push_back(all[n]);
    else if (!causal)
      kept.push_back(std::numeric_limits<double>::quiet_NaN());
  return base64(kept);
}

JsonObject head_json(const AttentionLayer& layer, std::size_t h, bool causal) {
  const std::vector<double> scores = xgrad::detail::elements(head_of(scores_or_zeros(layer), h));
  JsonObject head{{"index", layer.heads[h]},
                  {"A", packed(head_of(layer.weights, h), scores, causal)},
                  {"G", packed(head_of(layer.gradient, h), scores, causal)},
                  {"without", layer.loss_without[h]}};
  if (layer.scores.defined())  // For each query, the sum of magnitudes over the keys that it sees.
    head.emplace_back("scoreGradient", base64(sum(abs(head_of(layer.score_gradient, h)), {-1})));
  if (layer.q.defined()) {
    head.emplace_back("q", base64(head_of(layer.q, h)));
    head.emplace_back("k", base64(head_of(layer.k, h)));
  } else if (layer.scores.defined()) {
    head.emplace_back("scores", packed(head_of(layer.scores, h), scores, causal));
  }
  if (layer.bias.defined())
    head.emplace_back("bias", packed(head_of(layer.bias, h), scores, causal));
  JsonArray patterns;
  for (const HeadPattern& p : layer.patterns[h])
    patterns.push_back(JsonArray{p.name, p.score});
  head.emplace_back("patterns", std::move(patterns));
  const HeadPattern* const label = layer.label(h);
  head.emplace_back("label", label == nullptr ? Json(nullptr) : Json(std::string(label->name)));
  return head;
}

JsonObject run_json(const AttentionRun& run) {
  JsonArray layers;
  for (const AttentionLayer& layer : run.layers) {
    const bool causal = is_causal(layer);
    JsonArray heads;
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
      heads.push_back(head_json(layer, h, causal));
    layers.push_back(JsonObject{{"name", layer.name},
                                {"index", layer.index},
                                {"T", size_of(layer.weights, 1)},
                                {"S", size_of(layer.weights, 2)},
                                {"D", size_of(layer.q, 2)},
                                {"scale", layer.scale},
                                {"causal", causal},
                                {"self", layer.self},
                                {"heads", std::move(heads)}});
  }
  JsonObject json{{"name", run.name}, {"loss", run.loss}, {"layers", std::move(layers)}};
  if (run.logits.defined()) {
    const Tensor p = softmax(run.logits, -1);
    json.emplace_back("logits", base64(run.logits));
    json.emplace_back("classes", size_of(run.logits, 1));
    // The page computes these again as a check.
    json.emplace_back("largest", base64(amax(p, {-1})));
  }
  return json;
}

/// A weight, by the indices of its layer and head on the page.
struct Place {
  std::size_t layer = 0, head = 0, query = 0, key = 0;
};

/// The position of the largest |A dL/dA|, of one query if it is given.  Skips masked and non-finite
/// elements; if no element is left, it is the first of the last query.
Place place_of_most(const AttentionRun& run, const std::optional<std::size_t>& query) {
  Place place{.query = query.value_or(size_of(run.layers.front().weights, 1) - 1)};
  double most = 0;
  for (std::size_t l = 0; l < run.layers.size(); ++l) {
    const AttentionLayer& layer = run.layers[l];
    const std::size_t T = size_of(layer.weights, 1), S = size_of(layer.weights, 2);
    const std::vector<double> products =
        xgrad::detail::elements(abs(layer.weights * layer.gradient));
    for (std::size_t n = 0; n < products.size(); ++n)
      if (const std::size_t i = n / S % T;
          products[n] > most && std::isfinite(products[n]) && i == query.value_or(i)) {
        most = products[n];
        place = {.layer = l, .head = n / S / T, .query = i, .key = n % S};
      }
  }
  return place;
}

JsonArray texts(const std::vector<std::string>& list) { return {list.begin(), list.end()}; }

}  // namespace

void write_attention_html(const std::string& path, const AttentionRun& run,
                          const AttentionOptions& options) {
  check<ValueError>(!run.layers.empty(), "attention page: the run has no layers");
  const Place open = place_of_most(run, options.position);
  save(path,
       {.title = options.title,
        .body = fmt::format(
            "<p class=\"soft\">{}</p>\n<div id=\"attention\"></div>\n<noscript>This page is drawn "
            "by a script that it contains, and your browser runs none.</noscript>",
            escaped(options.about)),
        .data = JsonObject{{"tokens", texts(options.tokens)},
                           {"keys", texts(options.keys)},
                           {"classes", texts(options.classes)},
                           {"targets", JsonArray(options.targets.begin(), options.targets.end())},
                           {"layer", open.layer},
                           {"head", open.head},
                           {"position", open.query},
                           {"key", open.key},
                           {"run", run_json(run)}},
        .scripts = {detail::attention_js, detail::attention_why_js},
        .styles = {detail::attention_css},
        .max_bytes = options.max_bytes,
        .smaller = "fewer tokens, layers or heads make it smaller"});
}

void write_attention_html(const std::string& path, const std::function<Tensor()>& loss,
                          const AttentionOptions& options) {
  write_attention_html(path, trace_attention(loss, options), options);
}

}  // namespace xgrad::viz
