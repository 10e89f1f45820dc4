#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <xgrad/autograd/error.hpp>

#include "format.hpp"
#include "runs.hpp"

namespace runs {
namespace {

using xgrad::pages::escaped;

/// Numbers are not broken: on a narrow window the table scrolls, beside its first column.
constexpr std::string_view table_style =
    R"~~~(.scroll table { overflow-wrap: normal; }
.scroll th[scope=row], .scroll tr:first-child th:first-child { position: sticky; left: 0; background: var(--paper); }
)~~~";

/// Whether two of the runs had different texts: by the checksums of their checkpoints; where one
/// has none, by keys of their configurations.
bool other_texts(const std::vector<Run>& runs, std::string Run::*sum,
                 std::initializer_list<const char*> keys) {
  const auto differ = [&](const Run& a, const Run& b) {
    if (!(a.*sum).empty() && !(b.*sum).empty())
      return a.*sum != b.*sum;
    return std::ranges::any_of(keys, [&](const char* key) {
      const xgrad::io::Json *const of_a = a.config.find(key), *const of_b = b.config.find(key);
      return of_a != nullptr && of_b != nullptr && format_value(*of_a) != format_value(*of_b);
    });
  };
  return std::ranges::any_of(runs, [&](const Run& a) {
    return std::ranges::any_of(runs, [&](const Run& b) { return differ(a, b); });
  });
}

/// What the table does not say: which losses do not compare.
std::string warning(const std::vector<Run>& runs) {
  if (other_texts(runs, &Run::text, {"data", "vocab_size"}))
    return "They were trained on different texts (--data), as far as their checkpoints and "
           "configurations say; then their losses do not compare.";
  return other_texts(runs, &Run::val_text, {"val_data"})
             ? "They were validated on different texts (--val-data), as far as their checkpoints "
               "and configurations say; then their validation losses do not compare."
             : "";
}

std::vector<std::string> changes(const std::vector<Run>& runs) {
  std::vector<std::string> all;
  for (const Run& run : runs)
    for (const std::string& change : run.metrics.changes)
      all.push_back(fmt::format("{} changed {}", run.name, change));
  return all;
}

std::size_t width_of(std::string_view text) { return xgrad::pages::characters(text).size(); }

/// To so many characters: the end of a path says more than its beginning.
std::string shortened(const std::string& text, std::size_t most) {
  if (width_of(text) <= most)
    return text;
  std::size_t at = text.size();
  for (std::size_t n = 0; n < most - 2 && at > 0;)
    if ((static_cast<unsigned char>(text[--at]) & 0xC0U) != 0x80)
      ++n;
  return ".." + text.substr(at);
}

std::string letter(std::size_t run) {
  const char c = xgrad::pages::letter(run);
  return c == '#' ? std::to_string(run + 1) : std::string(1, c);
}

/// The table in characters.
std::string table_text(const std::vector<Run>& runs, std::size_t width) {
  std::vector<Row> rows = table(runs);
  Row letters{"", {}};
  for (std::size_t i = 0; i < runs.size(); ++i)
    letters.values.push_back(letter(i));
  rows.insert(rows.begin(), std::move(letters));
  std::size_t names = 0;
  std::vector<std::size_t> widths(runs.size());
  for (Row& row : rows) {
    row.name = shortened(row.name, 28);
    names = std::max(names, width_of(row.name));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      row.values[i] = shortened(row.values[i], 24);
      widths[i] = std::max(widths[i], width_of(row.values[i]));
    }
  }
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
    for (std::size_t used = names;
         end < runs.size() && (end == begin || used + 2 + widths[end] <= width); ++end)
      used += 2 + widths[end];
    text += '\n';
    for (const Row& row : rows) {
      text += row.name + std::string(names - width_of(row.name), ' ');
      for (std::size_t i = begin; i < end; ++i)
        text += std::string(2 + widths[i] - width_of(row.values[i]), ' ') + row.values[i];
      text += '\n';
    }
  }
  return text;
}

std::string chart_text(const std::vector<Run>& runs, std::size_t width) {
  const double weight = usual_weight(runs);
  Curves curves = loss_curves(runs, weight, Raw::hidden);
  std::vector<xgrad::pages::Series> lines(runs.size());  // one for each letter
  for (auto& line : curves.lines)
    if (!line.dots)
      lines[*line.color] = std::move(line);
  curves.options.title = weight > 0 ? "Training loss, smoothed" : "Training loss";
  const std::size_t columns = std::clamp<std::size_t>(width, 40, 120) - 14;
  try {
    return '\n' + xgrad::pages::line_chart_text(lines, curves.options, columns, 12) +
           (curves.cut.empty() ? "" : fmt::format("Beyond the picture: {}.\n", curves.cut));
  } catch (const xgrad::ValueError&) {  // nothing finite, or no axis
    return "";
  }
}

}  // namespace

std::string compare_text(const std::vector<Run>& runs, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += fmt::format("{}  {}\n", letter(i), runs[i].name);
  text += table_text(runs, width);
  for (const std::string& change : changes(runs))
    text += fmt::format("\n{}\n", change);
  if (const std::string said = warning(runs); !said.empty())
    text += fmt::format("\n{}\n", said);
  return text + chart_text(runs, width);
}

xgrad::pages::Page compare_page(const std::vector<Run>& runs) {
  const double weight = usual_weight(runs);
  std::string body = "<div class=\"scroll\">\n<table>\n<tr><th></th>";
  for (const Run& run : runs)
    body += fmt::format("<th scope=\"col\">{}</th>", escaped(run.name));
  body += "</tr>\n";
  for (const Row& row : table(runs)) {
    body += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(row.name));
    for (const std::string& value : row.values)
      body += fmt::format("<td class=\"number\">{}</td>", escaped(value));
    body += "</tr>\n";
  }
  body += "</table>\n</div>\n";
  for (const std::string& change : changes(runs))
    body += fmt::format("<p>{}</p>\n", escaped(change));
  if (const std::string said = warning(runs); !said.empty())
    body += fmt::format("<p class=\"bad\">{}</p>\n", said);
  body += charts_html(runs, weight, Raw::hidden);
  if (weight > 0)
    body += fmt::format(
        "<p class=\"soft\">Smoothed: an exponential moving average with weight {:.6g}. The "
        "learning rate and validation losses are as they are.</p>\n",
        weight);
  return xgrad::pages::with_charts(
      {.title = fmt::format("{} run{}", runs.size(), runs.size() == 1 ? "" : "s beside each other"),
       .body = std::move(body),
       .styles = {table_style}});
}

}  // namespace runs
