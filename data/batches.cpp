#include <algorithm>
#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/batches.hpp>

namespace xgrad::data {
namespace {

void check_size(const Ids& data, std::size_t block_size, std::string_view part) {
  check<ValueError>(block_size > 0, "block_size must be at least 1");
  // Without the sum block_size + 1, which could overflow.
  check<ValueError>(data.size() > block_size,
                    "the {} split has {} characters, but a block of {} needs one more than that",
                    part, data.size(), block_size);
}

/// The blocks that begin at begin(0), begin(1), ...
template <class F>
Batch gather(const Ids& data, std::size_t block_size, std::size_t batch_size, F&& begin) {
  const Shape shape = {batch_size, block_size};
  Array<std::int64_t> x = empty_array<std::int64_t>(shape), y = empty_array<std::int64_t>(shape);
  for (std::size_t b = 0; b < batch_size; ++b) {
    const std::size_t first = begin(b);
    data.copy(first, block_size, x.data() + b * block_size);
    data.copy(first + 1, block_size, y.data() + b * block_size);
  }
  return {Indices(std::move(x)), Indices(std::move(y))};
}

}  // namespace

Split split(const Ids& ids, double fraction) {
  check<ValueError>(fraction > 0 && fraction < 1,
                    "split: the fraction is {}, but must be between 0 and 1", fraction);
  const auto n = static_cast<std::size_t>(fraction * static_cast<double>(ids.size()));
  return {ids.part(0, n), ids.part(n, ids.size() - n)};
}

Batch random_batch(const Ids& data, std::size_t block_size, std::size_t batch_size,
                   Generator& generator, std::string_view part) {
  check_size(data, block_size, part);
  check<ValueError>(batch_size > 0, "batch_size must be at least 1");
  const std::size_t starts = data.size() - block_size;
  // PyTorch takes 64-bit draws from here on.
  check<ValueError>(starts <= std::numeric_limits<std::uint32_t>::max(),
                    "the {} split is too long: {} characters", part, data.size());
  return gather(data, block_size, batch_size,
                [&](std::size_t) { return generator.random() % starts; });
}

std::size_t block_count(const Ids& data, std::size_t block_size, std::string_view part) {
  check_size(data, block_size, part);
  return (data.size() - 1) / block_size;
}

Batch block_batch(const Ids& data, std::size_t block_size, std::size_t first, std::size_t count,
                  std::string_view part) {
  const std::size_t blocks = block_count(data, block_size, part);
  check<ValueError>(first < blocks && count > 0,
                    "block_batch: no {} blocks from number {} on, of {} in the {} split", count,
                    first, blocks, part);
  return gather(data, block_size, std::min(count, blocks - first),
                [&](std::size_t b) { return (first + b) * block_size; });
}

}  // namespace xgrad::data
