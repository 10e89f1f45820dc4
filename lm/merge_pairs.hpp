#pragma once
// Merges the pairs of one pre-token, in less than quadratic time for a long one.  Internal.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace xgrad::lm {

/// The token that a pair of tokens becomes, and its rank: the lowest rank is merged first.
struct Merge {
  static constexpr std::uint32_t never = 0xFFFFFFFF;
  std::uint32_t rank = never, id = 0;
};

/// Merges the pair of lowest rank, the leftmost among equals, until there is none.  find(left,
/// right) is a pair's Merge.  Fewer than 2^32 ids.  Returns the number of steps: for a short
/// pre-token at most its length for each merge; for a long one a few for each id, each in
/// logarithmic time.
template <class Find>
std::size_t merge_pairs(std::vector<std::uint32_t>& ids, const Find& find) {
  constexpr std::size_t short_piece = 64;
  std::size_t n = ids.size(), steps = n;
  if (n <= short_piece) {
    std::array<Merge, short_piece> pairs;  // of ids i and i + 1
    for (std::size_t i = 0; i + 1 < n; ++i)
      pairs[i] = find(ids[i], ids[i + 1]);
    for (; n > 1; steps += n--) {
      std::size_t at = 0;
      for (std::size_t i = 1; i + 1 < n; ++i)
        at = pairs[i].rank < pairs[at].rank ? i : at;
      if (pairs[at].rank == Merge::never)
        break;
      ids[at] = pairs[at].id;
      std::copy(&ids[at] + 2, &ids[0] + n, &ids[at] + 1);
      std::copy(&pairs[at] + 1, &pairs[n - 1], &pairs[at]);
      if (at + 2 < n)
        pairs[at] = find(ids[at], ids[at + 1]);
      if (at > 0)
        pairs[at - 1] = find(ids[at - 1], ids[at]);
    }
    ids.resize(n);
    return steps;
  }

  // A heap of ranks and positions.  Entries of pairs that no longer exist are skipped.
  struct Place {
    std::uint32_t before, next;
    Merge pair = {};
  };
  const auto end = static_cast<std::uint32_t>(n);
  std::vector<Place> places;
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> heap;
  const auto entry = [&](std::uint32_t i) { return std::uint64_t{places[i].pair.rank} << 32 | i; };
  const auto look = [&](std::uint32_t i) {
    if (i >= end || places[i].next == end)
      return;
    places[i].pair = find(ids[i], ids[places[i].next]);
    if (places[i].pair.rank != Merge::never)
      heap.push(entry(i));
  };
  for (std::uint32_t i = 0; i < end; ++i)
    places.push_back({i - 1, i + 1});  // before the first: above `end`
  for (std::uint32_t i = 0; i < end; ++i)
    look(i);
  for (; !heap.empty(); ++steps) {
    const std::uint64_t top = heap.top();
    const auto i = static_cast<std::uint32_t>(top);
    heap.pop();
    if (top != entry(i))
      continue;
    const Place gone = std::exchange(places[places[i].next], {});
    ids[i] = places[i].pair.id;
    places[i].next = gone.next;
    places[i].pair = {};
    if (gone.next < end)
      places[gone.next].before = i;
    look(i);
    look(places[i].before);
  }
  n = 0;
  for (std::uint32_t i = 0; i < end; i = places[i].next)
    ids[n++] = ids[i];
  ids.resize(n);
  return steps;
}

}  // namespace xgrad::lm
