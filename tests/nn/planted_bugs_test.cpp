// Layers that users write, each with the mistakes that users make: which tool finds which, and that
// its first line leads there.

#include <cmath>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/gradcheck.hpp>
#include <xgrad/nn/linear.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

enum class Bug {
  none,
  mask_off_by_one,
  scale_of_model,
  no_head_transpose,
  softmax_dim,
  view_for_transpose,
  detached_key,
  detached_gate,
  detached_state,
  unvisited,
  float32_inside,
  in_place,
  copied_value,
  batch_leak
};

// Rotates pairs of features by an angle that grows with the position: (B, H, T, D) -> the same.
Tensor rope(const Tensor& x) {
  const Scope scope("rope");
  const auto T = x.size(-2), half = x.size(-1) / 2;
  const Tensor position = arange(0, static_cast<double>(T), 1, x.dtype()).unsqueeze(1);
  const Tensor angle = position * exp(arange(0, static_cast<double>(half), 1, x.dtype()) *
                                      (-2.0 / static_cast<double>(half)));
  const auto [a, b] = chunk<2>(x, -1);
  return cat({a * cos(angle) - b * sin(angle), a * sin(angle) + b * cos(angle)}, -1);
}

// Causal attention of four query heads on two heads of keys and values: (B, T, 8) -> the same.
struct GroupedQueryAttention {
  Bug bug = Bug::none;
  nn::Linear q{8, 8, false}, k{8, 4, false}, v{8, 4, false}, out{8, 8, false};
  Tensor temperature = ones({1}, DType::float64).requires_grad_();

  Tensor heads(const Tensor& x, std::int64_t n) const {
    const auto B = x.size(0), T = x.size(1);
    return bug == Bug::view_for_transpose ? x.view({B, n, T, 2})
                                          : x.view({B, T, n, 2}).transpose(1, 2);
  }
  Tensor operator()(const Tensor& x) const {
    const auto B = x.size(0), T = x.size(1);
    const Tensor queries = rope(heads(q(x), 4)), shared = rope(heads(k(x), 2));
    Tensor keys = repeat_interleave(shared, 2, 1), values = repeat_interleave(heads(v(x), 2), 2, 1);
    if (bug == Bug::detached_key)
      keys = keys.detach();
    if (bug == Bug::float32_inside)
      keys = keys.to(DType::float32).to(DType::float64);
    const double d = bug == Bug::scale_of_model ? 8 : 2;
    Tensor scores = matmul(queries, keys.transpose(-2, -1)) / std::sqrt(d);
    if (bug == Bug::in_place) {
      Tensor first = scores[0];
      first *= 2.0;
    }
    if (bug == Bug::copied_value)
      scores = scores / scores.abs().max().item();
    scores = scores.masked_fill(
        ones({T, T}, DType::float64).triu(bug == Bug::mask_off_by_one ? 2 : 1) == 1.0, -inf);
    const Tensor weights = softmax(scores, bug == Bug::softmax_dim ? -2 : -1);
    const Tensor y = matmul(weights, values);
    return out((bug == Bug::no_head_transpose ? y : y.transpose(1, 2)).reshape({B, T, 8})) *
           temperature;
  }
  static void visit(auto& self, auto&& visitor) {
    visitor("q", self.q), visitor("k", self.k), visitor("v", self.v), visitor("out", self.out);
    if (self.bug != Bug::unvisited)
      visitor("temperature", self.temperature);
  }
};

// The same by the library's attention.
Tensor by_formula(const GroupedQueryAttention& m, const Tensor& x) {
  const auto heads = [&](const Tensor& y, std::int64_t n) {
    return y.view({x.size(0), x.size(1), n, 2}).transpose(1, 2);
  };
  const Tensor q = rope(heads(m.q(x), 4)), k = rope(heads(m.k(x), 2)), v = heads(m.v(x), 2);
  const Tensor y = scaled_dot_product_attention(q, repeat_interleave(k, 2, 1),
                                                repeat_interleave(v, 2, 1), {.is_causal = true});
  return m.out(y.transpose(1, 2).reshape(x.shape())) * m.temperature;
}

// Two experts, weighted by a gate: (B, 4) -> the same.
struct Mixture {
  Bug bug = Bug::none;
  nn::Linear gate{4, 2}, first{4, 4}, second{4, 4};
  Tensor operator()(const Tensor& x) const {
    Tensor weights = softmax(gate(x), -1);
    if (bug == Bug::detached_gate)
      weights = weights.detach();
    const Tensor y = first(x) * index(weights, {Slice{}, Slice{0, 1}}) +
                     tanh(second(x)) * index(weights, {Slice{}, Slice{1, 2}});
    return bug == Bug::batch_leak ? y - y.mean(0) : y;
  }
  static void visit(auto& self, auto&& v) {
    v("gate", self.gate), v("first", self.first), v("second", self.second);
  }
};

