// Checks the gradient of every attention layer, by all inputs and parameters, under masks of every
// kind, to second order.  Prints a table; fails if a gradient is wrong.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <string>
#include <vector>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/xgrad.hpp>

#include <CLI/CLI.hpp>

using namespace xgrad;

namespace {

struct Sizes {
  std::size_t batch = 2, length = 5, width = 8, heads = 2;
};

// One line of the table: a layer under a mask.
struct Case {
  std::string layer, mask;
  std::function<GradcheckReport(bool second_order, const GradcheckOptions&)> check;
};

using Inputs = std::vector<Tensor>;

Tensor normal(const Dims& sizes) { return randn(sizes, DType::float64); }

// ---- masks: true where attention is allowed ----

Mask allowed(const Dims& sizes, const std::function<bool(std::size_t row, std::size_t key)>& rule) {
  auto mask = empty_array<bool>(to_shape(sizes, "mask"));
  const std::size_t keys = mask.shape().back();
  for (std::size_t i = 0; i < mask.size(); ++i)
    mask.data()[i] = rule(i / keys, i % keys);
  return Mask(std::move(mask));
}
Mask scattered(const Dims& sizes) {
  return allowed(sizes,
                 [](std::size_t row, std::size_t key) { return (3 * row + 5 * key) % 4 != 0; });
}
Mask without_row(const Dims& sizes) {  // the third query sees no key
  return allowed(sizes, [](std::size_t row, std::size_t key) { return row != 2 && key != 1; });
}
Mask padded(const Dims& sizes) {  // the last two keys are padding
  const auto keys = static_cast<std::size_t>(sizes.back());
  return allowed(sizes, [keys](std::size_t, std::size_t key) { return key + 2 < keys; });
}

// One mask for each head, (B * H, T, T).
Mask per_head(const Sizes& s) {
  return allowed({s.batch * s.heads, s.length, s.length}, [](std::size_t row, std::size_t key) {
    return row % 3 == key % 2 || (row + key) % 4 == 1;
  });
}
// An additive mask: -inf where a key is forbidden, and for the third query everywhere.
Tensor infinite(const Dims& sizes) {
  return masked_fill(normal(sizes), ~without_row(sizes), -INFINITY);
}

// ---- the layers ----

template <nn::Layer M>
Case of_layer(const std::string& name, const std::string& mask, M model, const Inputs& inputs,
              const std::function<std::vector<Tensor>(const M&, const Inputs&)>& call) {
  nn::to(model, DType::float64);
  for (const Tensor& p : nn::parameters(model))  // zero biases would hide mistakes
    nn::init::normal_(p, 0, 0.4);
  const auto check = [model, inputs, call](bool second_order, const GradcheckOptions& options) {
    const TensorFunction f([&](const Inputs& in) { return call(model, in); });
    return second_order ? nn::gradgradcheck(model, f, inputs, options)
                        : nn::gradcheck(model, f, inputs, options);
  };
  return {name, mask, check};
}

// A softmax whose backward lacks a term, for --wrong: the table must show it.
Tensor wrong_softmax(const Tensor& x, std::int64_t dim) {
  return record(
      "wrong_softmax", {x}, [dim](std::span<const Tensor> in) { return softmax(in[0], dim); },
      [y = Saved(softmax(x, dim).detach())](Context& ctx) {
        ctx.add(0, ctx.gradient() * y.tensor());
      });
}
bool wrong = false;

// One head that mixes x itself with unscaled scores, as in examples/notebooks/002.
struct CausalHead {
  nn::Linear key, query;
  CausalHead(std::size_t width, std::size_t head)
      : key(width, head, false), query(width, head, false) {}
  Tensor operator()(const Tensor& x) const {                        // (B, T, C)
    const Tensor wei = matmul(query(x), key(x).transpose(-2, -1));  // (B, T, T)
    const Mask past = tril(ones({x.size(1), x.size(1)})) == 0;
    const Tensor masked = wei.masked_fill(past, -INFINITY);
    return matmul(wrong ? wrong_softmax(masked, -1) : softmax(masked, -1), x);  // (B, T, C)
  }
  static void visit(auto& self, auto&& v) { v("key", self.key), v("query", self.query); }
};

std::vector<Tensor> both(const nn::Attended& y) { return {y.output, y.weights}; }

void add_self_attention(std::vector<Case>& cases, const Sizes& s) {
  using Layer = nn::SelfAttention;
  const auto add = [&](const std::string& mask, const Layer::Call& call) {
    cases.push_back(of_layer<Layer>(
        "SelfAttention", mask, Layer(s.width, {.d_k = 3, .d_v = 4}),
        {normal({s.batch, s.length, s.width})},
        [call](const Layer& layer, const Inputs& in) { return both(layer(in[0], call)); }));
  };
  add("none", {});
  add("causal", {.is_causal = true});
  add("boolean", {.mask = scattered({s.length, s.length})});
  add("boolean, causal", {.mask = scattered({s.length, s.length}), .is_causal = true});
  add("padding", {.mask = padded({s.batch, 1, s.length})});
  add("a row of nothing", {.mask = without_row({s.length, s.length})});
}

// With three inputs ("cross"), and with one, which takes other code paths.
void add_multi_head_attention(std::vector<Case>& cases, const Sizes& s) {
  using Layer = nn::MultiHeadAttention;
  const Dims size = {s.batch, s.length, s.width}, square = {s.length, s.length};
  const auto add = [&](const std::string& mask, Layer::Call call) {
    for (const bool fused : {false, true})
      for (const bool cross : {false, true}) {
        call.need_weights = !fused;
        cases.push_back(of_layer<Layer>(
            "MultiHeadAttention", mask + (cross ? ", cross" : "") + (fused ? ", fused" : ""),
            Layer(s.width, s.heads),
            cross ? Inputs{normal(size), normal(size), normal(size)} : Inputs{normal(size)},
            [call, cross](const Layer& layer, const Inputs& in) {
              const nn::Attended y = layer(in[0], in[cross ? 1 : 0], in[cross ? 2 : 0], call);
              return call.need_weights ? both(y) : Inputs{y.output};
            }));
      }
  };
  add("none", {});
  add("causal", {.is_causal = true, .average_attn_weights = false});
  add("boolean", {.attn_mask = ~scattered(square)});
  add("boolean per head", {.attn_mask = ~per_head(s)});
  add("additive with -inf", {.attn_mask = infinite(square)});
  add("padding", {.key_padding_mask = ~padded({s.batch, s.length})});
  add("padding, causal", {.key_padding_mask = ~padded({s.batch, s.length}), .is_causal = true});
  add("a row of nothing", {.attn_mask = ~without_row(square)});
  for (const bool fused : {false, true})  // the mask is an input, too
    cases.push_back(of_layer<Layer>(
        "MultiHeadAttention", fused ? "additive, fused" : "additive", Layer(s.width, s.heads),
        {normal(size), normal(square)}, [fused](const Layer& layer, const Inputs& in) {
          return Inputs{
              layer(in[0], in[0], in[0], {.attn_mask = in[1], .need_weights = !fused}).output};
        }));
}

void add_fused(std::vector<Case>& cases, const Sizes& s) {
  const auto add = [&](const std::string& mask, const TensorFunction& f, const Inputs& more = {}) {
    const Dims size = {s.batch, s.heads, s.length, s.width / s.heads};
    Inputs inputs = {normal(size), normal(size), normal(size)};
    inputs.insert(inputs.end(), more.begin(), more.end());
    for (Tensor& x : inputs)
      x.requires_grad_();
    cases.push_back({"scaled_dot_product_attention", mask,
                     [f, inputs](bool second_order, GradcheckOptions options) {
                       options.names = {"q", "k", "v"};
                       if (inputs.size() == 4)
                         options.names.push_back("mask");
                       return second_order ? gradgradcheck(f, inputs, options)
                                           : gradcheck(f, inputs, options);
                     }});
  };
  const auto with = [](const Mask& mask) {
    return [mask](const Inputs& in) {
      return scaled_dot_product_attention(in[0], in[1], in[2], mask);
    };
  };
  const Dims square = {s.length, s.length};
  add("none", [](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2]); });
  add("causal", [](const Inputs& in) {
    return scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true});
  });
  add("boolean", with(scattered(square)));
  add("additive",
      [](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2], in[3]); },
      {normal({s.heads, s.length, s.length})});
  add("additive with -inf", [mask = infinite(square)](const Inputs& in) {
    return scaled_dot_product_attention(in[0], in[1], in[2], mask);
  });
  add("padding", with(padded({s.batch, 1, 1, s.length})));
  add("a row of nothing", with(without_row(square)));
  add("causal, dropout", [](const Inputs& in) {
    manual_seed(1);  // the same draws in every call
    return scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true, .dropout_p = 0.3});
  });
}

