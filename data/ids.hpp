#pragma once
// The ids of a text, held once.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace xgrad::text {

/// Ids from 0 to 2^32 - 1, in two bytes each if all are below 65,536, else in four.  Copies and
/// parts share that memory; it never changes.
class Ids {
 public:
  /// None.
  Ids() = default;
  /// ValueError if one is negative, or 2^32 or above.
  explicit Ids(std::span<const std::int64_t> ids);
  Ids(std::initializer_list<std::int64_t> ids) : Ids(std::span(ids.begin(), ids.size())) {}

  std::size_t size() const { return size_; }
  /// The bytes that an id takes: 2 or 4.
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
  std::size_t itemsize_ = 2;
};

/// Ids in the making.  std::bad_alloc where the machine has no more memory (available_memory()).
class GrowingIds {
 public:
  std::size_t size() const {
    return std::visit([](const auto& ids) { return ids.size(); }, ids_);
  }
  /// Makes room in each for ids up to `largest`.
  void widen(std::uint32_t largest);
  /// Adds ids for which there is room.
  void append(std::span<const std::uint32_t> ids);
  /// Replaces each id i by table[i], for which there is room.
  void replace(std::span<const std::uint32_t> table);
  Ids finish() &&;

 private:
  using Narrow = std::vector<std::uint16_t>;
  std::variant<Narrow, std::vector<std::uint32_t>> ids_;
};

}  // namespace xgrad::text
