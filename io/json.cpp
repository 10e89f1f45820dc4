#include "json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include "../autograd/fail.hpp"
#include "file.hpp"

// nlohmann-json parses and prints; arrays and objects are ours, because its own allocate memory
// when they are destroyed, and end the program if there is none.

namespace xgrad::io {

namespace {

using Library = nlohmann::json;

/// Builds a Json from the parser's events.
class Builder : public nlohmann::json_sax<Library> {
 public:
  Builder(std::uint64_t first_byte, std::size_t deepest)
      : first_byte_(first_byte), deepest_(deepest) {}

  Json result;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in texts
  bool start_object(std::size_t) override { return open(JsonObject()); }
  bool start_array(std::size_t) override { return open(JsonArray()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const Library::exception& error) override {
    if (error.id / 100 != 1)  // no parse_error
      fail<ValueError>(
          "is not JSON that can be read: a number is above the largest float64, 1.8e308");
    const std::uint64_t byte = first_byte_ + (position > 0 ? position - 1 : 0);
    throw NotJson(fmt::format("is not JSON (byte {})", byte), byte);
  }

 private:
  struct Open {
    Json value;
    std::string key = {};  // of the next entry
  };

  bool add(Json value) {
    if (open_.empty())
      result = std::move(value);
    else if (auto* const array = std::get_if<Boxed<JsonArray>>(&open_.back().value))
      with_room(array->made()).push_back(std::move(value));
    else
      with_room(std::get<Boxed<JsonObject>>(open_.back().value).made())
          .emplace_back(std::move(open_.back().key), std::move(value));
    return true;
  }
  // Grows in small steps: doubling would take many times the bytes of a file.
  template <class List>
  static List& with_room(List& list) {
    if (list.size() == list.capacity())
      list.reserve(list.size() + list.size() / 8 + 1);
    return list;
  }
  bool open(Json container) {
    check<ValueError>(open_.size() < deepest_, "is nested more than {} deep", deepest_);
    open_.push_back({std::move(container)});
    return true;
  }
  bool close() {
    Json value = std::move(open_.back().value);
    if (const auto* const object = value.as<JsonObject>()) {
      std::vector<std::string_view> keys;
      keys.reserve(object->size());
      for (const auto& [key, entry] : *object)
        keys.push_back(key);
      std::ranges::sort(keys);
      if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end())
        fail<ValueError>("has the key '{}' twice in one object", printable_name(*twice));
    }
    open_.pop_back();
    return add(std::move(value));
  }

  std::uint64_t first_byte_;
  std::size_t deepest_;
  std::vector<Open> open_;
};

struct Writer {
  Library::error_handler_t invalid;
  int indent;  // of a level; -1: all in one line
  std::string text = {};

  void scalar(const Library& value) { text += value.dump(-1, ' ', false, invalid); }
  void line(std::size_t depth) {
    if (indent >= 0)
      text += '\n' + std::string(depth * static_cast<std::size_t>(indent), ' ');
  }
  void write(const Json& json, std::size_t depth) {
    const auto list = [&](const auto& entries, const char* brackets, const auto& entry) {
      text += brackets[0];
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i > 0)
          text += ',';
        line(depth + 1);
        entry(entries[i]);
      }
      if (!entries.empty())
        line(depth);
      text += brackets[1];
    };
    if (const auto* const array = json.as<JsonArray>())
      list(*array, "[]", [&](const Json& value) { write(value, depth + 1); });
    else if (const auto* const object = json.as<JsonObject>())
      list(*object, "{}", [&](const auto& entry) {
        scalar(entry.first);
        text += indent >= 0 ? ": " : ":";
        write(entry.second, depth + 1);
      });
    else
      std::visit(
          [&](const auto& value) {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, Boxed<std::string>>)
              scalar(*value);
            else if constexpr (!std::is_class_v<T>)
              scalar(value);
          },
          json);
  }
};

}  // namespace

// NOLINTNEXTLINE(bugprone-copy-constructor-init): see the header
Json::Json() = default;
Json::Json(const Json& other) : variant() {
  std::visit(
      [this](const auto& value) {
        auto copy = value;
        *this = std::move(copy);
      },
      static_cast<const variant&>(other));
}

Json::Json(Json&&) noexcept = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

const Json* Json::find(std::string_view key) const {
  const auto* const object = as<JsonObject>();
  if (object == nullptr)
    return nullptr;
  const auto found = std::ranges::find(*object, key, &JsonObject::value_type::first);
  return found == object->end() ? nullptr : &found->second;
}

std::optional<double> Json::number() const {
  return std::visit(
      [](const auto& value) -> std::optional<double> {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
          return static_cast<double>(value);
        else
          return std::nullopt;
      },
      *this);
}

std::optional<double> Json::number(std::string_view key) const {
  const Json* const value = find(key);
  return value == nullptr ? std::nullopt : value->number();
}

Json parse_json(std::string_view text, std::uint64_t first_byte, std::size_t deepest) {
  // The parser takes a zero byte for the end of its input and would ignore the rest.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail<ValueError>("holds a zero byte (byte {})", first_byte + zero);
  Builder builder(first_byte, deepest);
  Library::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder.result);
}

std::string format_json(const Json& json, InvalidUtf8 invalid, int indent) {
  using Handler = Library::error_handler_t;
  Writer writer{invalid == InvalidUtf8::replaced ? Handler::replace : Handler::strict, indent};
  try {
    writer.write(json, 0);
  } catch (const Library::exception&) {
    fail<ValueError>("json: a text is not UTF-8");
  }
  return std::move(writer.text);
}

void write_chrome_trace(const std::string& path, std::span<const Profile::Event> events) {
  JsonArray list;
  for (const Profile::Event& e : events)
    list.push_back(JsonObject{{"name", e.name},
                              {"ph", "X"},  // a complete event: it has a duration
                              {"ts", e.begin},
                              {"dur", e.end - e.begin},
                              {"pid", std::uint64_t{0}},
                              {"tid", std::uint64_t{e.thread}}});
  write_file(path,
             format_json(JsonObject{{"traceEvents", std::move(list)}}, InvalidUtf8::replaced));
}

}  // namespace xgrad::io
