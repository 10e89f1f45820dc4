#pragma once
// PyTorch's CPU generator (of builds without MKL), number for number, and functions that fill
// memory with its draws.
//
// A Generator has no lock, for speed: two threads must not draw from the same one,
// default_generator() included, at the same time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace xgrad {

class Generator;

namespace detail {

inline constexpr std::uint64_t mask53 = (std::uint64_t{1} << 53) - 1;

/// [0, 1), made of the low 24 of 32 bits, or of the low 53 of 64.
inline float to_uniform(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits & 0xffffff)) * 0x1p-24F;
}
inline double to_uniform(std::uint64_t bits) {
  return static_cast<double>(static_cast<std::int64_t>(bits & mask53)) * 0x1p-53;
}

/// Thrown if the shards of a batch would not draw the same numbers as the whole batch.
struct DrawRefused {};

class BatchMasks;
class SameDraws;
struct ShardDraws;
/// Throws DrawRefused within a shard: called by operations that must see the whole batch.
void check_draws();
/// The same for a sum of `rows` to one number if the shard has as many: shards are averaged, not
/// summed.
void check_sum(std::size_t rows);
/// Whether dropout keeps each of n elements: bit i % 32 of word i / 32, drawn as by fill_dropout().
std::vector<std::uint32_t> draw_kept(std::size_t n, double p, Generator& generator);

}  // namespace detail

/// An mt19937, and the second value of a pair of normals, kept for the next call (torch.Generator).
class Generator {
 public:
  explicit Generator(std::uint64_t seed = 67280421310721) { manual_seed(seed); }
  void manual_seed(std::uint64_t seed);  ///< as PyTorch, uses the low 32 bits

  std::uint32_t random();    ///< 32 random bits
  std::uint64_t random64();  ///< two of them, the first one as the high half
  /// 0 ... bound - 1, as torch.randint draws it: the remainder of random(), or of random64() for
  /// bounds from 2^28 on (PyTorch 1.13: from 2^32 on).  ValueError if bound is 0.
  std::uint64_t random_below(std::uint64_t bound);
  double uniform_double();  ///< [0, 1), 53 bits
  float uniform_float();    ///< [0, 1), 24 bits
  double normal();          ///< one value; of each pair the second is kept
  double exponential();     ///< with mean 1

  /// The numbers that the next calls of random() would return: from one to `most`, which is not 0.
  /// They count as drawn.  Valid until the next call of another member.
  std::span<const std::uint32_t> random_block(std::size_t most);

  /// The whole state as one line of text.  set_state() throws a FileError for any text that state()
  /// does not return, and then changes nothing.
  std::string state() const;
  void set_state(const std::string& state);
  bool operator==(const Generator&) const = default;

 private:
  static constexpr std::size_t words = 624;
  void next_block();
  void temper();

  std::array<std::uint32_t, words> state_;   // of the recurrence
  std::array<std::uint32_t, words> output_;  // the numbers made from it
  std::size_t position_ = words;             // how many of them have been drawn
  std::optional<double> kept_normal_;
  std::uint64_t masks_ = 0;  // of a shard's copy: the masks that it has taken (BatchMasks)
  friend struct detail::ShardDraws;
};

/// The generator of draws that name none.  Its seed is PyTorch's, 67280421310721, until
/// manual_seed().  Within a shard of parallel::backward() it is a copy.
Generator& default_generator();
void manual_seed(std::uint64_t seed);

/// Saves default_generator() so that calls of a function can draw the same numbers again; the
/// destructor restores it.
class detail::SameDraws {
 public:
  SameDraws() = default;
  SameDraws(const SameDraws&) = delete;
  SameDraws& operator=(const SameDraws&) = delete;
  ~SameDraws() { again(); }
  void again() const { default_generator() = before_; }
  /// f, drawing the same numbers in each call.
  template <class F>
  auto of(const F& f) const {
    return [this, f](const auto& in) {
      again();
      return f(in);
    };
  }

 private:
  Generator before_ = default_generator();
};

/// Dropout's masks for a batch that is computed in shards.  All shards request masks in the same
/// order; the first request for a mask draws it for the whole batch, and each shard takes its rows.
/// Masks live as long as the batch, because checkpoint() requests them again.  Thread-safe.
class detail::BatchMasks {
 public:
  using Bits = std::vector<std::uint32_t>;  ///< as draw_kept() gives them

  /// Draws from `generator` for a batch of `rows`.
  BatchMasks(Generator& generator, std::size_t rows);
  BatchMasks(const BatchMasks&) = delete;
  BatchMasks& operator=(const BatchMasks&) = delete;

