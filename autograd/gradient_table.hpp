#pragma once
// The gradients that a run of the engine has in flight, by node.
//
// A hash table with open addressing and linear probing (Knuth, The Art of Computer Programming,
// volume 3, section 6.4): to a chain of small ops, a std::unordered_map is a block of memory and
// three divisions for each.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::detail {

class GradientTable {
 public:
  /// The node's gradient, good until the next change; null if there is none.
  const Tensor* find(const Node* node) const {
    const Entry& entry = entries_[place_of(node)];
    return entry.node == nullptr ? nullptr : &entry.gradient;
  }
  /// The same, or a new and undefined one; and whether it is new.
  std::pair<Tensor&, bool> try_emplace(const Node* node) {
    if (2 * (size_ + 1) > entries_.size())
      grow();
    Entry& entry = entries_[place_of(node)];
    const bool is_new = entry.node == nullptr;
    entry.node = node;
    size_ += is_new ? 1 : 0;
    return {entry.gradient, is_new};
  }
  /// Removes a node that is in the table, and returns its gradient.
  Tensor extract(const Node* node) {
    std::size_t free = place_of(node);
    Tensor gradient = std::move(entries_[free].gradient);
    // Those behind it that were kept from their home, or from nearer to it, move up.
    for (std::size_t i = next(free); entries_[i].node != nullptr; i = next(i))
      if (distance(home(entries_[i].node), i) >= distance(free, i)) {
        entries_[free] = std::move(entries_[i]);
        free = i;
      }
    entries_[free].node = nullptr;
    --size_;
    return gradient;
  }

 private:
  struct Entry {
    const Node* node = nullptr;
    Tensor gradient;
  };

  std::size_t home(const Node* node) const {  // Fibonacci hashing
    return (reinterpret_cast<std::uintptr_t>(node) * 0x9E3779B97F4A7C15U) >> shift_;
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (entries_.size() - 1); }
  std::size_t distance(std::size_t from, std::size_t to) const {
    return (to - from) & (entries_.size() - 1);
  }
  // Where the node is, or else the free place where it would be.
  std::size_t place_of(const Node* node) const {
    std::size_t i = home(node);
    while (entries_[i].node != nullptr && entries_[i].node != node)
      i = next(i);
    return i;
  }
  void grow() {
    std::vector<Entry> before(2 * entries_.size());
    before.swap(entries_);
    --shift_;
    for (Entry& entry : before)
      if (entry.node != nullptr)
        entries_[place_of(entry.node)] = std::move(entry);
  }

  std::vector<Entry> entries_ = std::vector<Entry>(16);  // at least half of them free
  std::size_t size_ = 0;
  int shift_ = 60;  // 64 - log2(entries_.size())
};

}  // namespace xgrad::detail
