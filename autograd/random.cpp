#include "random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string_view>
#include <type_traits>
#include <utility>
#include "fail.hpp"
#include "kernels/simd.hpp"

namespace xgrad {

// ---- mt19937 ----

void Generator::manual_seed(std::uint64_t seed) {
  state_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t i = 1; i < words; ++i)
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  temper();  // used numbers as well, because operator== compares them
  position_ = words;
  kept_normal_.reset();
}

// The recurrence is written as loops without a dependence between neighbours, which the compiler
// turns into SIMD.
void Generator::next_block() {
  constexpr std::size_t middle = 397;
  const auto mix = [](std::uint32_t high, std::uint32_t low) {
    return (((high & 0x80000000U) | (low & 0x7fffffffU)) >> 1) ^ ((low & 1U) * 0x9908b0dfU);
  };
  std::uint32_t* const s = state_.data();
  for (std::size_t i = 0; i < words - middle; ++i)
    s[i] = s[i + middle] ^ mix(s[i], s[i + 1]);
  for (std::size_t i = words - middle; i < words - 1; ++i)
    s[i] = s[i + middle - words] ^ mix(s[i], s[i + 1]);
  s[words - 1] = s[middle - 1] ^ mix(s[words - 1], s[0]);
  temper();
  position_ = 0;
}

void Generator::temper() {
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t y = state_[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    output_[i] = y ^ (y >> 18);
  }
}

static thread_local constinit detail::ShardDraws* this_shard = nullptr;  // of this thread

detail::ShardDraws::ShardDraws(BatchMasks& of_batch, std::size_t begin_row, std::size_t end_row)
    : generator(of_batch.before()),
      masks(of_batch),
      begin(begin_row),
      rows(end_row - begin_row),
      before_(std::exchange(this_shard, this)) {}
detail::ShardDraws::~ShardDraws() { this_shard = before_; }
detail::ShardDraws* detail::ShardDraws::current() { return this_shard; }

detail::ShardDraws::Part detail::ShardDraws::next_mask(const Generator& from,
                                                       std::size_t rows_of_tensor,
                                                       std::size_t elements, double p) {
  if (&from != &generator || rows_of_tensor != rows)
    check_draws();
  Generator unmoved = generator;
  unmoved.masks_ = masks.before().masks_;
  if (unmoved != masks.before())
    check_draws();
  const std::size_t row = elements / rows;
  return {masks.get(generator.masks_++, row, p), begin * row};
}

detail::BatchMasks::BatchMasks(Generator& generator, std::size_t rows)
    : generator_(generator),
      before_(generator),
      rows_(rows),
      within_shard_(this_shard != nullptr) {}

const detail::BatchMasks::Bits& detail::BatchMasks::get(std::uint64_t number,
                                                        std::size_t row_elements, double p) {
  const std::lock_guard lock(mutex_);
  if (within_shard_)
    check_draws();
  if (number == masks_.size()) {
    // The batch draws here, not the shard.
    struct Batch {
      ShardDraws* const shard = std::exchange(this_shard, nullptr);
      ~Batch() { this_shard = shard; }
    } const batch;
    masks_.push_back({row_elements, p, draw_kept(rows_ * row_elements, p, generator_)});
  }
  const Mask& mask = masks_.at(number);
  if (mask.row_elements != row_elements || mask.p != p)
    check_draws();
  return mask.kept;
}

void detail::check_draws() {
  if (this_shard == nullptr) [[likely]]
    return;
  this_shard->refused = true;
  throw DrawRefused();
}

void detail::check_sum(std::size_t rows) {
  if (this_shard != nullptr && this_shard->rows == rows) [[unlikely]]
    check_draws();
}

std::span<const std::uint32_t> Generator::random_block(std::size_t most) {
  detail::check_draws();
  if (position_ == words)
    next_block();
  const std::size_t n = std::min(most, words - position_);
  const std::span<const std::uint32_t> block(output_.data() + position_, n);
  position_ += n;
  return block;
}

