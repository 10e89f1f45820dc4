// Notebook 000: self-attention with separate widths for keys and values and an output projection;
// it also returns the attention weights.

#include <cmath>
#include <optional>
#include <utility>
#include <xgrad/xgrad.hpp>

#include "notebook.hpp"

using namespace xgrad;
using notebook::print;

// softmax(Q Kᵀ / sqrt(d_k)) V, projected back to d_model.
struct SelfAttention {
  Size d_model;
  Size d_k;
  Size d_v;

  nn::Linear W_q;  // what a position looks for
  nn::Linear W_k;  // what a position can be found by
  nn::Linear W_v;  // what a position passes on

  nn::Linear W_o;  // back to the model's width

  explicit SelfAttention(Size width, std::optional<Size> keys = {}, std::optional<Size> values = {})
      : d_model(width),
        d_k(keys.value_or(width)),
        d_v(values.value_or(width)),
        W_q(d_model, d_k, false),
        W_k(d_model, d_k, false),
        W_v(d_model, d_v, false),
        W_o(d_v, d_model, false) {}

  // x (B, T, d_model) -> output (B, T, d_model), attention weights (B, T, T)
  std::pair<Tensor, Tensor> operator()(const Tensor& x) const {
    const Tensor Q = W_q(x);  // (B, T, d_k)
    const Tensor K = W_k(x);  // (B, T, d_k)
    const Tensor V = W_v(x);  // (B, T, d_v)

    Tensor scores = matmul(Q, K.transpose(-2, -1));         // (B, T, T)
    scores = scores / std::sqrt(static_cast<double>(d_k));  // so that their spread is about 1

    const Tensor attention_weights = softmax(scores, -1);  // each row sums to 1

    const Tensor attended_values = matmul(attention_weights, V);  // (B, T, d_v)

    const Tensor output = W_o(attended_values);  // (B, T, d_model)

    return {output, attention_weights};
  }

  static void visit(auto& self, auto&& v) {
    v("W_q", self.W_q), v("W_k", self.W_k), v("W_v", self.W_v), v("W_o", self.W_o);
  }
};

static void cells() {
  // ---- imports and the seed ----
  manual_seed(42);

  print("Libraries imported successfully!");
  print("xgrad version: " XGRAD_VERSION);

  // ---- a short sequence ----
  const Size d_model = 8;
  Size seq_len = 4;
  const Size batch_size = 1;

  const Tensor x = randn({batch_size, seq_len, d_model});

  const SelfAttention attention(d_model);

  const auto [output, attention_weights] = attention(x);

  print("Input shape:", x.shape());
  print("Output shape:", output.shape());
  print("Attention weights shape:", attention_weights.shape());
  print("\nAttention weights (first sample):");
  print(attention_weights[0].detach());

  // ---- a longer one, with the same layer ----
  seq_len = 8;
  const Tensor x_long = randn({batch_size, seq_len, d_model});
  const auto [output_long, attention_weights_long] = attention(x_long);

  print("Longer sequence attention weights shape:", attention_weights_long.shape());
  print("Attention weights (first sample):");
  print(attention_weights_long[0].detach());
}

int main(int argc, char** argv) { return notebook::run(argc, argv, cells); }
