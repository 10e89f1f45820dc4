#include "trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>
#include "fail.hpp"
#include "fork.hpp"
#include "graph.hpp"
#include "per_thread.hpp"

namespace xgrad {

namespace {

// The path of this thread's scopes.
std::string& path() { return detail::per_thread<std::string, Scope>(); }

// A snapshot of the value and the place in the graph, which an update() of x does not change.
Tensor as_it_is(const Tensor& x) { return x.defined() ? Saved(x).tensor() : Tensor(); }

std::string shapes(const Trace::Event& event) {
  std::vector<std::string> inputs;
  for (const Tensor& x : event.inputs)
    inputs.push_back(x.defined() ? to_string(x.shape()) : "-");
  return fmt::format("{} -> {}", fmt::join(inputs, ", "), to_string(event.output.shape()));
}

std::string numbers(const std::vector<std::optional<std::size_t>>& made_by) {
  std::vector<std::string> words;
  for (const auto& n : made_by)
    words.push_back(n ? std::to_string(*n + 1) : "-");
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

Trace::Trace(OnBackward on_backward) : on_backward_(std::move(on_backward)) {
  Mode::current().observer = this;
}

Trace::~Trace() { Mode::current().observer = outer; }

std::optional<std::size_t> Trace::maker(const Tensor& x) const {
  const auto found = x.defined() ? makers_.find(x.identity().value.get()) : makers_.end();
  return found == makers_.end() ? std::nullopt : std::optional(found->second);
}

void Trace::clear() {
  events_.clear();
  makers_.clear();
}

void Trace::on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                       const Forward& forward) {
  Event event{std::string(op), Scope::current(), {}, {}, as_it_is(output), forward};
  for (const Tensor& x : inputs) {
    event.inputs.push_back(as_it_is(x));
    event.made_by.push_back(maker(x));
  }
  makers_[output.identity().value.get()] = events_.size();
  events_.push_back(std::move(event));
  PassesOn::on_forward(op, inputs, output, forward);
}

void Trace::on_backward(const Node& node, std::size_t input, const Tensor& gradient) {
  if (on_backward_)
    on_backward_(node, input, gradient);
  PassesOn::on_backward(node, input, gradient);
}

void Trace::on_name(const Tensor& x, std::string_view name) {
  if (const auto op = maker(x))
    events_[*op].name = name;
  PassesOn::on_name(x, name);
}

std::string to_string(const Trace& trace) { return to_string(trace.events()); }

std::string to_string(const std::vector<Trace::Event>& events, const std::vector<bool>& marked) {
  std::vector<std::vector<std::string>> rows{{"op", "name", "from", "scope", "shapes"}};
  for (const Trace::Event& e : events) {
    const std::size_t n = rows.size();
    rows.push_back({(!marked.empty() && marked[n - 1] ? "* " : "") + std::to_string(n), e.op,
                    numbers(e.made_by), e.scope, shapes(e)});
  }
  return in_columns(rows, "><<<");
}

const std::string& Scope::current() { return path(); }

void Scope::enter(std::string_view name) {
  std::string& whole = path();
  length_before_ = whole.size();
  entered_ = true;
  if (!whole.empty())
    whole += '.';
  whole += name;
}

void Scope::leave() noexcept { path().resize(length_before_); }

static std::mutex profile_mutex;  // guards all below
const detail::RenewedInChild<profile_mutex> renewed_mutex;
// Never destroyed: a Profile with static storage may still need it.
static std::vector<Profile::Event>& recorded() {
  static auto& events = *new std::vector<Profile::Event>;
  return events;
}
static double profile_begin = 0;  // microseconds

static thread_local constinit detail::Timed* innermost = nullptr;

static double microseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

static std::size_t thread_number() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t number = next++;
  return number;
}

Profile::Profile() {
  const std::lock_guard lock(profile_mutex);
  check<ValueError>(!detail::profiling.load(), "Profile: there is one already");
  recorded().clear();
  profile_begin = microseconds();
  detail::profiling.store(true);
}

Profile::~Profile() { detail::profiling.store(false); }

std::vector<Profile::Event> Profile::events() const {
  const std::lock_guard lock(profile_mutex);
  return recorded();
}

void detail::Timed::start(std::string_view name) {
  event_ = std::make_unique<Profile::Event>();
  event_->name = name;
  event_->thread = thread_number();
  // Comes last, because nothing may throw after it: only a constructed Timed is destroyed.
  outer_ = std::exchange(innermost, this);
  event_->begin = microseconds();
}

void detail::Timed::start(const Node& node) { start(node.op + " backward"); }

void detail::Timed::stop() noexcept {
  event_->end = microseconds();
  const double all = event_->end - event_->begin;
  event_->self = all - inner_;
  innermost = outer_;
  if (outer_ != nullptr)
    outer_->inner_ += all;
  try {
    const std::lock_guard lock(profile_mutex);
    if (profiling.load() && event_->begin >= profile_begin) {  // skips events of an earlier Profile
      event_->begin -= profile_begin;
      event_->end -= profile_begin;
      recorded().push_back(std::move(*event_));
    }
  } catch (const std::exception&) {  // out of memory: only this event is lost
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
