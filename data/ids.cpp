#include <algorithm>
#include <new>
#include <utility>
#include <xgrad/autograd/available_memory.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/ids.hpp>

namespace xgrad::text {

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
  return itemsize_ == 2 ? std::int64_t{static_cast<const std::uint16_t*>(memory_.get())[i]}
                        : std::int64_t{static_cast<const std::uint32_t*>(memory_.get())[i]};
}

Ids Ids::part(std::size_t first, std::size_t count) const {
  check<ValueError>(first <= size_ && count <= size_ - first,
                    "Ids: there are {}, so no {} from number {} on", size_, count, first);
  const auto* const begin = static_cast<const char*>(memory_.get()) + first * itemsize_;
  return {std::shared_ptr<const void>(memory_, begin), count, itemsize_};
}

void Ids::copy(std::size_t first, std::size_t count, std::int64_t* to) const {
  const Ids from = part(first, count);
  for (std::size_t i = 0; i < count; ++i)
    to[i] = from[i];
}

bool operator==(const Ids& a, const Ids& b) {
  bool equal = a.size_ == b.size_;
  for (std::size_t i = 0; equal && i < a.size_; ++i)
    equal = a[i] == b[i];
  return equal;
}

void GrowingIds::widen(std::uint32_t largest) {
  if (const auto* const narrow = std::get_if<Narrow>(&ids_); narrow != nullptr && largest > 0xFFFF)
    ids_ = std::vector<std::uint32_t>(narrow->begin(), narrow->end());
}

void GrowingIds::append(std::span<const std::uint32_t> more) {
  std::visit(
      [&]<class T>(std::vector<T>& ids) {
        constexpr std::size_t much = (std::size_t{64} << 20) / sizeof(T);
        const std::size_t size = ids.size() + more.size();
        if (size > ids.capacity()) {
          const std::size_t room = std::max(size, ids.size() + ids.size() / 2);
          // The system may promise what it does not have, and end the process later.
          if (room > much && room > available_memory() / sizeof(T))
            throw std::bad_alloc();
          ids.reserve(room);
        }
        for (const std::uint32_t id : more)
          ids.push_back(static_cast<T>(id));
      },
      ids_);
}

void GrowingIds::replace(std::span<const std::uint32_t> table) {
  std::visit(
      [&]<class T>(std::vector<T>& ids) {
        for (T& id : ids)
          id = static_cast<T>(table[id]);
      },
      ids_);
}

Ids GrowingIds::finish() && {
  return std::visit(
      []<class T>(std::vector<T>& ids) -> Ids {
        const auto owner = std::make_shared<const std::vector<T>>(std::move(ids));
        return {{owner, owner->data()}, owner->size(), sizeof(T)};
      },
      ids_);
}

}  // namespace xgrad::text
