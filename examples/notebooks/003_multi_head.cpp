// Notebook 003: attention from its formula to a layer of several heads: loops against matrix
// products, an additive causal mask, concatenated heads, and a heat map.

#include <cmath>
#include <optional>
#include <vector>
#include <xgrad/viz/chart.hpp>
#include <xgrad/xgrad.hpp>

#include "notebook.hpp"

using namespace xgrad;
using notebook::print;

static double square_root(Size n) { return std::sqrt(static_cast<double>(n)); }

// ---- section 6: the layer ----

struct SelfAttention {
  Size num_heads;
  Size d_k;
  nn::Linear Wq;
  nn::Linear Wk;
  nn::Linear Wv;
  nn::Linear Wo;

  SelfAttention(Size d_model, Size heads)
      : num_heads(heads),
        d_k(d_model / heads),
        Wq(d_model, d_model),
        Wk(d_model, d_model),
        Wv(d_model, d_model),
        Wo(d_model, d_model) {
    notebook::assert_that(d_model % heads == 0, "num_heads divides d_model");
  }

  // Also returns A, which section 7 shows.  The mask is 0 where attention is forbidden.
  nn::Attended operator()(const Tensor& x, const std::optional<Tensor>& mask = {}) const {
    // x (B, N, d_model)
    const Size B = x.size(0), N = x.size(1);
    // (B, num_heads, N, d_k) each
    const Tensor Q = Wq(x).view({B, N, num_heads, d_k}).transpose(1, 2);
    const Tensor K = Wk(x).view({B, N, num_heads, d_k}).transpose(1, 2);
    const Tensor V = Wv(x).view({B, N, num_heads, d_k}).transpose(1, 2);
    // (B, num_heads, N, N)
    Tensor scores = matmul(Q, K.transpose(-2, -1)) / square_root(d_k);
    if (mask.has_value())
      scores = scores.masked_fill(*mask == 0, -INFINITY);
    const Tensor A = softmax(scores, -1);
    // the heads concatenated again: (B, N, d_model)
    Tensor context = matmul(A, V);
    context = context.transpose(1, 2).reshape({B, N, -1});
    return {Wo(context), A};
  }

  static void visit(auto& self, auto&& v) {
    v("Wq", self.Wq), v("Wk", self.Wk), v("Wv", self.Wv), v("Wo", self.Wo);
  }
};

static void cells(const std::optional<std::string>& picture) {
  manual_seed(362);

  // ---- 1. embeddings and their projections ----
  const Size n = 6, d_model = 8, d_k = 8;
  const Tensor X = randn({n, d_model});
  const Tensor W_Q = randn({d_model, d_k}) / square_root(d_model);
  const Tensor W_K = randn({d_model, d_k}) / square_root(d_model);
  const Tensor W_V = randn({d_model, d_k}) / square_root(d_model);
  const Tensor Q = matmul(X, W_Q), K = matmul(X, W_K), V = matmul(X, W_V);
  print("X:", X.shape(), " Q, K, V:", Q.shape());

  // ---- 2. scaled dot-product attention ----
  const Tensor S = matmul(Q, K.t()) / square_root(d_k);
  Tensor A = softmax(S, -1);
  print("\nA = softmax(S):\n", A);
  print("\nA V:\n", matmul(A, V));

  // ---- 3. loops ----
  std::vector<Tensor> entries;
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j < n; ++j)
      entries.push_back((Q[i] * K[j]).sum() / square_root(d_k));
  const Tensor scores_loop = stack(entries).view({n, n});
  // and a matrix product
  const Tensor scores_vec = matmul(Q, K.t()) / square_root(d_k);
  print("\nscores by loops:\n", scores_loop);
  print("\nscores by a matrix product:\n", scores_vec);

  // ---- 4. the causal mask, added ----
  const Tensor M = triu(full({n, n}, -INFINITY), 1);
  A = softmax(S + M, -1);
  print("\nM:\n", M);
  print("\nA = softmax(S + M):\n", A);
  print("\nA V:\n", matmul(A, V));

  // ---- 5. several heads ----
  const Size H = 2, d_h = d_model / H;
  std::vector<Tensor> heads;
  for (Size h = 0; h < H; ++h) {
    const Tensor W_hQ = randn({d_model, d_h}) / square_root(d_model);
    const Tensor W_hK = randn({d_model, d_h}) / square_root(d_model);
    const Tensor W_hV = randn({d_model, d_h}) / square_root(d_model);
    const Tensor Q_h = matmul(X, W_hQ), K_h = matmul(X, W_hK), V_h = matmul(X, W_hV);
    heads.push_back(matmul(softmax(matmul(Q_h, K_h.t()) / square_root(d_h) + M, -1), V_h));
  }
  const Tensor W_O = randn({H * d_h, d_model}) / square_root(d_model);
  const Tensor concatenated = cat(heads, -1);
  print("\nConcat(head_1, head_2):\n", concatenated);
  print("\nMultiHead = Concat(...) W_O:\n", matmul(concatenated, W_O));

  // ---- 6. the layer, with and without a mask ----
  const Size B = 2;
  const Tensor x = randn({B, n, d_model});
  const SelfAttention attention(d_model, H);
  const Tensor mask = tril(ones({n, n}));
  const nn::Attended open = attention(x), causal = attention(x, mask);
  print("\nthe layer, output:", open.output.shape(), " A:", open.weights.shape());
  print("output[0]:\n", open.output[0]);
  print("\nwith the mask, output[0]:\n", causal.output[0]);
  print("\nA[0, 0]:\n", causal.weights[0][0].detach());

  // ---- 7. loops and matrix products agree, for scores and for heads ----
  notebook::assert_that(allclose(scores_loop, scores_vec), "the scores agree");
  print("\nscores_loop and scores_vec agree:", allclose(scores_loop, scores_vec));
  std::vector<Tensor> one_by_one;
  for (Size h = 0; h < H; ++h) {
    const Slice rows{h * d_h, (h + 1) * d_h};
    const Tensor Q_h = linear(x, attention.Wq.weight[rows], attention.Wq.bias[rows]);
    const Tensor K_h = linear(x, attention.Wk.weight[rows], attention.Wk.bias[rows]);
    const Tensor V_h = linear(x, attention.Wv.weight[rows], attention.Wv.bias[rows]);
    const Tensor A_h = softmax(matmul(Q_h, K_h.transpose(-2, -1)) / square_root(d_h) + M, -1);
    one_by_one.push_back(matmul(A_h, V_h));
  }
  const Tensor together = attention.Wo(cat(one_by_one, -1));
  const bool same = allclose(together, causal.output, 1e-5, 1e-6);
  notebook::assert_that(same, "head by head, the layer gives the same");
  print("head by head and all at once agree:", same);

  // the heat map
  const Tensor map = causal.weights[0][0];
  print("\nA[0, 0] as a heat map:\n" + viz::heat_map_text(map, {.low = 0, .high = 1}));
  if (picture.has_value()) {
    viz::save_svg(
        *picture,
        viz::heat_map(
            map, {.title = "A[0, 0]", .x_label = "key", .y_label = "query", .low = 0, .high = 1}));
    print("the same as a picture: " + *picture);
  }
}

int main(int argc, char** argv) { return notebook::run(argc, argv, cells); }
