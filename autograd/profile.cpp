#include <xgrad/autograd/profile.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/fork.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/kernels/gemm.hpp>

namespace xgrad {
namespace {

using Clock = std::chrono::steady_clock;

std::mutex profile_mutex;  // of all that follows
const detail::RenewedInChild<profile_mutex> renewed_mutex;
std::vector<Profile::Event> recorded;
double profile_begin = 0;  // microseconds

thread_local constinit detail::Timed* innermost = nullptr;

double microseconds() {
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

std::size_t thread_number() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t number = next++;
  return number;
}

}  // namespace

std::uint64_t detail::forward_flops(std::string_view op, std::span<const Shape> in,
                                    const Shape& y) {
  const auto size = [&](std::size_t i, int d) -> std::uint64_t {
    if (i >= in.size())  // an op of the user's own that has this name
      return 0;
    const Shape& s = in[i];
    return s.size() < 2 ? 0 : static_cast<std::uint64_t>(s[d]);
  };
  const std::uint64_t elements = numel(y);
  if (op == "linear")
    return 2 * elements * size(1, -1);
  if (op == "matmul")
    return 2 * elements * std::max(size(0, -1), size(1, -2));
  if (op == "causal_self_attention" && y.size() == 3)  // (B, T, C)
    return 4 * elements * static_cast<std::uint64_t>(y[1]);
  if (op == "scaled_dot_product_attention")  // k is (..., S, D)
    return 4 * elements * size(1, -2);
  return 0;
}

Profile::Profile() {
  const std::lock_guard lock(profile_mutex);
  check<ValueError>(!detail::profiling.load(), "Profile: there is one already");
  recorded.clear();
  profile_begin = microseconds();
  detail::profiling.store(true);
}

Profile::~Profile() { detail::profiling.store(false); }

std::vector<Profile::Event> Profile::events() const {
  const std::lock_guard lock(profile_mutex);
  return recorded;
}

void detail::Timed::start(std::string_view name) {
  event_ = std::make_unique<Profile::Event>();
  event_->name = name;
  enter();
}

void detail::Timed::start(const Node& node) {
  event_ = std::make_unique<Profile::Event>();
  event_->name = node.op + " backward";
  std::vector<Shape> shapes;
  std::uint64_t elements = numel(node.shape);
  for (const auto& input : node.inputs) {
    shapes.push_back(input == nullptr ? Shape() : input->shape);
    elements += input == nullptr ? 0 : numel(input->shape);
  }
  const std::uint64_t itemsize = node.dtype == DType::float32 ? 4 : 8;
  event_->bytes = 2 * elements * itemsize;                         // values and gradients
  event_->flops = 2 * forward_flops(node.op, shapes, node.shape);  // for each of two inputs
  enter();
}

// Last, for nothing may throw after it: only a Timed that was made is destroyed.
void detail::Timed::enter() {
  event_->thread = thread_number();
  outer_ = std::exchange(innermost, this);
  event_->begin = microseconds();
}

void detail::Timed::count(std::span<const Tensor> inputs, const Tensor& output) {
  std::vector<Shape> shapes;
  std::uint64_t elements = numel(output.shape());
  for (const Tensor& x : inputs) {
    shapes.push_back(x.defined() ? x.shape() : Shape());
    elements += x.defined() ? numel(x.shape()) : 0;
  }
  event_->bytes = elements * (output.dtype() == DType::float32 ? 4 : 8);
  event_->flops = forward_flops(event_->name, shapes, output.shape());
}

void detail::Timed::stop() noexcept {
  event_->end = microseconds();
  const double all = event_->end - event_->begin;
  event_->self = all - inner_;
  innermost = outer_;
  if (outer_ != nullptr)
    outer_->inner_ += all;
  try {
    const std::lock_guard lock(profile_mutex);
    if (profiling.load() && event_->begin >= profile_begin) {  // not of a Profile before this one
      event_->begin -= profile_begin;
      event_->end -= profile_begin;
      recorded.push_back(std::move(*event_));
    }
  } catch (const std::exception&) {  // no memory: the event is lost, and nothing else
  }
}

// ---- the table ----

Profile::Roof Profile::measure_roof() {
  const auto best_of = [](const auto& work) {
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto begin = Clock::now();
      work();
      best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return best;
  };
  constexpr std::size_t n = 512, large = std::size_t{1} << 23;
  const std::vector<float> a(n * n, 1), b(n * n, 1), from(large, 1);
  std::vector<float> c(n * n), to(large);
  const double product = best_of([&] {
    kernels::gemm<float>(false, false, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
  });
  const double copy = best_of([&] { std::copy(from.begin(), from.end(), to.begin()); });
  return {2.0 * n * n * n / product, 2.0 * large * sizeof(float) / copy};
}

std::string Profile::table() const {
  struct Sum {
    double self = 0;
    std::size_t calls = 0;
    std::uint64_t bytes = 0, flops = 0;
  };
  std::map<std::string, Sum> by_name;
  double total = 0;
  for (const Event& e : events()) {
    Sum& sum = by_name[e.name];
    sum.self += e.self;
    ++sum.calls;
    sum.bytes += e.bytes;
    sum.flops += e.flops;
    total += e.self;
  }
  std::vector<std::pair<std::string, Sum>> sums(by_name.begin(), by_name.end());
  std::ranges::stable_sort(sums, std::ranges::greater(),
                           [](const auto& s) { return s.second.self; });
  const Roof roof = measure_roof();
  std::string text = fmt::format("{:<32} {:>10} {:>6} {:>7} {:>10} {:>9} {:>9} {:>6}\n", "op", "ms",
                                 "share", "calls", "MB", "GB/s", "GFLOP/s", "roof");
  for (const auto& [name, sum] : sums) {
    const double seconds = std::max(sum.self, 1e-3) / 1e6;
    const double bytes = static_cast<double>(sum.bytes), flops = static_cast<double>(sum.flops);
    const double share = sum.flops > 0 ? flops / seconds / roof.flops_per_second
                                       : bytes / seconds / roof.bytes_per_second;
    text += fmt::format("{:<32} {:>10.3f} {:>5.1f}% {:>7} {:>10.1f} {:>9.1f} {:>9} {:>6}\n", name,
                        sum.self / 1e3, 100 * sum.self / std::max(total, 1e-9), sum.calls,
                        bytes / 1e6, bytes / seconds / 1e9,
                        sum.flops > 0 ? fmt::format("{:.1f}", flops / seconds / 1e9) : "-",
                        sum.bytes > 0 ? fmt::format("{:.0f}%", 100 * share) : "-");
  }
  return text + fmt::format(
                    "all threads: {:.3f} ms; the roof of one thread: {:.1f} GFLOP/s, {:.1f} GB/s "
                    "(more than 100 % comes from caches)\n",
                    total / 1e3, roof.flops_per_second / 1e9, roof.bytes_per_second / 1e9);
}

}  // namespace xgrad
