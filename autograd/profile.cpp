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
  enter();
}

// Last, for nothing may throw after it: only a Timed that was made is destroyed.
void detail::Timed::enter() {
  event_->thread = thread_number();
  outer_ = std::exchange(innermost, this);
  event_->begin = microseconds();
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

std::string Profile::table() const {
  struct Sum {
    double self = 0;
    std::size_t calls = 0;
  };
  std::map<std::string, Sum> by_name;
  double total = 0;
  for (const Event& e : events()) {
    Sum& sum = by_name[e.name];
    sum.self += e.self;
    ++sum.calls;
    total += e.self;
  }
  std::vector<std::pair<std::string, Sum>> sums(by_name.begin(), by_name.end());
  std::ranges::stable_sort(sums, std::ranges::greater(),
                           [](const auto& s) { return s.second.self; });
  std::string text = fmt::format("{:<32} {:>7} {:>10} {:>6}\n", "op", "calls", "ms", "share");
  for (const auto& [name, sum] : sums)
    text += fmt::format("{:<32} {:>7} {:>10.3f} {:>5.1f}%\n", name, sum.calls, sum.self / 1e3,
                        100 * sum.self / std::max(total, 1e-9));
  return text + fmt::format("all threads: {:.3f} ms\n", total / 1e3);
}

}  // namespace xgrad
