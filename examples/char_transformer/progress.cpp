#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace char_transformer {
namespace {

constexpr auto redraw_after = std::chrono::milliseconds(100);
constexpr auto longest_silence = std::chrono::seconds(10);
constexpr double forget = 0.1;  // the weight of the newest step in the average time of a step
constexpr std::size_t lines_wanted = 20;

/// The largest of 1, 2, 5, 10, 20, 50 ... that gives that many lines or more.
std::size_t round_interval(std::size_t steps) {
  std::size_t interval = 1;
  for (std::size_t power = 1; power * lines_wanted <= steps; power *= 10)
    for (const std::size_t factor : {1U, 2U, 5U})
      if (factor * power * lines_wanted <= steps)
        interval = factor * power;
  return interval;
}

/// The bytes of memory that the process has; 0 where the system does not say.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double program = 0, resident = 0;
  file >> program >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

std::string after_steps(std::uint64_t steps) {
  return "after " + format_count(steps, "step", "steps");
}

}  // namespace

Progress::Progress(std::size_t made, std::size_t steps, std::size_t tokens_per_step, double after)
    : first_(made),
      steps_(steps),
      made_(made),
      tokens_per_step_(tokens_per_step),
      after_(after),
      every_(round_interval(steps)),
      live_(can_redraw()) {}

std::string Progress::how_far() const {
  return fmt::format("step {}/{} {} %", made_, steps_,
                     100 * made_ / std::max<std::size_t>(steps_, 1));
}

/// Of steps that are as long as those up to now.
double Progress::seconds_left() const {
  const std::chrono::duration<double> spent = Clock::now() - begin_;
  return made_ == first_ ? 0
                         : spent.count() / static_cast<double>(made_ - first_) *
                               (static_cast<double>(steps_ - made_) + after_);
}

std::vector<Progress::Piece> Progress::pieces() const {
  const int digits = live_ ? 2 : 4;
  std::vector<Piece> pieces = {{how_far()},
                               {fmt::format("loss {:.{}f}", latest_.loss, digits)},
                               {"eta " + format_duration(seconds_left())}};
  if (val_loss_)
    pieces.push_back(
        {fmt::format("val {:.{}f}", *val_loss_, digits), lowest_ ? Style::green : Style::plain});
  pieces.push_back({format_si(1000 * static_cast<double>(tokens_per_step_) / ms_, " tok/s")});
  pieces.push_back({fmt::format("norm {:.2f}", latest_.grad_norm)});
  pieces.push_back({fmt::format("lr {:.1e}", latest_.lr)});
  pieces.push_back({format_si(resident_bytes(), "B")});
  return pieces;
}

/// A line of all of them; where it is drawn over the last, of as many as fit into the width.
void Progress::show(const std::vector<Piece>& pieces, bool last) {
  const std::size_t width = terminal_width() - 1;
  std::string line;
  std::size_t used = 0;
  for (const Piece& piece : pieces) {
    if (live_ && used > 0 && used + 3 + piece.text.size() > width)
      break;
    line += (used == 0 ? "" : styled(Style::dim, " | ")) + styled(piece.style, piece.text);
    used += piece.text.size() + (used == 0 ? 0 : 3);
  }
  draw(live_ ? fmt::format("\r{}\x1b[K{}", line, last ? "\n" : "") : line + "\n");
  shown_ = Clock::now();
}

void Progress::step(const StepRecord& record) {
  ms_ = ms_ == 0 ? record.ms : (1 - forget) * ms_ + forget * record.ms;
  made_ = record.step + 1;
  latest_ = record;
  const bool first = made_ == first_ + 1, last = made_ == steps_;
  if (first)
    begin_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double, std::milli>(record.ms));
  const auto silence = Clock::now() - shown_;
  if (last || (live_ ? silence >= redraw_after
                     : first || made_ % every_ == 0 || silence >= longest_silence))
    show(pieces(), last);
}

void Progress::finish() {
  if (live_ && made_ > first_ && made_ < steps_)
    show(pieces(), true);
}

void Progress::evaluating(double done) {
  const auto now = Clock::now();
  if (!evaluation_)
    evaluation_ = now;
  if (now - std::max(shown_, *evaluation_) < (live_ ? redraw_after : longest_silence) || done == 0)
    return;
  const std::chrono::duration<double> spent = now - *evaluation_;
  const double rest = spent.count() * (1 - done) / done;
  show({{how_far()},
        {fmt::format("validation {:.0f} %", 100 * done)},
        {"eta " + format_duration(rest + (made_ == steps_ ? 0 : seconds_left()))}},
       false);
}

void Progress::validated(std::uint64_t steps, double loss, bool lowest) {
  evaluation_.reset();
  val_loss_ = loss;
  lowest_ = lowest;
  line(fmt::format("{}: validation loss {:.4f} (estimate){}",
                   steps == 0 ? "before the first step" : after_steps(steps), loss,
                   lowest ? ", lowest" : ""));
}

void Progress::sampled(std::uint64_t steps, const std::string& text) {
  std::string written;  // in one line
  for (const char c : xgrad::printable(text))
    written += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  clear();
  draw(styled(Style::dim, after_steps(steps) + " it writes: ") + written + "\n");
}

void Progress::line(const std::string& text) {
  clear();
  tell(text + "\n");
}

void Progress::warn(const std::string& text) {
  clear();
  char_transformer::warn(text);
}

void Progress::clear() const {
  if (live_)
    draw("\r\x1b[K");
}

}  // namespace char_transformer
