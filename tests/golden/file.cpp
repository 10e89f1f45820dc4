#include "golden/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "helpers/catch.hpp"
#include "helpers/paths.hpp"

namespace xgrad::testing {

GoldenFile::GoldenFile(const std::vector<std::string>& names) {
  const auto add = [this](const std::string& path) {
    io::TensorFile file = io::load_safetensors(path);
    content_.tensors.merge(file.tensors);
    content_.indices.merge(file.indices);
    if (!file.tensors.empty() || !file.indices.empty())
      throw ValueError(path + " has golden values of another file's names");
  };
  for (const std::string& name : names) {
    const std::string path = source_dir + "/tests/golden/" + name;
    if (!std::filesystem::is_directory(path)) {
      add(path + ".safetensors");
      continue;
    }
    const std::size_t before = content_.tensors.size();
    for (const auto& entry : std::filesystem::directory_iterator(path))
      add(entry.path().string());
    if (content_.tensors.size() == before)
      throw ValueError(path + " has no golden values");
  }
}

const Tensor& GoldenFile::tensor(const std::string& name) const {
  INFO(name << " is in no file: its script in tests/golden writes it");
  REQUIRE(content_.tensors.count(name) == 1);
  used_.insert(name);
  return content_.tensors.at(name);
}

const Indices& GoldenFile::indices(const std::string& name) const {
  INFO(name << " is in no file: its script in tests/golden writes it");
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

void GoldenFile::check(const std::string& name, const Tensor& ours, ErrorUnit unit,
                       std::optional<double> limit) const {
  constexpr double limits[] = {0, 2, 1e-6, 1e-5};
  const Tensor& expected = tensor(name);
  const bool tight = unit == ErrorUnit::relative && expected.dtype() == DType::float64;
  const double error = distance(ours, expected, unit),
               most = limit.value_or(tight ? 1e-12 : limits[static_cast<int>(unit)]);
  if (error <= most)
    SUCCEED();
  else
    FAIL_CHECK(fmt::format("{}: error {:.3g}, limit {:.3g}; {}", name, error, most,
                           worst_element(ours, expected)));
}

void GoldenFile::check(const std::string& name, const Indices& ours) const {
  INFO(name);
  const Indices& expected = indices(name);
  CHECK(ours.shape() == expected.shape());
  CHECK(std::equal(ours.data(), ours.data() + ours.numel(), expected.data(),
                   expected.data() + expected.numel()));
}

}  // namespace xgrad::testing
