// Is the gradient of the attention in char_transformer.cpp right?  gradcheck() compares it with
// finite differences of the layer, by the input and by every parameter; here also for a layer with
// a mistake, to show what is printed.  Exit code 0: the layer is right, and the mistake was found.

// The layer itself, and not a copy: edit it there, and this program checks the edited one.
#define main char_transformer_main
#include "char_transformer.cpp"
#undef main

// softmax along the last dimension with a backward of its own, which lacks a term: with y the
// softmax and g its gradient, x has the gradient y (g - sum(g y)), and not g y.
Tensor wrong_softmax(const Tensor& x) {
  return record(
      "wrong_softmax", {x}, [](std::span<const Tensor> in) { return in[0].softmax(-1); },
      [](Context& ctx) { ctx.add(0, ctx.gradient() * ctx.output()); }, {.saves_output = true});
}

// The same layer with this softmax.
struct WrongAttention : CausalSelfAttention {
  using CausalSelfAttention::CausalSelfAttention;
  Tensor operator()(const Tensor& x) const {
    const Size B = x.size(0), T = x.size(1), C = x.size(2), D = C / H;
    const Tensor qkv = c_attn(x).view({B, T, 3, H, D}).permute({2, 0, 3, 1, 4});
    const Tensor scores = matmul(qkv[0] / std::sqrt(D), qkv[1].mT());
    const Tensor past = scores.masked_fill(nn::future(T, T), -INFINITY);
    return c_proj(matmul(wrong_softmax(past), qkv[2]).transpose(1, 2).reshape({B, T, C}));
  }
};

template <class Attention>
bool is_right(const char* name) {
  manual_seed(1337);
  Attention layer(8, 2);          // 8 channels, 2 heads
  nn::to(layer, DType::float64);  // differences need more digits than float32 has
  const Tensor x = randn({2, 5, 8}, DType::float64);  // 2 blocks of 5 characters
  const GradcheckReport report = nn::gradcheck(layer, {x});
  fmt::print("{}\n{}\n", name, report.table());
  if (!report)  // which op is it?
    fmt::print("{}\n", nn::explain_gradient(layer, {x}).message);
  return report.ok;
}

int main() {
  const bool right = is_right<CausalSelfAttention>("CausalSelfAttention");
  const bool wrong = is_right<WrongAttention>("WrongAttention");
  return right && !wrong ? 0 : 1;
}