std::vector<Case> all_cases(const Sizes& s) {
  std::vector<Case> cases;
  const Dims size = {s.batch, s.length, s.width};
  add_self_attention(cases, s);
  add_multi_head_attention(cases, s);
  cases.push_back(of_layer<CausalHead>(
      "CausalHead", "causal", CausalHead(s.width, 3), {normal(size)},
      [](const CausalHead& head, const Inputs& in) { return std::vector<Tensor>{head(in[0])}; }));
  add_fused(cases, s);
  const Tensor qkv = normal({s.batch, s.length, 3 * s.width}).requires_grad_();
  cases.push_back({"causal_self_attention", "causal",
                   [qkv, heads = s.heads](bool second_order, GradcheckOptions options) {
                     options.names = {"qkv"};
                     const TensorFunction f(
                         [heads](const Inputs& in) { return causal_self_attention(in[0], heads); });
                     return second_order ? gradgradcheck(f, {qkv}, options)
                                         : gradcheck(f, {qkv}, options);
                   }});
  cases.push_back(of_layer<lm::CausalSelfAttention>(
      "CausalSelfAttention", "causal", lm::CausalSelfAttention(s.width, s.heads), {normal(size)},
      [](const lm::CausalSelfAttention& layer, const Inputs& in) { return Inputs{layer(in[0])}; }));
  for (const double dropout : {0.0, 0.3})
    cases.push_back(of_layer<lm::TransformerBlock>(
        "TransformerBlock", dropout > 0 ? "causal, dropout" : "causal",
        lm::TransformerBlock(s.width, s.heads, dropout), {normal(size)},
        [](const lm::TransformerBlock& block, const Inputs& in) {
          manual_seed(1);  // dropout draws the same in every call
          return Inputs{block(in[0])};
        }));
  return cases;
}

