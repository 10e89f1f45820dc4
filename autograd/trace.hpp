#pragma once
// Traces record ops as they run, with layers and values; profiles measure their time.
//
//   Trace trace;
//   const Tensor y = model(x);
//   std::cout << to_string(trace);
//   for (const auto& e : trace.events())
//     ...  // e.op, e.scope, e.inputs, e.output, e.forward
//
// A Trace keeps the values of every op that ran: use it for inspection, not for training.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include "mode.hpp"
#include "tensor.hpp"

namespace xgrad {

/// Passes everything on to the observer that this thread had when it was made, if any.
struct PassesOn : Observer {
  Observer* const outer = Mode::current().observer;
  void on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                  const Forward& forward) override {
    if (outer != nullptr)
      outer->on_forward(op, inputs, output, forward);
  }
  void on_gradient(const Node& node, const Tensor& gradient) override {
    if (outer != nullptr)
      outer->on_gradient(node, gradient);
  }
  void on_backward(const Node& node, std::size_t input, const Tensor& gradient) override {
    if (outer != nullptr)
      outer->on_backward(node, input, gradient);
  }
  void on_name(const Tensor& x, std::string_view name) override {
    if (outer != nullptr)
      outer->on_name(x, name);
  }
};

/// While one lives, records every op that runs on this thread.  Ops of a backward run are recorded
/// if it runs with create_graph; ops inside another op's forward are not.  Traces may be nested;
/// the inner one must end first.
class Trace final : public PassesOn {
 public:
  struct Event {
    std::string op;     ///< "matmul"
    std::string scope;  ///< "h.0.attn", or "" outside of any Scope
    /// Values at the time of the op: a later update() does not change them.  Undefined for an
    /// absent optional input.
    std::vector<Tensor> inputs;
    /// The index in events() of each input's op; none if the input is from outside.
    std::vector<std::optional<std::size_t>> made_by;
    Tensor output;          ///< output.identity().node is the op's node, null if it has no graph
    Forward forward;        ///< computes the op again: forward(inputs), or on other inputs
    std::string name = {};  ///< that named() gave to the output
  };
  /// Called in a backward run, after the formula of `node`, for each of its inputs that has a
  /// gradient: the sum for that input so far.
  using OnBackward =
      std::function<void(const Node& node, std::size_t input, const Tensor& gradient)>;

  explicit Trace(OnBackward on_backward = {});
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() override;

  const std::vector<Event>& events() const { return events_; }
  /// The index in events() of the last op whose output has this value.
  std::optional<std::size_t> maker(const Tensor& x) const;
  void clear();  ///< forgets all events and goes on

  void on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                  const Forward& forward) override;
  void on_backward(const Node& node, std::size_t input, const Tensor& gradient) override;
  void on_name(const Tensor& x, std::string_view name) override;

 private:
  OnBackward on_backward_;
  std::vector<Event> events_;
  std::unordered_map<const Value*, std::size_t> makers_;  // by their outputs, which live as long
};

/// A table with one line for each op: its number from 1, its name, the numbers of the ops that made
/// its inputs ("-" for an input from outside), its scope, and the shapes "inputs -> output".
std::string to_string(const Trace& trace);
/// The same for these events, with "* " before the marked ones.
std::string to_string(const std::vector<Trace::Event>& events,
                      const std::vector<bool>& marked = {});

/// x itself, whose name an observer learns: a Trace keeps it with the op that made x.  The
/// attention page takes the values that are named "attention" as weights, viz/attention.hpp.
///
///   const Tensor weights = named(softmax(a, -1) - 0.3 * softmax(b, -1), "attention");
///
/// Costs one branch without an observer.  A value that no op made within the Trace gets no name.
inline Tensor named(Tensor x, std::string_view name) {
  if (Observer* const observer = Mode::current().observer; observer != nullptr) [[unlikely]]
    observer->on_name(x, name);
  return x;
}

/// While one lives, ops on this thread are recorded under this name, below the names of enclosing
/// Scopes: "h.0" and in it "attn" give "h.0.attn".  Costs one branch without an observer.  A Trace
/// does not see the name of a Scope that was entered before the Trace.
class Scope {
 public:
  explicit Scope(std::string_view name) {
    if (Mode::current().observer != nullptr) [[unlikely]]
      enter(name);
  }
  /// "h", 0 gives "h.0"; the string is not made if there is no observer.
  Scope(std::string_view name, std::size_t index) {
    if (Mode::current().observer != nullptr) [[unlikely]]
      enter(std::string(name) + '.' + std::to_string(index));
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() {
    if (entered_) [[unlikely]]
      leave();
  }

  static const std::string& current();  ///< this thread's path; "" outside of any Scope

 private:
  void enter(std::string_view name);
  void leave() noexcept;

  bool entered_ = false;
  std::size_t length_before_ = 0;
};

// A profile: the time of each op's forward and backward, on all threads (torch.profiler).

/// While one lives, ops on all threads are timed; ValueError if there is one already.  Read the
/// results while no op runs.
class Profile {
 public:
  struct Event {
    std::string name;    ///< "linear", "linear backward", "AdamW"
    std::size_t thread;  ///< numbered from 0 by their first events
    double begin, end;   ///< microseconds since the Profile was made
    double self;         ///< microseconds without those of nested events
  };

  Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  ~Profile();

  std::vector<Event> events() const;
  /// One line for each name, by falling self time: calls, milliseconds, share of the sum.
  std::string table() const;
};

namespace detail {

inline std::atomic<bool> profiling{false};

/// Times its own lifetime, if there is a Profile; costs a load and a branch otherwise.
class Timed {
 public:
  explicit Timed(const auto& what) {  ///< a name, or a node: its backward
    if (profiling.load(std::memory_order_relaxed)) [[unlikely]]
      start(what);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() {
    if (event_ != nullptr) [[unlikely]]
      stop();
  }

 private:
  void start(std::string_view name);
  void start(const Node& node);
  void stop() noexcept;

  std::unique_ptr<Profile::Event> event_;
  Timed* outer_ = nullptr;
  double inner_ = 0;
};

}  // namespace detail

}  // namespace xgrad
