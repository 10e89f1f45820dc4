#pragma once
// A checksum that notices a changed bit.

#include <cstddef>
#include <string>

struct XXH3_state_s;

namespace xgrad::io {

/// XXH3 with 64 bits (xxHash), of bytes that come in any number of parts.  It guards against
/// accidents, not against someone who means to deceive.
class Checksum {
 public:
  Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  ~Checksum();

  void add(const void* data, std::size_t bytes);
  /// Of all that was added, as 16 hexadecimal digits.
  std::string digits() const;

 private:
  XXH3_state_s* state_;
};

}  // namespace xgrad::io
