#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>
#include <xgrad/autograd/available_memory.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/ids.hpp>

namespace xgrad::text {
namespace {

/// Calls f.operator()<T>() with the type of so many bytes.
template <class F>
decltype(auto) with_type(std::size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    default:
      return f.template operator()<std::uint32_t>();
  }
}

std::size_t itemsize_for(std::uint32_t largest) {
  return largest <= 0xFF ? 1 : largest <= 0xFFFF ? 2 : 4;
}

}  // namespace

Ids::Ids(std::span<const std::int64_t> ids) {
  std::vector<std::uint32_t> narrow;
  narrow.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check<ValueError>(std::in_range<std::uint32_t>(ids[i]),
                      "Ids: {} at position {} is not an id; they are from 0 to 2^32 - 1", ids[i],
                      i);
    narrow.push_back(static_cast<std::uint32_t>(ids[i]));
  }
  GrowingIds growing;
  growing.widen(narrow.empty() ? 0 : std::ranges::max(narrow));
  growing.append(narrow);
  *this = std::move(growing).finish();
}

std::int64_t Ids::operator[](std::size_t i) const {
  return with_type(itemsize_, [&]<class T>() -> std::int64_t {
    return static_cast<const T*>(memory_.get())[i];
  });
}

Ids Ids::part(std::size_t first, std::size_t count) const {
  check<ValueError>(first <= size_ && count <= size_ - first,
                    "Ids: there are {}, so no {} from number {} on", size_, count, first);
  const auto* const begin = static_cast<const char*>(memory_.get()) + first * itemsize_;
  return {std::shared_ptr<const void>(memory_, begin), count, itemsize_};
}

void Ids::copy(std::size_t first, std::size_t count, std::int64_t* to) const {
  const Ids from = part(first, count);
  with_type(itemsize_,
            [&]<class T>() { std::copy_n(static_cast<const T*>(from.memory_.get()), count, to); });
}

bool operator==(const Ids& a, const Ids& b) {
  const auto equal = [&]<class T>() {
    return with_type(b.itemsize_, [&]<class U>() {
      return std::equal(static_cast<const T*>(a.memory_.get()),
                        static_cast<const T*>(a.memory_.get()) + a.size_,
                        static_cast<const U*>(b.memory_.get()));
    });
  };
  return a.size_ == b.size_ && with_type(a.itemsize_, equal);
}

GrowingIds::GrowingIds(GrowingIds&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      size_(std::exchange(other.size_, 0)),
      itemsize_(other.itemsize_) {}

GrowingIds::~GrowingIds() { std::free(memory_); }

void GrowingIds::reserve(std::size_t bytes) {
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  constexpr std::size_t much = std::size_t{64} << 20;
  if (bytes <= bytes_)
    return;
  if (bytes > most)
    throw std::bad_alloc();
  // In steps that are short beside what the machine may have left.
  const std::size_t more =
      std::max<std::size_t>({bytes, bytes_ + std::min(bytes_ / 2, 4 * much), 4096});
  // The system may promise what it does not have, and end the process later.
  if (more > much && more - bytes_ > available_memory())
    throw std::bad_alloc();
  void* const memory = std::realloc(memory_, more);  // moves pages, if much, and not bytes
  if (memory == nullptr)
    throw std::bad_alloc();
  memory_ = memory;
  bytes_ = more;
}

void GrowingIds::widen(std::uint32_t largest) {
  const std::size_t wider = itemsize_for(largest);
  if (wider <= itemsize_)
    return;
  reserve(size_ * wider);
  with_type(itemsize_, [&]<class T>() {
    with_type(wider, [&]<class U>() {
      // From the back, for both are in the same place.
      char* const bytes = static_cast<char*>(memory_);
      for (std::size_t i = size_; i-- > 0;) {
        T narrow;
        std::memcpy(&narrow, bytes + i * sizeof(T), sizeof(T));
        const U wide = static_cast<U>(narrow);
        std::memcpy(bytes + i * sizeof(U), &wide, sizeof(U));
      }
    });
  });
  itemsize_ = wider;
}

void GrowingIds::append(std::span<const std::uint32_t> ids) {
  reserve((size_ + ids.size()) * itemsize_);
  with_type(itemsize_, [&]<class T>() {
    std::ranges::transform(ids, static_cast<T*>(memory_) + size_,
                           [](std::uint32_t id) { return static_cast<T>(id); });
  });
  size_ += ids.size();
}

void GrowingIds::replace(std::span<const std::uint32_t> table) {
  with_type(itemsize_, [&]<class T>() {
    T* const ids = static_cast<T*>(memory_);
    std::transform(ids, ids + size_, ids, [&](T id) { return static_cast<T>(table[id]); });
  });
}

Ids GrowingIds::finish() && {
  if (void* const memory = std::realloc(memory_, std::max<std::size_t>(size_ * itemsize_, 1)))
    memory_ = memory;
  const std::shared_ptr<void> owner(std::exchange(memory_, nullptr), std::free);
  return {owner, size_, itemsize_};
}

}  // namespace xgrad::text
