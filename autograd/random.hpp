#pragma once
// PyTorch's CPU generator (of builds without MKL), number for number, and the draws that fill
// memory.
//
// A Generator is not locked, so that filling memory is fast: two threads must not draw from the
// same one at a time, default_generator() included.

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

namespace detail {
struct ShardDraws;
}

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

  /// The numbers that the next calls of random() would return: at least one and at most `most`
  /// (which is not 0).  They count as drawn.  Good until the next call of anything else.
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
  std::uint64_t masks_ = 0;  // of a shard's copy: the masks that it has taken (BatchMasks)
  friend struct detail::ShardDraws;
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

/// Thrown where the shards of a batch would not draw the numbers of the whole batch.
struct DrawRefused {};

/// The masks of dropout of a batch that is computed in shards.  All shards ask for their masks in
/// the same order; the first one that comes to a mask draws it whole, as the whole batch would, and
/// each takes its rows.  Masks are kept until the batch ends, because checkpoint() asks for them
/// again.  Calls by several threads at a time are safe.
class BatchMasks {
 public:
  using Bits = std::vector<std::uint32_t>;  ///< as draw_kept() gives them

  /// Draws from `generator`, which belongs to the batch's `rows`.
  BatchMasks(Generator& generator, std::size_t rows);
  BatchMasks(const BatchMasks&) = delete;
  BatchMasks& operator=(const BatchMasks&) = delete;

  /// Mask `number`, in which each row has `row_elements` and one is dropped with probability p.
  /// DrawRefused if another shard has asked for another one, and within a shard of a larger batch.
  const Bits& get(std::uint64_t number, std::size_t row_elements, double p);
  /// The generator as it was, and setting it back: for a batch that runs whole, or fails.
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

/// While one lives, this thread computes rows [begin, end) of a batch.  default_generator() is
/// `generator` here, a copy whose state is the number of masks that the shard has taken.
/// Everything else that draws, from any Generator, throws DrawRefused and has drawn nothing: its
/// numbers come in the order of the whole batch.
struct ShardDraws {
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
  /// the place in it where the shard's rows begin.  DrawRefused for another Generator than the
  /// shard's, if its state was set, and for a Tensor with other rows than the shard's.
  struct Part {
    const BatchMasks::Bits& kept;
    std::size_t first;
  };
  Part next_mask(const Generator& from, std::size_t rows_of_tensor, std::size_t elements, double p);

 private:
  ShardDraws* before_;
};
/// Throws DrawRefused within a shard: for what must see all of a batch.
void check_draws();
/// Does so for a sum of `rows` to one number if the shard has as many: shards are not averaged so.
void check_sum(std::size_t rows);

}  // namespace detail

// Random numbers: memory filled as PyTorch fills a contiguous tensor of this type, and one choice.
//
// Integers and uniforms are PyTorch's bit for bit.  Normals go through log, sin and cos, whose last
// bits differ between vector units: doubles agree to 2 ulp, floats to 1e-6.

/// [0, 1).
void fill_uniform(std::span<float> out, Generator& generator);
void fill_uniform(std::span<double> out, Generator& generator);
/// [low, high): torch.uniform_.  ValueError unless low <= high, both finite.
void fill_uniform(std::span<float> out, double low, double high, Generator& generator);
void fill_uniform(std::span<double> out, double low, double high, Generator& generator);
/// Mean 0, deviation 1.  Under 16 values one by one; from 16 on Box-Muller in blocks of 16, a
/// ragged tail redrawn.
void fill_normal(std::span<float> out, Generator& generator);
void fill_normal(std::span<double> out, Generator& generator);
/// torch.normal_.  ValueError if std is negative or not a number.
void fill_normal(std::span<float> out, double mean, double std, Generator& generator);
void fill_normal(std::span<double> out, double mean, double std, Generator& generator);
/// N(mean, std) as it is within [a, b] (torch.nn.init.trunc_normal_).  ValueError unless std is
/// positive and a <= b.
void fill_trunc_normal(std::span<float> out, double mean, double std, double a, double b,
                       Generator& generator);
void fill_trunc_normal(std::span<double> out, double mean, double std, double a, double b,
                       Generator& generator);
/// 1 with probability p, else 0, as torch.bernoulli_(p).  ValueError unless 0 <= p <= 1.
void fill_bernoulli(std::span<float> out, double p, Generator& generator);
void fill_bernoulli(std::span<double> out, double p, Generator& generator);
/// Dropout's factors: 1 / (1 - p) with probability 1 - p, else 0; or whether each element is kept.
/// p = 1 draws nothing, as in PyTorch.  `rows` is the first dimension of the masked Tensor: a shard
/// takes its rows of the batch's mask.  ValueError unless 0 <= p <= 1.
void fill_dropout(std::span<float> out, double p, Generator& generator, std::size_t rows = 0);
void fill_dropout(std::span<double> out, double p, Generator& generator, std::size_t rows = 0);
void fill_dropout(std::span<bool> out, double p, Generator& generator, std::size_t rows = 0);
/// With mean 1 / rate, as torch.exponential_(rate).  ValueError unless rate is positive and finite.
void fill_exponential(std::span<float> out, double rate, Generator& generator);
void fill_exponential(std::span<double> out, double rate, Generator& generator);
/// One index with these weights, as torch.multinomial(weights, 1): the largest of weight /
/// exponential.  ValueError if a weight is negative or not finite, or none is positive.
std::size_t multinomial(std::span<const float> weights, Generator& generator);

namespace detail {
/// Whether dropout keeps each of n elements: bit i % 32 of word i / 32, drawn as by fill_dropout().
std::vector<std::uint32_t> draw_kept(std::size_t n, double p, Generator& generator);
}  // namespace detail

}  // namespace xgrad