  /// Mask `number`, with `row_elements` in each row, which drops one with probability p.
  /// DrawRefused if another shard requested another shape or p, and within a shard of a larger
  /// batch.
  const Bits& get(std::uint64_t number, std::size_t row_elements, double p);
  /// The generator's first state, and a return to it, for a batch that runs whole or fails.
  const Generator& before() const { return before_; }
  void undo() { generator_ = before_; }

 private:
  struct Mask {
    std::size_t row_elements;
    double p;
    Bits kept;
  };
  Generator& generator_;
  const Generator before_;
  const std::size_t rows_;
  const bool within_shard_;
  std::mutex mutex_;
  std::deque<Mask> masks_;  // references to its elements stay valid
};

/// While one lives, this thread computes rows [begin, end) of a batch.  Its default_generator() is
/// `generator`, a copy whose state is the number of masks that the shard has taken.  All other
/// draws, from any Generator, throw DrawRefused before they draw anything: their numbers depend on
/// the order of the whole batch.
struct detail::ShardDraws {
  Generator generator;
  BatchMasks& masks;
  std::size_t begin, rows;
  bool refused = false;  ///< DrawRefused was thrown, even if the loss caught it

  ShardDraws(BatchMasks& of_batch, std::size_t begin_row, std::size_t end_row);
  ShardDraws(const ShardDraws&) = delete;
  ShardDraws& operator=(const ShardDraws&) = delete;
  ~ShardDraws();

  static ShardDraws* current();  ///< this thread's, or null
  std::uint64_t masks_taken() const { return generator.masks_; }
  /// The next mask for a Tensor of so many elements, whose first dimension is `rows_of_tensor`, and
  /// the position at which the shard's rows begin.  DrawRefused for another Generator than the
  /// shard's or one whose state was set, and for a Tensor with another number of rows.
  struct Part {
    const BatchMasks::Bits& kept;
    std::size_t first;
  };
  Part next_mask(const Generator& from, std::size_t rows_of_tensor, std::size_t elements, double p);

 private:
  ShardDraws* before_;
};

// Fill memory as PyTorch fills a contiguous tensor of this type.
//
// Integers and uniforms are PyTorch's bit for bit.  Normals go through log, sin and cos, whose last
// bits differ between vector units: doubles agree to 2 ulp, floats to 1e-6.

/// [0, 1).
void fill_uniform(std::span<float> out, Generator& generator);
void fill_uniform(std::span<double> out, Generator& generator);
/// [low, high): torch.uniform_.  ValueError unless low <= high, both finite.
void fill_uniform(std::span<float> out, double low, double high, Generator& generator);
void fill_uniform(std::span<double> out, double low, double high, Generator& generator);
/// Mean 0, deviation 1.  Up to 15 values are drawn one by one; more by Box-Muller in blocks of 16,
/// and the last 16 are drawn again if the number is no multiple of 16.
void fill_normal(std::span<float> out, Generator& generator);
void fill_normal(std::span<double> out, Generator& generator);
/// torch.normal_.  ValueError if std is negative or not a number.
void fill_normal(std::span<float> out, double mean, double std, Generator& generator);
void fill_normal(std::span<double> out, double mean, double std, Generator& generator);
/// N(mean, std) truncated to [a, b] (torch.nn.init.trunc_normal_).  ValueError unless std is
/// positive and a <= b, and for a tail in which the draw would not end.
void fill_trunc_normal(std::span<float> out, double mean, double std, double a, double b,
                       Generator& generator);
void fill_trunc_normal(std::span<double> out, double mean, double std, double a, double b,
                       Generator& generator);
/// 1 with probability p, else 0, as torch.bernoulli_(p).  ValueError unless 0 <= p <= 1.
void fill_bernoulli(std::span<float> out, double p, Generator& generator);
void fill_bernoulli(std::span<double> out, double p, Generator& generator);
/// Dropout's factors, 1 / (1 - p) with probability 1 - p and 0 otherwise, or as bool whether an
/// element is kept.  p = 1 draws nothing, as in PyTorch.  `rows` is the first dimension of the
/// masked Tensor: a shard takes its rows of the batch's mask.  ValueError unless 0 <= p <= 1.
void fill_dropout(std::span<float> out, double p, Generator& generator, std::size_t rows = 0);
void fill_dropout(std::span<double> out, double p, Generator& generator, std::size_t rows = 0);
void fill_dropout(std::span<bool> out, double p, Generator& generator, std::size_t rows = 0);
/// With mean 1 / rate, as torch.exponential_(rate).  ValueError unless rate is positive and finite.
void fill_exponential(std::span<float> out, double rate, Generator& generator);
void fill_exponential(std::span<double> out, double rate, Generator& generator);
/// An index drawn with these weights, as torch.multinomial(weights, 1): the largest weight /
/// exponential.  ValueError if a weight is negative or not finite, or none is positive.
std::size_t multinomial(std::span<const float> weights, Generator& generator);

}  // namespace xgrad
