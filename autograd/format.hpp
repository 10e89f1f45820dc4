#pragma once
// fmt::format("{}", x) and fmt::print: the text of to_string(x), with a string's width and
// alignment.  (fmt/core.h alone declares how a string is formatted and does not define it.)

#if __has_include(<fmt/format.h>)
#include <fmt/format.h>

#include <concepts>
#include <string>
#include "ops.hpp"

template <class T>
  requires(std::same_as<T, xgrad::Tensor> || std::same_as<T, xgrad::Indices> ||
           std::same_as<T, xgrad::Mask>)
struct fmt::formatter<T> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const T& x, Context& context) const {
    return fmt::formatter<std::string>::format(to_string(x), context);
  }
};
#endif
