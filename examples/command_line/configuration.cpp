// Configuration files: a JSON object whose keys are the flags' names.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/data/text.hpp>

#include "command_line.hpp"
#include "table.hpp"

namespace command_line {
namespace {

using xgrad::io::Json;
using xgrad::io::JsonObject;

/// No configuration is as large.
constexpr std::size_t most_bytes = 1 << 20;

std::string read_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw BadValue(fmt::format("{}: no such file", path));
  // Others, as devices, may never end.
  if (!std::filesystem::is_regular_file(status) && !std::filesystem::is_fifo(status))
    throw BadValue(fmt::format("{}: is neither a file nor a pipe", path));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw BadValue(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most_bytes)
    throw BadValue(
        fmt::format("{}: is larger than {} bytes, as no configuration is", path, most_bytes));
  return text;
}

/// The file, and where in it a byte is; lines and columns count from 1.
std::string place(const Table& table, std::size_t byte) {
  const std::string_view before = std::string_view(table.file_text).substr(0, byte);
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; };
  return fmt::format(
      "{}: line {}, column {}", table.configuration, 1 + std::ranges::count(before, '\n'),
      1 + line.size() - static_cast<std::size_t>(std::ranges::count_if(line, continues)));
}

/// The same of a key: a text before a colon.  The file alone for one that is written with escapes.
std::string place(const Table& table, const std::string& key) {
  const std::string& text = table.file_text;
  for (std::size_t at = 0; (at = text.find('"' + key + '"', at)) != text.npos; ++at) {
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + key.size() + 2);
    if (next != text.npos && text[next] == ':' && (at == 0 || text[at - 1] != '\\'))
      return place(table, at);
  }
  return table.configuration;
}

JsonObject parse(const Table& table) {
  try {
    xgrad::text::decode_utf8(table.file_text, table.configuration);
  } catch (const xgrad::ValueError& error) {
    throw BadValue(error.what());
  }
  try {
    Json json = xgrad::io::parse_json(table.file_text, 0, 16);
    if (auto* const object = std::get_if<JsonObject>(&json))
      return std::move(*object);
  } catch (const xgrad::io::NotJson& error) {
    throw BadValue(fmt::format("{}: is not JSON", place(table, error.byte)));
  } catch (const xgrad::ValueError& error) {
    throw BadValue(fmt::format("{}: {}", table.configuration, error.what()));
  }
  throw BadValue(
      fmt::format("{}: is not a JSON object, as {{\"n_layer\": 4, \"data\": \"book.txt\"}} is",
                  table.configuration));
}

Row* find(Table& table, const std::string& key) {
  const auto row = std::ranges::find_if(table.rows, [&](const Row& candidate) {
    return candidate.write && key_of(long_name(candidate)) == key;
  });
  return row == table.rows.end() ? nullptr : &*row;
}

[[noreturn]] void refuse_key(const Table& table, const std::string& key) {
  std::vector<std::string> keys;
  for (const Row& row : table.rows)
    if (row.write)
      keys.push_back(key_of(long_name(row)));
  throw BadValue(fmt::format("{}: '{}' is no flag of {}{}", place(table, key),
                             xgrad::printable_name(key), table.name,
                             keys.empty() ? "" : suggestion(key_of(key), keys)));
}

void read_value(Row& row, const Table& table, const std::string& name, const Json& value) {
  std::string text;
  bool fits = row.text_of(value, text);
  try {
    if (fits)
      row.read(text);
  } catch (const BadValue&) {
    fits = false;
  }
  if (!fits)
    throw BadValue(fmt::format(
        "{}: '{}': {} is not {}", place(table, name), key_of(name),
        xgrad::printable_name(xgrad::io::format_json(value, xgrad::io::InvalidUtf8::replaced)),
        row.rule));
  row.in_file = true;
  if (row.given)  // the command line has the last word
    row.read(*row.given);
}

}  // namespace

std::string key_of(std::string_view flag) {
  std::string key(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string format_configuration(const Table& table) {
  JsonObject object;
  for (const Row& row : table.rows) {
    if (!row.write)
      continue;
    Json value = row.write();
    const auto* const text = value.as<std::string>();
    if (text != nullptr && text->empty() && !row.given && !row.in_file)
      value = nullptr;  // as if it were given, it could mean something else
    object.emplace_back(key_of(long_name(row)), std::move(value));
    try {
      xgrad::io::format_json(object.back().second);
    } catch (const xgrad::ValueError&) {
      throw BadValue(
          fmt::format("{}: its value is not UTF-8, and JSON holds nothing else", long_name(row)));
    }
  }
  return xgrad::io::format_json(object, xgrad::io::InvalidUtf8::refused, 2) + "\n";
}

void read_configuration(Table& table) {
  std::set<std::string> seen;
  table.file_text = read_file(table.configuration);
  if (table.file_text.starts_with("\xEF\xBB\xBF"))
    table.file_text.erase(0, 3);
  for (const auto& [name, value] : parse(table)) {
    const std::string key = key_of(name);
    if (!seen.insert(key).second)
      throw BadValue(
          fmt::format("{}: has '{}' twice, with '-' and with '_'", place(table, name), key));
    Row* const row = find(table, key);
    if (row == nullptr && std::ranges::count(table.other_keys, key) == 0)
      refuse_key(table, name);
    if (row != nullptr && value.as<std::nullptr_t>() == nullptr)
      read_value(*row, table, name, value);
  }
}

}  // namespace command_line
