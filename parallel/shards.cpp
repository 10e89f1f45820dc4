#include <xgrad/parallel/shards.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>
#include <xgrad/autograd/accumulate.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops/optim.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>

namespace xgrad::parallel {
namespace {

// What one shard gives.
struct Part {
  double loss = 0;  // times its share of the rows
  DType dtype = DType::float32;
  LeafGradients gradients;
};

// Each leaf's gradients added up in the order of the shards.
LeafGradients sum(std::vector<Part> parts) {
  std::vector<std::shared_ptr<Tensor::Impl>> leaves;
  std::vector<std::vector<Tensor>> gradients;  // of a leaf, of the shards that use it
  std::unordered_map<const Tensor::Impl*, std::size_t> numbers;
  for (Part& part : parts)
    for (auto& [leaf, gradient] : part.gradients) {
      const auto [at, is_new] = numbers.try_emplace(leaf.get(), leaves.size());
      if (is_new) {
        leaves.push_back(leaf);
        gradients.emplace_back();
      }
      // Its own handle: what a hook has given or kept is not added to.
      gradients[at->second].push_back(std::exchange(gradient, {}).detach());
    }
  parts.clear();  // nothing else holds the gradients now, so they are added to in place
  foreach_sum_(gradients);
  LeafGradients result;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    result.emplace_back(std::move(leaves[i]), std::move(gradients[i].front()));
  return result;
}

// run(begin, end, weight) of each shard, or of all rows at once where the parts would not be the
// same.
template <class F>
std::vector<Part> run_shards(std::size_t rows, const F& run) {
  check<ValueError>(rows > 0, "parallel: a batch without rows");
  const Mode mode = Mode::current();
  std::vector<Part> results;
  if (const std::size_t shards = shard_count(rows); shards > 1 && mode.observer == nullptr) {
    results.resize(shards);
    const auto run_shard = [&](std::size_t s) {
      const ModeGuard same(mode);
      const xgrad::detail::NoDraws guard;
      const std::size_t begin = s * rows / shards, end = (s + 1) * rows / shards;
      results[s] = run(begin, end, static_cast<double>(end - begin) / static_cast<double>(rows));
    };
    try {
      // With threads to spare, one shard after another, and each of its ops on all threads.
      if (num_threads() < 2 * shards)
        on_threads(shards, run_shard);
      else
        for (std::size_t s = 0; s < shards; ++s)
          run_shard(s);
      return results;
    } catch (const xgrad::detail::DrawRefused&) {
      results.clear();
    }
  }
  results.push_back(run(0, rows, 1));
  return results;
}

Part part_of(const Tensor& loss, double weight) {
  check<ShapeError>(loss.numel() == 1, "parallel: the loss has shape {}; it must be one element",
                    to_string(loss.shape()));
  return {weight * loss.item(), loss.dtype(), {}};
}

// In the losses' dtype, as the loss of the whole batch would be.
double total(const std::vector<Part>& parts) {
  double sum = 0;
  for (const Part& part : parts)
    sum += part.loss;
  return parts.front().dtype == DType::float32 ? static_cast<float>(sum) : sum;
}

}  // namespace

std::size_t shard_count(std::size_t rows) {
  // Each costs a copy of all gradients, in memory and in time.
  constexpr std::size_t most = 4;
  return std::min(rows, most);
}

std::size_t detail::common_rows(std::initializer_list<const Shape*> shapes) {
  const Shape& first = **shapes.begin();
  for (const Shape* shape : shapes)
    if (shape->empty() || shape->front() != first.front())
      fail<ShapeError>("parallel: the batch has parts {} and {}; they must have as many rows",
                       to_string(first), to_string(*shape));
  return first.front();
}

double mean_loss(std::size_t rows, const ShardLoss& loss) {
  const NoGrad no_grad;
  return total(run_shards(rows, [&](std::size_t begin, std::size_t end, double weight) {
    return part_of(loss(begin, end), weight);
  }));
}

double backward(std::size_t rows, const ShardLoss& loss) {
  const auto run = [&](std::size_t begin, std::size_t end, double weight) {
    const Tensor mean = loss(begin, end);
    Part part = part_of(mean, weight);
    // Shards may share a part of the graph that was made before them.
    part.gradients =
        leaf_gradients({mean}, {.grad_outputs = {full_like(mean, weight)}, .retain_graph = true});
    return part;
  };
  std::vector<Part> parts = run_shards(rows, run);
  const double loss_of_all = total(parts);
  accumulate_grads(sum(std::move(parts)), false);
  return loss_of_all;
}

}  // namespace xgrad::parallel