std::uint32_t Generator::random() {
  detail::check_draws();
  if (position_ == words)
    next_block();
  return output_[position_++];
}

std::uint64_t Generator::random64() {
  const std::uint64_t high = random();
  return high << 32 | random();
}

std::uint64_t Generator::random_below(std::uint64_t bound) {
  check<ValueError>(bound > 0, "random_below: bound is 0; it must be positive");
  return bound >> 28 != 0 ? random64() % bound : random() % bound;
}

// ---- one value ----

float Generator::uniform_float() { return detail::to_uniform(random()); }
double Generator::uniform_double() { return detail::to_uniform(random64()); }
// 1 - u is exact, so log1p(-u) would only round differently from PyTorch.
double Generator::exponential() { return -std::log(1 - uniform_double()); }

double Generator::normal() {
  detail::check_draws();  // the kept one counts as well
  if (kept_normal_) {
    const double value = *kept_normal_;
    kept_normal_.reset();
    return value;
  }
  const double theta = 2 * std::numbers::pi * uniform_double();
  const double radius = std::sqrt(-2 * std::log(1 - uniform_double()));
  kept_normal_ = radius * std::sin(theta);
  return radius * std::cos(theta);
}

// ---- state ----

static constexpr std::string_view state_magic = "mt19937-1";

// "mt19937-1 <numbers drawn from this block> <bits of the kept normal, or -> <624 words>", in hex
// of fixed width.
std::string Generator::state() const {
  std::string text = fmt::format("{} {:03x} ", state_magic, position_);
  text += kept_normal_ ? fmt::format("{:016x}", std::bit_cast<std::uint64_t>(*kept_normal_)) : "-";
  text += ' ';
  for (const std::uint32_t word : state_)
    fmt::format_to(std::back_inserter(text), "{:08x}", word);
  return text;
}

void Generator::set_state(const std::string& state) {
  // The parser is lenient: the caller accepts the state only if it prints as the same text.
  std::string_view rest = state;
  const auto field = [&rest](std::size_t width, auto& value) {
    const std::string_view digits = rest.substr(0, width);
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    rest.remove_prefix(digits.size());
  };
  const auto skip = [&rest](std::size_t n) { rest.remove_prefix(std::min(n, rest.size())); };
  Generator read;
  skip(state_magic.size() + 1);
  field(3, read.position_);
  skip(1);
  if (rest.starts_with('-')) {
    skip(1);
  } else {
    std::uint64_t bits = 0;
    field(16, bits);
    read.kept_normal_ = std::bit_cast<double>(bits);
  }
  skip(1);
  for (std::uint32_t& word : read.state_)
    field(8, word);
  const bool alive = (read.state_[0] & 0x80000000U) != 0 ||
                     std::any_of(read.state_.begin() + 1, read.state_.end(),
                                 [](std::uint32_t word) { return word != 0; });
  check<FileError>(read.state() == state && read.position_ <= words && alive &&
                       std::isfinite(read.kept_normal_.value_or(0)),
                   "set_state: these {} characters are not the state of a Generator as state() "
                   "writes it",
                   state.size());
  read.temper();
  *this = read;
}

