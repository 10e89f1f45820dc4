#pragma once
// Ids cut into what a model is trained and judged on.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/data/ids.hpp>

namespace xgrad::text {

/// A text in two parts, the later one kept from training.
struct Split {
  Ids train, validation;
};

/// The first int(fraction * size) ids and the rest, as nanoGPT cuts; they share memory.  Throws
/// ValueError unless 0 < fraction < 1.
Split split(const Ids& ids, double fraction = 0.9);

/// Inputs and targets, both (batch, block): y is x one character later.
struct Batch {
  Indices x, y;
};

/// Blocks that begin anywhere: torch.randint(size - block_size, (batch_size,)), one draw a block,
/// as nanoGPT draws them. Throws ValueError if data has fewer than block_size + 1 ids; `part` names
/// it in the message.
Batch random_batch(const Ids& data, std::size_t block_size, std::size_t batch_size,
                   Generator& generator, std::string_view part = "training");

/// The same in two steps: where blocks begin, and those that begin there.
std::vector<std::size_t> random_starts(const Ids& data, std::size_t block_size,
                                       std::size_t batch_size, Generator& generator,
                                       std::string_view part = "training");
Batch blocks_at(const Ids& data, std::size_t block_size, std::span<const std::size_t> starts);

/// How many blocks fit side by side: (size - 1) / block_size.  A loss averaged over all of them has
/// no sampling noise.  Throws ValueError if not one does.
std::size_t block_count(const Ids& data, std::size_t block_size,
                        std::string_view part = "validation");

/// Blocks first, first + 1, ... side by side; at most `count`, fewer at the end.  Throws ValueError
/// if there is no block `first`.
Batch block_batch(const Ids& data, std::size_t block_size, std::size_t first,
                  std::size_t count = 64, std::string_view part = "validation");

}  // namespace xgrad::text
