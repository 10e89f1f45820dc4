#include "metrics.hpp"

#include <fmt/format.h>

namespace char_transformer {

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

std::optional<StepRecord> read_row(const xgrad::io::Json& row) {
  const auto* const step = row.find<std::uint64_t>("step");
  const auto loss = row.number("loss"), lr = row.number("lr"), norm = row.number("grad_norm"),
             ms = row.number("ms");
  if (step == nullptr || !loss || !lr || !norm || !ms)
    return std::nullopt;
  StepRecord record{.step = *step, .loss = *loss, .lr = *lr, .grad_norm = *norm, .ms = *ms};
  record.val_loss_before = row.number("val_loss_before");
  if (const auto* const changes = row.find<std::string>("changes"))
    record.changes = *changes;
  return record;
}

}  // namespace char_transformer
