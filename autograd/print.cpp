// Printing in PyTorch's format.

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include "engine.hpp"
#include "fail.hpp"
#include "ops.hpp"

namespace xgrad {

PrintOptions& print_options() {
  static PrintOptions options;
  return options;
}

namespace {

// ---- one number ----

// The common format of one Tensor's numbers, which aligns them.
struct Style {
  std::size_t width = 1;
  bool whole = true;  // all are integers: "1." instead of "1.0000"
  bool scientific = false;

  std::string unpadded(double v) const {
    const int precision = print_options().precision;
    if (!std::isfinite(v))
      return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
    if (scientific)
      return fmt::format("{:.{}e}", v, precision);
    return whole ? fmt::format("{:.0f}.", v) : fmt::format("{:.{}f}", v, precision);
  }

  // Zeros, infinities and NaN do not count.
  explicit Style(std::vector<double> shown) {
    std::erase_if(shown, [](double v) { return v == 0 || !std::isfinite(v); });
    if (shown.empty())
      return;
    const auto [smallest, largest] =
        std::ranges::minmax(shown, {}, [](double v) { return std::abs(v); });
    const double min = std::abs(smallest), max = std::abs(largest);
    whole = std::ranges::all_of(shown, [](double v) { return v == std::ceil(v); });
    scientific = max / min > 1000 || max > 1e8 || (!whole && min < 1e-4);
    for (const double v : shown)
      width = std::max(width, unpadded(v).size());
    scientific = print_options().sci_mode.value_or(scientific);
  }
};

// ---- many ----

// Lays out the elements of a shape; `text` prints the element at a row-major position.
class PrintLayout {
 public:
  PrintLayout(const Shape& shape, std::function<std::string(std::size_t)> text, std::size_t width)
      : shape_(shape),
        text_(std::move(text)),
        width_(width),
        summarise_(std::cmp_greater(numel(shape), print_options().threshold)) {}

  // Prints dimensions d and after, from this position on.
  std::string text(std::size_t position, std::size_t d, std::size_t indent) const {
    if (d == shape_.size())
      return fmt::format("{:>{}}", text_(position), width_);
    const bool row = d + 1 == shape_.size();
    std::size_t stride = 1;
    for (std::size_t k = d + 1; k < shape_.size(); ++k)
      stride *= shape_[k];
    std::vector<std::string> parts;
    const auto [head, tail] = ends(shape_[d]);
    for (std::size_t i = 0; i < head; ++i)
      parts.push_back(text(position + i * stride, d + 1, indent + 1));
    if (std::cmp_less(head, shape_[d])) {
      parts.push_back(row ? " ..." : "...");
      for (Size i = shape_[d] - static_cast<Size>(tail); i < shape_[d]; ++i)
        parts.push_back(text(position + i * stride, d + 1, indent + 1));
    }
    const std::size_t per_line = row ? elements_per_line(indent) : 1;
    const std::string between =
        fmt::format(",{:\n>{}}{: >{}}", "", row ? 1 : shape_.size() - d - 1, "", indent + 1);
    std::string all = "[";
    for (std::size_t i = 0; i < parts.size(); ++i)
      all += (i == 0 ? "" : i % per_line == 0 ? between : ", ") + parts[i];
    return all + "]";
  }

  // The positions of the printed elements.
  static std::vector<std::size_t> shown(const Shape& shape) {
    std::vector<std::size_t> positions;
    const auto note = [&](std::size_t i) { return positions.push_back(i), std::string(); };
    if (numel(shape) > 0)
      PrintLayout(shape, note, 1).text(0, 0, 0);
    return positions;
  }

 private:
  // The numbers of elements before and after the dots; (n, 0) if all n are printed.
  std::pair<std::size_t, std::size_t> ends(std::size_t n) const {
    const std::size_t edge = print_options().edgeitems;
    return summarise_ && edge < (n + 1) / 2 ? std::pair(edge, edge) : std::pair(n, std::size_t{0});
  }

