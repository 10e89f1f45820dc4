#include "metrics.hpp"

#include <fmt/format.h>

#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/json.hpp>

namespace char_transformer {
namespace {

/// Nothing for a line that is not a row.
std::optional<StepRecord> read_row(const std::string& line) {
  try {
    const xgrad::io::Json row = xgrad::io::parse_json(line);
    const auto* const step = row.find<std::uint64_t>("step");
    const auto loss = row.number("loss"), lr = row.number("lr"), norm = row.number("grad_norm"),
               ms = row.number("ms");
    if (step != nullptr && loss && lr && norm && ms) {
      StepRecord record{.step = *step, .loss = *loss, .lr = *lr, .grad_norm = *norm, .ms = *ms};
      // What an evaluation that is made again does not tell.
      record.val_loss_before = row.number("val_loss_before");
      if (const auto* const changes = row.find<std::string>("changes"))
        record.changes = *changes;
      return record;
    }
  } catch (const xgrad::ValueError&) {
  }
  return std::nullopt;
}

std::string format_row(const StepRecord& r) {
  std::string row = fmt::format(
      R"({{"step": {}, "loss": {:.9g}, "lr": {:.9g}, "grad_norm": {:.9g}, "ms": {:.3f})", r.step,
      r.loss, r.lr, r.grad_norm, r.ms);
  const auto add_loss = [&](const char* key, const std::optional<double>& loss) {
    if (loss)
      row += fmt::format(R"(, "{}": {:.9g})", key, *loss);
  };
  const auto add_text = [&](const char* key, const std::string& text) {
    if (!text.empty())
      row += fmt::format(R"(, "{}": "{}")", key, text);
  };
  add_loss("val_loss_before", r.val_loss_before);
  add_loss("val_loss", r.val_loss);
  add_text("val_loss_over", r.val_loss_over);
  add_loss("final_val_loss", r.final_val_loss);
  add_text("final_val_loss_over", r.final_val_loss_over);
  add_text("changes", r.changes);
  return row + "}";
}

/// Reads rows, and gathers those that are kept.
struct Reader {
  std::optional<StepRecord>& last;
  double& milliseconds;
  std::optional<StepRecord> row = {};

  std::optional<std::uint64_t> step_of(const std::string& line) {
    row = read_row(line);
    return row ? std::optional<std::uint64_t>(row->step) : std::nullopt;
  }
  void keep() {
    last = row;
    milliseconds += row->ms;
  }
};

JsonLines open_lines(std::string path, std::uint64_t steps, Reader reader) {
  return {std::move(path), steps, [&](const std::string& line) { return reader.step_of(line); },
          [&] { reader.keep(); }};
}

}  // namespace

Metrics::Metrics(std::string path, std::uint64_t steps)
    : lines_(open_lines(std::move(path), steps, {last_, milliseconds_})) {}

std::optional<StepRecord> Metrics::last(std::uint64_t step) const {
  return last_ && last_->step == step ? last_ : std::nullopt;
}

bool Metrics::log(const StepRecord& record) {
  if (const auto before = last(record.step)) {
    lines_.replace_last();
    milliseconds_ -= before->ms;
  }
  last_.reset();
  milliseconds_ += record.ms;
  return lines_.add(format_row(record));
}

}  // namespace char_transformer
