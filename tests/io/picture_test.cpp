// Pictures: what is drawn, and where.

#include <png.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/font.hpp>
#include <xgrad/io/picture.hpp>
#include <xgrad/io/ticks.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;
using namespace xgrad::io;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr Color white{255, 255, 255}, black{0, 0, 0}, grey{200, 200, 200};

/// A PNG, read back.
struct Image {
  std::size_t width, height;
  std::vector<std::uint8_t> rgb;

  explicit Image(const std::string& path) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
    image.format = PNG_FORMAT_RGB;
    width = image.width;
    height = image.height;
    rgb.resize(3 * width * height);
    REQUIRE(png_image_finish_read(&image, nullptr, rgb.data(), 0, nullptr) != 0);
  }
  Color at(std::size_t x, std::size_t y) const {
    const std::uint8_t* const p = &rgb[3 * (y * width + x)];
    return {p[0], p[1], p[2]};
  }
};

/// The pixels of one colour.
struct Area {
  std::size_t count = 0, left = 1 << 20, top = 1 << 20, right = 0, bottom = 0;

  template <class Picture>
  static Area of(const Picture& picture, std::size_t width, std::size_t height, Color color) {
    Area area;
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x)
        if (picture.at(x, y) == color) {
          ++area.count;
          area.left = std::min(area.left, x);
          area.right = std::max(area.right, x);
          area.top = std::min(area.top, y);
          area.bottom = std::max(area.bottom, y);
        }
    return area;
  }
  static Area of(const Image& image, Color color) {
    return of(image, image.width, image.height, color);
  }
  static Area of(const Canvas& canvas, Color color) {
    return of(canvas, canvas.width(), canvas.height(), color);
  }
};

