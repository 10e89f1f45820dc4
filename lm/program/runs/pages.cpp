// Runs as a page, and as a plain-text table.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/lm/text.hpp>

#include "format.hpp"
#include "runs.hpp"

namespace runs {
namespace {

using xgrad::io::Json;
using xgrad::viz::escaped;

/// Numbers are not broken: in a narrow window the table scrolls, and its first column stays.
constexpr std::string_view style =
    R"~~~(.scroll table { overflow-wrap: normal; }
.scroll th[scope=row], .scroll tr:first-child th:first-child { position: sticky; left: 0; background: var(--paper); }
details { border-bottom: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
summary b { font-weight: 600; margin-right: .75em; }
th[scope=row] { font-weight: 500; white-space: nowrap; }
)~~~";

/// Whether two runs had different texts: by the checksums of their checkpoints; if one has none, or
/// for no `sum`, by a key of their configurations.
bool other_texts(const std::vector<Run>& runs, std::string Run::* sum, const char* key) {
  const auto differ = [&](const Run& a, const Run& b) {
    if (sum != nullptr && !(a.*sum).empty() && !(b.*sum).empty())
      return a.*sum != b.*sum;
    const Json *const of_a = a.config.find(key), *const of_b = b.config.find(key);
    return of_a != nullptr && of_b != nullptr && *of_a != *of_b;
  };
  return std::ranges::any_of(runs, [&](const Run& a) {
    return std::ranges::any_of(runs, [&](const Run& b) { return differ(a, b); });
  });
}

/// Remarks below the table: flags that changed during a run, and losses that are not comparable.
std::vector<std::string> remarks(const std::vector<Run>& runs) {
  std::vector<std::string> all;
  for (const Run& run : runs)
    for (const std::string& change : run.metrics.changes)
      all.push_back(fmt::format("{} changed {}", run.name, change));
  if (other_texts(runs, &Run::text, "data"))
    all.push_back(
        "They were trained on different texts (--data): their losses are not comparable.");
  else if (other_texts(runs, &Run::val_text, "val_data"))
    all.push_back(
        "They were validated on different texts (--val-data): their validation losses are not "
        "comparable.");
  else if (other_texts(runs, nullptr, "tokens") || other_texts(runs, nullptr, "vocab_size"))
    all.push_back("Their vocabularies differ: bits per byte are comparable, losses are not.");
  return all;
}

/// The first and the last sample and, of many, some between them; of a long text the beginning.
std::string samples(const Run& run) {
  constexpr std::size_t most_samples = 40, most_bytes = 8000;
  const std::size_t n = run.samples.size(), shown = std::min(n, most_samples);
  if (n == 0)
    return "";
  std::string html =
      fmt::format("<h2>What the model wrote on the way</h2>\n<p class=\"soft\">{} of {}.</p>\n",
                  shown, format_count(n, "sample"));
  for (std::size_t k = 0; k < shown; ++k) {
    const Sample& sample = run.samples[shown == 1 ? n - 1 : k * (n - 1) / (shown - 1)];
    html += fmt::format(
        "<details{}><summary><b>{}</b><span class=\"soft\">{}</span></summary><pre>{}</pre>"
        "</details>\n",
        k + 1 == shown ? " open" : "", format_count(sample.steps, "step"),
        escaped(sample.text.substr(0, 100)), escaped(sample.text.substr(0, most_bytes)));
  }
  return html;
}

std::string table_of(std::string_view heading, const Json& object) {
  const auto* const entries = object.as<xgrad::io::JsonObject>();
  if (entries == nullptr)
    return "";
  std::string html = fmt::format("<h2>{}</h2>\n<table>\n", heading);
  for (const auto& [key, value] : *entries)
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                        escaped(xgrad::printable_name(key)), escaped(format_value(value)));
  return html + "</table>\n";
}

std::size_t width_of(std::string_view text) { return xgrad::viz::characters(text).size(); }

/// To this many characters: the end of a path says more than its beginning.
std::string shortened(const std::string& text, std::size_t most) {
  const std::u32string all = xgrad::viz::characters(text);
  return all.size() <= most ? text
                            : ".." + xgrad::lm::encode_utf8(all.substr(all.size() + 2 - most));
}

}  // namespace

xgrad::viz::Page page(const std::vector<Run>& runs) {
  const bool one = runs.size() == 1;
  std::string body = "<div class=\"scroll\">\n<table>\n<tr><th></th>";
  for (const Run& run : runs)
    body += fmt::format("<th scope=\"col\">{}</th>", escaped(run.name));
  for (const Row& row : table(runs)) {
    body += fmt::format("</tr>\n<tr><th scope=\"row\">{}</th>", escaped(row.name));
    for (const std::string& value : row.values)
      body += fmt::format("<td class=\"number\">{}</td>", escaped(value));
  }
  body += "</tr>\n</table>\n</div>\n";
  for (const Run& run : runs)
    if (!run.metrics.skipped.empty())
      body += fmt::format("<p class=\"bad\">metrics.jsonl of {}: {}.</p>\n", escaped(run.name),
                          run.metrics.skipped);
  for (const std::string& remark : remarks(runs))
    body += fmt::format("<p class=\"bad\">{}</p>\n", escaped(remark));
  body += charts_html(runs);
  if (one)
    body += samples(runs[0]) + table_of("Configuration", runs[0].config) +
            table_of("Environment", runs[0].environment);
  return xgrad::viz::with_charts({.title = one ? fmt::format("Run {}", runs[0].name)
                                               : fmt::format("{} runs compared", runs.size()),
                                  .body = std::move(body),
                                  .styles = {style}});
}

std::string table_text(const std::vector<Run>& runs) {
  std::vector<Row> rows = table(runs);
  rows.insert(rows.begin(), Row{"", {}});
  for (const Run& run : runs)
    rows[0].values.push_back(run.name);
  std::vector<std::string> lines;
  for (const Row& row : rows)
    lines.push_back(shortened(row.name, 28));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t widest = width_of(std::ranges::max(lines, {}, width_of));
    for (std::size_t k = 0; k < rows.size(); ++k)
      lines[k] +=
          std::string(widest - width_of(lines[k]) + 2, ' ') + shortened(rows[k].values[i], 24);
  }
  std::ranges::move(remarks(runs), std::back_inserter(lines));
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

}  // namespace runs
