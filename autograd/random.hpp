#pragma once
// Random numbers: PyTorch's CPU generator (of builds without MKL), number for number.
//
// Integers and uniforms are PyTorch's bit for bit.  Normals go through log, sin and cos, whose last
// bits differ between vector units: doubles agree to 2 ulp, floats to 1e-6.
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

}  // namespace detail

// Filling memory as PyTorch fills a contiguous tensor of this type.

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
/// What dropout multiplies by: 1 / (1 - p) with probability 1 - p, else 0.  p = 1 draws nothing, as
/// in PyTorch.  ValueError unless 0 <= p <= 1.
void fill_dropout(std::span<float> out, double p, Generator& generator);
void fill_dropout(std::span<double> out, double p, Generator& generator);
/// With mean 1 / rate, as torch.exponential_(rate).  ValueError unless rate is positive and finite.
void fill_exponential(std::span<float> out, double rate, Generator& generator);
void fill_exponential(std::span<double> out, double rate, Generator& generator);
/// One index with these weights, as torch.multinomial(weights, 1): the largest of weight /
/// exponential.  ValueError if a weight is negative or not finite, or none is positive.
std::size_t multinomial(std::span<const float> weights, Generator& generator);

}  // namespace xgrad
