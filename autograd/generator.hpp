#pragma once
// PyTorch's CPU generator (of builds without MKL), number for number; and, for who asks for them,
// masks of dropout by counter.
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

  /// From here on dropout, attention's too, makes its masks by Philox 4x32-10 (kernels/philox.hpp),
  /// of the seed, the mask's number and the element's, and not of what was drawn before: a part of
  /// a batch can have its part of a mask.  `masks` have been made already.  manual_seed() begins
  /// with mask 0 of its seed.  All else is drawn as before.
  void use_counter_dropout(std::uint64_t seed, std::uint64_t masks = 0);
  struct CounterDropout {
    std::uint64_t seed, masks;
    bool operator==(const CounterDropout&) const = default;
  };
  /// No value unless use_counter_dropout() was called.
  const std::optional<CounterDropout>& counter_dropout() const { return counter_; }

  /// Elements of a mask by counter: those from `first` on.
  struct MaskPart {
    std::uint64_t seed, mask, first;
  };
  /// The next mask, for so many elements of a Tensor whose first dimension is `rows`: all of it,
  /// or within a shard (detail::ShardDraws) the part of its rows.  No value if there is none by
  /// counter.
  std::optional<MaskPart> next_mask(std::size_t rows, std::size_t elements);

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
  std::optional<CounterDropout> counter_;
};

/// The generator that is used where none is named; seeded with 67280421310721, as PyTorch's, until
/// manual_seed().  Within a shard of parallel::backward() it is a copy.
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

/// While one lives, this thread computes rows [begin, end) of a batch.  default_generator() is
/// `generator` here: its masks by counter are those of these rows, for Tensors with as many rows.
/// Whatever else draws, from any Generator, throws DrawRefused and has drawn nothing: its numbers
/// come in the order of the whole batch.
struct ShardDraws {
  Generator generator;
  std::size_t begin, rows;

  ShardDraws(const Generator& of_batch, std::size_t begin_row, std::size_t end_row);
  ShardDraws(const ShardDraws&) = delete;
  ShardDraws& operator=(const ShardDraws&) = delete;
  ~ShardDraws();

 private:
  ShardDraws* before_;
};
struct DrawRefused {};
/// Throws DrawRefused within a shard: for what must see all of a batch.
void check_draws();
/// Does so of a sum over this many rows if they are the shard's: its shards are not averaged.
void check_sum(std::size_t rows);

}  // namespace detail

}  // namespace xgrad
