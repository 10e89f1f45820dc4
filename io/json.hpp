#pragma once
// JSON as a tree; a Profile as JSON for Perfetto.  nlohmann-json reads and writes it, in json.cpp
// alone: including it costs a file several seconds.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include "../autograd/error.hpp"
#include "../autograd/trace.hpp"

namespace xgrad::io {

struct Json;
using JsonArray = std::vector<Json>;
using JsonObject = std::vector<std::pair<std::string, Json>>;

/// A string, an array or an object of a Json, on the heap unless it is empty: a file of a million
/// zeros takes 16 bytes for each.
template <class T>
class Boxed {
 public:
  template <std::convertible_to<T> U>
    requires(!std::same_as<std::remove_cvref_t<U>, Boxed>)
  Boxed(U&& value) : Boxed(T(std::forward<U>(value)), 0) {}
  Boxed(const Boxed& other) : Boxed(T(*other), 0) {}
  Boxed& operator=(const Boxed& other) { return *this = Boxed(other); }
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  const T& operator*() const {
    static const T empty;
    return value_ == nullptr ? empty : *value_;
  }
  T& made() {
    if (value_ == nullptr)
      value_ = std::make_unique<T>();
    return *value_;
  }
  friend bool operator==(const Boxed& a, const Boxed& b) { return *a == *b; }

 private:
  Boxed(T&& value, int) : value_(value.empty() ? nullptr : std::make_unique<T>(std::move(value))) {}

  std::unique_ptr<T> value_;
};

struct Json : std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double,
                           Boxed<std::string>, Boxed<JsonArray>, Boxed<JsonObject>> {
  using variant::variant;
  Json();
  // A 32-bit size_t is none of the alternatives.
  template <std::unsigned_integral N>
    requires(sizeof(N) == 4)
  Json(N number) : variant(std::uint64_t{number}) {}
  // If memory for a copy runs out, GCC 12's variant destroys an object that was never constructed.
  Json(const Json& other);
  Json& operator=(const Json& other) { return *this = Json(other); }
  Json(Json&&) noexcept;  // in json.cpp, because they cost compile time
  Json& operator=(Json&&) noexcept;
  ~Json();

  /// This as a T; null if it has another type.
  template <class T>
  const T* as() const {
    if constexpr (std::is_class_v<T>) {
      const auto* const boxed = std::get_if<Boxed<T>>(this);
      return boxed == nullptr ? nullptr : &**boxed;
    } else {
      return std::get_if<T>(this);
    }
  }
  /// The value of a key; null if the key is missing, or this is not an object.
  const Json* find(std::string_view key) const;
  /// The value of a key as a T; null if the key is missing or has another type.
  template <class T>
  const T* find(std::string_view key) const {
    const Json* const value = find(key);
    return value == nullptr ? nullptr : value->as<T>();
  }
  /// This as a double, if it is a number of any kind.
  std::optional<double> number() const;
  std::optional<double> number(std::string_view key) const;
};

/// A text that is not JSON; the byte of the error.
struct NotJson : ValueError {
  NotJson(const std::string& message, std::uint64_t at) : ValueError(message), byte(at) {}
  std::uint64_t byte;
};

/// Parses a text of at most `deepest` levels; three are enough for our formats.  Throws NotJson,
/// "is not JSON (byte 7)", counted from `first_byte`, and ValueError for more levels, or a key that
/// occurs twice in one object.
Json parse_json(std::string_view text, std::uint64_t first_byte = 0, std::size_t deepest = 3);

enum class InvalidUtf8 { refused, replaced };
/// Prints in one line, or with an indent.  Throws ValueError for a string that is not UTF-8, unless
/// it is to be replaced by U+FFFD.
std::string format_json(const Json& json, InvalidUtf8 invalid = InvalidUtf8::refused,
                        int indent = -1);

// A profile for a trace viewer: chrome://tracing, Perfetto.

/// Writes the events in Chrome's trace event format, in microseconds.  FileError if the file cannot
/// be written.
void write_chrome_trace(const std::string& path, std::span<const Profile::Event> events);

}  // namespace xgrad::io
