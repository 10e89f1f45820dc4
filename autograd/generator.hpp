#pragma once
// PyTorch's CPU generator (of builds without MKL), number for number.
//
// A Generator is not locked, so that filling memory is fast: two threads must not draw from the
// same one at a time, default_generator() included.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace xgrad {

/// A mt19937 and the second value of a pair of normals that is kept for the next call
/// (torch.Generator).
class Generator {
 public:
  explicit Generator(std::uint64_t seed = 67280421310721) { manual_seed(seed); }
  void manual_seed(std::uint64_t seed);  ///< as PyTorch, uses the low 32 bits

  std::uint32_t random();    ///< 32 random bits
  std::uint64_t random64();  ///< two of them, the first one high
  /// 0 ... bound - 1, as torch.randint draws it: the remainder of random(), or of random64() from
  /// 2^32 on.  ValueError if bound is 0.
  std::uint64_t random_below(std::uint64_t bound);
  double uniform_double();  ///< [0, 1), 53 bits
  float uniform_float();    ///< [0, 1), 24 bits
  double normal();          ///< one value; of each pair the second is kept
  double exponential();     ///< with mean 1

  /// What the next calls of random() would return: at least one number and at most `most` (which is
  /// not 0).  They count as drawn.  Good until the next call of anything else.
  std::span<const std::uint32_t> random_block(std::size_t most);

  /// Everything that determines what comes next, as one line of text; a FileError if set_state is
  /// given anything that state() does not return, and then nothing has changed.
  std::string state() const;
  void set_state(const std::string& state);
  bool operator==(const Generator&) const = default;

 private:
  static constexpr std::size_t words = 624;
  void next_block();
  void temper();

  std::array<std::uint32_t, words> state_;   // of the recurrence
  std::array<std::uint32_t, words> output_;  // the numbers made of it
  std::size_t position_ = words;             // how many of them have been drawn
  std::optional<double> kept_normal_;
};

/// The generator that is used where none is named; seeded with 67280421310721, as PyTorch's, until
/// manual_seed().
Generator& default_generator();
void manual_seed(std::uint64_t seed);

namespace detail {

inline constexpr std::uint64_t mask53 = (std::uint64_t{1} << 53) - 1;

/// [0, 1), made of the low 24 of 32 bits, or of the low 53 of 64.
inline float to_uniform(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits & 0xffffff)) * 0x1p-24F;
}
inline double to_uniform(std::uint64_t bits) {
  return static_cast<double>(static_cast<std::int64_t>(bits & mask53)) * 0x1p-53;
}

/// While one lives, whatever draws on this thread, from any Generator, throws DrawRefused and has
/// drawn nothing: what runs here is a part of something whose draws come in one order.
class NoDraws {
 public:
  NoDraws();
  NoDraws(const NoDraws&) = delete;
  NoDraws& operator=(const NoDraws&) = delete;
  ~NoDraws();

 private:
  bool before_;
};
struct DrawRefused {};
/// Throws DrawRefused while a NoDraws lives on this thread: for what must see all of a batch.
void check_draws();

}  // namespace detail

}  // namespace xgrad
