// What the backward of the ops that a GPT and the course are made of does, as data.  Of others the
// page shows name, inputs and shapes.  ⊙ multiplies element by element; where an operand was
// broadcast, what it gets is summed over the dimensions along which it was.

#include <algorithm>
#include <xgrad/pages/graph.hpp>

namespace xgrad::pages {
namespace {

constexpr std::string_view product =
    "Each factor gets the upstream gradient times the other, transposed so that the shapes fit.";
constexpr std::string_view to_its_place =
    "Elements only moved: each gradient goes back to where its element came from.";
constexpr std::string_view back_in_zeros =
    "The part gets the upstream gradient; what was not taken gets 0.";

const std::vector<GraphRule> rules = {
    {"add", "a + b (or a + alpha b)", {"g", "g (times alpha)"}, "A sum hands its gradient on."},
    {"sub",
     "a - b (or a - alpha b)",
     {"g", "-g (times alpha)"},
     "The gradient is handed on, with the other sign to what is subtracted."},
    {"mul", "a ⊙ b", {"g ⊙ b", "g ⊙ a"}, "Each factor gets the upstream gradient times the other."},
    {"div",
     "a / b",
     {"g / b", "-g ⊙ a / b²"},
     "The numerator's slope is 1 / b, the denominator's -a / b²; both are 0 if the result is "
     "rounded."},
    {"neg", "-a", {"-g"}, "The sign turns."},
    {"pow",
     "a^b",
     {"g ⊙ b a^(b - 1)", "g ⊙ y log a"},
     "The power rule for the base; y log a for an exponent that is a Tensor."},
    {"exp", "exp(a)", {"g ⊙ y"}, "exp is its own slope."},
    {"log", "log(a)", {"g / a"}, "The slope of log is 1 / a."},
    {"sqrt", "√a", {"g / (2 y)"}, "The upstream gradient times the slope of the curve there."},
    {"tanh",
     "tanh(a)",
     {"g / cosh²(a)"},
     "The slope is 1 in the middle and nears 0 where it saturates."},
    {"sigmoid",
     "σ(a) = 1 / (1 + exp(-a))",
     {"g ⊙ σ(a) σ(-a)"},
     "The slope is at most 1/4, and nears 0 where it saturates."},
    {"relu",
     "max(a, 0)",
     {"g where a > 0, else 0"},
     "What was positive passes; the rest is cut off."},
    {"gelu", "a Φ(a)", {"g ⊙ (Φ(a) + a φ(a))"}, "The product rule, with the normal density φ."},
    {"masked_fill",
     "value where masked, else a",
     {"g where it was chosen, else 0"},
     "What was masked gets 0."},
    {"sum",
     "Σ a",
     {"g, for each element that was added"},
     "Each element counts once in the sum, so each gets the whole gradient."},
    {"mean", "Σ a / n", {"g / n, for each element"}, "Each of the n elements counts 1/n."},
    {"matmul", "a b", {"g bᵀ", "aᵀ g"}, product},
    {"linear",
     "a bᵀ + c (x Wᵀ + bias)",
     {"g b", "gᵀ a", "Σ g over rows"},
     "x gets g W; the weight gᵀ x, summed over all rows; the bias the sum of the rows of g."},
    {"reshape", "a in another shape", {"g in the shape of a"}, to_its_place},
    {"permute", "a with its dimensions in another order", {"g permuted back"}, to_its_place},
    {"transpose", "aᵀ", {"gᵀ"}, to_its_place},
    {"expand",
     "a, repeated without a copy",
     {"Σ g over the copies"},
     "An element that stands in several places gets the sum of their gradients."},
    {"cat", "the inputs, joined", {"its own part of g"}, to_its_place},
    {"split", "a part of a", {"g where the part was, else 0"}, back_in_zeros},
    {"slice", "a[start:end:step]", {"g where the part was, else 0"}, back_in_zeros},
    {"select", "a[index]", {"g where the part was, else 0"}, back_in_zeros},
    {"embedding",
     "rows of a, one for each id",
     {"Σ g over the positions of each id"},
     "A row gets the sum over the positions where its id stands; ids that do not occur get 0."},
    {"softmax",
     "exp(a) / Σ exp(a)",
     {"y ⊙ (g - Σ (g ⊙ y))"},
     "Only what differs from the weighted mean of g moves probabilities; the sums of a row are 0."},
    {"log_softmax", "a - log Σ exp(a)", {"g - softmax(a) Σ g"}, "The sums of a row are 0."},
    {"layer_norm",
     "n ⊙ b + c, n = (a - mean) / std",
     {"(h - mean(h) - n mean(h ⊙ n)) / std, h = g ⊙ b", "Σ g ⊙ n", "Σ g"},
     "Shifting or scaling a row changes nothing, so those two directions are taken out of h."},
    {"dropout",
     "a ⊙ kept / (1 - p)",
     {"g ⊙ kept / (1 - p)"},
     "What was dropped gets 0, what was kept is scaled as it was in the forward pass."},
    {"cross_entropy",
     "-log softmax(a)[target], the mean",
     {"g (softmax(a) - one-hot(target)) / N", "-g log softmax(a) / N"},
     "Probability minus truth, for each of the N targets (times weights, where they are given)."},
    {"mse_loss",
     "mean (a - b)²",
     {"2 g (a - b) / N", "-2 g (a - b) / N"},
     "Twice the error; N is 1 unless the mean is taken."},
    {"scaled_dot_product_attention",
     "A c, A = softmax(a bᵀ scale + mask)",
     {"dS b scale", "dSᵀ a scale", "Aᵀ g", "dS"},
     "v gets Aᵀ g; the scores get dS = A ⊙ (dA - Σ (dA ⊙ A)) with dA = g vᵀ, and pass it to q and "
     "k."},
    {"causal_self_attention",
     "q, k, v from a; softmax(q kᵀ / √D, causal) v",
     {"[dS k / √D, dSᵀ q / √D, Aᵀ g], side by side"},
     "As scaled_dot_product_attention, for each head; position t gets nothing from keys after it."},
};

}  // namespace

const GraphRule* graph_rule(std::string_view op) {
  const auto at = std::ranges::find(rules, op, &GraphRule::op);
  return at == rules.end() ? nullptr : &*at;
}

}  // namespace xgrad::pages
