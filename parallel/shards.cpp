#include "shards.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>
#include "../autograd/fail.hpp"
#include "../autograd/mode.hpp"
#include "../autograd/random.hpp"
#include "../autograd/threads.hpp"

namespace xgrad::parallel {
namespace {

using detail::ShardResult;

// Sums each leaf's gradients as a tree over the shards.  Two neighbours in a tree of 2^n shards are
// added as soon as both have arrived, so there is not a copy of all gradients for each shard.
class Sums {
 public:
  explicit Sums(std::size_t shards) : shards_(shards) {}

  void add(std::size_t shard, const std::shared_ptr<Tensor::Identity>& leaf, Tensor gradient) {
    std::unique_lock lock(mutex_);
    auto& [sums, sizes] = parts_[leaf];
    sums.resize(shards_);
    sizes.resize(shards_);
    std::size_t n = 1;  // the number of shards that the gradient is of
    for (; std::has_single_bit(shards_) && n < shards_ && sizes[shard ^ n] == n; n *= 2) {
      sizes[shard ^ n] = 0;
      Tensor sum = std::exchange(sums[shard ^ n], {});
      lock.unlock();
      accumulate(sum, std::move(gradient));  // (b + a is a + b to the bit)
      lock.lock();
      gradient = std::move(sum);
      shard &= ~n;
    }
    sums[shard] = std::move(gradient);
    sizes[shard] = n;
  }

  LeafGradients total() {
    LeafGradients result;
    for (auto& [leaf, parts] : parts_)
      result.emplace_back(leaf, detail::tree_sum(parts.first));
    return result;
  }

 private:
  // The sum over each subtree, at its first shard, and its number of shards.
  using Parts = std::pair<std::vector<Tensor>, std::vector<std::size_t>>;
  std::size_t shards_;
  std::mutex mutex_;
  std::unordered_map<std::shared_ptr<Tensor::Identity>, Parts> parts_;
};

// Runs all shards, or all rows at once if the results would differ.
std::vector<ShardResult> run_all(std::size_t rows, std::size_t most, const detail::RunShard& run) {
  check<ValueError>(rows > 0, "parallel: a batch without rows");
  const std::size_t shards = shard_count(rows, most);
  if (shards > 1)
    if (auto results = detail::run_shards(rows, shards, {0, shards}, run))
      return std::move(*results);
  std::vector<ShardResult> whole;
  whole.push_back(run(0, rows, 1));
  return whole;
}

double total(const std::vector<ShardResult>& results) {
  std::vector<double> losses;
  for (const ShardResult& result : results)
    losses.push_back(result.loss);
  return detail::total(losses, results.front().dtype);
}

}  // namespace

std::optional<std::vector<ShardResult>> detail::run_shards(std::size_t rows, std::size_t shards,
                                                           ShardRange range, const RunShard& run) {
  const Mode mode = Mode::current();
  if (mode.observer != nullptr)
    return std::nullopt;
  const std::size_t n = range.second - range.first;
  std::vector<ShardResult> results(n);
  xgrad::detail::BatchMasks masks(default_generator(), rows);
  const auto run_shard = [&](std::size_t i) {
    const ModeGuard same(mode);
    const std::size_t s = range.first + i;
    const std::size_t begin = s * rows / shards, end = (s + 1) * rows / shards;
    const xgrad::detail::ShardDraws draws(masks, begin, end);
    results[i] = run(begin, end, static_cast<double>(end - begin) / static_cast<double>(rows));
    results[i].masks = draws.masks_taken();
    if (draws.refused)
      throw xgrad::detail::DrawRefused();
  };
  try {
    // With at least two threads for each shard, shards run one by one, each op on all threads.
    if (num_threads() < 2 * n)
      on_threads(n, run_shard);
    else
      for (std::size_t i = 0; i < n; ++i)
        run_shard(i);
    if (std::ranges::adjacent_find(results, std::not_equal_to(), &ShardResult::masks) !=
        results.end())
      throw xgrad::detail::DrawRefused();
  } catch (const xgrad::detail::DrawRefused&) {
    masks.undo();
    return std::nullopt;
  } catch (...) {
    masks.undo();
    throw;
  }
  return results;
}

ShardResult detail::result_of(const Tensor& loss, double weight) {
  check<ShapeError>(loss.numel() == 1, "parallel: the loss has shape {}; it must be one element",
                    to_string(loss.shape()));
  return {weight * loss.item(), loss.dtype(), {}};
}

double detail::total(const std::vector<double>& losses, DType dtype) {
  double sum = 0;
  for (const double loss : losses)
    sum += loss;
  return dtype == DType::float32 ? static_cast<float>(sum) : sum;
}

Tensor detail::tree_sum(std::span<Tensor> list) {
  if (list.size() == 1)
    return std::exchange(list[0], {});
  const std::size_t half = list.size() / 2;
  Tensor sum = tree_sum(list.first(half)), rest = tree_sum(list.subspan(half));
  if (!sum.defined())
    return rest;
  if (rest.defined())
    accumulate(sum, std::move(rest));
  return sum;
}

std::size_t shard_count(std::size_t rows, std::size_t most) { return std::min(rows, most); }

std::size_t detail::common_rows(std::initializer_list<const Shape*> shapes) {
  const Shape& first = **shapes.begin();
  for (const Shape* shape : shapes)
    if (shape->empty() || shape->front() != first.front())
      fail<ShapeError>("parallel: the batch has parts {} and {}; they must have equally many rows",
                       to_string(first), to_string(*shape));
  return first.front();
}

double mean_loss(std::size_t rows, const ShardLoss& loss, std::size_t most) {
  check_function(loss, "parallel");
  const NoGrad no_grad;
  return total(run_all(rows, most, [&](std::size_t begin, std::size_t end, double weight) {
    return detail::result_of(loss(begin, end), weight);
  }));
}

double detail::backward_all(std::size_t rows, const ShardLoss& loss, std::size_t most,
                            const std::function<void(const Tensor::Identity& leaf)>& check) {
  check_function(loss, "parallel");
  const std::size_t shards = shard_count(rows, most);
  std::optional<Sums> sums(std::in_place, shards);
  const auto run = [&](std::size_t begin, std::size_t end, double weight) {
    const Tensor y = loss(begin, end);
    ShardResult result = result_of(y, weight);
    if (end - begin == rows)  // not in shards after all
      sums.emplace(1);
    const std::size_t shard = (begin * shards + rows - 1) / rows;
    // Shards may share a part of the graph that was made before them.
    leaf_gradients({y}, {.grad_outputs = {full_like(y, weight)}, .retain_graph = true},
                   [&](const auto& leaf, Tensor gradient) {
                     check(*leaf);
                     sums->add(shard, leaf, std::move(gradient));
                   });
    return result;
  };
  const double mean = parallel::total(run_all(rows, most, run));
  const ModeGuard quiet({false, nullptr});
  accumulate_grads(sums->total(), false);
  return mean;
}

double backward(std::size_t rows, const ShardLoss& loss, std::size_t most) {
  return detail::backward_all(rows, loss, most, [](const Tensor::Identity&) {});
}

}  // namespace xgrad::parallel