// Hochreiter and Schmidhuber, 1997: (T, B, 3) -> (B, 3), the last hidden state.
struct LSTM {
  Bug bug = Bug::none;
  nn::Linear input{3, 12}, hidden{3, 12};
  Tensor operator()(const Tensor& x) const {
    Tensor h = zeros({x.size(1), 3}, x.dtype()), c = h;
    for (std::int64_t t = 0; t < x.size(0); ++t) {
      const Scope step("t" + std::to_string(t));
      const auto [i, f, g, o] = chunk<4>(input(x[t]) + hidden(h), -1);
      c = sigmoid(f) * (bug == Bug::detached_state ? c.detach() : c) + sigmoid(i) * tanh(g);
      h = sigmoid(o) * tanh(c);
    }
    return h;
  }
  static void visit(auto& self, auto&& v) { v("input", self.input), v("hidden", self.hidden); }
};

template <class M>
M model(Bug bug) {
  manual_seed(3);
  M m;
  m.bug = bug;
  nn::to(m, DType::float64);
  return m;
}

Tensor input_of(const Dims& sizes) { return normal(sizes, 5).requires_grad_(); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TEST_CASE("planted bugs: without them the layers pass", "[planted]") {
  const auto attention = model<GroupedQueryAttention>(Bug::none);
  const Tensor x = input_of({2, 3, 8});
  CHECK(nn::gradcheck(attention, {x}));
  CHECK(check_causal(attention, x));
  CHECK(check_batch_independence(attention, x));
  const Comparison same =
      compare(attention, [&](const Tensor& in) { return by_formula(attention, in); }, {x});
  CHECK(same);
  CHECK(nn::gradcheck(model<Mixture>(Bug::none), {input_of({3, 4})}));
  CHECK(check_batch_independence(model<Mixture>(Bug::none), input_of({3, 4})));
  CHECK(nn::gradcheck(model<LSTM>(Bug::none), {input_of({3, 2, 3})}));
}

TEST_CASE("planted bugs: a wrong function is found beside the library's attention", "[planted]") {
  const Tensor x = input_of({2, 3, 8});
  struct Case {
    Bug bug;
    std::vector<std::string> says;
  };
  for (const Case& c : std::initializer_list<Case>{
           {Bug::mask_off_by_one, {"masked_fill"}},
           {Bug::scale_of_model, {"div", "0.5 (1/2"}},
           {Bug::no_head_transpose, {"dimensions permuted by (0, 2, 1, 3)"}},
           {Bug::softmax_dim, {"softmax"}},
           {Bug::view_for_transpose, {"rope"}}}) {
    INFO(static_cast<int>(c.bug));
    const auto mine = model<GroupedQueryAttention>(c.bug);
    CHECK(nn::gradcheck(mine, {x}));  // the gradient of a wrong function is right
    const Comparison found =
        compare(mine, [&](const Tensor& in) { return by_formula(mine, in); }, {x});
    CHECK_FALSE(found);
    check_contains(found.message, c.says);
  }
  for (const Bug bug : {Bug::mask_off_by_one, Bug::softmax_dim, Bug::view_for_transpose}) {
    const CausalReport found = check_causal(model<GroupedQueryAttention>(bug), x);
    CHECK_FALSE(found);
    check_contains(first_line(found.message), {"position 0 sees position 1"});
  }
}

TEST_CASE("planted bugs: a cut in the graph is named", "[planted]") {
  const auto explained = [](const auto& layer, const Tensor& x) {
    const GradientExplanation found = explain_gradient(layer, {x});
    CHECK_FALSE(found);
    return first_line(found.message);
  };
  check_contains(explained(model<GroupedQueryAttention>(Bug::detached_key), input_of({2, 3, 8})),
                 {"the graph is cut before op", "transpose", "reshape, but as a constant"});
  check_contains(explained(model<Mixture>(Bug::detached_gate), input_of({3, 4})),
                 {"the graph is cut before op", "softmax", "as a constant"});
  check_contains(explained(model<LSTM>(Bug::detached_state), input_of({3, 2, 3})),
                 {"the graph is cut before op", "mul", "add", "as a constant"});
}

TEST_CASE("planted bugs: what gradcheck says itself", "[planted]") {
  const Tensor x = input_of({2, 3, 8});
  const auto says = [&](Bug bug) { return nn::gradcheck(model<GroupedQueryAttention>(bug), {x}); };
  const GradcheckReport unvisited = says(Bug::unvisited);
  CHECK_FALSE(unvisited);
  check_contains(first_line(unvisited.message), {"visit does not name, of shape (1,)"});
  const GradcheckReport narrow = says(Bug::float32_inside);
  CHECK_FALSE(narrow);
  check_contains(first_line(narrow.message), {"float32"});
  const GradcheckReport lost = says(Bug::in_place);
  check_contains(first_line(lost.message),
                 {"no output depends on the result of op", "mul", "select_scatter"});
  const GradcheckReport copied = says(Bug::copied_value);
  CHECK_FALSE(copied);
  check_contains(first_line(copied.message), {"div", "moves with the function's inputs", "item()"});
}

TEST_CASE("planted bugs: a leak between items of the batch", "[planted]") {
  const auto mine = model<Mixture>(Bug::batch_leak);
  const Tensor x = input_of({3, 4});
  CHECK(nn::gradcheck(mine, {x}));
  const LeakReport found = check_batch_independence(mine, x);
  CHECK_FALSE(found);
  check_contains(first_line(found.message), {"item 0", "item 1"});
}
