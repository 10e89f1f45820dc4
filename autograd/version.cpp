#include "version.hpp"

#include <fmt/format.h>

std::string xgrad::version() {
  return fmt::format("{}.{}.{}", XGRAD_VERSION_MAJOR, XGRAD_VERSION_MINOR, XGRAD_VERSION_PATCH);
}
