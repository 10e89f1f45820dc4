#pragma once
// Messages of errors.

#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>

#include "helpers/catch.hpp"

inline const std::string nothing_thrown = "(nothing was thrown)";

/// The message of the error of this kind that a call throws, or nothing_thrown.
template <class E = xgrad::Error, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return nothing_thrown;
}

inline void check_contains(const std::string& text, const std::vector<std::string>& fragments) {
  for (const std::string& fragment : fragments)
    CHECK_THAT(text, ContainsSubstring(fragment));
}
