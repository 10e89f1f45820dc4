// The calls of tests/golden/cases_network.py.

#include <xgrad/autograd/random.hpp>

#include "golden/ops.hpp"

namespace xgrad::testing {
namespace {

using In = GoldenInputs;

void add_softmax(GoldenCalls& calls) {
  using Softmax = Tensor(const Tensor&, std::int64_t);
  const auto add_op = [&](const std::string& op, Softmax* f) {
    calls.add(op, {"dim 0", "0-d"}, [f](const In& in) { return f(in[0], 0); });
    calls.add(op, {"dim -1"}, [f](const In& in) { return f(in[0], -1); });
    calls.add(op, {"middle", "size 1", "no rows", "nothing", "large numbers", "minus infinities"},
              [f](const In& in) { return f(in[0], 1); });
  };
  calls.add("softmax", {"dtype"}, [](const In& in) { return softmax(in[0], 1, DType::float64); });
  calls.add("log_softmax", {"dtype"},
            [](const In& in) { return log_softmax(in[0], 1, DType::float64); });
  add_op("softmax", softmax);
  add_op("log_softmax", log_softmax);
}

void add_norm_layers(GoldenCalls& calls) {
  const auto add_samples = [&](const std::string& sample, const Dims& shape) {
    calls.add("layer_norm", {sample},
              [=](const In& in) { return layer_norm(in[0], shape, in[1], in[2]); });
    calls.add("layer_norm", {sample + ", weight"},
              [=](const In& in) { return layer_norm(in[0], shape, in[1]); });
    calls.add("layer_norm", {sample + ", plain"},
              [=](const In& in) { return layer_norm(in[0], shape); });
    calls.add("rms_norm", {sample}, [=](const In& in) { return rms_norm(in[0], shape, in[1]); });
    calls.add("rms_norm", {sample + ", plain"},
              [=](const In& in) { return rms_norm(in[0], shape); });
  };
  add_samples("last", 5);
  add_samples("3-d", 4);
  add_samples("last two", {3, 4});
  add_samples("all", 6);
  add_samples("no rows", 3);
  calls.add("layer_norm", {"bias"}, [](const In& in) { return layer_norm(in[0], 4, {}, in[1]); });
  calls.add("layer_norm", {"eps 0.25"},
            [](const In& in) { return layer_norm(in[0], 4, {}, {}, 0.25); });
  calls.add("rms_norm", {"eps 0.25"}, [](const In& in) { return rms_norm(in[0], 4, in[1], 0.25); });
  calls.add("rms_norm", {"size 1"}, [](const In& in) { return rms_norm(in[0], 1, {}, 0.25); });
}

// f after manual_seed(seed).
template <class F>
GoldenCall seeded(std::uint64_t seed, F f) {
  return [=](const In& in) {
    manual_seed(seed);
    return f(in);
  };
}

void add_dropout(GoldenCalls& calls) {
  const auto with_p = [&](const std::string& sample, double p) {
    calls.add("dropout", {sample}, seeded(11, [=](const In& in) { return dropout(in[0], p); }));
  };
  with_p("p 0.25", 0.25);
  with_p("p 0.5", 0.5);
  with_p("p 0.9", 0.9);
  with_p("p 0", 0);
  with_p("p 1", 1);
  calls.add("dropout", {"not in training"},
            seeded(11, [](const In& in) { return dropout(in[0], 0.5, false); }));
  calls.add("dropout", {"0-d", "zero-size"},
            seeded(12, [](const In& in) { return dropout(in[0], 0.5); }));
  calls.add("dropout", {"one after the other"}, seeded(13, [](const In& in) {
              Tensor x = in[0];
              for (const double p : {0.25, 1e-9, 0.0, 0.125})
                x = dropout(x, p);
              const Tensor none = dropout(x, 1);
              return x + none + dropout(x, 0.5);
            }));
}

const std::pair<std::string, Reduction> reductions[] = {
    {"none", Reduction::none}, {"mean", Reduction::mean}, {"sum", Reduction::sum}};

// Where weights are chosen, they are the case's.
GoldenCall cross_entropy_of_ids(CrossEntropyOptions options, bool weighted = false) {
  return [=](const In& in) {
    CrossEntropyOptions o = options;
    if (weighted)
      o.weight = in.fixed.at(0);
    return cross_entropy(in[0], in.ids.at(0), o);
  };
}

GoldenCall cross_entropy_of_probabilities(CrossEntropyOptions options, bool weighted = false) {
  return [=](const In& in) {
    CrossEntropyOptions o = options;
    if (weighted)
      o.weight = in.fixed.at(0);
    return cross_entropy(in[0], in[1], o);
  };
}

void add_cross_entropy(GoldenCalls& calls) {
  const auto add_ids = [&](const std::string& sample, const CrossEntropyOptions& options,
                           bool weighted = false) {
    calls.add("cross_entropy", {sample}, cross_entropy_of_ids(options, weighted));
  };
  const auto add_probabilities = [&](const std::string& sample, const CrossEntropyOptions& options,
                                     bool weighted = false) {
    calls.add("cross_entropy", {sample}, cross_entropy_of_probabilities(options, weighted));
  };
  for (const auto& [text, reduction] : reductions) {
    add_ids(text, {.reduction = reduction});
    add_ids("weight, " + text, {.reduction = reduction}, true);
    add_ids("ignored, " + text, {.reduction = reduction});
    add_ids("smoothed, " + text, {.label_smoothing = 0.25, .reduction = reduction});
    add_ids("all options, " + text,
            {.ignore_index = 1, .label_smoothing = 0.125, .reduction = reduction}, true);
    add_ids("(N V d), " + text, {.reduction = reduction});
    add_probabilities("probabilities, " + text, {.reduction = reduction});
    add_probabilities("probabilities, smoothed and weighted, " + text,
                      {.label_smoothing = 0.25, .reduction = reduction}, true);
  }
  add_ids("(N V d1 d2), all options", {.ignore_index = 0, .label_smoothing = 0.125}, true);
  add_ids("(V)", {});
  add_probabilities("(V), probabilities", {});
  add_ids("smoothing 1", {.label_smoothing = 1});
  add_probabilities("(N V d), probabilities", {});
  for (const std::string sample : {"all ignored, sum", "one class", "no rows, sum"})
    add_ids(sample, {.reduction = Reduction::sum});
  add_ids("no rows, none", {.reduction = Reduction::none});
  add_ids("large numbers", {});
}

void add_other_losses(GoldenCalls& calls) {
  for (const auto& [text, named] : reductions) {
    const Reduction reduction = named;
    for (const std::string sample : {"", "(N V d), "})
      calls.add("nll_loss", {sample + text},
                [=](const In& in) { return nll_loss(in[0], in.ids[0], {.reduction = reduction}); });
    for (const std::string sample : {"weight, ", "weight, ignored, "})
      calls.add("nll_loss", {sample + text}, [=](const In& in) {
        return nll_loss(in[0], in.ids[0], {.weight = in.fixed[0], .reduction = reduction});
      });
    calls.add("mse_loss", {text}, [=](const In& in) { return mse_loss(in[0], in[1], reduction); });
  }
  calls.add("nll_loss", {"ignore_index 2"},
            [](const In& in) { return nll_loss(in[0], in.ids[0], {.ignore_index = 2}); });
  calls.add("nll_loss", {"(V)"}, [](const In& in) { return nll_loss(in[0], in.ids[0]); });
  calls.add("nll_loss", {"no rows, sum"},
            [](const In& in) { return nll_loss(in[0], in.ids[0], {.reduction = Reduction::sum}); });
  calls.add("mse_loss", {"0-d", "size 1"}, [](const In& in) { return mse_loss(in[0], in[1]); });
  calls.add("mse_loss", {"zero-size"},
            [](const In& in) { return mse_loss(in[0], in[1], Reduction::sum); });
}

void add_pointwise_losses(GoldenCalls& calls) {
  const auto huber = [&](const std::string& sample, const HuberLossOptions& options) {
    calls.add("huber_loss", {sample},
              [=](const In& in) { return huber_loss(in[0], in[1], options); });
  };
  const auto smooth_l1 = [&](const std::string& sample, const SmoothL1LossOptions& options) {
    calls.add("smooth_l1_loss", {sample},
              [=](const In& in) { return smooth_l1_loss(in[0], in[1], options); });
  };
  for (const auto& [text, named] : reductions) {
    const Reduction r = named;
    calls.add("l1_loss", {text}, [r](const In& in) { return l1_loss(in[0], in[1], r); });
    huber(text, {r});
    huber("delta, " + text, {r, 0.5});
    smooth_l1(text, {r});
    smooth_l1("beta, " + text, {r, 0.5});
    calls.add("kl_div", {text}, [r](const In& in) { return kl_div(in[0], in[1], {r}); });
    calls.add("kl_div", {"log_target, " + text}, [r](const In& in) {
      return kl_div(in[0], in[1], {r, true});
    });
    using Entropy = Tensor(const Tensor&, const Tensor&, const BinaryCrossEntropyOptions&);
    for (const auto& [op, f] : std::vector<std::pair<std::string, Entropy*>>{
             {"binary_cross_entropy", binary_cross_entropy},
             {"binary_cross_entropy_with_logits", binary_cross_entropy_with_logits}}) {
      calls.add(op, {text}, [f = f, r](const In& in) { return f(in[0], in[1], {.reduction = r}); });
      calls.add(op, {"weight, " + text}, [f = f, r](const In& in) {
        return f(in[0], in[1], {.weight = in.fixed[0], .reduction = r});
      });
    }
    calls.add("binary_cross_entropy", {"itself, " + text},
              [r](const In& in) { return binary_cross_entropy(in[0], in[1], {.reduction = r}); });
    calls.add("binary_cross_entropy_with_logits", {"pos_weight, " + text}, [r](const In& in) {
      return binary_cross_entropy_with_logits(
          in[0], in[1], {.weight = in.fixed[0], .reduction = r, .pos_weight = in.fixed[1]});
    });
  }
  calls.add("l1_loss", {"at the kinks"},
            [](const In& in) { return l1_loss(in[0], in[1], Reduction::none); });
  huber("at the kinks", {Reduction::none});
  smooth_l1("at the kinks", {Reduction::none});
  smooth_l1("beta 0", {.beta = 0});
  calls.add("binary_cross_entropy", {"certain"}, [](const In& in) {
    const Tensor target = tensor({0, 1, 0, 1}, in[0].dtype());
    return binary_cross_entropy(in[0], target, {.reduction = Reduction::none});
  });
  calls.add("binary_cross_entropy_with_logits", {"large"},
            [](const In& in) { return binary_cross_entropy_with_logits(in[0], in[1]); });
}

void add_attention(GoldenCalls& calls) {
  const auto attend = [](const AttentionOptions& options) {
    return [=](const In& in) { return scaled_dot_product_attention(in[0], in[1], in[2], options); };
  };
  const std::string op = "scaled_dot_product_attention";
  calls.add(op, {"3-d", "2-d", "heads", "broadcast batches", "size 1", "no positions"},
            attend(AttentionOptions{}));
  calls.add(op, {"of itself"},
            [](const In& in) { return scaled_dot_product_attention(in[0], in[0], in[0]); });
  calls.add(op, {"scale 0.375"}, attend(AttentionOptions{.scale = 0.375}));
  calls.add(op, {"causal", "causal, more keys", "causal, fewer keys"},
            attend(AttentionOptions{.is_causal = true}));
  calls.add(op, {"mask of keys", "mask, one row of nothing", "mask of batches"}, [](const In& in) {
    return scaled_dot_product_attention(in[0], in[1], in[2], in.masks[0]);
  });
  calls.add(op, {"added mask", "added mask of batches and keys", "added minus infinities"},
            [](const In& in) { return scaled_dot_product_attention(in[0], in[1], in[2], in[3]); });
  calls.add(op, {"dropout"}, seeded(21, attend(AttentionOptions{.dropout_p = 0.25})));
  calls.add(op, {"causal, dropout"},
            seeded(22, attend(AttentionOptions{.is_causal = true, .dropout_p = 0.5})));
  const AttentionOptions grouped{.enable_gqa = true};
  calls.add(op, {"grouped"}, attend(grouped));
  calls.add(op, {"grouped, causal"}, attend({.is_causal = true, .enable_gqa = true}));
  calls.add(op, {"grouped, mask"}, [=](const In& in) {
    return scaled_dot_product_attention(in[0], in[1], in[2], in.masks[0], grouped);
  });
  calls.add(op, {"grouped, added (4, 3, 3)", "grouped, added (2, 1, 1, 3)"}, [=](const In& in) {
    return scaled_dot_product_attention(in[0], in[1], in[2], in[3], grouped);
  });
  calls.add(op, {"grouped, dropout"}, seeded(24, attend({.dropout_p = 0.25, .enable_gqa = true})));

  const auto heads = [&](const std::string& sample, std::size_t n_head) {
    calls.add("causal_self_attention", {sample},
              [=](const In& in) { return causal_self_attention(in[0], n_head); });
  };
  heads("2 heads", 2);
  heads("one head", 1);
  heads("heads of one channel", 3);
  heads("one position", 2);
  heads("no batches", 1);
  calls.add("causal_self_attention", {"dropout"},
            seeded(23, [](const In& in) { return causal_self_attention(in[0], 2, 0.25); }));
}

}  // namespace

void add_network_calls(GoldenCalls& calls) {
  add_softmax(calls);
  add_norm_layers(calls);
  add_dropout(calls);
  add_cross_entropy(calls);
  add_other_losses(calls);
  add_pointwise_losses(calls);
  add_attention(calls);
}

}  // namespace xgrad::testing
