#include "golden/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>

#include "helpers/catch.hpp"
#include "helpers/paths.hpp"

namespace xgrad::testing {

GoldenFile::GoldenFile(const std::string& name)
    : content_(io::load_safetensors(source_dir + "/tests/golden/" + name + ".safetensors")) {}

const Tensor& GoldenFile::tensor(const std::string& name) const {
  INFO("golden value " << name);
  REQUIRE(content_.tensors.count(name) == 1);
  used_.insert(name);
  return content_.tensors.at(name);
}

const Indices& GoldenFile::indices(const std::string& name) const {
  INFO("golden indices " << name);
  REQUIRE(content_.indices.count(name) == 1);
  used_.insert(name);
  return content_.indices.at(name);
}

std::vector<std::string> GoldenFile::unused() const {
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

double distance(const Tensor& ours, const Tensor& expected, ErrorUnit unit) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (ours.shape() != expected.shape() || ours.dtype() != expected.dtype())
    return infinity;
  return dispatch(expected.dtype(), [&]<class T>() {
    const T* const a = ours.data<T>();
    const T* const b = expected.data<T>();
    double largest = 0, magnitude = 0;
    for (Size i = 0; i < expected.numel(); ++i) {
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      double error = same ? 0 : std::abs(double{a[i]} - double{b[i]});
      if (std::isnan(error))
        return infinity;
      const T size = std::abs(b[i]);
      if (unit == ErrorUnit::ulp && error > 0)
        error /= double{std::nextafter(size, std::numeric_limits<T>::infinity())} - double{size};
      largest = std::max(largest, error);
      if (std::isfinite(size))
        magnitude = std::max(magnitude, double{size});
    }
    return unit == ErrorUnit::relative && largest > 0 ? largest / magnitude : largest;
  });
}

// "element 5 of (2, 3): ours 0.5, PyTorch's 0.25", the one that differs most.
static std::string worst_element(const Tensor& ours, const Tensor& expected) {
  if (ours.shape() != expected.shape() || ours.dtype() != expected.dtype())
    return fmt::format("ours is {} {}, PyTorch's {} {}", to_string(ours.dtype()),
                       to_string(ours.shape()), to_string(expected.dtype()),
                       to_string(expected.shape()));
  return dispatch(expected.dtype(), [&]<class T>() {
    const T* const a = ours.data<T>();
    const T* const b = expected.data<T>();
    Size at = 0;
    double largest = -1;
    for (Size i = 0; i < expected.numel(); ++i) {
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      const double error = same ? 0 : std::abs(double{a[i]} - double{b[i]});
      if (std::isnan(error) || error > largest)
        largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error, at = i;
    }
    return fmt::format("element {} of {}: ours {:.9g}, PyTorch's {:.9g}", at,
                       to_string(expected.shape()), a[at], b[at]);
  });
}

GoldenComparison compare_golden(const std::string& name, const Tensor& ours, const Tensor& expected,
                                ErrorUnit unit) {
  const bool is_double = expected.dtype() == DType::float64;
  double limit = 0;
  if (unit == ErrorUnit::relative)
    limit = is_double ? 1e-12 : 1e-5;
  else if (unit == ErrorUnit::ulp)
    limit = 2;
  else if (unit == ErrorUnit::absolute)
    limit = 1e-6;
  GoldenComparison result{name, unit, is_double, distance(ours, expected, unit), limit};
  if (!(result.error <= limit))
    result.worst = worst_element(ours, expected);
  return result;
}

GoldenComparison compare_golden(const std::string& name, const Indices& ours,
                                const Indices& expected) {
  const bool same = ours.shape() == expected.shape() &&
                    std::equal(ours.data(), ours.data() + ours.numel(), expected.data());
  return {name, ErrorUnit::bits, true, same ? 0.0 : std::numeric_limits<double>::infinity(), 0};
}

void check_golden(const std::vector<GoldenComparison>& comparisons) {
  for (const GoldenComparison& c : comparisons) {
    INFO(fmt::format("{}: error {:.3g}, limit {:.3g}; {}", c.name, c.error, c.limit, c.worst));
    CHECK(c.error <= c.limit);
  }
}

void print_golden_summary(const std::string& title,
                          const std::vector<GoldenComparison>& comparisons) {
  const auto head = [](const std::string& name, int slashes) {
    std::size_t end = 0;
    while (slashes-- > 0 && end != std::string::npos)
      end = name.find('/', end + 1);
    return name.substr(0, end);
  };
  struct Line {
    std::set<std::string> cases;
    std::size_t values = 0;
    double largest[2] = {-1, -1};  // of doubles, of floats
    std::string where;
  };
  constexpr const char* units[] = {", to the bit", ", ulp", ", absolute", ""};
  std::vector<std::string> order;  // of lines, in the order of the comparisons
  std::map<std::string, Line> lines;
  std::set<std::string> cases;
  for (const GoldenComparison& c : comparisons) {
    const std::string label = head(c.name, 1) + units[static_cast<int>(c.unit)];
    if (lines.count(label) == 0)
      order.push_back(label);
    Line& line = lines[label];
    line.cases.insert(head(c.name, 2));
    cases.insert(head(c.name, 2));
    ++line.values;
    double& largest = line.largest[c.is_double ? 0 : 1];
    if (c.error > largest && !c.is_double && c.error > 0)
      line.where = c.name;
    largest = std::max(largest, c.error);
  }
  const auto number = [](double x) { return x < 0 ? std::string("-") : fmt::format("{:.1e}", x); };
  std::cout << fmt::format("{:<32} {:>5} {:>6} {:>8} {:>8}  of float32\n", title, "cases", "values",
                           "float64", "float32");
  for (const std::string& label : order) {
    const Line& line = lines[label];
    std::cout << fmt::format("{:<32} {:>5} {:>6} {:>8} {:>8}{}\n", label, line.cases.size(),
                             line.values, number(line.largest[0]), number(line.largest[1]),
                             line.where.empty() ? "" : "  " + line.where);
  }
  std::cout << fmt::format("{:<32} {:>5} {:>6}\n\n", "all", cases.size(), comparisons.size());
}

}  // namespace xgrad::testing
