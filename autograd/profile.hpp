#pragma once
// Where the time goes: each op's forward and backward, on all threads (torch.profiler).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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
    std::string name;     ///< "linear", "linear backward", "AdamW"
    std::size_t thread;   ///< numbered from 0 as they come
    double begin, end;    ///< microseconds since the Profile was made
    double self;          ///< microseconds less those of ops within
    std::uint64_t bytes;  ///< of the op's inputs and output, and in backward of their gradients
    std::uint64_t flops;  ///< of matrix products and attention; 0 for others
  };

  Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  ~Profile();

  std::vector<Event> events() const;
  /// A line for each name, by falling time: its self time and share, calls, bytes, and the share of
  /// what this machine does at most on one thread: its rate of matrix products, else of memory.
  std::string table() const;

  /// Those rates, measured on a large matrix product and a large copy.
  struct Roof {
    double flops_per_second, bytes_per_second;
  };
  static Roof measure_roof();
};

namespace detail {

inline std::atomic<bool> profiling{false};

/// Of an op's forward: 2 for each multiply-add of a matrix product or of attention; 0 for others.
/// An input that is left out, or wants no gradient, may have the shape ().
std::uint64_t forward_flops(std::string_view op, std::span<const Shape> inputs,
                            const Shape& output);

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
  void took(std::span<const Tensor> inputs, const Tensor& output) {  ///< what it read and wrote
    if (event_ != nullptr) [[unlikely]]
      count(inputs, output);
  }

 private:
  void start(std::string_view name);
  void start(const Node& node);
  void enter();
  void stop() noexcept;
  void count(std::span<const Tensor> inputs, const Tensor& output);

  std::unique_ptr<Profile::Event> event_;
  Timed* outer_ = nullptr;
  double inner_ = 0;
};

}  // namespace detail
}  // namespace xgrad
