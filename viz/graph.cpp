#include "graph.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include "../autograd/ops/rules.hpp"
#include "assets.hpp"
#include "graph_check.hpp"
#include "page.hpp"

namespace xgrad::viz {
namespace {

using io::Json;
using io::JsonArray;
using io::JsonObject;

// Seven digits; a string for NaN and infinities, which JSON lacks.
Json number_json(double v) {
  if (!std::isfinite(v))
    return Json(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
  return Json(std::strtod(fmt::format("{:.7g}", v).c_str(), nullptr));
}

Json numbers_json(const std::vector<double>& values) {
  JsonArray list;
  for (const double v : values)
    list.push_back(number_json(v));
  return list;
}

// A list of all elements, or an object that summarises them.
Json tensor_json(const Tensor& x, std::size_t max_values) {
  if (!x.defined())
    return Json(nullptr);
  const detail::Shown s = detail::shown(x, max_values);
  if (s.whole())
    return numbers_json(s.elements);
  JsonObject all{{"first", numbers_json(s.elements)}, {"min", number_json(s.min)},
                 {"max", number_json(s.max)},         {"mean", number_json(s.mean)},
                 {"sum", number_json(s.sum)},         {"size", number_json(s.size)}};
  for (const auto& [key, n] : {std::pair("nan", s.nan), {"inf", s.inf}, {"minus_inf", s.minus_inf}})
    if (n > 0)
      all.emplace_back(key, n);
  return all;
}

Json check_json(const GraphCheck& check) {
  if (check.verdict == GraphCheck::Verdict::unchecked)
    return check.message.empty() ? Json(nullptr) : Json(check.message);
  JsonObject json{{"ok", Json(check.verdict == GraphCheck::Verdict::right)},
                  {"analytic", numbers_json(check.analytic)},
                  {"numeric", numbers_json(check.numeric)}};
  if (!check.message.empty())
    json.emplace_back("note", check.message);
  return json;
}

// Stores repeated texts once.
class Texts {
 public:
  Json operator()(const std::string& text) {
    const auto [at, is_new] = places_.try_emplace(text, list_.size());
    if (is_new)
      list_.emplace_back(text);
    return at->second;
  }
  JsonArray take() { return std::move(list_); }

 private:
  std::map<std::string, std::size_t> places_;
  JsonArray list_;
};

Json contribution_json(const GraphContribution& part, std::size_t max_values, Texts& texts) {
  JsonObject json{{"op", texts(part.op)}};
  if (part.consumer)
    json.emplace_back("node", *part.consumer);
  json.emplace_back("inputs", JsonArray(part.inputs.begin(), part.inputs.end()));
  json.emplace_back("gradient", tensor_json(part.gradient, max_values));
  if (Json own = check_json(part.own); own.as<std::nullptr_t>() == nullptr)
    json.emplace_back("own", std::move(own));
  return json;
}

Json node_json(const Graph& graph, std::size_t i, Texts& texts) {
  static constexpr const char* kinds[] = {"op", "leaf", "constant", "outside"};
  const GraphNode& node = graph.nodes[i];
  JsonObject json{{"op", texts(node.op)}, {"scope", texts(node.scope)}};
  if (node.kind != GraphNode::Kind::op)
    json.emplace_back("kind", std::string(kinds[static_cast<std::size_t>(node.kind)]));
  if (!node.name.empty())
    json.emplace_back("name", node.name);
  const Shape& shape = node.value.shape();
  json.emplace_back("shape", JsonArray(shape.begin(), shape.end()));
  if (node.value.dtype() == DType::float64)
    json.emplace_back("float64", Json(true));
  json.emplace_back("value", tensor_json(node.value, graph.max_values));
  // -1: absent; otherwise twice the node, plus one for a constant.
  JsonArray inputs;
  for (const GraphInput& in : node.inputs)
    inputs.push_back(in.node ? Json(static_cast<std::int64_t>(2 * *in.node + (in.constant ? 1 : 0)))
                             : Json(std::int64_t{-1}));
  json.emplace_back("inputs", std::move(inputs));
  JsonArray nothing;
  for (std::size_t k = 0; k < node.inputs.size(); ++k)
    if (node.inputs[k].nothing)
      nothing.emplace_back(JsonArray{k, check_json(*node.inputs[k].nothing)});
  if (!nothing.empty())
    json.emplace_back("nothing", std::move(nothing));
  if (node.value.requires_grad())
    if (Json whole = check_json(node.whole); whole.as<std::nullptr_t>() == nullptr)
      json.emplace_back("whole", std::move(whole));
  if (!node.step)
    return json;
  json.emplace_back("step", *node.step);
  json.emplace_back("gradient", tensor_json(node.gradient, graph.max_values));
  if (node.gathered.defined() && node.gathered.identity().value != node.gradient.identity().value)
    json.emplace_back("gathered", tensor_json(node.gathered, graph.max_values));
  JsonArray parts;
  for (const GraphContribution& part : node.contributions)
    parts.push_back(contribution_json(part, graph.max_values, texts));
  json.emplace_back("parts", std::move(parts));
  return json;
}

// A formula for readers: c(a, 2), a constant of the type of a, becomes 2.
std::string for_readers(std::string_view formula) {
  static const std::regex constant(R"(\bc\(\w, ([^() ]+)\))"), product(R"(\bc\(\w, ([^()]+)\))"),
      numbers("std::numbers::");
  std::string text = std::regex_replace(std::string(formula), constant, "$1");
  text = std::regex_replace(text, product, "($1)");
  return std::regex_replace(text, numbers, "");
}

Json rules_json(const Graph& graph) {
  std::set<std::string> ops;
  for (const GraphNode& node : graph.nodes)
    ops.insert(node.op);
  JsonObject rules;
  for (const std::string& op : ops)
    if (const OpRule* const rule = op_rule(op); rule != nullptr) {
      JsonArray add;
      for (const std::string_view gradient : rule->gradients)
        if (!gradient.empty())
          add.emplace_back(for_readers(gradient));
      rules.emplace_back(op, JsonObject{{"value", for_readers(rule->value)},
                                        {"add", std::move(add)},
                                        {"words", std::string(rule->words)}});
    }
  return rules;
}

constexpr std::string_view graph_body = R"html(<p id="summary"></p>
<div id="bar">
<span class="steps"><button id="first" aria-label="Before the backward pass" title="Home">|&#x25C0;</button><button id="back" aria-label="One step back" title="Left">&#x25C0;</button>
<button id="next" aria-label="One step on" title="Right">&#x25B6;</button><button id="last" aria-label="After the backward pass" title="End">&#x25B6;|</button></span>
<input id="slider" type="range" min="0" value="0" aria-label="Step of the backward pass">
<input id="search" type="search" placeholder="Search  (/)" aria-label="Search nodes" autocomplete="off" spellcheck="false">
<span id="found" class="soft" role="status"></span>
<span id="folds"><button id="close">Collapse layers</button><button id="open">Expand</button></span>
</div>
<p id="status" role="status"></p>
<div id="graph">
<div id="rows" tabindex="0" role="listbox" aria-label="Nodes, in forward order"><div id="space"></div></div>
<section id="detail" aria-label="The selected node"></section>
</div>
<p class="soft" id="help"><kbd>&larr;</kbd> <kbd>&rarr;</kbd> steps of the backward pass, <kbd>Home</kbd> before it,
<kbd>End</kbd> after it; <kbd>&uarr;</kbd> <kbd>&darr;</kbd> nodes; <kbd>Enter</kbd> opens or closes a layer;
<kbd>/</kbd> searches, <kbd>Enter</kbd> there goes to the next match.</p>)html";

Page graph_page(const Graph& graph) {
  Texts texts;
  JsonArray nodes;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    nodes.push_back(node_json(graph, i, texts));
  const std::vector<std::size_t> wrong = graph.wrong();
  return {.title = graph.title,
          .body = std::string(graph_body),
          .data = JsonObject{{"nodes", std::move(nodes)},
                             {"order", JsonArray(graph.order.begin(), graph.order.end())},
                             {"root", graph.root},
                             {"wrong", JsonArray(wrong.begin(), wrong.end())},
                             {"rules", rules_json(graph)},
                             {"texts", texts.take()}},
          .scripts = {detail::graph_rows_js, detail::graph_js},
          .styles = {detail::graph_css},
          .max_bytes = graph.max_bytes,
          .smaller =
              "take a shorter input or fewer layers, or show fewer elements of each Tensor "
              "(.max_values)"};
}

}  // namespace

std::string graph_html(const Graph& graph) { return to_html(graph_page(graph)); }

void write_graph_html(const std::string& path, const Graph& graph) {
  save(path, graph_page(graph));
}

void write_graph_html(const std::string& path, const std::function<Tensor()>& f,
                      const GraphOptions& options) {
  check_page_name(path);
  write_graph_html(path, run_graph(f, options));
}

}  // namespace xgrad::viz
