#include "data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad::parallel {
namespace {

using detail::ShardResult;

std::span<std::byte> bytes_of(Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    return std::as_writable_bytes(std::span(xgrad::detail::writable_data<T>(x), x.numel()));
  });
}

// FNV-1a over the words of x's bits, as a number that fits a double.
double checksum(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    using Word = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;
    std::uint64_t hash = 14695981039346656037U;
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.numel()); ++i)
      hash = (hash ^ std::bit_cast<Word>(x.data<T>()[i])) * 1099511628211U;
    return static_cast<double>(hash >> 12);
  });
}

// Parameters of one dtype whose gradients are sent together, about a megabyte: more would exceed
// the processor's caches.
struct Bucket {
  std::vector<std::size_t> parameters;
  DType dtype;
  std::size_t elements = 0;
};

std::vector<Bucket> buckets_of(const std::vector<std::pair<std::string, Tensor>>& parameters) {
  constexpr std::size_t enough = 1 << 18;
  std::vector<Bucket> buckets;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Tensor& x = parameters[p].second;
    if (buckets.empty() || buckets.back().dtype != x.dtype() || buckets.back().elements >= enough)
      buckets.push_back({.parameters = {}, .dtype = x.dtype()});
    buckets.back().parameters.push_back(p);
    buckets.back().elements += x.numel();
  }
  return buckets;
}

using Gradients = std::vector<std::vector<Tensor>>;  // by parameter and shard of this rank

// A flat Tensor for each of this rank's subtrees: the sum over its shards.
std::vector<Tensor> flattened(const Bucket& bucket,
                              const std::vector<std::pair<std::string, Tensor>>& parameters,
                              Gradients& gradients, std::size_t shards, ShardRange range) {
  std::vector<Tensor> flat;
  for (const auto& [begin, end] : subtrees(shards, range)) {
    // Elements without a gradient are -0, which changes no sum.
    flat.push_back(full({bucket.elements}, -0.0, bucket.dtype));
    dispatch(bucket.dtype, [&, begin = begin, end = end]<class T>() {
      T* to = xgrad::detail::writable_data<T>(flat.back());
      for (const std::size_t p : bucket.parameters) {
        const auto of_subtree = std::span(gradients[p]).subspan(begin - range.first, end - begin);
        if (const Tensor sum = detail::tree_sum(of_subtree); sum.defined())
          std::copy_n(sum.data<T>(), sum.numel(), to);
        to += parameters[p].second.numel();
      }
    });
  }
  return flat;
}

}  // namespace

// Runs this rank's shards and combines all ranks' results: the loss and, if requested, the sums of
// gradients.  No value if the batch must run whole.
std::optional<double> DataParallel::run(std::size_t rows, const detail::RunShard& shard,
                                        LeafGradients* sums) const {
  const std::size_t shards = shard_count(rows, options_.shards);
  const ShardRange range = shards_of_rank(shards, size(), rank());
  const std::size_t count = sums != nullptr ? parameters_.size() : 0;
  // The shards' losses; for each parameter, the number of ranks with a gradient; the number of
  // ranks that must run the whole batch; the number of masks taken, and the sum of its squares; the
  // number of failed ranks.
  std::vector<double> report(shards + count + 4);
  double &whole = report[shards + count], &masks = (&whole)[1], &squares = (&whole)[2],
         &failed = report.back();
  const Generator before = default_generator();
  std::exception_ptr error;
  DType dtype = DType::float32;
  Gradients gradients(count, std::vector<Tensor>(range.second - range.first));
  try {
    auto parts = detail::run_shards(rows, shards, range, shard);
    whole = parts ? 0 : 1;
    masks = parts ? static_cast<double>(parts->front().masks) : 0;
    squares = masks * masks;
    for (std::size_t i = 0; parts && i < parts->size(); ++i) {
      ShardResult& part = (*parts)[i];
      report[range.first + i] = part.loss;
      dtype = part.dtype;
      for (auto& [leaf, gradient] : std::exchange(part.gradients, {})) {
        const std::size_t p = numbers_.at(leaf.get());
        report[shards + p] = 1;
        gradients[p][i] = std::move(gradient);
      }
    }
  } catch (...) {
    error = std::current_exception();
    failed = 1;
  }
  const ModeGuard quiet({false, nullptr});
  std::ranges::copy(world_->sum(report), report.begin());
  const bool alike = masks * masks == static_cast<double>(size()) * squares;
  if (failed > 0 || whole > 0 || !alike)
    default_generator() = before;
  if (failed > 0)
    agree(*world_, error);
  if (whole > 0 || !alike)
    return std::nullopt;
  for (const Bucket& bucket : count > 0 ? buckets_of(parameters_) : std::vector<Bucket>()) {
    const Tensor sum =
        world_->sum(shards, flattened(bucket, parameters_, gradients, shards, range));
    std::int64_t at = 0;
    for (const std::size_t p : bucket.parameters) {
      const Tensor& x = parameters_[p].second;
      if (report[shards + p] > 0)
        sums->emplace_back(x.handle(), narrow(sum, 0, at, x.numel()).reshape(x.shape()).clone());
      at += static_cast<std::int64_t>(x.numel());
    }
  }
  report.resize(shards);
  return detail::total(report, dtype);
}

