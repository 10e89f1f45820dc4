#include "playground.hpp"

#include <cmath>
#include <new>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "../../examples/playground/training.hpp"
#include "../../viz/graph.hpp"
#include "formula.hpp"

namespace playground {

using namespace xgrad;
using io::Json;
using io::JsonArray;
using io::JsonObject;

const Json& part(const Json& request, const char* key) {
  const Json* const found = request.find(key);
  check<ValueError>(found != nullptr, "the request has no \"{}\"", key);
  return *found;
}

std::string text_of(const Json& request, const char* key) {
  const auto* const text = part(request, key).as<std::string>();
  check<ValueError>(text != nullptr, "\"{}\" is not a text", key);
  return *text;
}

std::size_t count_of(const Json& request, const char* key, std::size_t most, std::size_t least) {
  const double n = part(request, key).number().value_or(-1);
  check<ValueError>(
      n >= static_cast<double>(least) && n <= static_cast<double>(most) && n == std::floor(n),
      "\"{}\" is not a whole number from {} to {}", key, least, most);
  return static_cast<std::size_t>(n);
}

Json numbers(const Tensor& x) {
  JsonArray list;
  for (const double v : xgrad::detail::elements(x))
    list.push_back(std::isfinite(v) ? Json(v) : Json(fmt::format("{}", v)));
  return list;
}

namespace {

// A formula and its leaves, in float64.
struct Problem {
  std::string formula;
  std::vector<std::string> names;
  std::vector<Tensor> leaves;
  Names constants;

  explicit Problem(const Json& request) : formula(text_of(request, "formula")) {
    const auto* const list = part(request, "leaves").as<JsonArray>();
    check<ValueError>(list != nullptr && list->size() <= 32,
                      "\"leaves\" is not a list of up to 32");
    for (const Json& leaf : *list) {
      const std::string name = text_of(leaf, "name");
      const auto* const sizes = part(leaf, "shape").as<JsonArray>();
      const auto* const cells = part(leaf, "cells").as<JsonArray>();
      check<ValueError>(sizes != nullptr && cells != nullptr, "{}: shape and cells are lists",
                        name);
      Shape shape;
      for (const Json& size : *sizes) {
        const double n = size.number().value_or(0);
        check<ValueError>(n >= 1 && n <= double{most_elements} && n == std::floor(n),
                          "{}: a size is a whole number from 1 to {}", name, most_elements);
        shape.push_back(static_cast<std::size_t>(n));
      }
      check_size(name, shape);
      std::vector<double> elements;
      for (const Json& cell : *cells)
        if (const auto* const text = cell.as<std::string>())
          elements.push_back(number_of(name, *text));
      check<ValueError>(std::ssize(elements) == numel(shape),
                        "{}: {} cells that are texts for the shape {}", name, elements.size(),
                        to_string(shape));
      const Tensor x(std::move(elements), Dims(shape));
      if (const auto* const constant = leaf.find<bool>("constant");
          constant != nullptr && *constant) {
        constants.insert_or_assign(name, x);
      } else {
        names.push_back(name);
        leaves.push_back(x.detach().requires_grad_());
      }
    }
  }

