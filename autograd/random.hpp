#pragma once
// Random numbers: PyTorch's CPU generator (of builds without MKL), number for number.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>

namespace xgrad {

/// A mt19937 and the second value of a pair of normals that is kept for the next call
/// (torch.Generator).
class Generator {
 public:
  explicit Generator(std::uint64_t seed = 5489) { manual_seed(seed); }
  void manual_seed(std::uint64_t seed);  ///< as PyTorch, uses the low 32 bits

  std::uint32_t random();    ///< 32 random bits
  std::uint64_t random64();  ///< two of them, the first one high
  double uniform_double();   ///< [0, 1), 53 bits
  float uniform_float();     ///< [0, 1), 24 bits
  double normal();           ///< one value; of each pair the second is kept
  double exponential();

  /// Everything that determines what comes next, as text; a FileError if set_state is given
  /// something else.
  std::string state() const;
  void set_state(const std::string& state);

 private:
  std::mt19937 engine_;
  std::optional<double> kept_normal_;
};

/// The generator that is used where none is named; seeded with 5489 until manual_seed().
Generator& default_generator();
void manual_seed(std::uint64_t seed);

// Filling memory as PyTorch fills a contiguous tensor of this type.
void fill_uniform(std::span<float> out, Generator& generator);
void fill_uniform(std::span<double> out, Generator& generator);
/// Under 16 values one by one; from 16 on Box-Muller in blocks of 16, a ragged tail redrawn.
void fill_normal(std::span<float> out, Generator& generator);
void fill_normal(std::span<double> out, Generator& generator);
/// 1 with probability p, else 0, as torch.bernoulli_(p).
void fill_bernoulli(std::span<float> out, double p, Generator& generator);
void fill_bernoulli(std::span<double> out, double p, Generator& generator);
/// One index with these weights, as torch.multinomial(weights, 1): the largest of weight /
/// exponential.
std::size_t multinomial(std::span<const float> weights, Generator& generator);

}  // namespace xgrad
