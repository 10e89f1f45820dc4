#include "mpi/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <mutex>
#include <xgrad/autograd/accumulate.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/nested_run.hpp>
#include <xgrad/autograd/ops/optim.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/parallel/parts.hpp>

#include "mpi/report.hpp"

namespace xgrad::parallel {
namespace {

using detail::Part;
using detail::Report;

// What this thread is doing: the backward of a shard, at a depth of runs within each other.
thread_local std::size_t shard_at_work = 0;
thread_local int depth_of_backward = 0;

// While one lives, gradients of the run that begins next are a shard's.  Those of runs that a
// loss, a hook or a formula makes for itself are not.
class BackwardOfShard {
 public:
  BackwardOfShard()
      : before_(std::exchange(depth_of_backward, xgrad::detail::NestedRun::depth() + 1)) {}
  BackwardOfShard(const BackwardOfShard&) = delete;
  BackwardOfShard& operator=(const BackwardOfShard&) = delete;
  ~BackwardOfShard() { depth_of_backward = before_; }

 private:
  int before_;
};

std::span<std::byte> bytes_of(Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    return std::as_writable_bytes(std::span(xgrad::detail::writable_data<T>(x), x.numel()));
  });
}

// Of the bits (FNV-1a over words), as a number that a double holds.
double checksum(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    using Word = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;
    std::uint64_t hash = 14695981039346656037U;
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.numel()); ++i)
      hash = (hash ^ std::bit_cast<Word>(x.data<T>()[i])) * 1099511628211U;
    return static_cast<double>(hash >> 12);
  });
}

}  // namespace

