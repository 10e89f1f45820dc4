// The folders of runs, read and summarised, whatever they contain.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/viz/chart.hpp>
#include <xgrad/viz/page.hpp>

#include <xgrad/lm/program/runs/format.hpp>
#include <xgrad/lm/program/runs/runs.hpp>
#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;

struct RunsFolder : TemporaryFolder {
  /// Writes a run's metrics and configuration; returns its path.
  std::string run(const std::string& name, const std::string& metrics,
                  const std::string& config = "") const {
    fs::create_directories(*this / name);
    write_bytes(*this / (name + "/metrics.jsonl"), metrics);
    if (!config.empty())
      write_bytes(*this / (name + "/config.json"), config);
    return *this / name;
  }
};

std::string rows(int steps, double first, double last) {
  std::string text;
  for (int i = 0; i < steps; ++i)
    text += "{\"step\": " + std::to_string(i) +
            ", \"loss\": " + std::to_string(first + (last - first) * i / (steps - 1)) +
            ", \"ms\": 10, \"lr\": 0.001, \"grad_norm\": 1}\n";
  return text;
}

std::string page_of(const runs::Run& run) { return xgrad::viz::to_html(runs::page({run})); }

using Cells = std::vector<std::string>;
Cells values_in(const std::vector<runs::Row>& table, const std::string& name) {
  const auto row = std::ranges::find(table, name, &runs::Row::name);
  return row == table.end() ? Cells{} : row->values;
}

}  // namespace

TEST_CASE("runs: metrics of any program", "[runs]") {
  const RunsFolder folder;
  const auto read = [&](const std::string& text) {
    return runs::read_metrics(folder.run("run", text) + "/metrics.jsonl");
  };
  const runs::Metrics plain = read("{\"step\": 0, \"loss\": 2}\n{\"step\": 5, \"loss\": 1.5}");
  CHECK(plain.loss.xs == std::vector<double>{0, 5});
  CHECK(plain.loss.ys == std::vector<double>{2, 1.5});
  CHECK(plain.validation.xs.empty());
  // Python writes values that JSON lacks.
  const runs::Metrics python = read(
      "{\"step\": 0, \"loss\": NaN, \"val_loss\": Infinity}\n{\"step\": 1, \"loss\": -Infinity}\n"
      "{\"step\": 2, \"loss\": null}\n{\"step\": 3, \"loss\": 1, \"x\": \"NaN\"}\n");
  REQUIRE(python.loss.ys.size() == 4);
  CHECK((std::isnan(python.loss.ys[0]) && std::isnan(python.loss.ys[1]) &&
         std::isnan(python.loss.ys[2]) && python.loss.ys[3] == 1));
  CHECK(python.validation.xs == std::vector<double>{1});  // after the step whose loss is before it
  // An incomplete last line is skipped, and only that.
  CHECK(read("{\"step\": 0, \"loss\": 2}\n{\"step\": 1, \"lo").loss.xs.size() == 1);
  const auto refused = [&](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH(read(text), ContainsSubstring(why));
  };
  refused("", "it has no lines");
  refused("\n \n", "it has no lines");
  const runs::Metrics mended =
      read("{\"step\": 0, \"loss\": 2}\n\n{\"step\": 1, \"lo\n{\"step\": 2, \"loss\": 1}\n");
  CHECK(mended.loss.xs == std::vector<double>{0, 2});
  CHECK(mended.skipped ==
        "line 3 is not a JSON object with the numbers \"step\" and \"loss\", and is skipped");
  CHECK(plain.skipped.empty());
  refused("{\"step\": 0, \"loss\": \"2\"}\n", "line 1 is not");
  refused("{\"step\": null, \"loss\": 2}\n", "line 1 is not");
  refused("[1]\n", "line 1 is not");
  refused(std::string(3 << 20, 'x') + "\n", "line 1 is not");
  refused("\x1b[2J\xff\n", "line 1 is not");
  CHECK_THROWS_WITH(runs::read_run(folder / "none"), ContainsSubstring("none"));
}

