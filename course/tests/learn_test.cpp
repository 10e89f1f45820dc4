// The exercises of the course: as given, solved, and with common mistakes.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <vector>

#include "learn_check.hpp"

namespace {

// A change of the solution, and the message that it must get: none if it is right as well.
struct Change {
  std::string from, to, says = {};
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  INFO(from);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Without spaces, because Catch2 breaks lines.
std::string packed(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

// Checks the exercise as given, its solution, and changes of that.  All are compiled at once: the
// solution as a learner's file, in front of it each other text in a namespace, with the exercise's
// check as a hidden test case.
void check_stage(const std::string& stage, const std::string& name,
                 const std::vector<std::string>& given_says, const std::vector<Change>& changes) {
  const TemporaryFolder folder;
  const std::string solution = solution_text(folder, name);
  std::vector<std::string> texts = {exercise_text(name)};
  for (const Change& change : changes)
    texts.push_back(replaced(solution, change.from, change.to));
  std::string planted =
      "#pragma once\n#pragma push_macro(\"TEST_CASE\")\n#undef TEST_CASE\n"
      "#define TEST_CASE(title) inline void check()\n";
  for (std::size_t i = 0; i < texts.size(); ++i)
    planted += fmt::format(
        "namespace v{} {{\nnamespace learn {{ using namespace ::learn; }}\n{}\n#include "
        "\"checks/{}.cpp\"\n}}\n",
        i, texts[i], name);
  planted += "#pragma pop_macro(\"TEST_CASE\")\n";
  for (std::size_t i = 0; i < texts.size(); ++i)
    planted += fmt::format(
        "TEST_CASE(\"v{0}\", \"[.]\") {{ using namespace v{0}; using namespace v{0}::learn; "
        "check(); }}\n",
        i);
  check_answer(check_text(folder, stage, planted + solution), true, "read next: ");

  const std::string program = build + "/course/check_" + name.substr(name.find('/') + 1);
  const auto says = [&](std::size_t i, const std::string& text) {
    const Result result = Process(folder, [] {}, {program, "v" + std::to_string(i)}).wait();
    INFO(result.out << result.err << "expected: " << text);
    CHECK((result.code == 0) == text.empty());
    CHECK(packed(result.out).find(packed(text)) != std::string::npos);
  };
  for (const std::string& text : given_says)
    says(0, text);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO(stage << ": " << changes[i].from << " -> " << changes[i].to);
    says(i + 1, changes[i].says);
  }
}

void check_stage(const std::string& stage, const std::string& name,
                 const std::vector<Change>& changes) {
  check_stage(stage, name, {"Nothing is written yet"}, changes);
}

// A layer that is given with a mistake: its solution names the message.
void check_layer(const std::string& stage, const std::string& name,
                 const std::vector<Change>& changes = {}) {
  std::istringstream lines(read_bytes(source_dir + "/course/solutions/mistakes/" + name + ".diff"));
  std::vector<std::string> said;
  int changed = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("It said: "))
      said.push_back(line.substr(9));
    changed += line.starts_with("-") && !line.starts_with("--") ? 1 : 0;
  }
  CHECK(!said.empty());
  CHECK(changed > 0);
  CHECK(changed <= 3);
  check_stage(stage, "mistakes/" + name, said, changes);
}

}  // namespace

