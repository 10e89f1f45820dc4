#pragma once
// Where the time goes: each op's forward and backward, on all threads (torch.profiler).

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

/// While one lives, ops on all threads are timed; ValueError if there is one already.  What is
/// recorded is read when no op runs.
class Profile {
 public:
  struct Event {
    std::string name;    ///< "linear", "linear backward", "AdamW"
    std::size_t thread;  ///< numbered from 0 as they come
    double begin, end;   ///< microseconds since the Profile was made
    double self;         ///< microseconds less those of ops within
  };

  Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  ~Profile();

  std::vector<Event> events() const;
  /// A line for each name, by falling self time: calls, milliseconds, share of the sum.
  std::string table() const;
};

namespace detail {

inline std::atomic<bool> profiling{false};

/// Times what happens while it lives, if there is a Profile; costs a load and a branch if not.
class Timed {
 public:
  explicit Timed(std::string_view name) {
    if (profiling.load(std::memory_order_relaxed)) [[unlikely]]
      start(name);
  }
  explicit Timed(const Node& node) {  ///< its backward
    if (profiling.load(std::memory_order_relaxed)) [[unlikely]]
      start(node);
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
  void enter();
  void stop() noexcept;

  std::unique_ptr<Profile::Event> event_;
  Timed* outer_ = nullptr;
  double inner_ = 0;
};

}  // namespace detail
}  // namespace xgrad
