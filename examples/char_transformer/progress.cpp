#include "progress.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>

#include "describe.hpp"
#include "output.hpp"

namespace char_transformer {
namespace {

constexpr auto redraw_after = std::chrono::milliseconds(100);
constexpr auto longest_silence = std::chrono::seconds(10);
constexpr double forget = 0.1;  // the weight of the newest step in the average time of a step
constexpr std::size_t lines_wanted = 20;

/// The largest of 1, 2, 5, 10, 20, 50 ... that gives that many lines or more.
std::size_t round_interval(std::size_t steps) {
  std::size_t interval = 1;
  for (std::size_t power = 1; power * lines_wanted <= steps; power *= 10) {
    for (const std::size_t factor : {1U, 2U, 5U}) {
      if (factor * power * lines_wanted <= steps)
        interval = factor * power;
    }
  }
  return interval;
}

/// "45s", "1m12s", "2h05m", "3d04h".
std::string format_eta(double seconds) {
  if (!(seconds < 1e9))
    return "years";
  const auto s = static_cast<unsigned long>(std::lround(seconds));
  if (s < 60)
    return fmt::format("{}s", s);
  if (s < 3600)
    return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 48 * 3600UL)
    return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

/// "3.0e-4".
std::string format_lr(double lr) {
  const std::string text = fmt::format("{:.1e}", lr);
  const std::size_t sign = text.find('e') + 1;
  return text[sign + 1] == '0' ? text.substr(0, sign + 1) + text.substr(sign + 2) : text;
}

/// The bytes of memory that the process has; where the system does not say, the most it has had.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double program = 0, resident = 0;
  if (file >> program >> resident)
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  constexpr double unit = 1;
#else
  constexpr double unit = 1024;
#endif
  return static_cast<double>(usage.ru_maxrss) * unit;
}

constexpr std::string_view between = " | ";

}  // namespace

std::string format_rate(double per_second) {
  constexpr std::array units = {"", "k", "M", "G"};
  std::size_t unit = 0;
  while (unit + 1 < units.size() && per_second >= 999.5) {
    per_second /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f}{}", per_second, unit > 0 && per_second < 9.95 ? 1 : 0, units[unit]);
}

Progress::Progress(std::size_t made, std::size_t steps, std::size_t tokens_per_step, double after)
    : first_(made),
      steps_(steps),
      made_(made),
      tokens_per_step_(tokens_per_step),
      after_(after),
      every_(round_interval(steps)),
      live_(can_redraw()) {}

std::string Progress::how_far(std::uint64_t made) const {
  const auto percent = static_cast<std::uint64_t>(
      100 * static_cast<double>(made) / static_cast<double>(std::max<std::size_t>(steps_, 1)));
  return fmt::format("step {}/{} {} %", made, steps_, percent);
}

/// Of steps that are as long as those up to now.
double Progress::seconds_left() const {
  const std::chrono::duration<double> spent = Clock::now() - begin_;
  return made_ == first_ ? 0
                         : spent.count() / static_cast<double>(made_ - first_) *
                               (static_cast<double>(steps_ - made_) + after_);
}

std::vector<Progress::Piece> Progress::describe(const StepRecord& r, int digits) const {
  std::vector<Piece> pieces = {{0, how_far(made_)},
                               {1, fmt::format("loss {:.{}f}", r.loss, digits)}};
  if (val_loss_)
    pieces.push_back(
        {3, fmt::format("val {:.{}f}", *val_loss_, digits), lowest_ ? Style::green : Style::plain});
  pieces.push_back({6, "lr " + format_lr(r.lr)});
  pieces.push_back({5, fmt::format("norm {:.2f}", r.grad_norm)});
  pieces.push_back({4, format_rate(1000 * static_cast<double>(tokens_per_step_) / ms_) + " tok/s"});
  pieces.push_back({2, "eta " + format_eta(seconds_left())});
  pieces.push_back({7, format_bytes(resident_bytes())});
  return pieces;
}

