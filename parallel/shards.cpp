#include "shards.hpp"

#include <algorithm>
#include <unordered_map>
#include "../autograd/fail.hpp"
#include "../autograd/mode.hpp"
#include "../autograd/random.hpp"
#include "../autograd/threads.hpp"
#include "../autograd/update.hpp"

namespace xgrad::parallel {
namespace {

using detail::ShardResult;

// Sums each leaf's gradients as a tree over the shards.
LeafGradients sum(std::vector<ShardResult> results) {
  std::vector<std::shared_ptr<Tensor::Identity>> leaves;
  std::vector<std::vector<Tensor>> gradients;  // by leaf and shard
  std::unordered_map<const Tensor::Identity*, std::size_t> numbers;
  for (std::size_t s = 0; s < results.size(); ++s)
    for (auto& [leaf, gradient] : results[s].gradients) {
      const auto [at, is_new] = numbers.try_emplace(leaf.get(), leaves.size());
      if (is_new) {
        leaves.push_back(leaf);
        gradients.emplace_back(results.size());
      }
      gradients[at->second][s] = std::move(gradient);
    }
  results.clear();  // sole owners now, so gradients are added in place
  foreach_tree_sum_(gradients);
  LeafGradients result;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    result.emplace_back(std::move(leaves[i]), std::move(gradients[i].front()));
  return result;
}

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

ShardResult detail::backward_of(const Tensor& loss, double weight) {
  ShardResult result = result_of(loss, weight);
  // Shards may share a part of the graph that was made before them.
  result.gradients =
      leaf_gradients({loss}, {.grad_outputs = {full_like(loss, weight)}, .retain_graph = true});
  return result;
}

double detail::total(const std::vector<double>& losses, DType dtype) {
  double sum = 0;
  for (const double loss : losses)
    sum += loss;
  return dtype == DType::float32 ? static_cast<float>(sum) : sum;
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

double detail::backward_all(std::size_t rows, std::size_t most, const RunShard& run) {
  std::vector<ShardResult> results = run_all(rows, most, run);
  const double loss = parallel::total(results);
  accumulate_grads(sum(std::move(results)), false);
  return loss;
}

double backward(std::size_t rows, const ShardLoss& loss, std::size_t most) {
  check_function(loss, "parallel");
  return detail::backward_all(rows, most, [&](std::size_t begin, std::size_t end, double weight) {
    return detail::backward_of(loss(begin, end), weight);
  });
}

}  // namespace xgrad::parallel