Generator& default_generator() {
  static Generator generator;
  return this_shard != nullptr ? this_shard->generator : generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

namespace {

// Two numbers as one of 64 bits, the first one high; a single load vectorizes well.
std::uint64_t joined(const std::uint32_t* two) {
  std::uint64_t bits;
  std::memcpy(&bits, two, sizeof bits);
  return std::endian::native == std::endian::little ? std::rotl(bits, 32) : bits;
}

// out[i] = f(bits), with 32 or 64 bits for each element.
template <class T, class F>
void fill_from_32(std::span<T> out, Generator& generator, F f) {
  for (std::size_t i = 0; i < out.size();) {
    const auto bits = generator.random_block(out.size() - i);
    T* const to = out.data() + i;
    for (std::size_t k = 0; k < bits.size(); ++k)
      to[k] = f(bits[k]);
    i += bits.size();
  }
}
template <class T, class F>
void fill_from_64(std::span<T> out, Generator& generator, F f) {
  for (std::size_t i = 0; i < out.size();) {
    const auto bits = generator.random_block(2 * (out.size() - i));
    T* const to = out.data() + i;
    const std::size_t pairs = bits.size() / 2;
    for (std::size_t k = 0; k < pairs; ++k)
      to[k] = f(joined(&bits[2 * k]));
    i += pairs;
    if (bits.size() % 2 != 0) {  // a pair across two blocks
      const std::uint64_t high = bits.back();
      out[i++] = f(high << 32 | generator.random());
    }
  }
}

void uniform(std::span<float> out, Generator& generator) {
  fill_from_32(out, generator, [](std::uint32_t bits) { return detail::to_uniform(bits); });
}
void uniform(std::span<double> out, Generator& generator) {
  fill_from_64(out, generator, [](std::uint64_t bits) { return detail::to_uniform(bits); });
}

// PyTorch rounds once: its compiler contracts u * (high - low) + low.
template <class T>
void uniform_between(std::span<T> out, double low, double high, Generator& generator) {
  check<ValueError>(low <= high && std::isfinite(low) && std::isfinite(high),
                    "fill_uniform: [{}, {}) is not a range", low, high);
  uniform(out, generator);
  const T from = static_cast<T>(low), width = static_cast<T>(high) - from;
  for (T& u : out)
    u = std::fma(u, width, from);
}

constexpr std::size_t normal_block = 16;

// Box-Muller, in place, on blocks of 16 uniforms: the first eight give radii, the others angles.
// Doubles go through the C library one by one, as PyTorch's do.
void box_muller(double* v, std::size_t blocks, double mean, double std) {
  constexpr std::size_t half = normal_block / 2;
  for (; blocks-- > 0; v += normal_block)
    for (std::size_t i = 0; i < half; ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - v[i]));
      const double theta = 2 * std::numbers::pi * v[i + half];
      v[i] = std::fma(radius * std::cos(theta), std, mean);
      v[i + half] = std::fma(radius * std::sin(theta), std, mean);
    }
}
// Floats go through float functions, as PyTorch's do: rounding the angle to float makes a larger
// error than an exact function could mend.
void box_muller(float* v, std::size_t blocks, float mean, float std) {
  using Lanes = simd::Batch<float>;
  constexpr std::size_t half = normal_block / 2, group = 16;
  alignas(64) float a[group * half], b[group * half];
  const Lanes two_pi(static_cast<float>(2 * std::numbers::pi));
  for (std::size_t done = 0; done < blocks; done += group) {
    float* const at = v + done * normal_block;
    const std::size_t n = std::min(group, blocks - done);
    for (std::size_t k = 0; k < group; ++k) {  // a short group repeats its last block
      std::copy_n(at + std::min(k, n - 1) * normal_block, half, a + k * half);
      std::copy_n(at + std::min(k, n - 1) * normal_block + half, half, b + k * half);
    }
    for (std::size_t i = 0; i < group * half; i += Lanes::size) {
      const Lanes u = Lanes::load_aligned(a + i), theta = Lanes::load_aligned(b + i) * two_pi;
      const Lanes radius = xsimd::sqrt(Lanes(-2) * xsimd::log(Lanes(1) - u));
      const auto [sine, cosine] = xsimd::sincos(theta);
      xsimd::fma(radius * cosine, Lanes(std), Lanes(mean)).store_aligned(a + i);
      xsimd::fma(radius * sine, Lanes(std), Lanes(mean)).store_aligned(b + i);
    }
    for (std::size_t k = 0; k < n; ++k) {
      std::copy_n(a + k * half, half, at + k * normal_block);
      std::copy_n(b + k * half, half, at + k * normal_block + half);
    }
  }
}