// ---- the table ----

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Options {
  Sizes sizes;
  std::string layer;
  bool fast = false, first_order = false, time = false;
  double eps = 1e-6;
};

// Returns the number of failed checks.
std::size_t print_table(const std::vector<Case>& cases, const Options& options) {
  std::cout << fmt::format("{:<29} {:<32} {:>5} {:>9} {:>9} {:>8}  {}\n", "layer", "mask", "order",
                           options.fast ? "products" : "elements", "worst", "seconds", "verdict");
  std::size_t failed = 0, checks = 0, compared = 0;
  double worst = 0;
  for (const Case& c : cases)
    for (const int order : {1, 2}) {
      if (order == 2 && options.first_order)
        continue;
      GradcheckReport report;
      const double seconds = seconds_of([&] {
        report = c.check(order == 2, {.eps = options.eps, .fast_mode = options.fast, .seed = 1});
      });
      std::cout << fmt::format("{:<29} {:<32} {:>5} {:>9} {:>9.1e} {:>8.2f}  {}\n", c.layer, c.mask,
                               order, report.checked, report.worst_error, seconds,
                               report ? "right" : report.message)
                << std::flush;
      failed += report ? 0 : 1;
      ++checks;
      compared += report.checked;
      worst = std::max(worst, report.worst_error);
    }
  std::cout << fmt::format("\n{} checks, {} {}, worst error {:.1e}, {} wrong\n", checks, compared,
                           options.fast ? "products" : "elements", worst, failed);
  return failed;
}

// Measures a check of one TransformerBlock: width 32, 4 heads, a sequence of 8.
bool print_times() {
  lm::TransformerBlock block(32, 4);
  nn::to(block, DType::float64);
  const Tensor x = normal({1, 8, 32});
  bool right = true;
  for (const bool fast : {false, true}) {
    GradcheckReport report;
    const double seconds =
        seconds_of([&] { report = nn::gradcheck(block, {x}, {.fast_mode = fast}); });
    right = right && report;
    std::cout << fmt::format("{} {:.4f} seconds, {} compared, worst error {:.1e}\n",
                             fast ? "fast" : "full", seconds, report.checked, report.worst_error);
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app("The gradient of every attention layer, under every mask, to second order",
               "gradcheck_attention");
  Sizes& sizes = options.sizes;
  app.add_option("--layer", options.layer, "only layers whose name contains this");
  app.add_option("--width", sizes.width, "a multiple of the heads [8]")->check(CLI::Range(1, 256));
  app.add_option("--heads", sizes.heads, "attention heads [2]")->check(CLI::Range(1, 64));
  app.add_option("--length", sizes.length, "positions in a sequence [5]")
      ->check(CLI::Range(3, 256));
  app.add_flag("--fast", options.fast, "random products instead of whole Jacobians");
  app.add_option("--eps", options.eps, "of the central differences [1e-6]")
      ->check(CLI::Range(1e-300, 1.0));
  app.add_flag("--first-order", options.first_order, "no second derivatives");
  app.add_flag("--wrong", wrong, "a wrong gradient in CausalHead's softmax, to see it found");
  app.add_flag("--time", options.time, "only the cost of checking a TransformerBlock of width 32");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (sizes.width % sizes.heads != 0) {
    std::cerr << fmt::format("--width {} is not a multiple of --heads {}\n", sizes.width,
                             sizes.heads);
    return 2;
  }
  manual_seed(1337);
  if (options.time)
    return print_times() ? 0 : 1;
  std::vector<Case> cases = all_cases(sizes);
  std::erase_if(cases,
                [&](const Case& c) { return c.layer.find(options.layer) == std::string::npos; });
  if (cases.empty()) {
    std::cerr << fmt::format(
        "no layer's name contains '{}'; there are SelfAttention, MultiHeadAttention, CausalHead, "
        "scaled_dot_product_attention, causal_self_attention, CausalSelfAttention and "
        "TransformerBlock\n",
        options.layer);
    return 2;
  }
  return print_table(cases, options) == 0 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << "gradcheck_attention: " << error.what() << '\n';
  return 1;
}