TEST_CASE("runs: a folder with anything in it", "[runs]") {
  const RunsFolder folder;
  const std::string hostile = "</script>'\"&<b>\x1b[31m\xff";
  const std::string path = folder.run("<b>\x1b[31m'&\n\xff", rows(120, 4, 2), "{\"a\": [1, 2]}");
  write_bytes(
      path + "/samples.jsonl",
      "{\"step\": 0, \"text\": \"</script>'&\\u0000 \\u001b[31m\"}\nnothing\n{\"step\": 5}\n"
      "{\"step\": 9, \"text\": \"gr\xC3\xBC\xC3\x9F\"}\n");
  write_bytes(path + "/checkpoint.safetensors", hostile);
  write_bytes(path + "/environment.json", "[]");
  const runs::Run run = runs::read_run(path);
  CHECK(run.name == "<b>\\x1b[31m'&\\x0a\\xff");
  CHECK(run.samples.size() == 2);
  const std::string page = page_of(run);
  CHECK(page.find("<b>\\x1b") == std::string::npos);
  CHECK(page.find('\x1b') == std::string::npos);
  CHECK_THAT(page, ContainsSubstring("<pre>gr\xC3\xBC\xC3\x9F</pre>") &&
                       ContainsSubstring("&#60;/script&#62;&#39;&#38;") &&
                       ContainsSubstring("<td>[1,2]</td>"));
  // Only metrics, of one step that is not finite.
  for (const std::string metrics :
       {"{\"step\": 0, \"loss\": NaN}\n", "{\"step\": 0, \"loss\": 3}\n",
        "{\"step\": 1e308, \"loss\": -1e308}\n"}) {
    const runs::Run one = runs::read_run(folder.run("one", metrics));
    CHECK_THAT(page_of(one), ContainsSubstring("training loss"));
    CHECK_THAT(runs::table_text({one}), ContainsSubstring(" one\nsteps "));
  }
  // Invalid configurations.
  for (const std::string config :
       {"{", "[]", "\xff", "{\"max_iters\": \"many\", \"batch_size\": {}}"}) {
    const runs::Run one = runs::read_run(folder.run("two", rows(3, 2, 1), config));
    CHECK(values_in(runs::table({one}), "steps") == Cells{"3"});
    CHECK(values_in(runs::table({one}), "tokens/s").empty());
    CHECK_THAT(page_of(one), ContainsSubstring("ms/step, median</th><td class=\"number\">10</td>"));
  }
}