TEST_CASE("learn check 1: a slope", "[learn]") {
  check_stage(
      "1", "01_slope",
      {{"3 * x * x - 2", "3 * x * x", "at x = 0 the slope along x is -2"},
       {"3 * x * x - 2", "2 - 3 * x * x", "Only the sign is wrong"},
       {"3 * x * x - 2", "0", "A slope of 0 says that f does not change here"},
       {"return 3 * x * x - 2", "static int n = 0;\n  return 3 * x * x - 2 + n++",
        "it keeps something from call to call"},
       {"3 * x * x - 2", "3 * std::min(x, 2.0) * std::min(x, 2.0) - 2", "at x = 7"},
       {"3 * x * x - 2", "(x * x * x - 2 * x - (std::pow(x - 1e-4, 3) - 2 * (x - 1e-4))) / 1e-4",
        "the slope along x is"}});
}
TEST_CASE("learn check 2: a graph", "[learn]") {
  check_stage("2", "02_graph",
              {{"b + std::cos(a)", "b", "at a = 2, b = 3 the slope along a is 2.58385"},
               {"by_b = a", "by_b = b", "the slope along b is 2, because f changes by that"},
               {"b + std::cos(a)", "b * std::cos(a)", "the slope along a is 2.58385"},
               {"b + std::cos(a)", "std::abs(b) + std::cos(a)", "at a = 4, b = -2"}});
}
TEST_CASE("learn check 3: an engine", "[learn]") {
  check_stage(
      "3", "03_engine",
      {{"input->grad +=", "input->grad =", "in x * x, the gradient of number 0"},
       {"numbers.rbegin(); at != numbers.rend()", "numbers.begin(); at != numbers.end()",
        "in a chain, ((2 * 3) * 4) * 5, the gradient of number 3 (a leaf, value 4) is 30, and "
        "yours is 0"},
       {"numbers.back()->grad = 1", "numbers.back()->grad = 0", "That is the output itself"},
       {"numbers.back()->grad = 1", "numbers.back()->grad = numbers.size() > 1", "a single number"},
       {"input->grad +=", "if (input->value != 0) input->grad +=",
        "in a * b + c - d as one number"},
       {"* slope", "* std::abs(slope)", "in a * b + c - d as one number"},
       {"->grad * slope", "->grad * slope * (&input - &(*at)->inputs[0].first < 4)",
        "in a * b + c - d as one number"},
       {"for (const auto& [input", "if ((*at)->grad > 0) for (const auto& [input",
        "in a * b + c - d as one number"},
       {"+= (*at)->grad * slope;", "+= (*at)->grad * slope, (*at)->value = 0;",
        "only `grad` is to be filled"},
       {"numbers.back()->grad = 1;",
        "for (Number* n : numbers) n->grad = 0;\n  numbers.back()->grad = 1;"}});
}
TEST_CASE("learn check 4: broadcasting", "[learn]") {
  check_stage("4", "04_broadcasting",
              {{"sum(g, {0, 1})", "mean(g, {0, 1})", "0.166667 (1/6"},
               {"sum(g, {0, 1})", "sum(g, {0})", "my_add"},
               {"sum(g, {0, 1})", "mean(g, {0, 1}) * 6", "shapes (3, 1, 2), (2,)"},
               {"ctx.add(1,", "// ctx.add(1,", "The function's value changes when this input"}});
}
TEST_CASE("learn check 5: softmax", "[learn]") {
  const std::string formula = "y * (g - sum(y * g, {-1}, true))";
  check_stage(
      "5", "05_softmax",
      {{formula, "y * g", "my_softmax: its backward is wrong"},
       {"sum(y * g, {-1}", "sum(y * g, {0}", "my_softmax: its backward is wrong"},
       {formula, "y * (1 - y)", "my_softmax"},
       {"sum(y * g, {-1}", "sum(y * g, {2}", "shapes (5, 2)"},
       {formula, "y * (g - sum(y * g, {-1}, true)) * y / y", "There is a NaN"},
       {"y = ctx.output();", "now = ctx.output();\n    static const Tensor y = now;",
        "a number fixed that should come from the inputs or their shapes"},
       {"softmax(in[0], -1)", "exp(in[0]) / sum(exp(in[0]), {-1}, true)",
        "with 1000 added to all numbers of some rows, element 0 is nan"},
       {"return softmax(in[0], -1)",
        "const Tensor e = exp(in[0] - amax(in[0], {-1}, true)); "
        "return e / (sum(e, {-1}, true) + 1e-8)",
        "a row sums to 0.99999999"},
       {"return softmax(in[0], -1)",
        "const Tensor e = exp(in[0] - amax(in[0], {0, 1, 2}, true)); "
        "return e / sum(e, {-1}, true)",
        "subtract each row's largest before exp()"},
       {formula, "zeros_like(g)", "a term is missing"},
       {formula, "0 * " + formula, "a term is missing"},
       {"return record(", "return softmax(x.detach(), -1); return record(",
        "no gradient reaches its inputs"},
       {"return record(", "const NoGrad off;\n  return record(", "no gradient reaches its inputs"},
       {formula, "y", "A backward multiplies the gradient that arrives"},
       {"ctx.add(0, " + formula + ");", "sum(g);", "a term is missing"},
       {formula, "sum(y, {-1})", "A gradient has the shape"}});
}
TEST_CASE("learn check 6: attention", "[learn]") {
  check_stage("6", "06_attention",
              {{" / root", "", "is 1.73205 (√3) times the reference's"},
               {"softmax(scores, -1)", "softmax(scores, -2)",
                "yours sums to 1 along dimension 1, the reference's along 2"},
               {"transpose(k, -2, -1)", "k", "yours differs first at"},
               {"softmax(scores, -1)", "softmax(clamp(scores, -5, 5), -1)", "shapes (1, 5, 2)"},
               {"matmul(weights, v)", "matmul(q.size(1) > 1 ? weights : 0.5 * weights, v)",
                "shapes (3, 1, 2)"},
               {"return matmul(weights, v)", "Tensor(q).copy_(2 * q);\n  return matmul(weights, v)",
                "input 0 has other numbers after the call"}});
}
TEST_CASE("learn check 7: masks", "[learn]") {
  check_stage(
      "7", "07_masks",
      {{"-INFINITY", "0", "position 0 sees position 1"},
       {"masked_fill(scores, future, -INFINITY)", "scores", "position 0 sees position 1"},
       {"matmul(softmax(hidden, -1), v)", "matmul(masked_fill(softmax(scores, -1), future, 0), v)",
        "position 0 sees position 1"},
       {"-INFINITY", "-30", "sees position"},
       {"-INFINITY", "-100", "sees position"},
       {"-INFINITY", "-1000", "sees position"},
       {"scores, future", "scores.detach(), future", "a term is missing"},
       {"static_cast<double>(q.size(-1))", "3.0", "shapes (3, 5, 2)"},
       {"const Mask", "static const Mask", "shapes (3, 5, 2)"},
       {"masked_fill(scores, future, -INFINITY)",
        "scores + triu(full({q.size(1), q.size(1)}, -INFINITY, q.dtype()), 1)"},
       {"masked_fill(scores, future, -INFINITY)",
        "scores + log(tril(ones({q.size(1), q.size(1)}, q.dtype())))"},
       {"masked_fill(scores, future, -INFINITY)",
        "scores - masked_fill(zeros_like(scores), future, INFINITY)"},
       {"masked_fill(scores, future, -INFINITY)",
        "masked_fill(scores * root, future, -INFINITY) / root"},
       {"matmul(softmax(hidden, -1), v)", "matmul(exp(hidden - logsumexp(hidden, {-1}, true)), v)"},
       {"matmul(softmax(hidden, -1), v)",
        "matmul(tril(softmax(scores, -1)) / sum(tril(softmax(scores, -1)), {-1}, true), v)"}});
}
TEST_CASE("learn check 8: heads", "[learn]") {
  check_stage(
      "8", "08_heads",
      {{"permute(reshape(x, {b, t, n_head, d}), {0, 2, 1, 3})", "reshape(x, {b, n_head, t, d})",
        "the same numbers in another order"},
       {"permute(x, {0, 2, 1, 3})", "permute(x, {0, 2, 3, 1})",
        "the same numbers in another order"},
       {"static_cast<double>(d)", "static_cast<double>(c)", "1.41421 (√2)"},
       {"{b, t, n_head, d}", "{b, t, 2, c / 2}", "my_heads with n_head = 3 "},
       {"{b, t, c}", "{b, t, 6}", "my_heads with n_head = 3 "},
       {"static_cast<double>(d)", "3.0", "my_heads with n_head = 3 "},
       {"-INFINITY), -1)", "-100), -1)", "sees position"},
       {"-INFINITY), -1)", "-INFINITY), n_head > 1 ? -1 : -2)", "my_heads with n_head = 1 "},
       {"masked_fill(scores, nn::future(t, t), -INFINITY)",
        "scores + triu(full({t, t}, -INFINITY, scores.dtype()), 1)"}});
}
TEST_CASE("learn check 9: Adam", "[learn]") {
  check_stage(
      "9", "09_model",
      {{"m_hat = m / (1 - std::pow(beta1, t))", "m_hat = m",
        "m and v are right, so it is the step itself"},
       {"g * g * (1 - beta2)", "g * (1 - beta2)", "in step t = 1, v[0] is"},
       {"sqrt(v_hat) + eps", "sqrt(v_hat + eps)", "m and v are right, so it is the step itself"},
       {"a.v * beta2 + g * g * (1 - beta2)", "maximum(a.v, a.v * beta2 + g * g * (1 - beta2))",
        "v[3] is"},
       {"a.m * beta1 + g *", "a.m * beta1 + clamp(g, -1, 1) *", "m[2] is"},
       {"a.v * beta2 + g * g", "a.v * beta2 + (g.dim() > 1 ? sum(g * g, {0}, true) : g * g)", "v["},
       {"return {p, m, v};", "return {p.flatten(), m, v};", "p no longer has the shape (3, 2, 5)"},
       {"std::pow(beta1, t)", "std::pow(beta1, std::min(t, 9))", "in step t = 100"},
       {"return {p, m, v};", "Tensor(g).zero_();\n  return {p, m, v};", "g has other numbers"},
       {"return {p, m, v};",
        "Adam same = a;\n  same.p.copy_(p), same.m.copy_(m), same.v.copy_(v);\n  return same;"}});
}
TEST_CASE("learn check 10: training", "[learn]") {
  check_stage(
      "10", "10_training",
      {{"optimizer.zero_grad();", "", "come out without zero_grad()"},
       {"step < steps", "step <= steps", "optimizer.step() was called 3 times"},
       {"step < steps", "step < 5", "optimizer.step() was called 5 times"},
       {"step = 0", "step = 1", "optimizer.step() was called 1 time:"},
       {"optimizer.step();", "", "optimizer.step() was called 0 times"},
       {"optimizer.step();",
        "const NoGrad off;\n    for (Tensor p : nn::parameters(model))\n"
        "      p.copy_(p - 0.1 * p.grad());",
        "the step is optimizer.step()"},
       {"mse_loss(model(x), y).backward()", "(sum(square(model(x) - y)) / x.size(0)).backward()",
        "2 outputs"},
       {"for (int step", "Tensor(model.bias).fill_(0);\n  for (int step", "2 outputs"},
       {"optimizer.zero_grad();", "if (steps > 100) continue;\n    optimizer.zero_grad();",
        "after 200 steps"},
       {"optimizer.step();", "optimizer.step();\n    Tensor(x).fill_(0);",
        "x or y has other numbers"},
       {"optimizer.step();",
        "optimizer.step();\n    if (mse_loss(model(x), y).item() < 0.1)\n      break;",
        "optimizer.step() was called"},
       {"optimizer.step();", "optimizer.zero_grad(), optimizer.step();", "nothing has changed"},
       {"optimizer.zero_grad();", "nn::zero_grad(model);"},
       {"optimizer.zero_grad();", "for (Tensor p : nn::parameters(model)) p.zero_grad();"}});
}
TEST_CASE("learn check 11: a gradient checker", "[learn]") {
  check_stage(
      "11", "11_wrong_gradients",
      {{"std::abs(gradient[i] - numeric)", "gradient[i] - numeric",
        "element 0 of a gradient is 0.5 too small"},
       {"i < x.size()", "i < 1", "element 1 of a gradient is 0.25 too large"},
       {"/ (2 * eps)", "/ eps", "it says that a right gradient is wrong"},
       {"(f(up) - f(down)) / (2 * eps)", "(f(up) - f(x)) / eps",
        "it says that a right gradient is wrong"},
       {"i < x.size()", "i < 3", "element 3 of a gradient is 0.0123 too large"},
       {"std::abs(gradient[i] - numeric)", "std::abs(std::abs(gradient[i]) - std::abs(numeric))",
        "element 4 of a gradient is 6 too small"},
       {"largest = std::max(", "if (x[i] > 0) largest = std::max(", "element 3"},
       {"largest = std::max(", "if (x[i] != 0) largest = std::max(", "element 4"},
       {"largest = std::max(", "if (numeric != 0) largest = std::max(", "element 5"},
       {"double largest = 0", "double largest = x.empty() ? -1 : 0", "of 0 elements"},
       {"eps = 1e-6", "eps = 1e-3", "a right gradient"},
       {"std::abs(gradient[i] - numeric)", "std::pow(gradient[i] - numeric, 2)", "no square"},
       {"constexpr double eps = 1e-6;", "constexpr double eps = 1e-4;"}});
}
TEST_CASE("learn check 12: second derivatives", "[learn]") {
  check_stage(
      "12", "12_second_derivatives",
      {{"Saved(x)", "Saved(x.detach())", "the gradient is right, and its own gradient is not"},
       {"* x.tensor() * x.tensor()", "* x.tensor() * x.tensor().detach()",
        "at x = 0.5 it is 6 x = 3"},
       {"* x.tensor() * x.tensor()", "* pow(abs(x.tensor() * x.tensor() * x.tensor()), 2.0 / 3)",
        "at x = 0 it is 6 x = 0, and yours is nan"},
       {"ctx.gradient() * 3", "ctx.gradient().detach() * 3", "and the gradient that arrives"},
       {"ctx.gradient() * 3", "(x.tensor().dim() == 2 ? ctx.gradient() * 3 : ctx.gradient())",
        "shapes ()"},
       {"* x.tensor() * x.tensor()", "* x.tensor()", "my_cube: its backward is wrong"},
       {"ctx.gradient() * 3", "ctx.gradient() * 0", "a term is missing"},
       {"[x = Saved(x)](Context& ctx) {", "[&y = x](Context& ctx) { const Saved x(y);",
        "captured by reference is gone"},
       {"const auto backward = [x = Saved(x)](Context& ctx) {",
        "static Tensor last;\n  last = x;\n"
        "  const auto backward = [](Context& ctx) { const Saved x(last);",
        "the function is called again before the backward runs"},
       {"[x = Saved(x)](Context& ctx) {",
        "[y = std::vector{x}](Context& ctx) { const Saved x(y[0]);",
        "captures the Tensor of input 0"},
       {"[x = Saved(x)](Context& ctx) {",
        "[y = std::make_shared<Tensor>(x)](Context& ctx) { const Saved x(*y);",
        "a Tensor names whatever x is"},
       {"* x.tensor() * x.tensor()", "* x.tensor() * x.tensor() * x.tensor() / x.tensor()", "nan"},
       {"Saved(x)", "Saved(x.clone())"}});
}
TEST_CASE("learn check 11.1 to 11.6: a backward is wrong", "[learn]") {
  check_layer("11.1", "01_softmax");
  check_layer("11.2", "02_scores");
  check_layer("11.3", "03_scaled_scores");
  check_layer("11.4", "04_mask",
              {{"my_mask(scores)", "scores + log(tril(ones({T, T}, scores.dtype())))", ""}});
  check_layer("11.5", "05_bias");
  check_layer("11.6", "06_merge_heads");
}
TEST_CASE("learn check 11.7 to 11.10: the forward is wrong", "[learn]") {
  check_layer("11.7", "07_attention");
  check_layer("11.8", "08_attention");
  check_layer("11.9", "09_attention");
  check_layer("11.10", "10_causal");
}
TEST_CASE("learn check 11.11: dropout", "[learn]") {
  const std::string coins = "x * keep / (1 - p)";
  const std::string kept = "it is 0, or, if it is kept, divided by 1 - p";
  check_layer(
      "11.11", "11_dropout",
      {{"softmax(hide_future(scores), -1)", "softmax(scores, -1)", "attention_weights with p = 0"},
       {coins, "(dropout(x, p / 2) + 0 * keep)", kept},
       {coins, "(dropout(x, 2 * p) + 0 * keep)", kept},
       {coins, "(dropout(x, 1 - p) + 0 * keep)", "p = 0"},
       {coins, "x * keep / p", "p = 0"},
       {"bernoulli(full_like(x, 1 - p))",
        "bernoulli(full_like(x, 1 - p), []() -> Generator& { static Generator g(7); return g; }())",
        "a generator of its own"},
       {coins, "x * keep / 0.8", "p = 0"},
       {coins, "x * expand(narrow(keep, 0, 0, 1), {B, H, T, T}) / (1 - p)", "dropped together"},
       {coins, "x * bernoulli(full({}, 1 - p, x.dtype())) / (1 - p) + 0 * keep",
        "dropped together"},
       {coins, "x * keep / sum(x * keep, {-1}, true)", "the mean of 1000 samples is"},
       {coins, "x * (1 + 0.1 * (keep - (1 - p)))", kept}});
}
TEST_CASE("learn check 11.12: causal attention with dropout", "[learn]") {
  const std::string dropped = "dropout(softmax(hide_future(scores), -1), p)";
  check_layer(
      "11.12", "12_dropout_mask",
      {{dropped, "softmax(hide_future(scores), -1)", "nothing is dropped"},
       {dropped + ";",
        "softmax(hide_future(scores), -1); return dropout(merge_heads(matmul(weights, v)), p);",
        "the channels of a head are dropped one by one"},
       {"split_heads(parts[2])", "split_heads(parts[2].detach())", "as a constant"},
       {dropped, "dropout(softmax(hide_future(scores), -1), p / 2)", "it is 0, or, if it is kept"},
       {dropped, "dropout(softmax(hide_future(scores), -1), 1 - p)", "it is 0, or, if it is kept"},
       {dropped,
        "softmax(hide_future(scores), -1) * bernoulli(full({B, H, T, 1}, 1 - p, q.dtype())) / (1 - "
        "p)",
        "dropped together"},
       {dropped,
        "softmax(scores + triu(full({T, T}, -INFINITY, q.dtype()), 1), -1) * "
        "bernoulli(full({B, H, T, T}, 1 - p, q.dtype())) / (1 - p)",
        ""}});
}
