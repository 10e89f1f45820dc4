#include "playground.hpp"

#include <cmath>
#include <new>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "../../viz/graph.hpp"
#include "formula.hpp"
#include "training.hpp"

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

std::size_t count_of(const Json& request, const char* key, std::size_t most) {
  const double n = part(request, key).number().value_or(-1);
  check<ValueError>(n >= 0 && n <= static_cast<double>(most) && n == std::floor(n),
                    "\"{}\" is not a whole number from 0 to {}", key, most);
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
  std::vector<std::pair<std::string, Tensor>> leaves, constants;

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
        shape.push_back(static_cast<Size>(n));
      }
      check_size(name, shape);
      std::vector<double> elements;
      for (const Json& cell : *cells)
        if (const auto* const text = cell.as<std::string>())
          elements.push_back(number_of(name, *text));
      check<ValueError>(std::ssize(elements) == numel(shape),
                        "{}: {} cells that are texts for the shape {}", name, elements.size(),
                        to_string(shape));
      const auto* const constant = leaf.find<bool>("constant");
      const bool fixed = constant != nullptr && *constant;
      (fixed ? constants : leaves)
          .emplace_back(name, Tensor(std::move(elements), Dims(shape)).requires_grad_(!fixed));
    }
  }

  std::vector<Tensor> inputs() const {
    std::vector<Tensor> list;
    for (const auto& [name, x] : leaves)
      list.push_back(x);
    return list;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& [name, x] : leaves)
      list.push_back(name);
    return list;
  }
  // All names with these leaves, and with those that the formula gives.
  Names values(std::span<const Tensor> in, Tensor* result = nullptr) const {
    Names all(constants.begin(), constants.end());
    for (std::size_t i = 0; i < in.size(); ++i)
      all.insert_or_assign(leaves[i].first, in[i]);
    const Tensor y = evaluate(formula, all);
    if (result != nullptr)
      *result = y;
    return all;
  }
  Tensor operator()(std::span<const Tensor> in) const {
    Tensor y;
    values(in, &y);
    return y;
  }
};

JsonObject evaluated(const Json& request) {
  const Problem problem(request);
  const std::vector<Tensor> in = problem.inputs();
  Shape shape;
  {
    const NoGrad no_grad;
    shape = problem(in).shape();
  }
  viz::GraphOptions options{.names = problem.leaves, .title = "Graph", .max_values = 36};
  options.names.insert(options.names.end(), problem.constants.begin(), problem.constants.end());
  options.gradient = ones(Dims(shape), DType::float64);
  const viz::Graph graph = viz::run_graph([&] { return problem(in); }, options);
  JsonObject gradients;
  for (const auto& [name, x] : problem.leaves) {
    Json gradient(nullptr);
    for (const viz::GraphNode& node : graph.nodes)
      if (node.kind == viz::GraphNode::Kind::leaf && node.name == name && node.gradient.defined())
        gradient = numbers(node.gradient);
    gradients.emplace_back(name, std::move(gradient));
  }
  return {{"shape", JsonArray(shape.begin(), shape.end())},
          {"html", viz::graph_html(graph)},
          {"gradients", std::move(gradients)},
          {"wrong", graph.wrong().size()}};
}

JsonObject checked(const Json& request) {
  const Problem problem(request);
  const GradientExplanation found =
      explain_gradient([&](const std::vector<Tensor>& in) { return problem(in); }, problem.inputs(),
                       {.names = problem.names()});
  JsonObject lines;
  for (const GradcheckPair& pair : found.whole.pairs)
    lines.emplace_back(
        pair.input_name,
        fmt::format("{} compared, {} wrong, {} unchecked{}{}", pair.elements, pair.disagree,
                    pair.unchecked, pair.explanation.empty() ? "" : ": ", pair.explanation));
  JsonArray ops;
  if (found.first_wrong)
    ops.emplace_back(found.ops[*found.first_wrong].op);
  return {{"ok", found.ok},
          {"message", found.message},
          {"leaves", std::move(lines)},
          {"wrong", std::move(ops)}};
}

// The learner's gradients as the backward of an op whose forward is the formula.
JsonObject answered(const Json& request) {
  const Problem problem(request);
  const Json& answers = part(request, "answers");
  const auto* const slopes = request.find<bool>("slopes");
  const auto yours = [&](const std::vector<Tensor>& in) {
    std::vector<Saved> saved(in.begin(), in.end());
    return record(
        "yours", in, [&](std::span<const Tensor> now) { return problem(now); },
        [&, saved = std::move(saved)](Context& ctx) {
          std::vector<Tensor> now;
          for (const Saved& x : saved)
            now.push_back(x.tensor().detach());
          Names names = problem.values(now);
          names.insert_or_assign("g", ctx.gradient());
          for (std::size_t i = 0; i < now.size(); ++i) {
            const Tensor mine = evaluate(text_of(answers, problem.leaves[i].first.c_str()), names);
            ctx.add(i, slopes != nullptr && *slopes ? mine * ctx.gradient() : mine);
          }
        });
  };
  std::vector<Tensor> in = problem.inputs();
  Generator generator(1);
  for (int point = 0; point < 4; ++point) {  // at the leaves' values, and at random ones
    const GradcheckReport report = gradcheck(yours, in, {.names = problem.names()});
    if (!report)
      return {{"ok", false}, {"message", report.message}};
    for (Tensor& x : in)
      x = randn(Dims(x.shape()), generator, DType::float64).requires_grad_();
  }
  return {{"ok", true}, {"message", "right: differences agree here and at three random points"}};
}

JsonObject answer(const Json& request) {
  const std::string what = text_of(request, "do");
  if (what == "evaluate")
    return evaluated(request);
  if (what == "check")
    return checked(request);
  if (what == "answer")
    return answered(request);
  return trained(what, request);
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