DataParallel::DataParallel(std::vector<std::pair<std::string, Tensor>> named_parameters,
                           std::shared_ptr<const Communicator> world, const Options& options)
    : parameters_(std::move(named_parameters)), world_(std::move(world)), options_(options) {
  check<ValueError>(options.shards > 0, "DataParallel: a batch cannot be cut into 0 shards");
  check<ValueError>(options.check_interval > 0, "DataParallel: check_interval is 0");
  check<ValueError>(world_ != nullptr, "DataParallel: there is no world");
  // A Tensor with two names is one parameter.
  std::erase_if(parameters_, [&](const auto& named) {
    return !numbers_.try_emplace(named.second.handle().get(), numbers_.size()).second;
  });
  if (size() == 1)
    return;
  shards_of_rank(options.shards, size(), rank());  // throws if there are too many ranks
  share_parameters();
}

void DataParallel::share_parameters() {
  std::string mine;
  for (const auto& [name, x] : parameters_)
    mine += fmt::format("{}: {} of shape {}\n", name, to_string(x.dtype()), to_string(x.shape()));
  const std::string theirs = text_of(*world_, 0, mine);
  together(*world_, [&] {
    const auto differs = std::ranges::mismatch(mine, theirs);
    const auto line = [](const std::string& text, std::size_t at) {
      const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      return begin >= text.size() ? std::string("none")
                                  : text.substr(begin, text.find('\n', begin) - begin);
    };
    if (const auto at = static_cast<std::size_t>(differs.in1 - mine.begin()); mine != theirs)
      fail<RankError>(
          "DataParallel: the ranks have different models; a parameter here is {}, rank "
          "0's is {}",
          line(mine, at), line(theirs, at));
  });
  for (auto& [name, x] : parameters_)
    world_->broadcast(bytes_of(x));
  default_generator().set_state(text_of(*world_, 0, default_generator().state()));
}

void DataParallel::check_parameters() const {
  std::vector<double> mine;
  for (const auto& [name, x] : parameters_)
    mine.push_back(checksum(x));
  std::vector<double> theirs = mine;
  world_->broadcast(std::as_writable_bytes(std::span(theirs)));
  together(*world_, [&] {
    const auto [own, other] = std::ranges::mismatch(mine, theirs);
    if (own != mine.end())
      fail<RankError>(
          "DataParallel: the ranks have drifted apart: parameter {} differs from rank 0's",
          parameters_[static_cast<std::size_t>(own - mine.begin())].first);
  });
}

void DataParallel::check_leaf(const Tensor::Identity& leaf) const {
  if (!numbers_.contains(&leaf))
    fail<GraphError>(
        "DataParallel: the loss depends on a leaf of shape {} that is not one of the parameters, "
        "so the ranks do not add up its gradient",
        to_string(leaf.value->shape));
}

ShardResult DataParallel::shard_of(const Tensor& loss, double weight) const {
  ShardResult part = detail::result_of(loss, weight);
  part.gradients =
      leaf_gradients({loss}, {.grad_outputs = {full_like(loss, weight)}, .retain_graph = true});
  for (const auto& [leaf, gradient] : part.gradients)
    check_leaf(*leaf);
  return part;
}

double DataParallel::backward(std::size_t rows, const ShardLoss& loss) {
  check_function(loss, "DataParallel");
  if (size() == 1)
    return detail::backward_all(rows, loss, options_.shards,
                                [this](const Tensor::Identity& leaf) { check_leaf(leaf); });
  const detail::RunShard run = [&](std::size_t begin, std::size_t end, double weight) {
    return shard_of(loss(begin, end), weight);
  };
  check<ValueError>(rows > 0, "parallel: a batch without rows");
  if (batches_++ % options_.check_interval == 0)
    check_parameters();
  LeafGradients gradients;
  if (const auto all = this->run(rows, run, &gradients)) {
    together(*world_, [&] { accumulate_grads(gradients, false); });
    return *all;
  }
  ShardResult part;
  together(*world_, [&] { part = run(0, rows, 1); });
  together(*world_, [&] { accumulate_grads(part.gradients, false); });
  return detail::total({part.loss}, part.dtype);
}

double DataParallel::mean_loss(std::size_t rows, const ShardLoss& loss) const {
  check_function(loss, "DataParallel");
  if (size() == 1)
    return parallel::mean_loss(rows, loss, options_.shards);
  check<ValueError>(rows > 0, "parallel: a batch without rows");
  const NoGrad no_grad;
  if (shard_count(rows, options_.shards) < size()) {  // every rank computes all of it
    double all = 0;
    together(*world_, [&] { all = parallel::mean_loss(rows, loss, options_.shards); });
    return all;
  }
  const detail::RunShard run = [&](std::size_t begin, std::size_t end, double weight) {
    return detail::result_of(loss(begin, end), weight);
  };
  if (const auto all = this->run(rows, run, nullptr))
    return *all;
  ShardResult part;
  together(*world_, [&] { part = detail::result_of(loss(0, rows), 1); });
  return detail::total({part.loss}, part.dtype);
}

}  // namespace xgrad::parallel