/// As many pieces as fit into the width, those of the lowest rank first.
void Progress::redraw(const std::vector<Piece>& pieces, bool last) const {
  const std::size_t width = terminal_width() - 1;
  std::vector<const Piece*> by_rank;
  for (const Piece& piece : pieces)
    by_rank.push_back(&piece);
  std::ranges::sort(by_rank, {}, &Piece::rank);
  std::vector<const Piece*> chosen;
  std::size_t used = 0;
  for (const Piece* const piece : by_rank) {
    const std::size_t more = piece->text.size() + (chosen.empty() ? 0 : between.size());
    if (!chosen.empty() && used + more > width)
      continue;
    used += more;
    chosen.push_back(piece);
  }
  std::string line;
  for (const Piece& piece : pieces) {
    if (std::ranges::find(chosen, &piece) == chosen.end())
      continue;
    if (!line.empty())
      line += styled(Style::dim, between);
    line += styled(piece.style, piece.text.substr(0, width));
  }
  draw(fmt::format("\r{}\x1b[K{}", line, last ? "\n" : ""));
}

void Progress::step(const StepRecord& record) {
  ms_ = ms_ == 0 ? record.ms : (1 - forget) * ms_ + forget * record.ms;
  made_ = record.step + 1;
  latest_ = record;
  if (made_ == first_ + 1)
    begin_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double, std::milli>(record.ms));
  const auto silence = Clock::now() - shown_;
  const bool last = made_ == steps_;
  if (live_) {
    if (silence < redraw_after && !last)
      return;
    redraw(describe(record, 2), last);
  } else {
    if (made_ != first_ + 1 && made_ % every_ != 0 && silence < longest_silence && !last)
      return;
    std::string line;
    for (const Piece& piece : describe(record, 4))
      line += (line.empty() ? "" : styled(Style::dim, between)) + styled(piece.style, piece.text);
    draw(line + "\n");
  }
  shown_ = Clock::now();
}

void Progress::finish() {
  if (live_ && latest_ && made_ < steps_)
    redraw(describe(*latest_, 2), true);
}

void Progress::evaluating(double done) {
  const auto now = Clock::now();
  if (!evaluation_)
    evaluation_ = now;
  if (now - std::max(shown_, *evaluation_) < (live_ ? redraw_after : longest_silence) || done == 0)
    return;
  const std::chrono::duration<double> spent = now - *evaluation_;
  const double rest = spent.count() * (1 - done) / done;
  const std::string how_much = fmt::format("validation {:.0f} %", 100 * done),
                    eta = "eta " + format_eta(rest + (made_ == steps_ ? 0 : seconds_left()));
  if (live_)
    redraw({{0, how_far(made_)}, {1, how_much}, {2, eta}}, false);
  else
    draw(fmt::format("{} | {} | {}\n", how_far(made_), how_much, eta));
  shown_ = now;
}

void Progress::validated(std::uint64_t steps, double loss, bool lowest) {
  evaluation_.reset();
  val_loss_ = loss;
  lowest_ = lowest;
  clear();
  const std::string text = fmt::format(
      "{}: validation loss {:.4f} (estimate){}",
      steps == 0 ? "before the first step" : "after " + xgrad::counted(steps, "step", "steps"),
      loss, lowest ? ", lowest" : "");
  tell((live_ ? wrapped(text, terminal_width() - 1) : text) + "\n");
}

void Progress::sampled(std::uint64_t steps, const std::string& text) {
  if (is_verbose())
    return line(
        fmt::format("after {} it writes:\n{}", xgrad::counted(steps, "step", "steps"), text));
  const std::string begin =
      fmt::format("after {} it writes: ", xgrad::counted(steps, "step", "steps"));
  std::string written;  // in one line
  for (const char c : xgrad::printable(text))
    written += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  const std::size_t width = terminal_width() - 1;
  clear();
  if (live_)
    written = begin.size() < width ? cut_to_columns(written, width - begin.size()) : "";
  draw(styled(Style::dim, begin) + written + "\n");
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