template <class T>
void normals(std::span<T> out, double mean, double std, Generator& generator) {
  check<ValueError>(std >= 0, "fill_normal: std {} is negative or not a number", std);
  const std::size_t n = out.size();
  if (n < normal_block) {
    for (T& x : out)
      x = static_cast<T>(std::fma(generator.normal(), std, mean));
    return;
  }
  uniform(out, generator);
  box_muller(out.data(), n / normal_block, static_cast<T>(mean), static_cast<T>(std));
  if (n % normal_block != 0) {
    const std::span<T> tail = out.last(normal_block);
    uniform(tail, generator);
    box_muller(tail.data(), 1, static_cast<T>(mean), static_cast<T>(std));
  }
}

// If [a, b] has more than 0.3 of the probability, whole draws until all fit; else uniforms,
// accepted by the density's ratio to its largest value in [a, b].  As PyTorch 2.15; 1.13 inverts
// the distribution function.
template <class T>
void trunc_normals(std::span<T> out, double mean, double std, double a, double b,
                   Generator& generator) {
  check<ValueError>(
      std > 0 && a <= b,
      "trunc_normal_: std is {}, [a, b] is [{}, {}]; std must be positive, a at most b", std, a, b);
  const auto erf = [&](double x) { return std::erf((x - mean) / std / std::numbers::sqrt2); };
  std::vector<T> drawn(out.size()), uniforms(out.size());
  if ((erf(b) - erf(a)) / 2 > 0.3) {
    const auto outside = [low = static_cast<T>(a), high = static_cast<T>(b)](T x) {
      return x < low || x > high;
    };
    normals(out, mean, std, generator);
    while (std::ranges::any_of(out, outside)) {
      normals(std::span(drawn), mean, std, generator);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = outside(out[i]) ? drawn[i] : out[i];
    }
    return;
  }
  const double peak = (std::clamp(mean, a, b) - mean) / std;
  check<ValueError>((b - a) / std * std::max(std::abs(peak), 0.4) < 1e5,
                    "trunc_normal_: [{}, {}] has too little of the probability; mean is {}, std {}",
                    a, b, mean, std);
  std::vector<bool> pending(out.size(), true);
  while (std::ranges::count(pending, true) > 0) {
    uniform_between(std::span(drawn), a, b, generator);
    uniform(std::span(uniforms), generator);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!pending[i])
        continue;
      out[i] = drawn[i];
      const T z = (drawn[i] - static_cast<T>(mean)) / static_cast<T>(std);
      pending[i] = std::log(uniforms[i]) > T(-0.5) * (z * z) + static_cast<T>(0.5 * peak * peak);
    }
  }
}

// `value` with probability p, else 0.  For bool the value is known to be true.
template <class T>
void bernoulli(std::span<T> out, double p, [[maybe_unused]] T value, Generator& generator) {
  // k * 2^-53 < p exactly if k < ceil(p * 2^53)
  const auto bound = static_cast<std::int64_t>(std::ceil(p * 0x1p53));
  const auto yes = [bound](std::uint64_t bits) {
    return static_cast<std::int64_t>(bits & detail::mask53) < bound;
  };
  if constexpr (std::is_same_v<T, bool>)
    fill_from_64(out, generator, yes);
  else
    fill_from_64(out, generator, [&](std::uint64_t bits) { return yes(bits) ? value : T(0); });
}

template <class T>
void exponentials(std::span<T> out, double rate, Generator& generator) {
  check<ValueError>(rate > 0 && std::isfinite(rate),
                    "fill_exponential: rate {} is not positive and finite", rate);
  const double scale = -1 / rate;
  for (T& x : out)
    x = static_cast<T>(scale * std::log(1 - generator.uniform_double()));
}

void check_probability(const char* caller, double p) {
  check<ValueError>(p >= 0 && p <= 1, "{}: p {} is not between 0 and 1", caller, p);
}