  std::size_t elements_per_line(std::size_t indent) const {
    const std::size_t line = print_options().linewidth;
    return line > indent ? std::max<std::size_t>(1, (line - indent) / (width_ + 2)) : 1;
  }

  const Shape& shape_;
  std::function<std::string(std::size_t)> text_;
  std::size_t width_;
  bool summarise_;
};

constexpr std::string_view prefix = "tensor(";

// Appends the suffixes, on the same line while there is room.
std::string with_suffixes(std::string text, const std::vector<std::string>& suffixes) {
  const std::size_t newline = text.rfind('\n');
  // PyTorch counts a single line as one character longer than it is.
  std::size_t used = newline == std::string::npos ? text.size() + 2 : text.size() - newline + 1;
  for (const std::string& suffix : suffixes) {
    const bool fits = used + suffix.size() + 2 <= print_options().linewidth;
    text += fmt::format("{: <{}}{}", fits ? "," : ",\n", fits ? 2 : prefix.size() + 2, suffix);
    used = fits ? used + suffix.size() + 2 : prefix.size() + suffix.size();
  }
  return text + ")";
}

std::string print(const Shape& shape, const std::function<std::string(std::size_t)>& text,
                  std::size_t width, std::vector<std::string> suffixes) {
  if (numel(shape) > 0)
    return with_suffixes(
        std::string(prefix) + PrintLayout(shape, text, width).text(0, 0, prefix.size()), suffixes);
  if (shape.size() != 1)
    suffixes.insert(suffixes.begin(), "size=" + to_string(shape));
  return with_suffixes(std::string(prefix) + "[]", suffixes);
}

// The elements of Indices and Masks are padded to the widest.
template <class T>
std::string print_discrete(const DiscreteTensor<T>& x, const char* dtype,
                           const std::function<std::string(std::size_t)>& text) {
  std::size_t width = 1;
  std::vector<std::string> suffixes;
  if (x.numel() == 0)
    suffixes.push_back(dtype);
  for (const std::size_t i : PrintLayout::shown(x.shape()))
    width = std::max(width, text(i).size());
  return print(x.shape(), text, width, suffixes);
}

// "masked_fill" -> "MaskedFillBackward0".
std::string node_name(const std::string& op) {
  std::string name;
  bool upper = true;
  for (const char c : op) {
    if (c != '_')
      name += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = c == '_';
  }
  return name + "Backward0";
}

}  // namespace

std::string to_string(const Tensor& x) {
  std::vector<std::string> suffixes;
  if (x.dtype() == DType::float64)
    suffixes.push_back("dtype=torch.float64");
  if (!x.is_leaf())
    suffixes.push_back(fmt::format("grad_fn=<{}>", node_name(x.identity().node->op)));
  else if (x.requires_grad())
    suffixes.push_back("requires_grad=True");
  return dispatch(x.dtype(), [&]<class T>() {
    const T* const data = x.data<T>();
    std::vector<double> shown;
    for (const std::size_t i : PrintLayout::shown(x.shape()))
      shown.push_back(data[i]);
    const Style style(std::move(shown));
    return print(
        x.shape(), [&](std::size_t i) { return style.unpadded(data[i]); }, style.width, suffixes);
  });
}

std::string to_string(const Indices& x) {
  return print_discrete(x, "dtype=torch.int64",
                        [&](std::size_t i) { return std::to_string(x.data()[i]); });
}

std::string to_string(const Mask& x) {
  return print_discrete(x, "dtype=torch.bool",
                        [&](std::size_t i) { return x.data()[i] ? "True" : "False"; });
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }
std::ostream& operator<<(std::ostream& out, const Indices& x) { return out << to_string(x); }
std::ostream& operator<<(std::ostream& out, const Mask& x) { return out << to_string(x); }

}  // namespace xgrad
