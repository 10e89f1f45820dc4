#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>
#include <xgrad/parallel/communicator.hpp>

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

/// As much of a line of ASCII as the terminal shows without wrapping it.
std::string fit(std::string text) {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
      text.size() >= size.ws_col)
    text.resize(size.ws_col - 1U);
  return text;
}

}  // namespace

std::string format_duration(double seconds) {
  const auto s = static_cast<unsigned long>(seconds + 0.5);
  if (s < 60)
    return fmt::format("{} s", s);
  if (s < 3600)
    return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

std::string format_count(std::size_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, 1, ',');
  return text;
}

Progress::Progress(std::size_t made, std::size_t steps, std::size_t tokens_per_step)
    : first_(made),
      steps_(steps),
      tokens_per_step_(tokens_per_step),
      every_(round_interval(steps)),
      // mpirun gives its processes terminals of their own, wherever their output goes.
      terminal_(::isatty(STDOUT_FILENO) == 1 && xgrad::parallel::launched().size == 1) {}

std::string Progress::describe(const StepRecord& r) const {
  const auto digits = static_cast<int>(std::to_string(steps_).size());
  const std::chrono::duration<double> spent = Clock::now() - begin_;
  const auto made = static_cast<double>(r.step + 1 - first_);
  const auto to_make = static_cast<double>(steps_ - r.step - 1);
  const double left = spent.count() / made * to_make;
  const double speed = 1000 * static_cast<double>(tokens_per_step_) / ms_;
  // A narrow terminal cuts off the end.
  return fmt::format("step {:{}}/{}  loss {:.4f}  {} left  {:.1f} ms/step  {} tokens/s  lr {:.2e}",
                     r.step, digits, steps_, r.loss, format_duration(left), ms_,
                     format_count(static_cast<std::size_t>(speed)), r.lr);
}

void Progress::step(const StepRecord& record) {
  ms_ = ms_ == 0 ? record.ms : (1 - forget) * ms_ + forget * record.ms;
  const auto silence = Clock::now() - shown_;
  const bool last = record.step + 1 == steps_;
  if (terminal_) {
    if (silence < redraw_after && !last)
      return;
    draw(fmt::format("\r{}\x1b[K{}", fit(describe(record)), last ? "\n" : ""));
  } else {
    if (record.step % every_ != 0 && silence < longest_silence && !last)
      return;
    say(describe(record) + "\n");
  }
  shown_ = Clock::now();
}

void Progress::line(const std::string& text) {
  clear();
  say(text + "\n");
}

void Progress::warn(const std::string& text) {
  clear();
  char_transformer::warn(text);
}

void Progress::clear() const {
  if (terminal_)
    draw("\r\x1b[K");
}

}  // namespace char_transformer
