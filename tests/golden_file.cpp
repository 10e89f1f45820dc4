#include "golden_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include "catch.hpp"

using namespace xgrad;

namespace golden {

File::File(const std::string& name)
    : content_(io::load_safetensors(std::string(XGRAD_SOURCE_DIR "/tests/golden/") + name +
                                    ".safetensors")) {}

const Tensor& File::tensor(const std::string& name) const {
  INFO("golden value " << name);
  REQUIRE(content_.tensors.count(name) == 1);
  used_.insert(name);
  return content_.tensors.at(name);
}

const Indices& File::indices(const std::string& name) const {
  INFO("golden indices " << name);
  REQUIRE(content_.indices.count(name) == 1);
  used_.insert(name);
  return content_.indices.at(name);
}

std::vector<std::string> File::unused() const {
  std::vector<std::string> names;
  const auto add = [&](const auto& values) {
    for (const auto& [name, value] : values)
      if (used_.count(name) == 0)
        names.push_back(name);
  };
  add(content_.tensors);
  add(content_.indices);
  return names;
}

double distance(const Tensor& ours, const Tensor& expected, Unit unit) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (ours.shape() != expected.shape() || ours.dtype() != expected.dtype())
    return infinity;
  return dispatch(expected.dtype(), [&]<class T>() {
    const T* const a = ours.data<T>();
    const T* const b = expected.data<T>();
    double largest = 0, magnitude = 0;
    for (std::size_t i = 0; i < expected.numel(); ++i) {
      double error = a[i] == b[i] ? 0 : std::abs(double{a[i]} - double{b[i]});
      if (std::isnan(error))
        return infinity;
      const T size = std::abs(b[i]);
      if (unit == Unit::ulp && error > 0)
        error /= double{std::nextafter(size, std::numeric_limits<T>::infinity())} - double{size};
      largest = std::max(largest, error);
      if (std::isfinite(size))
        magnitude = std::max(magnitude, double{size});
    }
    return unit == Unit::relative && largest > 0 ? largest / magnitude : largest;
  });
}

Comparison compare(std::string kind, const std::string& name, const Tensor& ours,
                   const Tensor& expected, Unit unit) {
  const bool is_double = expected.dtype() == DType::float64;
  double limit = 0;
  if (unit == Unit::relative)
    limit = is_double ? 1e-12 : 1e-5;
  else if (unit == Unit::ulp)
    limit = 2;
  else if (unit == Unit::absolute)
    limit = 1e-6;
  return {std::move(kind), name, unit, is_double, distance(ours, expected, unit), limit};
}

Comparison compare(std::string kind, const std::string& name, const Indices& ours,
                   const Indices& expected) {
  const bool same = ours.shape() == expected.shape() &&
                    std::equal(ours.data(), ours.data() + ours.numel(), expected.data());
  return {std::move(kind),
          name,
          Unit::bits,
          true,
          same ? 0.0 : std::numeric_limits<double>::infinity(),
          0};
}

void check(const std::vector<Comparison>& comparisons) {
  for (const Comparison& c : comparisons) {
    INFO(c.kind << ": " << c.name);
    CHECK(c.error <= c.limit);
  }
}

void print_summary(const std::string& title, const std::vector<Comparison>& comparisons) {
  std::cout << fmt::format("{:<32} {:>6} {:>12} {:>12}\n", title, "cases", "f64", "f32");
  // by kind and unit, in the order in which they come
  std::vector<std::string> order;
  struct Line {
    std::size_t cases = 0;
    double largest[2] = {-1, -1};
  };
  std::map<std::string, Line> lines;
  constexpr const char* units[] = {"exact", "ulp", "absolute", "relative"};
  for (const Comparison& c : comparisons) {
    const std::string label = fmt::format("{}, {}", c.kind, units[static_cast<int>(c.unit)]);
    if (lines.count(label) == 0)
      order.push_back(label);
    Line& line = lines[label];
    ++line.cases;
    double& largest = line.largest[c.is_double ? 0 : 1];
    largest = std::max(largest, c.error);
  }
  const auto number = [](double x) { return x < 0 ? std::string("-") : fmt::format("{:.1e}", x); };
  for (const std::string& label : order) {
    const Line& line = lines[label];
    std::cout << fmt::format("{:<32} {:>6} {:>12} {:>12}\n", label, line.cases,
                             number(line.largest[0]), number(line.largest[1]));
  }
  std::cout << fmt::format("{:<32} {:>6}\n\n", "all", comparisons.size());
}

}  // namespace golden
