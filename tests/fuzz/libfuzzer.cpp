// Runs a target under libFuzzer.

#include <cstddef>
#include <cstdint>

#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // An array of exactly these bytes, so that AddressSanitizer detects reads beyond.
  fuzz::XGRAD_FUZZ_TARGET.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
