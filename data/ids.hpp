#pragma once
// The ids of a text, held once.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

namespace xgrad::text {

/// Ids from 0 to 2^32 - 1, in one, two or four bytes each, whichever the largest needs: a text of
/// 2 GB with up to 256 characters takes 2 GB.  Copies and parts share that memory; it never
/// changes.
class Ids {
 public:
  /// None.
  Ids() = default;
  /// ValueError if one is negative, or 2^32 or above.
  explicit Ids(std::span<const std::int64_t> ids);
  Ids(std::initializer_list<std::int64_t> ids) : Ids(std::span(ids.begin(), ids.size())) {}

  std::size_t size() const { return size_; }
  /// The bytes that an id takes: 1, 2 or 4.
  std::size_t itemsize() const { return itemsize_; }
  /// Id i, below size().
  std::int64_t operator[](std::size_t i) const;

  /// The part of `count` ids that begins with id `first`.  ValueError if it ends beyond the last.
  Ids part(std::size_t first, std::size_t count) const;
  /// Writes such a part to `to`.
  void copy(std::size_t first, std::size_t count, std::int64_t* to) const;

  friend bool operator==(const Ids& a, const Ids& b);

 private:
  friend class GrowingIds;
  Ids(std::shared_ptr<const void> memory, std::size_t size, std::size_t itemsize)
      : memory_(std::move(memory)), size_(size), itemsize_(itemsize) {}

  std::shared_ptr<const void> memory_;
  std::size_t size_ = 0;
  std::size_t itemsize_ = 1;
};

/// Ids in the making.  Their memory grows and widens where it is, so that they are not held twice
/// at any time.  std::bad_alloc where the machine has no more (available_memory()).
class GrowingIds {
 public:
  GrowingIds() = default;
  GrowingIds(GrowingIds&& other) noexcept;
  GrowingIds& operator=(GrowingIds&& other) = delete;
  ~GrowingIds();

  std::size_t size() const { return size_; }
  /// Makes room in each for ids up to `largest`.
  void widen(std::uint32_t largest);
  /// Adds ids for which there is room.
  void append(std::span<const std::uint32_t> ids);
  /// Replaces each id i by table[i], for which there is room.
  void replace(std::span<const std::uint32_t> table);
  Ids finish() &&;

 private:
  void reserve(std::size_t bytes);

  void* memory_ = nullptr;  // of malloc, for what realloc does
  std::size_t bytes_ = 0, size_ = 0, itemsize_ = 1;
};

}  // namespace xgrad::text
