#include <xgrad/viz/page.hpp>

#include <string>
#include <xgrad/autograd/error.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

TEST_CASE("A page keeps any text where it belongs", "[pages]") {
  const std::string hostile = "</script><script>alert(1)</script><!-- \" ' & \xff \u2028";
  const std::string html = viz::to_html(
      {.title = hostile, .body = "<p>body</p>", .data = io::JsonObject{{"text", hostile}}});
  const auto count = [&](const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = html.find(what, at)) != std::string::npos; ++at)
      ++n;
    return n;
  };
  CHECK(count("<script") == 2);  // the data and the program
  CHECK(count("</script>") == 2);
  CHECK(count("<!--") == 0);
  CHECK(count("<p>body</p>") == 1);
  CHECK(count("alert(1)") == 3);  // the title, the heading, the data
  CHECK(count("default-src 'none'") == 1);
  CHECK(count("://") == 1);  // SVG's namespace
}

TEST_CASE("A page is written whole, or not at all", "[pages]") {
  const TemporaryFolder folder;
  const std::string path = folder / "page.html";
  viz::save(path, {.title = "t", .body = ""});
  CHECK(read_bytes(path) == viz::to_html({.title = "t", .body = ""}));
  CHECK_THROWS_AS(viz::save(folder / "page.htm", {}), ValueError);
  CHECK_THROWS_AS(viz::save(folder / "none/page.html", {}), FileError);
  CHECK(folder.count() == 1);
}
