#include <xgrad/autograd/generator.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad {

// ---- mt19937 ----

void Generator::manual_seed(std::uint64_t seed) {
  state_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t i = 1; i < words; ++i)
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  temper();  // of used numbers, too: what compares Generators compares those
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
    // Here the batch draws, and not the shard.
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
  check<ValueError>(bound > 0, "random_below: there is no number below 0");
  return bound >> 32 != 0 ? random64() % bound : random() % bound;
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

// "mt19937-1 <numbers drawn of this block> <bits of the kept normal, or -> <the 624 words>", in hex
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
  // What is read leniently here is right if it gives the same text again.
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

}  // namespace xgrad
