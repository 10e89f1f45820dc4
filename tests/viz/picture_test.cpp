// Pictures: their elements and positions.

#include <algorithm>
#include <cmath>
#include <set>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/viz/chart.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::viz;

namespace {

using Texts = std::vector<std::string>;

/// The texts between `from` and `to`, in elements with `start`.
Texts all(const std::string& text, const std::string& start, const std::string& from,
          const std::string& to) {
  Texts found;
  for (std::size_t at = 0; (at = text.find(start, at)) != std::string::npos;) {
    at += start.size();
    const std::size_t first = text.find(from, at);
    if (first == std::string::npos || text.find('>', at) < first)
      continue;
    found.push_back(text.substr(first + from.size(),
                                text.find(to, first + from.size()) - (first + from.size())));
  }
  return found;
}

/// The words of a picture's texts.
Texts words(const std::string& svg) { return all(svg, "<text", ">", "<"); }

bool has(const Texts& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// The paths of this colour.
Texts paths_of(const std::string& svg, const std::string& color) {
  return all(svg, "<path stroke='" + color + "'", " d='", "'");
}
std::string path_of(const std::string& svg, const std::string& color) {
  const Texts found = paths_of(svg, color);
  return found.empty() ? "" : found.back();
}

/// Whether the attributes after an element's name are name='value', with XML's escapes.
bool well_formed_attributes(const std::string& tag, std::size_t at) {
  while (at < tag.size() && tag.substr(at) != " ") {
    const std::size_t value = tag.find("='", at), end = tag.find('\'', value + 2);
    if (tag[at] != ' ' || value == std::string::npos || end == std::string::npos ||
        tag.substr(value + 2, end - value - 2).find_first_of("<&") != std::string::npos)
      return false;
    at = end + 1;
  }
  return true;
}

/// Whether elements are closed in order, and texts escaped.
bool well_formed(const std::string& svg) {
  Texts open;
  for (std::size_t at = 0; at < svg.size(); ++at) {
    if (svg[at] == '&') {
      at = svg.find_first_not_of("0123456789", at + 2);
      if (at == std::string::npos || svg[at] != ';')
        return false;
    } else if (svg[at] == '<') {
      const std::size_t end = svg.find('>', at);
      std::string tag = svg.substr(at + 1, end - at - 1);
      at = end;
      if (end == std::string::npos || tag.empty())
        return false;
      if (tag[0] == '/') {
        if (open.empty() || open.back() != tag.substr(1))
          return false;
        open.pop_back();
        continue;
      }
      const bool closed = tag.back() == '/';
      if (closed)
        tag.pop_back();
      const std::string name = tag.substr(0, tag.find(' '));
      if (!well_formed_attributes(tag, name.size()))
        return false;
      if (!closed)
        open.push_back(name);
    }
  }
  return open.empty() && !svg.empty();
}

std::vector<std::string> texts(const std::vector<Tick>& ticks) {
  std::vector<std::string> list;
  for (const Tick& tick : ticks)
    list.push_back(tick.text);
  return list;
}

}  // namespace

TEST_CASE("picture: text for XML") {
  CHECK(escaped("a<b & c>'d'") == "a&#60;b &#38; c&#62;&#39;d&#39;");
  CHECK(escaped("gr\xC3\xB6\xC3\x9F\x65 \xE6\x95\xB0") == "gr\xC3\xB6\xC3\x9F\x65 \xE6\x95\xB0");
  CHECK(escaped("\xFF\x01\t") == "\xEF\xBF\xBD\xEF\xBF\xBD\t");
  CHECK(characters("a\xC3\xA9\xFF") == U"a\u00E9\uFFFD");
  CHECK(text_width("\xE6\x95\xB0") > text_width("a"));
  CHECK_FALSE(well_formed("<svg><g></svg></g>"));
  CHECK_FALSE(well_formed("<svg>a & b</svg>"));
  CHECK_FALSE(well_formed("<svg a='<'></svg>"));
  CHECK_FALSE(well_formed("<svg a=1></svg>"));
  CHECK_FALSE(well_formed("<svg"));
  CHECK(well_formed("<svg a='1' b='2'><g/>&#60;</svg>"));
}

TEST_CASE("picture: a picture grows with its contents") {
  Svg svg(100, 50);
  svg.text(0, 25, "left of it", "end");
  svg.text_upwards(50, 60, "below", "end");
  CHECK(svg.left == Approx(-text_width("left of it")));
  CHECK(svg.bottom == Approx(60 + text_width("below")));
  CHECK((svg.right == 100 && svg.top == 0));
  svg.text(100, 0, "ab", "middle");
  CHECK(svg.right == Approx(100 + text_width("ab") / 2));
  svg.title("above");
  CHECK(svg.top < -20);
  CHECK(well_formed(svg.str()));
}

TEST_CASE("picture: a file") {
  const TemporaryFolder folder;
  save_svg(folder / "a.svg", Svg(1, 1).str());
  CHECK(read_bytes(folder / "a.svg") == Svg(1, 1).str());
  CHECK_THROWS_WITH(save_svg("a.png", ""), "a.png: pictures are SVG; use a name that ends in .svg");
  CHECK_THROWS_AS(save_svg("svg", ""), ValueError);
  CHECK_THROWS_WITH(save_svg(folder / "no/map.svg", ""),
                    ContainsSubstring("no/map.svg: cannot be written"));
  CHECK(folder.count() == 1);
}

TEST_CASE("picture: round numbers along an axis") {
  CHECK(texts(ticks(0, 1, 5)) == Texts{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(texts(ticks(-0.3, 0.31, 3)) == Texts{"-0.2", "0.0", "0.2"});
  CHECK(texts(ticks(1.4, 4.6, 6)) == Texts{"1.5", "2.0", "2.5", "3.0", "3.5", "4.0", "4.5"});
  CHECK(texts(ticks(0, 2e9, 2)) == Texts{"0", "1e+09", "2e+09"});
  CHECK(texts(ticks(0, 3e-9, 3)) == Texts{"0", "1e-09", "2e-09", "3e-09"});
  CHECK(texts(ticks(7, 7, 3)) == Texts{"7"});
  CHECK(ticks(0, 1, std::size_t{1} << 60).size() == 1001);
  CHECK(texts(ticks(-1.7e308, 1.7e308, 5)) == Texts{"-1.7e+308"});
}

TEST_CASE("picture: a heat map's cells have the scale's colours") {
  const std::string svg = heat_map(
      tensor({{0, 1, 2}, {3, not_a_number, 4}, {4, 4, 0}}),
      {.title = "T & t", .x_label = "key", .y_label = "query", .cell = 20, .numbers = false});
  CHECK(well_formed(svg));
  CHECK(svg.find("scale(20)") != std::string::npos);
  const auto cells = [&](double place) { return paths_of(svg, viridis(place)).front(); };
  CHECK(cells(0) == "M0 0.5h1M2 2.5h1");
  CHECK(cells(1) == "M2 1.5h1M0 2.5h2");  // neighbours are one stroke
  CHECK(cells(std::round(0.25 * 255) / 255) == "M1 0.5h1");
  CHECK(all(svg, "'#ddd'", " d='", "'").front() == "M1 1.5h1");
  CHECK(svg.find("M1 1l1 1m-1 0l1-1") != std::string::npos);  // and crossed
  for (const char* const text : {"T &#38; t", "key", "query", "1 not finite", "0", "2", "4"})
    CHECK(has(words(svg), text));
  for (const double lowest : {-1.0, 0.0, not_a_number})
    CHECK(viridis(lowest) == "#440154");
  CHECK(viridis(2) == "#fde725");
}

TEST_CASE("picture: a heat map's numbers and labels") {
  const Texts two = words(heat_map(tensor({{0.5, not_a_number}, {-0.25, -inf}})));
  for (const char* const number : {"0.500", "-0.250", "nan", "-inf", "2 not finite"})
    CHECK(has(two, number));
  CHECK(has(words(heat_map(tensor({{1e-5, 2e-5}}))), "1.0e-05"));
  CHECK(has(words(heat_map(tensor({{1234, 20}}))), "1234"));
  CHECK_FALSE(has(words(heat_map(tensor({{0.5}}), {.cell = 20})), "0.500"));  // no room
  CHECK_FALSE(has(words(heat_map(tensor({{0.5}}), {.numbers = false})), "0.500"));

  const Tensor ten = zeros({10, 10});
  const Texts few = words(heat_map(ten, {.cell = 8, .numbers = false}));
  CHECK((has(few, "5") && !has(few, "1") && !has(few, "4")));
  const std::string upright = heat_map(zeros({1, 2}), {.columns = {"the word", "\xE6\x95\xB0"}});
  CHECK(all(upright, "rotate", ">", "<") == Texts{"the word", "\xE6\x95\xB0"});
  CHECK(well_formed(heat_map(full({3, 5}, not_a_number))));
  CHECK(path_of(heat_map(zeros({1, 2}, DType::float64).requires_grad_(), {.numbers = false}),
                viridis(std::round(0.5 * 255) / 255)) == "M0 0.5h2");
  CHECK(heat_map(zeros({1024, 1024})).size() < 100'000);
}

TEST_CASE("picture: a heat map as text") {
  CHECK(heat_map_text(tensor({{1, 0}, {0.25, 0.75}})) ==
        "    0 1\n"
        "0 |@@  |\n"
        "1 |::##|\n"
        "from \" \" for 0 to \"@\" for 1\n");
  CHECK(heat_map_text(tensor({{1, not_a_number, 3}}),
                      {.title = "T", .rows = {"s\xC3\xBCm"}, .columns = {"the", "cat", "sat"}}) ==
        "T\n"
        "     the sat\n"
        "s\xC3\xBCm |  ?\?@@|\n"
        "from \" \" for 1 to \"@\" for 3\n");
  CHECK(heat_map_text(tensor({{-5, 0.5, 5}}), {.low = 0, .high = 1}) ==
        "    0 1 2\n"
        "0 |  ++@@|\n"
        "from \" \" for 0 to \"@\" for 1\n");
}

TEST_CASE("picture: a heat map that cannot be drawn") {
  CHECK_THROWS_WITH(heat_map(zeros({3})),
                    "heat_map: values have shape (3,); they must be (rows, columns), not empty");
  CHECK_THROWS_AS(heat_map_text(zeros({0, 3})), ShapeError);
  CHECK_THROWS_WITH(heat_map(zeros({2, 2}), {.rows = {"a"}}), "heat_map: 1 labels for 2 rows");
  CHECK_THROWS_AS(heat_map(zeros({2, 2}), {.columns = {"a", "b", "c"}}), ValueError);
  CHECK_THROWS_WITH(
      heat_map_text(zeros({2, 2}), {.low = 1, .high = 0}),
      "heat_map: the scale goes from 1 to 0; low must be below high, and both finite");
  CHECK_THROWS_AS(heat_map(zeros({2, 2}), {.high = inf}), ValueError);
  const Tensor widest = tensor({{-1.7e308, 1.7e308}}, DType::float64);
  CHECK_THROWS_AS(heat_map(widest), ValueError);
  CHECK_THROWS_AS(heat_map_text(widest), ValueError);
  CHECK_THROWS_WITH(heat_map(zeros({1024, 1025})),
                    "heat_map: 1024 by 1025 cells are more than 1048576; show a part of them");
}

TEST_CASE("picture: a line chart") {
  const std::string blue = "#0072b2", orange = "#d55e00";
  const Series falling{"a < b", {0, 1, 2}, {2, 1, 0}}, rising{"rising", {0, 2}, {0, 2}};
  const std::string svg = line_chart({falling, rising}, {.title = "Two",
                                                         .x_label = "x",
                                                         .y_label = "y",
                                                         .y_low = 0,
                                                         .y_high = 2,
                                                         .width = 200,
                                                         .height = 100});
  CHECK(well_formed(svg));
  CHECK(path_of(svg, blue) == "M0.0 0.0 100.0 50.0 200.0 100.0");
  CHECK(path_of(svg, orange) == "M0.0 100.0 200.0 0.0");
  for (const char* const text : {"a &#60; b", "rising", "Two", "x", "y", "0", "1", "2"})
    CHECK(has(words(svg), text));
  CHECK(svg.find("<svg x='-8' width='216' height='100' viewBox='-8 0 216 100'") != svg.npos);

  // A clipped part does not widen the other end.
  const Texts cut = words(line_chart({{"", {0, 1, 2}, {2, 1, 1e9}}}, {.y_high = 3}));
  CHECK((has(cut, "1.0") && has(cut, "3.0") && !has(cut, "0.5")));

  // A gap, a cross above it, and a dot where a point is alone.
  const std::string gap = line_chart({{"g", {0, 1, 2, 3, 4}, {0, 2, not_a_number, 2, inf}}},
                                     {.y_low = 0, .y_high = 2, .width = 400, .height = 100});
  const Texts paths = paths_of(gap, blue);
  REQUIRE(paths.size() == 4);  // in the legend, lines, dots, crosses
  CHECK(paths[1] == "M0.0 100.0 100.0 0.0M300.0 0.0");
  CHECK(paths[2] == "M300.0 0.0h.1");
  CHECK(paths[3] == "M196.0 3l8 8m-8 0l8-8M396.0 3l8 8m-8 0l8-8");
  CHECK(has(words(gap), "g (2 not finite)"));

  CHECK(well_formed(line_chart({{"one", {3}, {1}}})));
  CHECK(has(words(line_chart({{"lr", {0, 1}, {1e-3, 1e-3}}})), "0.00100"));  // hardly an axis
}

TEST_CASE("picture: many series") {
  std::vector<Series> series(8, Series{"s", {0, 1}, {0, 1}});
  const std::string eight = line_chart(series);
  const Texts looks = all(eight, "<path stroke='#", "", " d='");
  CHECK(std::ranges::count_if(std::set<std::string>(looks.begin(), looks.end()), [](auto& look) {
          return look.find("stroke-dasharray='") != std::string::npos;
        }) == 8);
  series[7].color = 0;
  CHECK(all(line_chart(series), "stroke='#0072b2' stroke-dasharray=''", "", "").size() == 4);
}

TEST_CASE("picture: a line chart that cannot be drawn") {
  CHECK_THROWS_WITH(line_chart({}), "line_chart: there is no finite point");
  CHECK_THROWS_AS(line_chart({{"a", {1, not_a_number}, {not_a_number, 1}}}), ValueError);
  CHECK_THROWS_WITH(line_chart({{"a", {1, 2}, {1}}}), "line_chart: 'a' has 2 xs and 1 ys");
  CHECK_THROWS_WITH(line_chart({{"a", {1, 2}, {1, 0}}}, {.y_low = 3}),
                    "line_chart: the vertical axis goes from 3 to 1");
  CHECK_THROWS_AS(line_chart({{"a", {1, 2}, {1, 0}}}, {.y_low = 1, .y_high = 1}), ValueError);
  CHECK_THROWS_WITH(line_chart({{"a", {-1e308, 1e308}, {0, 1}}}),
                    "line_chart: no horizontal axis can be drawn from -1e+308 to 1e+308");
  CHECK_THROWS_WITH(line_chart({{"a", {0, 1}, {0, 5e-324}}}),
                    ContainsSubstring("no vertical axis can be drawn from"));
}

TEST_CASE("picture: numbers that doubles hardly tell apart") {
  // Counting from 5e16 on, k + 1 is k.
  const std::string svg = line_chart({{"a", {1e17, 1e17 + 16}, {1e17, 1e17 + 16}}});
  CHECK(svg.size() < 5000);
  CHECK_THAT(svg, ContainsSubstring(">1e+17</text>"));
}