  // The result for these leaves; `all` gets it with the names of leaves, constants and statements.
  Tensor run(std::span<const Tensor> in, Names& all) const {
    all = constants;
    for (std::size_t i = 0; i < in.size(); ++i)
      all.insert_or_assign(names[i], in[i]);
    return evaluate(formula, all);
  }
  Tensor operator()(std::span<const Tensor> in) const {
    Names all;
    return run(in, all);
  }
};

JsonObject evaluated(const Json& request) {
  const Problem problem(request);
  viz::GraphOptions options{.names = {problem.constants.begin(), problem.constants.end()},
                            .max_values = 36};
  for (std::size_t i = 0; i < problem.leaves.size(); ++i)
    options.names.emplace_back(problem.names[i], problem.leaves[i]);
  {
    const NoGrad no_grad;
    options.gradient = ones_like(problem(problem.leaves));
  }
  const viz::Graph graph = viz::run_graph([&] { return problem(problem.leaves); }, options);
  JsonObject gradients;
  for (const viz::GraphNode& node : graph.nodes)
    if (node.kind == viz::GraphNode::Kind::leaf && node.gradient.defined())
      gradients.emplace_back(node.name, numbers(node.gradient));
  const Shape& shape = options.gradient.shape();
  return {{"shape", JsonArray(shape.begin(), shape.end())},
          {"html", viz::graph_html(graph)},
          {"gradients", std::move(gradients)},
          {"wrong", graph.wrong().size()}};
}

JsonObject checked(const Json& request) {
  const Problem problem(request);
  const GradientExplanation found =
      explain_gradient([&](const std::vector<Tensor>& in) { return problem(in); }, problem.leaves,
                       {.names = problem.names});
  JsonObject lines;
  for (const GradcheckPair& pair : found.whole.pairs)
    lines.emplace_back(
        pair.input_name,
        fmt::format("{} compared, {} wrong, {} unchecked{}{}", pair.elements, pair.disagree,
                    pair.unchecked, pair.explanation.empty() ? "" : ": ", pair.explanation));
  const std::string wrong = found.first_wrong ? found.ops[*found.first_wrong].op : "";
  const bool seen = found.whole.checked > found.whole.unchecked;
  const std::string message = (seen ? "" : "nothing is compared: ") + found.message;
  return {{"ok", found.ok && seen},
          {"message", message},
          {"leaves", std::move(lines)},
          {"wrong", wrong}};
}

// The learner's gradients as the backward of an op whose forward is the formula.
JsonObject answered(const Json& request) {
  const Problem problem(request);
  const Json& answers = part(request, "answers");
  const bool* const slopes = request.find<bool>("slopes");
  const auto yours = [&](const std::vector<Tensor>& in) {
    std::vector<Saved> saved(in.begin(), in.end());
    return record(
        "yours", in, [&](std::span<const Tensor> now) { return problem(now); },
        [&, saved = std::move(saved)](Context& ctx) {
          std::vector<Tensor> now;
          for (const Saved& x : saved)
            now.push_back(x.tensor().detach());
          Names names;
          problem.run(now, names);
          names.insert_or_assign("g", ctx.gradient());
          for (std::size_t i = 0; i < now.size(); ++i) {
            const Tensor mine = evaluate(text_of(answers, problem.names[i].c_str()), names);
            ctx.add(i, slopes != nullptr && *slopes ? mine * ctx.gradient() : mine);
          }
        });
  };
  std::vector<Tensor> in = problem.leaves;
  Generator generator(1);
  int compared = 0;
  for (int point = 0; point < 4; ++point) {  // at the leaves' values, and at random ones
    const GradcheckReport report = gradcheck(yours, in, {.names = problem.names});
    if (!report)
      return {{"ok", false}, {"message", report.message}};
    compared += report.checked > report.unchecked ? 1 : 0;
    for (Tensor& x : in)
      x = randn(Dims(x.shape()), generator, DType::float64).requires_grad_();
  }
  return {{"ok", compared > 0},
          {"message", fmt::format("{}: differences are compared at {} of 4 points, and agree there",
                                  compared > 0 ? "right" : "unchecked", compared)}};
}

JsonObject answer(const Json& request) {
  static const std::map<std::string, JsonObject (*)(const Json&)> here{
      {"evaluate", evaluated}, {"check", checked}, {"answer", answered}};
  const std::string what = text_of(request, "do");
  const auto found = here.find(what);
  return found == here.end() ? trained(what, request) : found->second(request);
}

}  // namespace

std::string call(const std::string& request) {
  JsonObject reply;
  try {
    reply = answer(io::parse_json(request, 0, 6));
  } catch (const UnknownName& error) {
    reply = {{"error", error.what()}, {"unknown", error.name}};
  } catch (const std::bad_alloc&) {
    reply = {{"error", "the page is out of memory: take a smaller text or fewer elements"}};
  } catch (const std::exception& error) {
    reply = {{"error", error.what()}};
  }
  return io::format_json(std::move(reply), io::InvalidUtf8::replaced);
}

}  // namespace playground

const char* xgrad_call(const char* request) {
  static std::string reply;
  reply = playground::call(request);
  return reply.c_str();
}