// One batch on this rank.
class DataParallel::Step {
 public:
  Step(const DataParallel& all, std::size_t rows, std::size_t parameters)
      : all_(all),
        rows_(rows),
        shards_(shard_count(rows, all.options_.shards)),
        range_(shards_of_rank(shards_, all.size(), all.rank())),
        gradients_(parameters, std::vector<Tensor>(shards_)),
        kept_(parameters, std::vector<const Value*>(shards_)),
        missing_(parameters, range_.second - range_.first) {
    report_.losses.resize(shards_);
    report_.present.resize(parameters);
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() {
    for (const auto& [parameter, id] : hooks_)
      Tensor(parameter).remove_hook(id);
  }

  /// The shards, and what the ranks have made of them together.  False if the batch must stay
  /// whole.  `early` begins sums while shards are at work; without it, the ranks first ask each
  /// other whether there is something to add up.
  bool run(const detail::RunShard& shard, bool early) {
    std::exception_ptr error;
    const auto attempt = [&](const auto& f) {
      try {
        f();
      } catch (...) {
        error = std::current_exception();
        report_.failed = 1;
      }
    };
    attempt([&] {
      if (early)
        listen();
      const auto parts =
          detail::run_shards(rows_, shards_, range_,
                             [&](std::size_t s, std::size_t begin, std::size_t end, double weight) {
                               shard_at_work = s;
                               Part part = shard(s, begin, end, weight);
                               keep(s, std::exchange(part.gradients, {}));
                               return part;
                             });
      report_.whole = parts ? 0 : 1;
      for (std::size_t i = 0; parts && i < parts->size(); ++i) {
        report_.losses[range_.first + i] = (*parts)[i].loss;
        dtype_ = (*parts)[i].dtype;
      }
    });
    const ModeGuard quiet({false, nullptr});
    if (!early) {
      ask();
      if (report_.failed > 0 || report_.whole > 0 || gradients_.empty())
        return decide(error);
    }
    // The others wait for this rank's part in any case: if it has failed, of no value.
    while (sums_.size() < all_.buckets_.size())
      if (report_.failed > 0)
        send();
      else
        attempt([&] { send(); });
    if (early) {
      ask();
      return decide(error);
    }
    results_ = wait(sums_);
    if (error != nullptr)
      std::rethrow_exception(error);
    return true;
  }

  double loss() const { return detail::total(report_.losses, dtype_); }

  LeafGradients gradients() const {
    LeafGradients result;
    for (std::size_t b = 0; b < all_.buckets_.size(); ++b) {
      std::size_t at = 0;
      for (const std::size_t p : all_.buckets_[b].parameters) {
        const Tensor& parameter = all_.parameters_[p].second;
        const std::size_t n = parameter.numel();
        if (report_.present[p] > 0)
          result.emplace_back(parameter.handle(),
                              narrow(results_[b], 0, static_cast<std::int64_t>(at), n)
                                  .reshape(parameter.shape())
                                  .clone());
        at += n;
      }
    }
    return result;
  }

 private:
  /// From here on, gradients go to the other ranks as soon as this rank has those of all its
  /// shards.
  void listen() {
    for (std::size_t p = 0; p < gradients_.size(); ++p) {
      Tensor parameter = all_.parameters_[p].second;
      if (parameter.requires_grad())
        hooks_.emplace_back(parameter, parameter.register_hook([this, p](const Tensor& gradient) {
          if (xgrad::detail::NestedRun::depth() == depth_of_backward)
            deliver(p, shard_at_work, gradient);
          return Tensor();
        }));
      else
        missing_[p] = 0;
    }
  }

  /// What a shard's backward has given in the end: the same, unless the loss has changed hooks.
  void keep(std::size_t shard, const LeafGradients& gradients) {
    for (const auto& [leaf, gradient] : gradients) {
      const std::size_t p = all_.numbers_.at(leaf.get());
      const bool late = kept_[p][shard] == nullptr;
      if (!late && kept_[p][shard] == gradient.impl().value.get())
        continue;
      const std::lock_guard lock(mutex_);
      if (!late || sums_.size() > all_.bucket_of(p))
        fail<GraphError>(
            "DataParallel: while its loss was computed, parameter {} was unfrozen or got a hook; "
            "do that before backward()",
            all_.parameters_[p].first);
      put(p, shard, gradient);
    }
  }

  void put(std::size_t parameter, std::size_t shard, const Tensor& gradient) {
    report_.present[parameter] = 1;
    kept_[parameter][shard] = gradient.impl().value.get();
    gradients_[parameter][shard] = gradient.detach();
  }

  void deliver(std::size_t parameter, std::size_t shard, const Tensor& gradient) {
    const Tensor& x = all_.parameters_[parameter].second;
    if (gradient.shape() != x.shape() || gradient.dtype() != x.dtype())
      return;  // a hook's: the engine refuses it next
    const ModeGuard quiet({false, nullptr});
    const std::lock_guard lock(mutex_);
    put(parameter, shard, gradient);
    --missing_[parameter];
    const auto complete = [&](const Bucket& bucket) {
      return std::ranges::all_of(bucket.parameters,
                                 [&](std::size_t p) { return missing_[p] == 0; });
    };
    while (sums_.size() < all_.buckets_.size() && complete(all_.buckets_[sums_.size()]))
      send();
    for (const auto& sum : sums_)
      sum->poll();
  }

  /// The next bucket.
  void send() {
    const Bucket& bucket = all_.buckets_[sums_.size()];
    std::vector<Tensor> of_subtrees;
    for (const auto& [begin, end] : subtrees(shards_, range_)) {
      // What no shard has is -0, which changes no sum.
      Tensor& flat = of_subtrees.emplace_back(full({bucket.elements}, -0.0, bucket.dtype));
      if (report_.failed > 0 || report_.whole > 0)
        continue;
      std::vector<std::vector<Tensor>> lists;
      for (const std::size_t p : bucket.parameters) {
        std::vector<Tensor>& list = lists.emplace_back();
        for (std::size_t s = begin; s < end; ++s)
          list.push_back(std::exchange(gradients_[p][s], {}));
      }
      foreach_tree_sum_(lists);
      dispatch(bucket.dtype, [&]<class T>() {
        T* to = xgrad::detail::writable_data<T>(flat);
        for (std::size_t i = 0; i < lists.size(); ++i) {
          if (const Tensor& sum = lists[i].front(); sum.defined())
            std::copy_n(sum.data<T>(), sum.numel(), to);
          to += all_.parameters_[bucket.parameters[i]].second.numel();
        }
      });
    }
    sums_.push_back(all_.world().begin_sum(shards_, std::move(of_subtrees)));
  }

  /// Adds up the reports, and waits for all that is on its way.
  void ask() {
    sums_.push_back(report_.begin_sum(all_.world()));
    results_ = wait(sums_);
    sums_.pop_back();
    report_.read(results_.back());
    results_.pop_back();
  }

  bool decide(const std::exception_ptr& error) const {
    if (report_.failed > 0)
      detail::agree(all_.world(), error);
    return report_.whole == 0;
  }

  const DataParallel& all_;
  std::size_t rows_, shards_;
  ShardRange range_;
  std::mutex mutex_;
  std::vector<std::vector<Tensor>> gradients_;   // of the parameters, of the shards
  std::vector<std::vector<const Value*>> kept_;  // which these were
  std::vector<std::size_t> missing_;             // of the parameters: how many shards
  std::vector<std::pair<Tensor, std::size_t>> hooks_;
  Report report_;
  DType dtype_ = DType::float32;
  std::vector<std::unique_ptr<PendingSum>> sums_;  // of the buckets
  std::vector<Tensor> results_;
};

DataParallel::DataParallel(std::vector<std::pair<std::string, Tensor>> named_parameters,
                           std::shared_ptr<const Communicator> world, const Options& options)
    : parameters_(std::move(named_parameters)), world_(std::move(world)), options_(options) {
  check<ValueError>(options.shards > 0, "DataParallel: a batch cannot be cut into 0 shards");
  check<ValueError>(options.check_interval > 0, "DataParallel: check_interval is 0");
  check<ValueError>(world_ != nullptr, "DataParallel: there is no world");
  // A Tensor under two names is one parameter.
  std::erase_if(parameters_, [&](const auto& named) {
    return !numbers_.try_emplace(named.second.handle().get(), numbers_.size()).second;
  });
  if (size() == 1)
    return;
  shards_of_rank(options.shards, size(), rank());  // or there are too many ranks
  share_parameters();
  make_buckets();
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

// The parameters that were used last come first: their gradients are complete first.
void DataParallel::make_buckets() {
  bucket_numbers_.resize(parameters_.size());
  for (std::size_t p = parameters_.size(); p-- > 0;) {
    const Tensor& x = parameters_[p].second;
    const std::size_t itemsize = x.dtype() == DType::float32 ? 4 : 8;
    if (buckets_.empty() || buckets_.back().dtype != x.dtype() ||
        buckets_.back().elements * itemsize >= options_.bucket_bytes)
      buckets_.push_back({.parameters = {}, .dtype = x.dtype()});
    bucket_numbers_[p] = buckets_.size() - 1;
    buckets_.back().parameters.push_back(p);
    buckets_.back().elements += x.numel();
  }
}

void DataParallel::check_parameters() const {
  std::vector<double> mine;
  for (const auto& [name, x] : parameters_)
    mine.push_back(checksum(x));
  std::vector<double> theirs = mine;
  world_->broadcast(std::as_writable_bytes(std::span(theirs)));
  together(*world_, [&] {
    const auto [here, there] = std::ranges::mismatch(mine, theirs);
    if (here != mine.end())
      fail<RankError>(
          "DataParallel: the ranks have drifted apart: parameter {} is not what it is on rank 0",
          parameters_[static_cast<std::size_t>(here - mine.begin())].first);
  });
}

Part DataParallel::shard_of(const Tensor& loss, double weight) const {
  const BackwardOfShard backward;
  Part part = detail::backward_of(loss, weight);
  for (const auto& [leaf, gradient] : part.gradients)
    if (!numbers_.contains(leaf.get()))
      fail<GraphError>(
          "DataParallel: the loss depends on a leaf of shape {} that is not one of the parameters, "
          "so the ranks do not add up its gradient",
          to_string(leaf->value->shape));
  return part;
}

double DataParallel::backward(std::size_t rows, const ShardLoss& loss) {
  check_function(loss, "DataParallel");
  const detail::RunShard run = [&](std::size_t, std::size_t begin, std::size_t end, double weight) {
    return shard_of(loss(begin, end), weight);
  };
  if (size() == 1)
    return detail::backward_all(rows, options_.shards, run);
  check<ValueError>(rows > 0, "parallel: a batch without rows");
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    check<ValueError>(parameters_[p].second.dtype() == buckets_[bucket_of(p)].dtype,
                      "DataParallel: parameter {} is {} by now: make it anew after nn::to()",
                      parameters_[p].first, to_string(parameters_[p].second.dtype()));
  if (batches_++ % options_.check_interval == 0)
    check_parameters();
  Step step(*this, rows, parameters_.size());
  const bool cut = step.run(run, !cautious_);
  cautious_ = !cut;
  if (cut) {
    together(*world_, [&] { accumulate_grads(step.gradients(), false); });
    return step.loss();
  }
  Part part;
  together(*world_, [&] { part = run(0, 0, rows, 1); });
  together(*world_, [&] { accumulate_grads(part.gradients, false); });
  return detail::total({part.loss}, part.dtype);
}

double DataParallel::mean_loss(std::size_t rows, const ShardLoss& loss) const {
  check_function(loss, "DataParallel");
  if (size() == 1)
    return parallel::mean_loss(rows, loss, options_.shards);
  check<ValueError>(rows > 0, "parallel: a batch without rows");
  const NoGrad no_grad;
  if (shard_count(rows, options_.shards) < size()) {  // every rank computes them all
    double all = 0;
    together(*world_, [&] { all = parallel::mean_loss(rows, loss, options_.shards); });
    return all;
  }
  Step step(*this, rows, 0);
  if (step.run([&](std::size_t, std::size_t begin, std::size_t end,
                   double weight) { return detail::part_of(loss(begin, end), weight); },
               false))
    return step.loss();
  Part part;
  together(*world_, [&] { part = detail::part_of(loss(0, rows), 1); });
  return detail::total({part.loss}, part.dtype);
}

}  // namespace xgrad::parallel
