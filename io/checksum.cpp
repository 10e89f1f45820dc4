#include <fmt/format.h>
#include <xxhash.h>

#include <new>
#include <xgrad/io/checksum.hpp>

namespace xgrad::io {

Checksum::Checksum() : state_(XXH3_createState()) {
  if (state_ == nullptr)
    throw std::bad_alloc();
  XXH3_64bits_reset(state_);
}
Checksum::~Checksum() { XXH3_freeState(state_); }

void Checksum::add(const void* data, std::size_t bytes) {
  if (bytes > 0)
    XXH3_64bits_update(state_, data, bytes);
}

std::string Checksum::digits() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_)); }

}  // namespace xgrad::io
