#include "progress.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "output.hpp"

namespace program {
namespace {

constexpr auto redraw_after = std::chrono::milliseconds(100);
constexpr auto longest_silence = std::chrono::seconds(10);
constexpr double forget = 0.1;  // the weight of the newest step in the average time of a step

/// The largest memory of this process.  Linux's ru_maxrss also counts the program that started this
/// one, because it survives exec; VmHWM does not.
double peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0; word == "VmHWM:" && status >> kilobytes)
      return 1024 * kilobytes;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  constexpr double unit = 1;
#else
  constexpr double unit = 1024;
#endif
  return unit * static_cast<double>(usage.ru_maxrss);
}

std::string after_steps(std::uint64_t steps) {
  return steps == 0 ? "before the first step" : "after " + format_count(steps, "step");
}

}  // namespace

Progress::Progress(std::size_t made, std::size_t steps, std::size_t tokens_per_step)
    : first_(made), steps_(steps), tokens_per_step_(tokens_per_step), live_(can_redraw()) {}

std::string Progress::how_far() const {
  return fmt::format("step {}/{} {} %", made_, steps_,
                     100 * made_ / std::max<std::size_t>(steps_, 1));
}

/// Assumes that the rest takes time in proportion.
std::string Progress::eta(Clock::time_point begin, double done, double all) const {
  const std::chrono::duration<double> spent = Clock::now() - begin;
  return "eta " + format_duration(spent.count() / done * (all - done));
}

/// The parts of the line; the last ones are dropped if not all fit.
std::vector<std::string> Progress::pieces() const {
  const int digits = live_ ? 2 : 4;
  std::vector<std::string> pieces = {
      how_far(), fmt::format("loss {:.{}f}", latest_.loss, digits),
      eta(begin_, static_cast<double>(made_ - first_), static_cast<double>(steps_ - first_))};
  if (val_loss_)
    pieces.push_back(fmt::format("val {:.{}f}", *val_loss_, digits));
  pieces.push_back(format_si(1000 * static_cast<double>(tokens_per_step_) / ms_, " tok/s"));
  pieces.push_back(fmt::format("norm {:.2f}", *latest_.grad_norm));
  pieces.push_back(fmt::format("lr {:.1e}", *latest_.lr));
  pieces.push_back(format_si(peak_bytes(), "B"));
  return pieces;
}

/// Shows all parts; a line that is redrawn gets only as many as fit into the width.
void Progress::show(const std::vector<std::string>& pieces, bool last) {
  std::string line;
  for (const std::string& piece : pieces)
    if (!live_ || line.empty() || line.size() + 4 + piece.size() <= terminal_width())
      line += (line.empty() ? "" : " | ") + piece;
    else
      break;
  draw(live_ ? fmt::format("\r{}\x1b[K{}", line, last ? "\n" : "") : line + "\n");
  shown_ = Clock::now();
}

void Progress::step(const MetricsRow& row) {
  ms_ = ms_ == 0 ? *row.ms : (1 - forget) * ms_ + forget * *row.ms;
  made_ = static_cast<std::size_t>(row.step) + 1;
  latest_ = row;
  const bool first = made_ == first_ + 1, last = made_ == steps_;
  if (first)
    begin_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double, std::milli>(*row.ms));
  const auto silence = Clock::now() - shown_;
  const std::size_t every = std::max<std::size_t>(steps_ / 20, 1);
  if (last ||
      (live_ ? silence >= redraw_after : first || made_ % every == 0 || silence >= longest_silence))
    show(pieces(), last);
}

void Progress::evaluating(double done) {
  const auto now = Clock::now();
  if (!evaluation_)
    evaluation_ = now;
  if (done > 0 && now - std::max(shown_, *evaluation_) >= (live_ ? redraw_after : longest_silence))
    show({steps_ > 0 ? how_far() : "eval", fmt::format("validation {:.0f} %", 100 * done),
          eta(*evaluation_, done, 1)});
}

void Progress::validated(std::uint64_t steps, double loss, bool lowest) {
  evaluation_.reset();
  val_loss_ = loss;
  line(fmt::format("{}: validation loss {:.4f} (estimate){}", after_steps(steps), loss,
                   lowest ? ", lowest" : ""));
}

void Progress::sampled(std::uint64_t steps, const std::string& text) {
  std::string verse;  // one line, with slashes between the lines of a verse
  for (const char c : text)
    verse += c == '\n' ? std::string(" / ") : std::string(1, c);
  line(fmt::format("{} it writes: {}", after_steps(steps), xgrad::printable_name(verse)));
}

void Progress::line(const std::string& text) {
  clear();
  tell(text + "\n");
}

void Progress::warn(const std::string& text) {
  clear();
  program::warn(text);
}

void Progress::clear() const {
  if (live_)
    draw("\r\x1b[K");
}

}  // namespace program
