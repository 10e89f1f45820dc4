#include <xgrad/viz/chart.hpp>

#include <limits>
#include <string>
#include <xgrad/autograd/error.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

TEST_CASE("A logarithmic axis has a tick at powers of ten", "[pages]") {
  const auto place_of = [](const std::string& svg, const std::string& number) {
    const std::size_t end = svg.find(">" + number + "<"), begin = svg.rfind(" y='", end);
    REQUIRE(end != std::string::npos);
    return std::stod(svg.substr(begin + 4));
  };
  const std::string svg = viz::line_chart({{"a", {0, 1, 2, 3}, {1e-5, 1e-2, 0, 1e-3}}},
                                          {.y_low = 1e-6, .y_high = 1e-1, .y_log = true});
  CHECK(place_of(svg, "1e-2") - place_of(svg, "1e-1") ==
        Approx(place_of(svg, "1e-5") - place_of(svg, "1e-4")));
  CHECK_THAT(svg, ContainsSubstring("data-y='-6 -1'") && ContainsSubstring("data-log='y'") &&
                      ContainsSubstring("d='M0.0 288.0 240.0 72.0 480.0 100000.0 720.0 144.0'"));
  CHECK_THAT(viz::line_chart({{"a", {0, 1}, {1e-30, 1e30}}}, {.y_log = true}),
             ContainsSubstring(">1e-30<") && !ContainsSubstring(">1e-29<"));
  CHECK_THROWS_AS(viz::line_chart({{"a", {0, 1}, {0, -1}}}, {.y_log = true}), ValueError);
}

TEST_CASE("A chart on a page holds its numbers, and any name", "[pages]") {
  const std::string hostile = "</script>' onload='x \" & \xff";
  const std::string html =
      viz::chart_figure({{hostile, {0, 1, 2}, {0.1, std::numeric_limits<double>::infinity(), 3}}},
                        {.title = hostile, .x_label = "step"});
  CHECK_THAT(html, StartsWith("<figure class=\"chart\""));
  CHECK_THAT(html, ContainsSubstring(R"("xs":[0,1,2],"ys":[0.1,null,3])"));
  CHECK_THAT(html, ContainsSubstring("class='picture'"));
  CHECK(html.find("</script>") == std::string::npos);
  CHECK(html.find("' onload") == std::string::npos);
  const std::string page = viz::to_html(viz::with_charts({.title = "t", .body = html}));
  CHECK_THAT(page, ContainsSubstring("figure.chart") && ContainsSubstring(".chart figcaption"));
  CHECK_THROWS_AS(viz::chart_figure({}), ValueError);
}