template <class T>
void dropout_scales(std::span<T> out, double p, Generator& generator, std::size_t rows) {
  check_probability("fill_dropout", p);
  if (p == 1) {
    std::ranges::fill(out, T(0));
    return;
  }
  const T kept = static_cast<T>(1 / static_cast<T>(1 - p));
  detail::ShardDraws* const shard = detail::ShardDraws::current();
  if (shard == nullptr) {
    bernoulli(out, 1 - p, kept, generator);
    return;
  }
  const auto [bits, first] = shard->next_mask(generator, rows, out.size(), p);
  for (std::size_t i = 0; i < out.size();) {  // one word of bits at a time
    const std::size_t at = first + i, n = std::min(out.size() - i, 32 - at % 32);
    const std::uint32_t word = bits[at / 32] >> at % 32;
    for (std::size_t k = 0; k < n; ++k)
      out[i + k] = (word >> k & 1) != 0 ? kept : T(0);
    i += n;
  }
}

}  // namespace

#define XGRAD_FILLS(T)                                                                        \
  void fill_uniform(std::span<T> out, Generator& generator) { uniform(out, generator); }      \
  void fill_uniform(std::span<T> out, double low, double high, Generator& generator) {        \
    uniform_between(out, low, high, generator);                                               \
  }                                                                                           \
  void fill_normal(std::span<T> out, Generator& generator) { normals(out, 0, 1, generator); } \
  void fill_normal(std::span<T> out, double mean, double std, Generator& generator) {         \
    normals(out, mean, std, generator);                                                       \
  }                                                                                           \
  void fill_trunc_normal(std::span<T> out, double mean, double std, double a, double b,       \
                         Generator& generator) {                                              \
    trunc_normals(out, mean, std, a, b, generator);                                           \
  }                                                                                           \
  void fill_bernoulli(std::span<T> out, double p, Generator& generator) {                     \
    check_probability("fill_bernoulli", p);                                                   \
    bernoulli(out, p, T(1), generator);                                                       \
  }                                                                                           \
  void fill_dropout(std::span<T> out, double p, Generator& generator, std::size_t rows) {     \
    dropout_scales(out, p, generator, rows);                                                  \
  }                                                                                           \
  void fill_exponential(std::span<T> out, double rate, Generator& generator) {                \
    exponentials(out, rate, generator);                                                       \
  }
XGRAD_FILLS(float)
XGRAD_FILLS(double)
#undef XGRAD_FILLS

void fill_dropout(std::span<bool> out, double p, Generator& generator, std::size_t rows) {
  dropout_scales(out, p, generator, rows);
}

std::vector<std::uint32_t> detail::draw_kept(std::size_t n, double p, Generator& generator) {
  constexpr std::size_t chunk = 4096;
  std::vector<std::uint32_t> words((n + 31) / 32);
  std::array<bool, chunk> kept;
  for (std::size_t begin = 0; begin < n; begin += chunk) {
    const std::size_t size = std::min(chunk, n - begin);
    std::ranges::fill(std::span(kept).subspan(size), false);
    bernoulli(std::span(kept.data(), size), 1 - p, true, generator);
    for (std::size_t w = 0; w < (size + 31) / 32; ++w) {
      std::uint32_t word = 0;
      for (std::uint32_t i = 0; i < 32; ++i)
        word |= std::uint32_t{kept[32 * w + i]} << i;
      words[begin / 32 + w] = word;
    }
  }
  return words;
}

std::size_t multinomial(std::span<const float> weights, Generator& generator) {
  bool any = false;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    check<ValueError>(weights[i] >= 0 && std::isfinite(weights[i]),
                      "multinomial: weight {} at {} is negative or not finite", weights[i], i);
    any = any || weights[i] > 0;
  }
  check<ValueError>(any, "multinomial: none of the {} weights is positive", weights.size());
  std::size_t best = 0;
  float largest = -1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double u = generator.uniform_double();
    // -log(1 - u) >= u rules out most weights without a logarithm.
    if (weights[i] <= largest * u * (1 - 1e-6))
      continue;
    const float ratio = weights[i] / static_cast<float>(-std::log(1 - u));
    if (weights[i] > 0 && ratio > largest) {
      largest = ratio;
      best = i;
    }
  }
  return best;
}

}  // namespace xgrad
