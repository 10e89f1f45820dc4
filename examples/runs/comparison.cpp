#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <xgrad/autograd/error.hpp>

#include "format.hpp"
#include "runs.hpp"

namespace runs {
namespace {

using xgrad::io::JsonObject;

/// Numbers are not broken: on a narrow window the table scrolls, beside its first column.
constexpr std::string_view table_style =
    R"~~~(.scroll table { overflow-wrap: normal; }
.scroll th[scope=row], .scroll tr:first-child th:first-child { position: sticky; left: 0; background: var(--paper); }
)~~~";

/// The keys of all configurations, in the order in which they come.
std::vector<std::string> config_keys(const std::vector<Run>& runs) {
  std::vector<std::string> keys;
  for (const Run& run : runs)
    if (const auto* const entries = run.config.as<JsonObject>())
      for (const auto& [key, value] : *entries)
        if (std::ranges::find(keys, key) == keys.end())
          keys.push_back(key);
  return keys;
}

/// A configuration's value for each run, "-" where there is none.
std::vector<std::string> values_of(const std::vector<Run>& runs, const std::string& key) {
  std::vector<std::string> values;
  for (const Run& run : runs) {
    const xgrad::io::Json* const value = run.config.find(key);
    values.push_back(value == nullptr ? "-" : format_value(*value));
  }
  return values;
}

bool differ(const std::vector<std::string>& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) != values.end();
}

bool one_differs(const Run& a, const Run& b, std::initializer_list<const char*> keys) {
  return std::ranges::any_of(keys, [&](const char* key) {
    const xgrad::io::Json *const of_a = a.config.find(key), *const of_b = b.config.find(key);
    return of_a != nullptr && of_b != nullptr && format_value(*of_a) != format_value(*of_b);
  });
}

/// Which losses do not compare, in a sentence: by what the checkpoints say of texts; where one says
/// nothing, by the configurations.
std::string other_texts(const std::vector<Run>& runs) {
  bool trained = false, validated = false;
  for (const Run& a : runs)
    for (const Run& b : runs) {
      trained =
          trained || (a.text.empty() || b.text.empty() ? one_differs(a, b, {"data", "vocab_size"})
                                                       : a.text != b.text);
      validated =
          validated || (a.val_text.empty() || b.val_text.empty() ? one_differs(a, b, {"val_data"})
                                                                 : a.val_text != b.val_text);
    }
  if (trained)
    return "They were trained on different texts (--data), as far as their checkpoints and "
           "configurations say; then their losses do not compare.";
  return validated ? "They were validated on different texts (--val-data), as far as their "
                     "checkpoints and configurations say; then their validation losses do not "
                     "compare."
                   : "";
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

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string chart_text(const std::vector<Run>& runs, std::size_t width) {
  const double weight = usual_weight(runs);
  Curves curves = loss_curves(runs, weight, Raw::hidden);
  if (curves.empty())
    return "";
  std::vector<xgrad::pages::Series> lines(runs.size());  // one for each letter
  for (auto& line : curves.lines)
    if (!line.dots)
      lines[*line.color] = std::move(line);
  curves.options.title = weight > 0 ? "Training loss, smoothed" : "Training loss";
  const std::size_t columns = std::clamp<std::size_t>(width, 40, 120) - 14;
  try {
    std::string text = xgrad::pages::line_chart_text(lines, curves.options, columns, 12);
    if (!curves.cut.empty())
      text += fmt::format("Beyond the picture: {}.\n", curves.cut);
    return text;
  } catch (const xgrad::ValueError&) {  // nothing finite, or no axis
    return "";
  }
}

}  // namespace

