#pragma once
// A page about the attention of any model: which position looks at which, what the loss wants
// changed, what each head does, and why each weight is what it is.
//
//   pages::write_attention_html("attention.html", [&] { return model.loss(x, y); },
//                               {.tokens = {"T", "o", " ", "b", "e"}});
//
// The function runs once, under a Trace.  Found is every softmax over the last dimension whose
// result is the left operand of a matmul (or of bmm, mm, einsum): with dropout, a mask or
// a reshape of heads between them or not, but not multiplied by a matrix (T, S) that is learned or
// computed, for then it is a gate of features.  That is what scaled_dot_product_attention,
// causal_self_attention and layers that are written out do.  (Fused ops run as
// the ops that they fuse, with the same numbers up to rounding.)

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/pages/page.hpp>

namespace xgrad::pages {

struct AttentionOptions {
  std::string title = "Attention";
  std::string about = {};                ///< a line below the title
  std::vector<std::string> tokens = {};  ///< one for each query; numbers unless given
  /// One for each key, where keys are others than queries: in every layer with so many keys, but
  /// for one that is causal, whose keys are the queries.
  std::vector<std::string> keys = {};
  std::vector<std::string> classes = {};  ///< names of what the logits are of
  std::vector<std::size_t> targets = {};  ///< the class that each position should predict
  std::size_t item = 0;                   ///< of the batch
  std::vector<std::size_t> layers = {};   ///< which attentions, in the order they ran; empty: all
  std::vector<std::size_t> heads = {};    ///< which heads of each; empty: all
  /// The query that is shown first.  The page opens at the largest |A dL/dA| of its weights, or of
  /// all weights if no query is given.
  std::optional<std::size_t> position = {};
  std::size_t max_bytes = 20 << 20;  ///< of the page
};

/// How much of a head's attention follows a pattern: (w - u) / (1 - u), where w is the weight that
/// goes where the pattern says and u that of attention spread evenly over what a query may see,
/// each a mean over the queries for which the pattern says something and leaves something out.  1:
/// all weight; 0: no more than chance.
struct HeadPattern {
  const char* name;
  double score;  ///< from 0.5 on the pattern names the head
};

/// One attention.  T queries, S keys, H heads; Tensors are float64 and of one item of the batch.
struct AttentionLayer {
  std::string name;                     ///< its Scope, as "h.0.attn"; "attention" outside of any
  std::size_t index = 0;                ///< its place among all that ran
  bool self = false;                    ///< keys have the queries' tokens
  std::vector<std::size_t> heads = {};  ///< which of its heads these are
  Tensor weights = {};                  ///< A (H, T, S), before dropout
  Tensor gradient = {};                 ///< dL/dA (H, T, S)
  Tensor scores = {};                   ///< (H, T, S), what softmax is of; -inf where masked
  Tensor score_gradient = {};           ///< dL/dscores (H, T, S)
  Tensor q = {}, k = {};  ///< (H, T, D), (H, S, D): scores are q kᵀ * scale + bias; undefined
                          ///< where that is not what they are
  double scale = 1;
  Tensor bias = {};                                     ///< (H, T, S) or undefined
  std::vector<double> loss_without = {};                ///< the loss with the output of head h zero
  std::vector<std::vector<HeadPattern>> patterns = {};  ///< of head h, the best fit first

  /// The pattern that names head h; null for "no clear pattern".
  const HeadPattern* label(std::size_t h) const;
};

struct AttentionRun {
  std::string name;  ///< "after 300 steps": the page says it
  double loss = 0;
  std::vector<AttentionLayer> layers = {};
  Tensor logits = {};  ///< (T, V) of the last log_softmax or cross_entropy, or undefined
};

/// Runs `loss`, which returns a Tensor of one element that has a graph, and finds its attentions.
/// loss_without is exact: in each product that reads the weights, a head's are 0, and all ops after
/// it run again, for each head; only what was read out of Tensors on the way (item(), array())
/// stays.  Weights (B, H, T, S) may reach the product as (B H, T, S), and the other way round; in
/// another order they cannot be followed; (X, T, S) are those of X items with one head.  ValueError
/// if there is no attention, the loss is not finite, or an item, layer, head, position does not
/// exist or a list is of another length; GraphError if the loss has no graph.
AttentionRun trace_attention(const std::function<Tensor()>& loss,
                             const AttentionOptions& options = {});

/// How a head's weights (T, S) follow each pattern that can be told, the best fit first; NaN where
/// masked.
std::vector<HeadPattern> head_patterns(const Tensor& weights);

/// Writes the page.  FileError, ValueError as of save(); PageTooLarge; ValueError if the run has no
/// layers.
void write_attention_html(const std::string& path, const AttentionRun& run,
                          const AttentionOptions& options = {});
void write_attention_html(const std::string& path, const std::function<Tensor()>& loss,
                          const AttentionOptions& options = {});

}  // namespace xgrad::pages
