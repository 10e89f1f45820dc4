#include "metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/json.hpp>

namespace plot_losses {
namespace {

using xgrad::FileError;
using xgrad::io::Json;
using xgrad::io::Series;

/// Many times what is needed.  A file that is no metrics file may be one line of gigabytes.
constexpr std::size_t longest_line = 65536;

void append(Series& series, double step, double loss) {
  series.xs.push_back(step);
  series.ys.push_back(loss);
}

Json parse(std::string_view line) {
  try {
    return xgrad::io::parse_json(line);
  } catch (const xgrad::ValueError&) {
    return {};
  }
}

void for_each_line(const std::string& path, const std::function<void(std::string_view)>& f) {
  const xgrad::io::ReadFile file(path);
  std::string part(1 << 20, ' '), rest;  // what was read last; the line that it ended in
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    part.resize(std::min<std::uint64_t>(part.size(), file.size() - at));
    file.read(part.data(), part.size(), at);
    std::string_view left = part;
    for (std::size_t end = 0; (end = left.find('\n')) != left.npos; left.remove_prefix(end + 1)) {
      rest += left.substr(0, end);
      f(rest);
      rest.clear();
    }
    rest += left.substr(0, longest_line + 1);
    if (rest.size() > longest_line)
      break;
  }
  if (!rest.empty())
    f(rest);
}

}  // namespace

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  std::size_t number = 0;
  for_each_line(path, [&](std::string_view line) {
    ++number;
    const Json row = line.size() > longest_line ? Json() : parse(line);
    const auto step = row.number("step"), loss = row.number("loss");
    if (!step || !loss)
      throw FileError(fmt::format(
          "{}: line {} is not a JSON object with the numbers \"step\" and \"loss\"", path, number));
    append(metrics.loss, *step, *loss);
    if (const auto validation = row.number("val_loss"))
      append(metrics.validation, *step, *validation);
  });
  if (metrics.loss.xs.empty())
    throw FileError(fmt::format("{}: it has no lines", path));
  return metrics;
}

}  // namespace plot_losses
