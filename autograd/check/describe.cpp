#include "describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include "../ops.hpp"
#include "same_draws.hpp"

namespace xgrad {

ValueSummary summarize(const Tensor& x) {
  if (!x.defined())
    return {};
  ValueSummary s{true, x.shape(), x.dtype()};
  for (const double v : detail::elements(x)) {
    if (std::isnan(v))
      ++s.nan;
    else if (std::isinf(v))
      ++(v > 0 ? s.inf : s.minus_inf);
    else {
      s.min = s.finite == 0 ? v : std::min(s.min, v);
      s.max = s.finite == 0 ? v : std::max(s.max, v);
      ++s.finite;
    }
  }
  return s;
}

std::string to_string(const ValueSummary& s) {
  if (!s.defined)
    return "undefined";
  std::string text = fmt::format("{} {}", to_string(s.shape), to_string(s.dtype));
  if (s.finite > 0)
    text += s.min == s.max ? fmt::format(", {:.6g}", s.min)
                           : fmt::format(", {:.6g} ... {:.6g}", s.min, s.max);
  const auto add = [&text](std::size_t n, const char* what) {
    if (n > 0)
      text += fmt::format(", {} {}", n, what);
  };
  add(s.nan, "NaN");
  add(s.inf, "inf");
  add(s.minus_inf, "-inf");
  return text;
}

namespace detail {

std::vector<double> elements(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    return std::vector<double>(x.data<T>(), x.data<T>() + x.numel());
  });
}

std::string place(std::size_t flat, const Shape& shape) {
  return fmt::format("({})", fmt::join(position(shape, flat), ", "));
}

double scale_of(std::span<const double> a) {
  double largest = 0;
  for (const double v : a)
    if (std::isfinite(v))
      largest = std::max(largest, std::abs(v));
  return largest;
}

Mask infinite(const Tensor& x) { return abs(x.detach()) == INFINITY; }

Tensor made_finite(const Tensor& x) {
  return x.defined() ? where(infinite(x), 0.5, x.detach()) : x;
}

bool close(std::span<const double> a, std::span<const double> b, double tolerance) {
  return std::ranges::equal(a, b, [tolerance](double x, double y) {
    return x == y || std::abs(x - y) <= tolerance || (std::isnan(x) && std::isnan(y));
  });
}

std::string number_name(double c) {
  const double size = std::abs(c);
  const char* const sign = c < 0 ? "-" : "";
  const auto is = [&](double x) { return std::abs(size - x) <= 1e-5 * x; };
  constexpr int most = 64;
  for (int q = 1; q <= most; ++q)
    for (int p = 1; p <= most; ++p) {
      if (std::gcd(p, q) != 1 || (p > 8 && q > 8) || !is(static_cast<double>(p) / q))
        continue;
      if (q == 1)
        return p < 4 ? fmt::format("{}{}", sign, p)
                     : fmt::format("{0}{1} = {0}√{2}", sign, p, p * p);
      return p == 1 ? fmt::format("{0}1/{1} = {0}1/√{2}", sign, q, q * q)
                    : fmt::format("{}{}/{}", sign, p, q);
    }
  for (int q = 1; q <= 16 * most; ++q)
    for (int p = 1; p <= 16 * most; ++p) {
      if (std::gcd(p, q) != 1 || (p > 3 && q > 3) || !is(std::sqrt(static_cast<double>(p) / q)))
        continue;
      if (q == 1)
        return fmt::format("{}√{}", sign, p);
      return p == 1 ? fmt::format("{}1/√{}", sign, q) : fmt::format("{}√({}/{})", sign, p, q);
    }
  struct Named {
    double value;
    const char* name;
  };
  constexpr double pi = std::numbers::pi;
  for (const Named& n : {Named{pi, "π"}, Named{1 / pi, "1/π"}, Named{2 * pi, "2π"},
                         Named{std::sqrt(2 / pi), "√(2/π)"}, Named{std::sqrt(pi), "√π"},
                         Named{2 / std::sqrt(pi), "2/√π"}, Named{1 / std::sqrt(2 * pi), "1/√(2π)"},
                         Named{std::numbers::ln2, "ln 2"}, Named{1 / std::numbers::ln2, "1/ln 2"},
                         Named{std::numbers::ln10, "ln 10"}})
    if (is(n.value))
      return fmt::format("{}{}", sign, n.name);
  // a count or 1 / count suggests a mean in place of a sum
  for (const double count : {std::round(size), std::round(1 / size)})
    if (count > most && count < 1e7 && is(count))
      return fmt::format("{}{}", sign, count);
    else if (count > most && count < 1e7 && is(1 / count))
      return fmt::format("{}1/{}", sign, count);
  return {};
}

std::string factor(double ratio) {
  const std::string name = number_name(ratio), digits = fmt::format("{:.6g}", ratio);
  return name.empty() || name == digits ? digits : fmt::format("{} ({})", digits, name);
}

