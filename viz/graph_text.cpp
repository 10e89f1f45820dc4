// The graph as plain text and for Graphviz.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include "../autograd/check/describe.hpp"
#include "../autograd/error.hpp"
#include "../autograd/fail.hpp"
#include "graph.hpp"
#include "graph_check.hpp"

namespace xgrad::viz {
namespace detail {

Shown shown(const Tensor& x, std::size_t max_values) {
  constexpr std::size_t first = 4;
  Shown s{summarize(x), xgrad::detail::elements(x)};
  for (const double v : s.elements)
    if (std::isfinite(v)) {
      s.sum += v;
      s.size += std::abs(v);
    }
  s.mean = s.finite == 0 ? 0 : s.sum / static_cast<double>(s.finite);
  if (s.elements.size() > max_values)
    s.elements.resize(std::min(first, max_values));
  return s;
}

std::string to_text(const Shown& s) {
  const auto number = [](double v) { return std::isnan(v) ? "nan" : fmt::format("{:.4g}", v); };
  if (s.whole()) {
    std::vector<std::string> all;
    for (const double v : s.elements)
      all.push_back(number(v));
    return all.size() == 1 ? all[0] : fmt::format("[{}]", fmt::join(all, ", "));
  }
  std::string text = s.finite == 0 ? "nothing finite"
                                   : fmt::format("{} ... {}, mean {}", number(s.min), number(s.max),
                                                 number(s.mean));
  for (const auto& [n, what] : {std::pair(s.nan, "NaN"), {s.inf, "inf"}, {s.minus_inf, "-inf"}})
    if (n > 0)
      text += fmt::format(", {} {}", n, what);
  return text;
}

}  // namespace detail

namespace {

using Kind = GraphNode::Kind;
using Verdict = GraphCheck::Verdict;
using Table = std::vector<std::vector<std::string>>;

std::string values_text(const Graph& graph, const Tensor& x) {
  return x.defined() ? detail::to_text(detail::shown(x, graph.max_values)) : std::string();
}

// "mul 12"; with the user's name: "leaf 3 w".
std::string node_label(const Graph& graph, std::size_t i) {
  const GraphNode& node = graph.nodes[i];
  const std::string name = node.name.empty() ? std::string() : " " + printable_name(node.name);
  return fmt::format("{} {}{}", printable_name(node.op), i + 1, name);
}

std::string verdict_text(const GraphCheck& check) {
  if (check.verdict == Verdict::unchecked)
    return {};
  return check.verdict == Verdict::right
             ? "numeric ok"
             : fmt::format("WRONG: numeric {:.4g}", fmt::join(check.numeric, ", "));
}

// Quotes for Graphviz: escapes backslashes, quotes and newlines.
std::string dot_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '\n')
      out += '\\';
    out += c == '\n' ? 'n' : c;
  }
  return out + '"';
}

}  // namespace

std::string to_string(const Graph& graph) {
  Table values{{"node", "op", "inputs", "scope", "shape and value"}};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    std::vector<std::string> inputs;
    for (const GraphInput& in : node.inputs)
      inputs.push_back(!in.node ? "-" : std::to_string(*in.node + 1) + (in.constant ? "c" : ""));
    values.push_back(
        {std::to_string(i + 1),
         printable_name(node.op) + (node.name.empty() ? "" : " " + printable_name(node.name)),
         fmt::format("{}", fmt::join(inputs, ", ")), printable_name(node.scope),
         fmt::format("{} {}: {}", to_string(node.value.shape()),
                     xgrad::to_string(node.value.dtype()), values_text(graph, node.value))});
  }
  Table steps{{"step", "node", "gradient", "from", ""}};
  for (std::size_t step = 0; step < graph.order.size(); ++step) {
    const std::size_t at = graph.order[step];
    const GraphNode& node = graph.nodes[at];
    std::string number = std::to_string(step + 1), name = node_label(graph, at),
                gradient = values_text(graph, node.gradient), check = verdict_text(node.whole);
    if (node.gathered.defined() && !xgrad::detail::same_bits(node.gathered, node.gradient))
      check += fmt::format("{}a hook made it of {}", check.empty() ? "" : "; ",
                           values_text(graph, node.gathered));
    for (const GraphContribution& part : node.contributions) {
      const std::string from =
          part.consumer ? node_label(graph, *part.consumer) : printable_name(part.op);
      const bool alone = node.contributions.size() == 1;
      const std::string wrong =
          part.own.verdict == Verdict::wrong ? "own backward " + verdict_text(part.own) : "";
      steps.push_back({number, name, gradient,
                       from + (alone ? "" : ": " + values_text(graph, part.gradient)),
                       check + (check.empty() || wrong.empty() ? "" : "; ") + wrong});
      number = name = gradient = check = "";
    }
  }
  std::string missing;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const GraphInput& in : graph.nodes[i].inputs)
      if (in.nothing && in.nothing->verdict == Verdict::wrong)
        missing += fmt::format("{} adds nothing to {}: {}\n", node_label(graph, i),
                               node_label(graph, *in.node), verdict_text(*in.nothing));
  const std::size_t wrong = graph.wrong().size();
  return printable(
      fmt::format("{}\n\nforward ({}; c: taken as a constant)\n{}\nbackward ({})\n{}{}{}",
                  printable_name(graph.title), counted(graph.nodes.size(), "node", "nodes"),
                  in_columns(values, "><<<"), counted(graph.order.size(), "step", "steps"),
                  in_columns(steps, "><<<"), missing,
                  wrong == 0 ? ""
                             : fmt::format("\n{} a gradient that differences contradict\n",
                                           counted(wrong, "node has", "nodes have"))));
}

std::string graph_dot(const Graph& graph) {
  std::string text =
      "digraph graph_ {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n";
  text += fmt::format("  label={};\n", dot_quoted(printable_name(graph.title)));
  // A flat cluster for each named scope, whose label is the whole path.
  std::map<std::string, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    members[graph.nodes[i].scope].push_back(i);
  std::size_t cluster = 0;
  for (const auto& [scope, nodes] : members) {
    const std::string indent = scope.empty() ? "  " : "    ";
    if (!scope.empty())
      text += fmt::format("  subgraph cluster_{} {{\n    label={};\n", cluster++,
                          dot_quoted(printable_name(scope)));
    for (const std::size_t i : nodes) {
      const GraphNode& node = graph.nodes[i];
      std::string lines =
          fmt::format("{}\n{}\nvalue {}", node_label(graph, i), to_string(node.value.shape()),
                      values_text(graph, node.value));
      if (node.step)
        lines += fmt::format("\ngradient {} (step {})", values_text(graph, node.gradient),
                             *node.step + 1);
      const char* const style = node.kind == Kind::op ? "" : ", style=rounded";
      text += fmt::format("{}n{} [label={}{}];\n", indent, i + 1, dot_quoted(lines), style);
    }
    if (!scope.empty())
      text += "  }\n";
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const GraphInput& in : graph.nodes[i].inputs)
      if (in.node)
        text += fmt::format("  n{} -> n{}{};\n", *in.node + 1, i + 1,
                            in.constant ? " [style=dashed]" : "");
  return text + "}\n";
}

}  // namespace xgrad::viz
