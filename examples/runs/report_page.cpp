#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <xgrad/autograd/error.hpp>

#include "format.hpp"
#include "runs.hpp"

namespace runs {
namespace {

using xgrad::pages::escaped;

constexpr std::size_t most_samples = 40, most_characters = 4000;
constexpr std::string_view style =
    R"~~~(.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0; }
.facts div { background: var(--panel); border-radius: 8px; padding: .5rem .9rem; min-width: 8.5rem; }
.facts dt { font-size: .85rem; color: var(--soft); }
.facts dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.facts small { display: block; font-size: .8rem; color: var(--soft); }
details { border-bottom: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
summary b { font-weight: 600; margin-right: .75em; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 0 2rem; }
th { font-weight: 500; white-space: nowrap; }
)~~~";

std::string fact(std::string_view name, std::string_view value, std::string_view more = "") {
  return fmt::format("<div><dt>{}</dt><dd>{}{}</dd></div>\n", name, escaped(value),
                     more.empty() ? "" : fmt::format("<small>{}</small>", escaped(more)));
}

std::string facts(const Run& run, const Summary& s) {
  std::string html = "<dl class=\"facts\">\n";
  const Metrics& m = run.metrics;
  const std::string over =
      m.validation_over.empty() ? "" : fmt::format(", over {}", m.validation_over);
  if (s.best)
    html += fact("Best validation loss", format_number(s.best),
                 fmt::format("after {}{}", format_count(*s.best_after, "step", "steps"), over));
  if (s.validation)
    html += fact(
        "Last validation loss", format_number(s.validation),
        fmt::format("after {}{}", format_count(m.validation.xs.back() + 1, "step", "steps"), over));
  if (s.final_validation)
    html += fact("Final validation loss", format_number(s.final_validation),
                 m.final_validation_over.empty() ? "" : "over " + m.final_validation_over);
  html += fact("Training loss", format_number(s.loss),
               s.loss_of > 1 ? fmt::format("mean of the last {} steps", s.loss_of) : "last step");
  html += fact("Steps", format_count(s.steps),
               s.planned && *s.planned != s.steps ? "of " + format_count(*s.planned) : "");
  if (run.parameters)
    html += fact("Parameters", format_count(*run.parameters));
  if (s.tokens_per_second)
    html += fact("Tokens per second", format_count(std::round(*s.tokens_per_second)),
                 fmt::format("{:.3g} ms a step, median", *s.ms));
  else if (s.ms)
    html += fact("Time of a step", fmt::format("{:.3g} ms", *s.ms), "median");
  if (s.seconds)
    html += fact("Time of all steps", format_duration(*s.seconds));
  html += "</dl>\n";
  if (s.not_finite > 0)
    html +=
        fmt::format("<p class=\"bad\">{} not finite.</p>\n",
                    s.not_finite == 1 ? "1 loss is" : fmt::format("{} losses are", s.not_finite));
  for (const std::string& change : m.changes)
    html += fmt::format("<p>Changed {}</p>\n", escaped(change));
  if (!run.metrics.left_out.empty())
    html += fmt::format("<p class=\"bad\">metrics.jsonl: {}.</p>\n", run.metrics.left_out);
  return html;
}

std::string charts(const Run& run) {
  const std::vector<Run> one{run};
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
        weight, 1 / (1 - weight), format_count(static_cast<double>(run.metrics.loss.xs.size())));
  return html;
}

/// The first so many characters, and whether these are all.
std::pair<std::string, bool> beginning(const std::string& text, std::size_t characters) {
  std::size_t at = 0;
  for (std::size_t n = 0; at < text.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80;
    if (starts && n++ == characters)
      break;
  }
  return {text.substr(0, at), at == text.size()};
}

std::string samples(const Run& run) {
  const std::size_t n = run.samples.size();
  if (n == 0 && run.unread_samples == 0)
    return "";
  std::string html = "<h2>What the model wrote on the way</h2>\n";
  const std::size_t shown = std::min(n, most_samples);
  if (shown < n)
    html += fmt::format("<p class=\"soft\">{} of {} samples.</p>\n", shown, n);
  if (run.unread_samples > 0)
    html += "<p class=\"soft\">Some of samples.jsonl could not be read.</p>\n";
  for (std::size_t k = 0; k < shown; ++k) {
    const Sample& sample = run.samples[shown == 1 ? n - 1 : k * (n - 1) / (shown - 1)];
    const auto [text, all] = beginning(sample.text, most_characters);
    const std::string first = beginning(text, 100).first;
    html += fmt::format(
        "<details{}><summary><b>{}</b><span class=\"soft\">{}</span></summary>"
        "<pre>{}</pre>{}</details>\n",
        k + 1 == shown ? " open" : "", format_count(sample.steps, "step", "steps"), escaped(first),
        escaped(text), all ? "" : "<p class=\"soft\">and so on</p>");
  }
  return html;
}

std::string table_of(std::string_view heading, const xgrad::io::Json& object) {
  const auto* const entries = object.as<xgrad::io::JsonObject>();
  if (entries == nullptr)
    return "";
  std::string html = fmt::format("<section><h2>{}</h2>\n<table>\n", heading);
  for (const auto& [key, value] : *entries)
    html += table_row(xgrad::printable_name(key), format_value(value));
  return html + "</table></section>\n";
}

}  // namespace

xgrad::pages::Page report_page(const Run& run, const std::vector<Hint>& hints) {
  std::string body = facts(run, summarise(run)) + charts(run) + samples(run);
  body += "<div class=\"tables\">\n" + table_of("Configuration", run.config) +
          table_of("Environment", run.environment) + "</div>\n";
  if (!hints.empty())
    body += "<h2>To go on</h2>\n";
  for (const Hint& hint : hints)
    body += fmt::format("<p>{}</p>\n<pre>{}</pre>\n", escaped(hint.purpose), escaped(hint.line));
  return xgrad::pages::with_charts(
      {.title = fmt::format("Run {}", run.name), .body = std::move(body), .styles = {style}});
}

}  // namespace runs