std::vector<double> permuted(std::span<const double> a, const Shape& shape,
                             const std::vector<std::size_t>& order) {
  const auto strides = row_major_strides(shape);
  Shape sizes;
  for (const std::size_t d : order)
    sizes.push_back(shape[d]);
  std::vector<double> result(a.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto index = position(sizes, i);
    std::size_t from = 0;
    for (std::size_t d = 0; d < order.size(); ++d)
      from += index[d] * strides[order[d]];
    result[i] = a[from];
  }
  return result;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype())
    return false;
  return dispatch(a.dtype(), [&]<class T>() {
    return a.numel() == 0 || std::memcmp(a.data<T>(), b.data<T>(), a.numel() * sizeof(T)) == 0;
  });
}

std::optional<std::size_t> first_difference(const Tensor& a, const Tensor& b) {
  const auto x = elements(a), y = elements(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i])))
      return i;
  return {};
}

Snapshot::Snapshot(const std::vector<Tensor>& inputs, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined())
      kept_.push_back({i < names.size() ? names[i] : fmt::format("input {}", i), inputs[i],
                       inputs[i].detach().clone()});
}

std::string Snapshot::changes(const std::string& who) const {
  std::string found;
  for (const auto& [name, x, before] : kept_) {
    if (same_bits(x, before))
      continue;
    const std::size_t i = first_difference(x, before).value_or(0);
    if (found.empty())
      found = fmt::format(
          "{} changes {} at {}, which was {:.9g} and is {:.9g}: compute new Tensors instead", who,
          name, place(i, x.shape()), elements(before)[i], elements(x)[i]);
    Tensor(x).set_value(before.identity().value);
  }
  return found;
}

std::string two_results(const std::vector<Tensor>& first, const std::vector<Tensor>& second) {
  const std::string begins = "the function is not deterministic: two calls ";
  if (first.size() != second.size())
    return fmt::format("{}gave {} and {} results", begins, first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].shape() != second[i].shape())
      return fmt::format("{}gave the shapes {} and {}", begins, to_string(first[i].shape()),
                         to_string(second[i].shape()));
    if (const auto at = first_difference(first[i], second[i]))
      return fmt::format(
          "{}on the same inputs gave {:.17g} and {:.17g} {}at {}: it must give the same result "
          "every time (does it keep state, or draw from a generator of its own?)",
          begins, elements(first[i])[*at], elements(second[i])[*at],
          first.size() > 1 ? fmt::format("in output {} ", i) : "", place(*at, first[i].shape()));
  }
  return {};
}

std::optional<double> ratio(std::span<const double> a, std::span<const double> b, double rtol) {
  double product = 0, square = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      product += a[i] * b[i];
      square += b[i] * b[i];
    }
  if (square == 0 || product == 0)
    return std::nullopt;
  const double c = product / square;
  std::vector<double> scaled(b.begin(), b.end());
  for (double& v : scaled)
    v *= c;
  if (std::abs(c - 1) <= rtol || !close(a, scaled, rtol * scale_of(scaled)))
    return std::nullopt;
  return c;
}

// The axis along which a's slices are b's in another order, and that order.
static std::string slices_in_another_order(std::span<const double> a, std::span<const double> b,
                                           const Shape& shape, double tolerance) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::size_t n = shape[axis];
    std::vector<std::size_t> front{axis};
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (d != axis)
        front.push_back(d);
    const std::vector<double> x = permuted(a, shape, front), y = permuted(b, shape, front);
    const std::size_t size = x.size() / n;
    std::vector<std::size_t> order;
    std::vector<bool> used(n);
    for (std::size_t i = 0; i < n && order.size() == i; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (!used[j] && close(std::span(x).subspan(i * size, size),
                              std::span(y).subspan(j * size, size), tolerance)) {
          used[j] = true;
          order.push_back(j);
          break;
        }
    if (order.size() == n)
      return fmt::format(
          "along dimension {} they are numbers {}{}", axis,
          fmt::join(order.begin(), order.begin() + std::min<std::ptrdiff_t>(16, std::ssize(order)),
                    ", "),
          n > 16 ? ", ..." : "");
  }
  return {};
}

std::string relation(std::span<const double> a, std::span<const double> b, const Shape& shape,
                     double rtol) {
  const double tolerance = rtol * scale_of(b);
  if (a.size() != b.size() || a.empty() || close(a, b, tolerance))
    return {};
  if (std::ranges::all_of(a, [](double v) { return v == 0; }))
    return "is zero";
  if (const auto c = ratio(a, b, rtol))
    return std::abs(*c + 1) <= rtol ? "has the other sign"
                                    : fmt::format("is {} times the other", factor(*c));
  std::vector<double> x(a.begin(), a.end()), y(b.begin(), b.end());
  const auto nan_last = [](double v, double w) {
    return !std::isnan(v) && (std::isnan(w) || v < w);
  };
  std::ranges::sort(x, nan_last);
  std::ranges::sort(y, nan_last);
  if (!close(x, y, tolerance))
    return {};
  const std::size_t rank = shape.size();
  if (rank >= 2 && shape[rank - 1] == shape[rank - 2]) {
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::swap(order[rank - 1], order[rank - 2]);
    if (close(a, permuted(b, shape, order), tolerance))
      return "is the other transposed";
  }
  const std::string how = slices_in_another_order(a, b, shape, tolerance);
  return "holds the same numbers in another order" + (how.empty() ? how : ": " + how);
}

}  // namespace detail
}  // namespace xgrad
