#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <xgrad/autograd/error.hpp>

#include "format.hpp"
#include "runs.hpp"

namespace runs {
namespace {

using xgrad::pages::escaped;

constexpr std::string_view style =
    R"~~~(.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0; }
.facts div { background: var(--panel); border-radius: 8px; padding: .5rem .9rem; min-width: 8.5rem; }
.facts dt { font-size: .85rem; color: var(--soft); }
.facts dt::first-letter { text-transform: uppercase; }
.facts dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.facts small { display: block; font-size: .8rem; color: var(--soft); }
details { border-bottom: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
summary b { font-weight: 600; margin-right: .75em; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 0 2rem; }
th { font-weight: 500; white-space: nowrap; }
)~~~";

std::string facts(const std::vector<Run>& one) {
  std::string html;
  for (const Row& row : table(one)) {
    const std::string value = escaped(row.values[0]);
    html += row.name.starts_with(' ')
                ? fmt::format("<small>{} {}</small>", row.name.substr(2), value)
                : fmt::format("{}<div><dt>{}</dt><dd>{}", html.empty() ? "" : "</dd></div>\n",
                              row.name, value);
  }
  html = "<dl class=\"facts\">\n" + html + "</dd></div>\n</dl>\n";
  const Metrics& metrics = one[0].metrics;
  for (const std::string& change : metrics.changes)
    html += fmt::format("<p>Changed {}</p>\n", escaped(change));
  if (!metrics.left_out.empty())
    html += fmt::format("<p class=\"bad\">metrics.jsonl: {}.</p>\n", metrics.left_out);
  return html;
}

std::string charts(const std::vector<Run>& one) {
  const double weight = usual_weight(one);
  std::string html = charts_html(one, weight, Raw::faint);
  html +=
      "<p class=\"soft\">Point at a curve, or go along it with the arrow keys, to read its "
      "values. The gradient's norm is that before clipping.</p>\n";
  if (weight > 0)
    html += fmt::format(
        "<p class=\"soft\">Smoothed: an exponential moving average with weight {:.6g}, over about "
        "{:.0f} steps. Of {} steps those are drawn that the picture has room for, all extremes "
        "among them.</p>\n",
        weight, 1 / (1 - weight), format_count(one[0].metrics.loss.xs.size()));
  return html;
}

/// The first so many characters.
std::string beginning(const std::string& text, std::size_t characters) {
  std::size_t at = 0;
  for (std::size_t n = 0; at < text.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80;
    if (starts && n++ == characters)
      break;
  }
  return text.substr(0, at);
}

std::string samples(const Run& run) {
  constexpr std::size_t most_samples = 40, most_characters = 4000;
  const std::size_t n = run.samples.size(), shown = std::min(n, most_samples);
  if (n == 0 && run.unread_samples == 0)
    return "";
  std::string html = "<h2>What the model wrote on the way</h2>\n";
  if (shown < n)
    html += fmt::format("<p class=\"soft\">{} of {} samples.</p>\n", shown, n);
  if (run.unread_samples > 0)
    html += "<p class=\"soft\">Some of samples.jsonl could not be read.</p>\n";
  for (std::size_t k = 0; k < shown; ++k) {
    const Sample& sample = run.samples[shown == 1 ? n - 1 : k * (n - 1) / (shown - 1)];
    const std::string text = beginning(sample.text, most_characters);
    html += fmt::format(
        "<details{}><summary><b>{}</b><span class=\"soft\">{}</span></summary>"
        "<pre>{}</pre>{}</details>\n",
        k + 1 == shown ? " open" : "", format_count(sample.steps, "step", "steps"),
        escaped(beginning(text, 100)), escaped(text),
        text.size() == sample.text.size() ? "" : "<p class=\"soft\">and so on</p>");
  }
  return html;
}

std::string table_of(std::string_view heading, const xgrad::io::Json& object) {
  const auto* const entries = object.as<xgrad::io::JsonObject>();
  if (entries == nullptr)
    return "";
  std::string html = fmt::format("<section><h2>{}</h2>\n<table>\n", heading);
  for (const auto& [key, value] : *entries)
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                        escaped(xgrad::printable_name(key)), escaped(format_value(value)));
  return html + "</table></section>\n";
}

}  // namespace

xgrad::pages::Page report_page(Run given, const std::vector<Hint>& hints) {
  std::vector<Run> one;
  one.push_back(std::move(given));
  const Run& run = one[0];
  std::string body = facts(one) + charts(one) + samples(run) + "<div class=\"tables\">\n" +
                     table_of("Configuration", run.config) +
                     table_of("Environment", run.environment) + "</div>\n" +
                     (hints.empty() ? "" : "<h2>To go on</h2>\n");
  for (const Hint& hint : hints)
    body += fmt::format("<p>{}</p>\n<pre>{}</pre>\n", escaped(hint.purpose), escaped(hint.line));
  return xgrad::pages::with_charts(
      {.title = fmt::format("Run {}", run.name), .body = std::move(body), .styles = {style}});
}

}  // namespace runs
