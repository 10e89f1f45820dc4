#include <algorithm>
#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/batches.hpp>

namespace xgrad::text {
namespace {

void check_size(const Ids& data, std::size_t block_size, std::string_view part) {
  check<ValueError>(block_size > 0, "block_size must be at least 1");
  // Without the sum block_size + 1, which could overflow.
  check<ValueError>(data.size() > block_size,
                    "the {} split has {} characters, but a block of {} needs one more than that",
                    part, data.size(), block_size);
}

}  // namespace

Split split(const Ids& ids, double fraction) {
  check<ValueError>(fraction > 0 && fraction < 1,
                    "split: the fraction is {}, but must be between 0 and 1", fraction);
  const auto n = static_cast<std::size_t>(fraction * static_cast<double>(ids.size()));
  return {ids.part(0, n), ids.part(n, ids.size() - n)};
}

std::vector<std::size_t> random_starts(const Ids& data, std::size_t block_size,
                                       std::size_t batch_size, Generator& generator,
                                       std::string_view part) {
  check_size(data, block_size, part);
  check<ValueError>(batch_size > 0, "batch_size must be at least 1");
  const std::size_t starts = data.size() - block_size;
  // PyTorch takes 64-bit draws from here on.
  check<ValueError>(starts <= std::numeric_limits<std::uint32_t>::max(),
                    "the {} split is too long: {} characters", part, data.size());
  numel(Shape{batch_size, block_size});  // ShapeError before anything is drawn
  std::vector<std::size_t> all(batch_size);
  for (std::size_t& start : all)
    start = generator.random() % starts;
  return all;
}

Batch blocks_at(const Ids& data, std::size_t block_size, std::span<const std::size_t> starts) {
  const Shape shape = {starts.size(), block_size};
  Array<std::int64_t> x = empty_array<std::int64_t>(shape), y = empty_array<std::int64_t>(shape);
  for (std::size_t b = 0; b < starts.size(); ++b) {
    check<ValueError>(starts[b] < data.size() && block_size < data.size() - starts[b],
                      "blocks_at: no block of {} begins at {} of {}", block_size, starts[b],
                      data.size());
    data.copy(starts[b], block_size, x.data() + b * block_size);
    data.copy(starts[b] + 1, block_size, y.data() + b * block_size);
  }
  return {Indices(std::move(x)), Indices(std::move(y))};
}

Batch random_batch(const Ids& data, std::size_t block_size, std::size_t batch_size,
                   Generator& generator, std::string_view part) {
  return blocks_at(data, block_size, random_starts(data, block_size, batch_size, generator, part));
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
  std::vector<std::size_t> starts(std::min(count, blocks - first));
  for (std::size_t b = 0; b < starts.size(); ++b)
    starts[b] = (first + b) * block_size;
  return blocks_at(data, block_size, starts);
}

}  // namespace xgrad::text
