#pragma once
// Formats numbers for people, and parses small files; rows of metrics.jsonl.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <xgrad/io/json.hpp>

namespace runs {

/// "1,115,394"; a fraction has four digits.
std::string format_count(double n);
/// The same for other types, with a unit: "1 step", "1,000 steps".
template <class N>
std::string format_count(N n, std::string_view one = "") {
  const std::string number = format_count(static_cast<double>(n));
  return one.empty() ? number : fmt::format("{} {}{}", number, one, n == 1 ? "" : "s");
}
/// Three digits, a prefix and a unit: "58.2 MB", "41.3k tok/s" of " tok/s".
std::string format_si(double x, std::string_view unit);
/// "45s", "1m12s", "2h05m", "3d04h".
std::string format_duration(double seconds);
/// A string as it is, printable; everything else as JSON.
std::string format_value(const xgrad::io::Json& value);

/// A file, up to its first megabyte.  FileError if it cannot be read.
std::string read_small_file(const std::string& path);
/// The JSON object in a text or in a small file such as config.json; null if it is no object, or
/// the file does not exist.  FileError if the file cannot be read.
xgrad::io::Json parse_object(std::string_view text);
xgrad::io::Json read_object(const std::string& path);
/// The string under a key; empty without one.
std::string text_in(const xgrad::io::Json& json, const char* key);

/// A row of metrics.jsonl, which training writes and reports read.
struct MetricsRow {
  double step = 0;                                         ///< from 0
  double loss = 0;                                         ///< before the step's update
  std::optional<double> lr = {}, grad_norm = {}, ms = {};  ///< grad_norm: before clipping
  std::optional<double> val_loss_before = {};              ///< the estimate before the first step
  std::string changes = {};                                ///< of flags: "--min-lr 1 -> 2"
  std::optional<double> val_loss = {};                     ///< the estimate after the update
  std::string val_loss_over = {};  ///< the batches of an estimate, as "20 random batches"
  std::optional<double> final_val_loss = {};  ///< over whole blocks, after the last step
  std::string final_val_loss_over = {};
  std::optional<double> bits_per_byte = {};  ///< of the final loss
};

/// A line of the file: numbers have nine digits, and what is missing has no key.
std::string format_row(const MetricsRow& row);
/// Reads an object, which any program may have written: null is NaN, and another type is missing.
/// None unless step is a number, and loss a number or null.
std::optional<MetricsRow> read_row(const xgrad::io::Json& json);

}  // namespace runs