std::vector<Row> comparison(const std::vector<Run>& runs) {
  std::vector<Summary> all;
  for (const Run& run : runs)
    all.push_back(summarise(run));
  std::vector<Row> rows;
  const auto add = [&](const char* name, const auto& text) {
    Row row{name, {}};
    for (std::size_t i = 0; i < runs.size(); ++i)
      row.values.push_back(text(i));
    const auto none = [](const std::string& value) { return value == "-"; };
    if (!std::ranges::all_of(row.values, none))
      rows.push_back(std::move(row));
  };
  std::optional<double> lowest;
  std::size_t lowest_at = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].best && !(lowest && *lowest <= *all[i].best)) {
      lowest = all[i].best;
      lowest_at = i;
    }
  const auto count = [](const std::optional<double>& n) { return n ? format_count(*n) : "-"; };
  add("steps", [&](std::size_t i) {
    const Summary& s = all[i];
    return s.planned && *s.planned != s.steps
               ? fmt::format("{} of {}", format_count(s.steps), format_count(*s.planned))
               : format_count(s.steps);
  });
  const auto over = [](const std::string& text) { return text.empty() ? "-" : text; };
  // Losses of one kind compare.
  const bool alike = std::ranges::all_of(runs, [&](const Run& run) {
    return run.metrics.validation.xs.empty() ||
           run.metrics.validation_over == runs[lowest_at].metrics.validation_over;
  });
  add("best validation loss", [&](std::size_t i) {
    const bool star = alike && runs.size() > 1 && all[i].best && all[i].best == lowest;
    return format_number(all[i].best) + (star ? " *" : "");
  });
  add("  after steps", [&](std::size_t i) { return count(all[i].best_after); });
  add("last validation loss", [&](std::size_t i) { return format_number(all[i].validation); });
  add("  both estimated over",
      [&](std::size_t i) { return over(runs[i].metrics.validation_over); });
  add("final validation loss",
      [&](std::size_t i) { return format_number(all[i].final_validation); });
  add("  over", [&](std::size_t i) { return over(runs[i].metrics.final_validation_over); });
  add("training loss", [&](std::size_t i) { return format_number(all[i].loss); });
  if (std::ranges::any_of(all, [](const Summary& s) { return s.not_finite > 0; }))
    add("losses not finite",
        [&](std::size_t i) { return count(static_cast<double>(all[i].not_finite)); });
  add("tokens/s", [&](std::size_t i) {
    const auto& speed = all[i].tokens_per_second;
    return speed ? format_count(std::round(*speed)) : "-";
  });
  add("ms/step",
      [&](std::size_t i) { return all[i].ms ? fmt::format("{:.3g}", *all[i].ms) : "-"; });
  add("time of all steps",
      [&](std::size_t i) { return all[i].seconds ? format_duration(*all[i].seconds) : "-"; });
  add("parameters", [&](std::size_t i) { return count(runs[i].parameters); });
  for (const std::string& key : config_keys(runs))
    if (std::vector<std::string> values = values_of(runs, key); differ(values))
      rows.push_back({xgrad::printable_name(key), std::move(values)});
  return rows;
}

std::string compare_text(const std::vector<Run>& runs, std::size_t width) {
  constexpr std::size_t widest_value = 24, widest_name = 28;
  const auto mark = [](std::size_t i) {
    const char c = xgrad::pages::letter(i);
    return c == '#' ? std::to_string(i + 1) : std::string(1, c);
  };
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += fmt::format("{}  {}\n", mark(i), runs[i].name);
  const std::vector<Row> rows = comparison(runs);
  std::size_t names = 0;
  for (const Row& row : rows)
    names = std::max(names, width_of(shortened(row.name, widest_name)));
  for (std::size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
    std::vector<std::size_t> widths;
    std::size_t used = names;
    for (end = begin; end < runs.size(); ++end) {
      std::size_t column = mark(end).size();
      for (const Row& row : rows)
        column = std::max(column, width_of(shortened(row.values[end], widest_value)));
      if (end > begin && used + 2 + column > width)
        break;
      used += 2 + column;
      widths.push_back(column);
    }
    const auto line = [&](const std::string& name, const auto& value) {
      text += padded(name, names, false);
      for (std::size_t i = begin; i < end; ++i)
        text += "  " + padded(value(i), widths[i - begin], true);
      text += '\n';
    };
    text += '\n';
    line("", mark);
    for (const Row& row : rows)
      line(shortened(row.name, widest_name),
           [&](std::size_t i) { return shortened(row.values[i], widest_value); });
  }
  for (const Run& run : runs)
    for (const std::string& change : run.metrics.changes)
      text += fmt::format("\n{} changed {}\n", run.name, change);
  if (const std::string others = other_texts(runs); !others.empty())
    text += fmt::format("\n{}\n", others);
  if (const std::string chart = chart_text(runs, width); !chart.empty())
    text += '\n' + chart;
  return text;
}

xgrad::pages::Page compare_page(const std::vector<Run>& runs) {
  const double weight = usual_weight(runs);
  std::string body = "<div class=\"scroll\">\n<table>\n<tr><th></th>";
  for (const Run& run : runs)
    body += fmt::format("<th scope=\"col\">{}</th>", xgrad::pages::escaped(run.name));
  body += "</tr>\n";
  for (const Row& row : comparison(runs)) {
    body += fmt::format("<tr><th scope=\"row\">{}</th>", xgrad::pages::escaped(row.name));
    for (const std::string& value : row.values)
      body += fmt::format("<td class=\"number\">{}</td>", xgrad::pages::escaped(value));
    body += "</tr>\n";
  }
  body += "</table>\n</div>\n";
  for (const Run& run : runs)
    for (const std::string& change : run.metrics.changes)
      body += fmt::format("<p>{}</p>\n", xgrad::pages::escaped(run.name + " changed " + change));
  if (const std::string others = other_texts(runs); !others.empty())
    body += fmt::format("<p class=\"bad\">{}</p>\n", others);
  body += charts_html(runs, weight, Raw::hidden);
  if (weight > 0)
    body += fmt::format(
        "<p class=\"soft\">Smoothed: an exponential moving average with weight {:.6g}. The "
        "learning "
        "rate and validation losses are as they are.</p>\n",
        weight);
  return xgrad::pages::with_charts(
      {.title = fmt::format("{} run{}", runs.size(), runs.size() == 1 ? "" : "s beside each other"),
       .body = std::move(body),
       .styles = {table_style}});
}

}  // namespace runs