std::vector<std::string> texts(const std::vector<Tick>& all) {
  std::vector<std::string> list;
  for (const Tick& tick : all)
    list.push_back(tick.text);
  return list;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("picture: a canvas is drawn on, and cut off at its edges") {
  Canvas canvas(20, 10);
  CHECK(canvas.at(19, 9) == white);
  canvas.rectangle(-5, 8, 7, 9, black);
  const Area area = Area::of(canvas, black);
  CHECK(area.count == 4);
  CHECK((area.right == 1 && area.top == 8 && area.bottom == 9));
  CHECK_THROWS_AS(Canvas(0, 5), ValueError);
  CHECK_THROWS_WITH(Canvas(5, 20000), "picture: 5 by 20000 pixels; each side must be 1 to 16384");
}

TEST_CASE("picture: a line is as thick as asked, smooth, and interrupted where it is not finite") {
  Canvas canvas(60, 20);
  const std::vector<Point> points{{5, 10}, {20, 10}, {none, 10}, {40, 10}, {50, inf}};
  canvas.line(points, 4, black);
  for (std::size_t y = 8; y < 12; ++y)
    CHECK(canvas.at(12, y) == black);
  CHECK(canvas.at(12, 6) == white);
  CHECK(canvas.at(12, 13) == white);
  CHECK(canvas.at(30, 10) == white);
  CHECK(canvas.at(40, 10) == black);  // alone: a dot
  CHECK(canvas.at(45, 10) == white);

  Canvas slanted(40, 40);
  slanted.line(std::vector<Point>{{5, 5}, {35, 30}}, 2, black);
  const Area smooth = Area::of(slanted, white);
  CHECK(smooth.count + Area::of(slanted, black).count < 1600);  // some pixels are between

  Canvas cut(20, 20);
  cut.line(std::vector<Point>{{-100, 10}, {100, 10}}, 2, black, {5, 0}, {15, 20});
  CHECK((Area::of(cut, black).left == 5 && Area::of(cut, black).right == 14));
}

TEST_CASE("picture: text, aligned, upwards, and with characters that the font lacks") {
  CHECK(text_width("ab", 3) == 33);
  CHECK(text_width("") == 0);
  CHECK(characters("a\xC3\xA9\xFF") == U"a\u00E9\uFFFD");
  Canvas canvas(40, 40);
  canvas.text(20, 20, "H", black, 1, Align::middle, Align::middle);
  const Area h = Area::of(canvas, black);
  CHECK(h.count == 17);  // two bars of seven and the three between
  CHECK((h.left == 18 && h.right == 22 && h.top == 17 && h.bottom == 23));
  Canvas turned(40, 40);
  turned.text_upwards(10, 20, "L", black, 1);
  const Area l = Area::of(turned, black);
  CHECK(l.count == 11);
  CHECK((l.left == 10 && l.right == 16 && l.bottom - l.top == 4));
  CHECK(turned.at(10, l.bottom) == black);  // turned: the stem is at the bottom
  CHECK(turned.at(16, l.top) == black);
  CHECK(turned.at(10, l.top) == white);
  Canvas box(20, 20);
  box.text(0, 0, "\xC3\xA9", black, 1);
  CHECK(Area::of(box, black).count == 20);
  std::set<std::string> shapes;
  for (char32_t c = 32; c <= 127; ++c) {
    std::string shape;
    for (std::size_t y = 0; y < glyph_height; ++y)
      for (std::size_t x = 0; x < glyph_width; ++x)
        shape += glyph_dot(c, x, y) ? '#' : '.';
    shapes.insert(shape);
  }
  CHECK(shapes.size() == 95);  // all differ, except O and 0
}

TEST_CASE("picture: round numbers along an axis") {
  CHECK(texts(ticks(0, 1, 5)) == Texts{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(texts(ticks(-0.3, 0.31, 3)) == Texts{"-0.2", "0.0", "0.2"});
  CHECK(texts(ticks(1.4, 4.6, 6)) == Texts{"1.5", "2.0", "2.5", "3.0", "3.5", "4.0", "4.5"});
  CHECK(texts(ticks(0, 2e9, 2)) == Texts{"0", "1e+09", "2e+09"});
  CHECK(texts(ticks(0, 3e-9, 3)) == Texts{"0", "1e-09", "2e-09", "3e-09"});
  CHECK(texts(ticks(7, 7, 3)) == Texts{"7"});
  CHECK(texts(log_ticks(1e-5, 10, 10)) == Texts{"1e-5", "1e-4", "0.001", "0.01", "0.1", "1", "10"});
  CHECK(texts(log_ticks(1e-8, 1, 3)) == Texts{"1e-8", "1e-5", "0.01"});
  CHECK(texts(log_ticks(2, 4, 2)) == Texts{"2", "3", "4"});
}

TEST_CASE("picture: a heat map's cells have the scale's colours") {
  const TemporaryFolder folder;
  heat_map(tensor({{0, 1, 2}, {3, none, 4}}), folder / "map.png", {.cell = 20, .numbers = false});
  const Image image(folder / "map.png");
  const double places[] = {0, 0.25, 0.5, 0.75};
  const Area first = Area::of(image, viridis(0));
  for (std::size_t k = 0; k < 4; ++k) {
    const std::size_t x = first.left + k % 3 * 20, y = first.top + k / 3 * 20;
    CHECK(image.at(x, y) == viridis(places[k]));
    CHECK(image.at(x + 19, y + 19) == viridis(places[k]));
  }
  const Area not_finite = Area::of(image, grey);
  CHECK(not_finite.count == 400);
  CHECK((not_finite.left == first.left + 20 && not_finite.top == first.top + 20));
  CHECK(image.at(first.left + 59, first.top + 39) == viridis(1));
  CHECK(viridis(-1) == viridis(0));
  CHECK(viridis(2) == Color{253, 231, 37});

  heat_map(tensor({{0.5}}), folder / "written.png", {.cell = 80});
  CHECK(Area::of(Image(folder / "written.png"), white).count > 0);
  heat_map(full({3, 5}, none), folder / "nothing.png");
  CHECK(Area::of(Image(folder / "nothing.png"), grey).count > 0);
  heat_map(zeros({1, 2}, DType::float64).requires_grad_(), folder / "same.png");
  CHECK(Area::of(Image(folder / "same.png"), viridis(0.5)).count > 0);
  CHECK(folder.count() == 4);
}

TEST_CASE("picture: a heat map as text") {
  CHECK(heat_map_text(tensor({{1, 0}, {0.25, 0.75}})) ==
        "    0 1\n"
        "0 |@@  |\n"
        "1 |::##|\n"
        "from \" \" for 0 to \"@\" for 1\n");
  CHECK(heat_map_text(tensor({{1, none, 3}}),
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
  const TemporaryFolder folder;
  const std::string path = folder / "map.png";
  CHECK_THROWS_WITH(heat_map(zeros({3}), path),
                    "heat_map: values have shape (3,); they must be (rows, columns), not empty");
  CHECK_THROWS_AS(heat_map_text(zeros({0, 3})), ShapeError);
  CHECK_THROWS_WITH(heat_map(zeros({2, 2}), path, {.rows = {"a"}}),
                    "heat_map: 1 labels for 2 rows");
  CHECK_THROWS_AS(heat_map(zeros({2, 2}), path, {.columns = {"a", "b", "c"}}), ValueError);
  CHECK_THROWS_WITH(heat_map_text(zeros({2, 2}), {.low = 1, .high = 0}),
                    "heat_map: the scale goes from 1 to 0");
  CHECK_THROWS_AS(heat_map(zeros({2, 2}), path, {.high = inf}), ValueError);
  CHECK_THROWS_WITH(heat_map(zeros({40, 400}), path, {.cell = 100}),
                    "heat_map: 40 by 400 cells of 100 pixels are too many");
  CHECK_THROWS_WITH(heat_map(zeros({2, 2}), folder / "no/map.png"),
                    ContainsSubstring("no/map.png: cannot be written"));
  CHECK(folder.count() == 0);
}

TEST_CASE("picture: a line chart") {
  const TemporaryFolder folder;
  const std::string path = folder / "chart.png";
  const Color blue{0, 114, 178}, orange{213, 94, 0};
  const Series falling{"falling", {0, 1, 2}, {2, 1, 0}}, rising{"rising", {0, 2}, {0, 2}};
  line_chart({falling, rising}, path, {.title = "Two", .x_label = "x", .y_label = "y"});
  const Image image(path);
  CHECK((image.width == 960 && image.height == 600));
  CHECK(Area::of(image, blue).count > 500);
  CHECK(Area::of(image, orange).count > 500);
  // The rising line begins below and ends above; the falling one the other way round.
  const auto leftmost = [&](Color color) {
    std::size_t y = 0, x = image.width;
    for (std::size_t j = 0; j < image.height; ++j)
      for (std::size_t i = 0; i < x; ++i)
        if (image.at(i, j) == color)
          x = i, y = j;
    return y;
  };
  CHECK(leftmost(orange) > 400);
  CHECK(leftmost(blue) < 200);

  line_chart({{"one", {3}, {1}}}, path, {.log_y = true, .width = 300, .height = 300});
  CHECK(Area::of(Image(path), blue).count > 0);
  line_chart({{"", {0, 1}, {0, 100}}}, path, {.y_low = 0, .y_high = 1});
  const Area cut = Area::of(Image(path), blue);  // the line leaves the plot at once
  CHECK(cut.right < 480);
}

TEST_CASE("picture: a line chart that cannot be drawn") {
  const TemporaryFolder folder;
  const std::string path = folder / "chart.png";
  CHECK_THROWS_WITH(line_chart({}, path), "line_chart: there is no finite point");
  CHECK_THROWS_AS(line_chart({{"a", {1, none}, {none, 1}}}, path), ValueError);
  CHECK_THROWS_WITH(line_chart({{"a", {1, 2}, {1}}}, path), "line_chart: 'a' has 2 xs and 1 ys");
  CHECK_THROWS_WITH(line_chart({{"a", {1, 2}, {1, 0}}}, path, {.log_y = true}),
                    "line_chart: 'a' at x = 2 is 0, which has no logarithm");
  CHECK_THROWS_AS(line_chart({{"a", {1, 2}, {1, 0}}}, path, {.y_low = 3}), ValueError);
  CHECK_THROWS_WITH(line_chart({{"a", {1, 2}, {1, 0}}}, path, {.width = 100, .height = 50}),
                    "line_chart: 100 by 50 pixels leave no room for the lines");
  CHECK(folder.count() == 0);
}
