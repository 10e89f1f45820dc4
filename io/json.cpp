#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/json.hpp>

namespace xgrad::io {
namespace {

using Parsed = nlohmann::json;
using Written = nlohmann::ordered_json;

constexpr int deepest = 3;

Json from(const Parsed& parsed) {
  switch (parsed.type()) {
    case Parsed::value_t::boolean:
      return parsed.get<bool>();
    case Parsed::value_t::number_unsigned:
      return parsed.get<std::uint64_t>();
    case Parsed::value_t::number_integer:
      return parsed.get<std::int64_t>();
    case Parsed::value_t::number_float:
      return parsed.get<double>();
    case Parsed::value_t::string:
      return parsed.get_ref<const std::string&>();
    case Parsed::value_t::array: {
      JsonArray array;
      for (const Parsed& value : parsed)
        array.push_back(from(value));
      return array;
    }
    case Parsed::value_t::object: {
      JsonObject object;
      for (const auto& [key, value] : parsed.items())
        object.emplace_back(key, from(value));
      return object;
    }
    default:
      return nullptr;
  }
}

Written to(const Json& json) {
  return std::visit(
      [](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, JsonArray>) {
          Written array = Written::array();
          for (const Json& entry : value)
            array.push_back(to(entry));
          return array;
        } else if constexpr (std::is_same_v<T, JsonObject>) {
          Written object = Written::object();
          for (const auto& [key, entry] : value)
            object[key] = to(entry);
          return object;
        } else {
          return Written(value);
        }
      },
      json);
}

}  // namespace

const Json* Json::find(std::string_view key) const {
  const auto* const object = as<JsonObject>();
  if (object == nullptr)
    return nullptr;
  const auto found = std::ranges::find(*object, key, [](const auto& entry) { return entry.first; });
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

Json parse_json(std::string_view text, std::uint64_t first_byte) {
  // The parser takes a zero byte for the end of its input, and would not look at the rest.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail<ValueError>("holds a zero byte (byte {})", first_byte + zero);
  // The parser keeps the last of several equal keys without a word, so they are looked for as they
  // come by.  keys[d] are those of the object that is open at depth d.
  std::array<std::set<std::string>, deepest + 1> keys;
  const auto watch = [&](int depth, Parsed::parse_event_t event, Parsed& parsed) {
    using Event = Parsed::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      check<ValueError>(depth < deepest, "is nested more than {} deep", deepest);
      keys[static_cast<std::size_t>(depth) + 1].clear();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      check<ValueError>(keys[static_cast<std::size_t>(depth)].insert(key).second,
                        "has the key '{}' twice in one object", key);
    }
    return true;
  };
  try {
    return from(Parsed::parse(text.begin(), text.end(), watch));
  } catch (const Parsed::parse_error& error) {
    fail<ValueError>("is not JSON (byte {})", first_byte + (error.byte > 0 ? error.byte - 1 : 0));
  } catch (const Parsed::exception& error) {
    fail<ValueError>("is not JSON that can be read: {}", error.what());
  }
}

std::string format_json(const Json& json, InvalidUtf8 invalid, int indent) {
  using Handler = Written::error_handler_t;
  try {
    return to(json).dump(indent, ' ', false,
                         invalid == InvalidUtf8::replaced ? Handler::replace : Handler::strict);
  } catch (const Written::exception&) {
    fail<ValueError>("json: a text is not UTF-8");
  }
}

}  // namespace xgrad::io
