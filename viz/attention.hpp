#pragma once
// A page about the attention of any model: the weights of each position, the changes that the loss
// asks for, the role of each head, and the terms of each weight.
//
//   write_attention_html("attention.html", [&] { return model.loss(x, y); },
//                               {.tokens = {"T", "o", " ", "b", "e"}});
//
// The function runs once, under a Trace.  An attention is a softmax over the last dimension whose
// result is the left operand of a matmul (or bmm, mm, einsum), perhaps after dropout, a mask or a
// reshape of heads.  A product with a learned or computed matrix (T, S) rules it out: then it gates
// features.  scaled_dot_product_attention, causal_self_attention and layers made of plain ops
// qualify.  (Fused ops run as compositions, with the same numbers up to rounding.)
//
// A layer that computes its weights in another way, as by a difference of two softmaxes, or that
// uses them in another way, says which they are, in the shape (..., H, T, S):
//
//   const Tensor weights = named(softmax(a, -1) - 0.3 * softmax(b, -1), "attention");

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "../autograd/tensor.hpp"
#include "page.hpp"

namespace xgrad::viz {

struct AttentionOptions {
  std::string title = "Attention";
  std::string about = {};                ///< a line below the title
  std::vector<std::string> tokens = {};  ///< one for each query; numbers by default
  /// One for each key, if keys are not queries: used in every layer with this number of keys,
  /// except a causal one, whose keys are the queries.
  std::vector<std::string> keys = {};
  std::vector<std::string> classes = {};  ///< the names of the logits' classes
  std::vector<std::size_t> targets = {};  ///< the class that each position should predict
  std::size_t item = 0;                   ///< index in the batch
  std::vector<std::size_t> layers = {};   ///< indices of attentions, in running order; empty: all
  std::vector<std::size_t> heads = {};    ///< indices of heads; empty: all
  /// The query that is shown first.  The page opens at the largest |A dL/dA| of its weights, or of
  /// all weights by default.
  std::optional<std::size_t> position = {};
  std::size_t max_bytes = 20 << 20;  ///< of the page
};

/// The share of a head's attention that follows a pattern: (w - u) / (1 - u), where w is the weight
/// on the pattern's keys and u the same for attention spread evenly over all visible keys, each a
/// mean over the queries for which the pattern selects some of the keys.  1: all weight; 0: no more
/// than chance.
struct HeadPattern {
  const char* name;
  double score;  ///< from 0.5 on the pattern names the head
};

/// One attention.  T queries, S keys, H heads; Tensors are float64 and of one item of the batch.
struct AttentionLayer {
  std::string name;                     ///< its Scope, as "h.0.attn"; "attention" outside of any
  std::size_t index = 0;                ///< index among all attentions
  bool self = false;                    ///< keys have the queries' tokens
  std::vector<std::size_t> heads = {};  ///< indices of the attention's heads
  Tensor weights = {};                  ///< A (H, T, S), before dropout
  Tensor gradient = {};                 ///< dL/dA (H, T, S)
  /// (H, T, S), the softmax's input; -inf where masked.  Undefined if the weights are named and are
  /// no softmax: then those of 0 count as masked.
  Tensor scores = {};
  Tensor score_gradient = {};  ///< dL/dscores (H, T, S), or undefined
  Tensor q = {}, k = {};  ///< (H, T, D), (H, S, D): scores are q kᵀ * scale + bias; else undefined
  double scale = 1;
  Tensor bias = {};                                     ///< (H, T, S) or undefined
  std::vector<double> loss_without = {};                ///< the loss with the output of head h zero
  std::vector<std::vector<HeadPattern>> patterns = {};  ///< of head h, the best fit first

  /// The pattern that names head h; null for "no clear pattern".
  const HeadPattern* label(std::size_t h) const;
};

struct AttentionRun {
  std::string name;  ///< "after 300 steps": shown on the page
  double loss = 0;
  std::vector<AttentionLayer> layers = {};
  Tensor logits = {};  ///< (T, V) of the last log_softmax or cross_entropy, or undefined
};

/// Runs `loss`, which returns a Tensor of one element with a graph, and finds its attentions.
/// loss_without is exact: for each head, its weights are set to 0 in all products that use them,
/// and all later ops run again; only numbers that the function read from Tensors (item(), array())
/// stay.  Weights (B, H, T, S) may reach the product as (B H, T, S), or the reverse, but in no
/// other order; (X, T, S) counts as X items with one head.  ValueError if there is no attention,
/// the loss is not finite, or an item, layer, head, position does not exist or a list has a wrong
/// length; GraphError if the loss has no graph.
AttentionRun trace_attention(const std::function<Tensor()>& loss,
                             const AttentionOptions& options = {});

/// How well a head's weights (T, S), NaN where masked, follow each known pattern, the best fit
/// first.
std::vector<HeadPattern> head_patterns(const Tensor& weights);

/// Writes the page.  FileError, ValueError as of save(); PageTooLarge; ValueError if the run has no
/// layers.
void write_attention_html(const std::string& path, const AttentionRun& run,
                          const AttentionOptions& options = {});
void write_attention_html(const std::string& path, const std::function<Tensor()>& loss,
                          const AttentionOptions& options = {});

}  // namespace xgrad::viz