TEST_CASE("runs: samples are shown from the first to the last, not all", "[runs]") {
  const RunsFolder folder;
  const std::string path = folder.run("run", rows(3, 2, 1));
  std::string samples;
  for (int i = 0; i < 500; ++i)
    samples +=
        "{\"step\": " + std::to_string(i) + ", \"text\": \"sample<" + std::to_string(i) + ">\"}\n";
  samples += "{\"step\": 500, \"text\": \"" + std::string(900'000, 'x') + "\"}\n";
  write_bytes(path + "/samples.jsonl", samples);
  const std::string page = page_of(runs::read_run(path));
  CHECK(page.size() < 120'000);
  CHECK_THAT(page, ContainsSubstring("40 of 501 samples") &&
                       ContainsSubstring("sample&#60;0&#62;") &&
                       ContainsSubstring("<b>500 steps</b>"));
}

TEST_CASE("runs: names that differ", "[runs]") {
  const RunsFolder folder;
  const std::string text = rows(2, 2, 1);
  const auto names = [&](const Cells& paths) {
    Cells all;
    for (const runs::Run& run : runs::read_runs(paths))
      all.push_back(run.name);
    return all;
  };
  const std::string a = folder.run("x/run", text), b = folder.run("y/run", text),
                    d = folder.run("other", text);
  CHECK(names({a, d}) == Cells{"run", "other"});
  CHECK(names({a, b + "/metrics.jsonl", d}) == Cells{"x/run", "y/run", "other"});
  CHECK(names({a, a, b}) == Cells{"x/run", "x/run (2)", "y/run"});
}

TEST_CASE("runs: rates that span decades have a logarithmic axis", "[runs]") {
  const RunsFolder folder;
  const auto charts = [&](const std::string& rate) {
    const std::string text = rows(20, 3, 2), usual = "\"lr\": 0.001";
    std::string other = text;
    for (std::size_t at = 0; (at = other.find(usual, at)) != other.npos; at += rate.size())
      other.replace(at + 6, 5, rate);
    return runs::charts_html(
        {runs::read_run(folder.run("usual", text)), runs::read_run(folder.run("other", other))});
  };
  const std::string decades = charts("0.000001"), near = charts("0.000101");
  CHECK_THAT(decades,
             ContainsSubstring("Learning rate, logarithmic") && ContainsSubstring("data-log='y'"));
  CHECK(decades.find("data-log") == decades.rfind("data-log"));  // of the rate alone
  CHECK_THAT(near, ContainsSubstring("Learning rate") && !ContainsSubstring("logarithmic") &&
                       !ContainsSubstring("data-log"));
}

TEST_CASE("runs: the table of results", "[runs]") {
  const RunsFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += "{\"step\": " + std::to_string(i) + ", \"loss\": " +
            (i == 195  ? "NaN"
             : i < 190 ? "3"
                       : "2") +
            ", \"ms\": " + (i == 0 ? "5000" : "25") +
            (i % 50 == 49 ? ", \"val_loss\": " + std::to_string(i == 99 ? 1.5 : 1.75) : "") + "}\n";
  const runs::Run run = runs::read_run(
      folder.run("run", text, "{\"batch_size\": 4, \"block_size\": 10, \"max_iters\": 300}"));
  const std::vector<std::pair<std::string, std::string>> expected{
      {"steps", "200 of 300"},
      {"best validation loss", "1.5"},
      {"  after", "100 steps"},
      {"last validation loss", "1.75"},
      {"training loss", "2.1"},  // 9 of 2 and 1 of 3
      {"  mean of the last", "10 steps"},
      {"losses not finite", "1"},
      {"tokens/s", "1,600"},
      {"ms/step, median", "25"},
      {"time of all steps", "10s"}};
  const std::string slow = R"({"step": 0, "loss": 3, "ms": 34300})";
  CHECK(values_in(runs::table({runs::read_run(folder.run("slow", slow + "\n"))}),
                  "ms/step, median") == Cells{"34,300"});
  std::vector<std::pair<std::string, std::string>> rows;
  for (const runs::Row& row : runs::table({run}))
    rows.emplace_back(row.name, row.values.at(0));
  CHECK(rows == expected);
}

TEST_CASE("runs: a run that diverged does not flatten the others", "[runs]") {
  const RunsFolder folder;
  const auto limit = [&](const std::vector<std::string>& metrics) {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < metrics.size(); ++i)
      paths.push_back(folder.run("run" + std::to_string(i), metrics[i]));
    return runs::loss_curves(runs::read_runs(paths));
  };
  const runs::Curves one = limit({rows(50, 4, 2), rows(50, 4.2, 1e9)});
  CHECK(*one.options.y_high == Approx(6.3));
  CHECK(one.cut == "run1 up to 1e+09");
  CHECK(*limit({rows(50, 4, 2), rows(50, 1e9, 1e9)}).options.y_high ==
        Approx(6));  // from its start
  CHECK_FALSE(limit({rows(50, 4, 2), rows(50, 5.5, 2)}).options.y_high);
  CHECK_FALSE(limit({rows(50, -4, -2), rows(50, -1, 5)}).options.y_high);
}

TEST_CASE("runs: a run's losses have its colour, and dots where they are validation's", "[runs]") {
  const RunsFolder folder;
  const runs::Curves curves = runs::loss_curves(runs::read_runs(
      {folder.run("a", rows(300, 4, 2)),
       folder.run("b", rows(50, 4, 2) + "{\"step\": 50, \"loss\": 2, \"val_loss\": 3}\n")}));
  const auto is = [](const auto& line, const std::string& name, std::size_t color) {
    return line.name == name && line.color == color;
  };
  REQUIRE(curves.lines.size() == 3);
  CHECK((is(curves.lines[0], "a", 0) && is(curves.lines[1], "b", 1) &&
         is(curves.lines[2], "b, validation", 1)));
  CHECK(curves.lines[0].ys.size() == 300);
  CHECK(curves.lines[2].dots);
}

TEST_CASE("runs: compared in a table", "[runs]") {
  const RunsFolder folder;
  const std::string validation = "{\"step\": 60, \"loss\": 2, \"val_loss\": ";
  const std::vector<runs::Run> three =
      runs::read_runs({folder.run("a", rows(60, 4, 2) + validation + "2.5}\n",
                                  R"({"n_layer": 4, "lr": 0.1, "max_iters": 61})"),
                       folder.run("b", rows(60, 4, 2) + validation + "2.25}\n",
                                  R"({"n_layer": 6, "lr": 0.1, "max_iters": 90})"),
                       folder.run("c", rows(20, 4, 2))});
  const auto table = runs::table(three);
  CHECK(values_in(table, "steps") == Cells{"61", "61 of 90", "20"});
  CHECK(values_in(table, "best validation loss") == Cells{"2.5", "2.25 *", "-"});
  CHECK(values_in(table, "n_layer") == Cells{"4", "6", "-"});
  CHECK(values_in(table, "ms/step, median") == Cells{"10", "10", "10"});
  CHECK(values_in(table, "tokens/s").empty());  // unknown
  CHECK(values_in(table, "losses not finite").empty());
  const auto alike = runs::table({three[0], three[1]});
  CHECK(values_in(alike, "lr").empty());

  // A change of flags during a run is reported, because the configuration has only the last flags.
  const std::vector<runs::Run> changed{runs::read_run(folder.run(
      "d", rows(3, 4, 2) + R"({"step": 3, "loss": 2, "changes": "--lr 0.1 -> <0.2>"})" + "\n"))};
  CHECK_THAT(runs::table_text(changed),
             ContainsSubstring("\nd changed from step 3 on: --lr 0.1 -> <0.2>\n"));
  CHECK_THAT(runs::page(changed).body,
             ContainsSubstring("changed from step 3 on: --lr 0.1 -&#62; &#60;0.2&#62;"));

  const std::string text = runs::table_text(three);
  CHECK_THAT(text, ContainsSubstring("  a         b         c\n") &&
                       ContainsSubstring("best validation loss"));
  const std::string page = xgrad::viz::to_html(runs::page(three));
  CHECK_THAT(page, ContainsSubstring("<th scope=\"col\">b</th>") && ContainsSubstring("2.25 *"));
}

TEST_CASE("runs: losses of other texts do not compare", "[runs]") {
  const RunsFolder folder;
  const auto text = [&](const std::string& b) {
    return runs::table_text(
        runs::read_runs({folder.run("a", rows(9, 4, 2), R"({"vocab_size": 65, "data": "x"})"),
                         folder.run("b", rows(9, 4, 2), b)}));
  };
  const std::string says = "trained on different texts";
  CHECK_THAT(text(R"({"vocab_size": 65, "data": null})"), ContainsSubstring(says));
  CHECK(text(R"({"vocab_size": 65, "data": "x"})").find(says) == std::string::npos);
  CHECK(text("{}").find(says) == std::string::npos);
  // Texts of --val-data are compared by path, or by checksum for any path.
  const auto validated = [&](const std::string& a, const std::string& b) {
    return runs::table_text(
        runs::read_runs({folder.run("a", rows(9, 4, 2), a), folder.run("b", rows(9, 4, 2), b)}));
  };
  const std::string flag = "validated on different texts (--val-data)";
  CHECK_THAT(validated(R"({"val_data": "v"})", R"({"val_data": null})"), ContainsSubstring(flag));
  std::vector<runs::Run> two =
      runs::read_runs({folder.run("a", rows(9, 4, 2), R"({"val_data": "v"})"),
                       folder.run("b", rows(9, 4, 2), R"({"val_data": "w"})")});
  two[0].val_text = two[1].val_text = "1";
  CHECK(runs::table_text(two).find(flag) == std::string::npos);
}

TEST_CASE("runs: numbers for people", "[runs]") {
  CHECK(runs::format_count(1115394.0) == "1,115,394");
  CHECK(runs::format_count(std::size_t{1000}) == "1,000");
  CHECK(runs::format_count(-1000.0) == "-1000");
  CHECK(runs::format_count(999.0) == "999");
  CHECK(runs::format_count(1.5) == "1.5");
  CHECK(runs::format_count(1e300) == "1e+300");
  CHECK(runs::format_count(std::nan("")) == "nan");
  CHECK(runs::format_duration(1.52) == "2s");
  CHECK(runs::format_duration(200) == "3m20s");
  CHECK(runs::format_duration(7500) == "2h05m");
  CHECK(runs::format_duration(1e300) == "1e+300s");
  CHECK(runs::format_duration(-200) == "-200s");
}
