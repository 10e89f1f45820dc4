#include <xgrad/pages/chart.hpp>

#include <limits>
#include <string>
#include <xgrad/autograd/error.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

TEST_CASE("A chart on a page holds its numbers, and any name", "[pages]") {
  const std::string hostile = "</script>' onload='x \" & \xff";
  const std::string html =
      pages::chart_figure({{hostile, {0, 1, 2}, {0.1, std::numeric_limits<double>::infinity(), 3}}},
                        {.title = hostile, .x_label = "step"});
  CHECK_THAT(html, StartsWith("<figure class=\"chart\""));
  CHECK_THAT(html, ContainsSubstring(R"("xs":[0,1,2],"ys":[0.1,null,3])"));
  CHECK_THAT(html, ContainsSubstring("class='picture'"));
  CHECK(html.find("</script>") == std::string::npos);
  CHECK(html.find("' onload") == std::string::npos);
  const std::string page = pages::to_html(pages::with_charts({.title = "t", .body = html}));
  CHECK_THAT(page, ContainsSubstring("figure.chart") && ContainsSubstring(".chart figcaption"));
  CHECK_THROWS_AS(pages::chart_figure({}), ValueError);
}
