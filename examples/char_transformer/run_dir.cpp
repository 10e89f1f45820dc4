#include "run_dir.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/file.hpp>

namespace char_transformer {
namespace {

namespace fs = std::filesystem;
using xgrad::FileError;

/// Makes a folder; false if it was there already.
bool make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path().empty() ? "." : path.parent_path(), error);
  const bool made = !error && fs::create_directory(path, error);
  if (error)
    throw FileError(
        fmt::format("{}: the folder cannot be made: {}", path.string(), error.message()));
  return made;
}

std::string next_numbered(const fs::path& parent) {
  unsigned next = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(parent, none)) {
    const std::string name = entry.path().filename().string();
    unsigned number = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && stop == name.data() + name.size() && name.size() < 9)
      next = std::max(next, number + 1);
  }
  return fmt::format("{:03}", next);
}

std::string prepare(const std::string& out) {
  if (out.empty()) {
    const fs::path parent = "runs";
    // Another run may take the same number in the same moment; then the one after it is free.
    for (;;) {
      const fs::path path = parent / next_numbered(parent);
      if (make_folder(path))
        return path.string();
    }
  }
  make_folder(out);
  for (const char* const name : {"config.json", "metrics.jsonl", "checkpoint.safetensors"}) {
    if (fs::exists(fs::path(out) / name))
      throw FileError(fmt::format(
          "{}: the folder holds a run already ({}); name another, or remove it", out, name));
  }
  return out;
}

}  // namespace

RunDir::RunDir(const std::string& out, const std::string& config) : path_(prepare(out)) {
  xgrad::io::AtomicFile file(path_ + "/config.json");
  file.write(config + "\n");
  file.commit();
  metrics_.open(path_ + "/metrics.jsonl");
  if (!metrics_)
    throw FileError(fmt::format("{}/metrics.jsonl: cannot be written", path_));
}

void RunDir::log(const StepRecord& r) {
  metrics_ << fmt::format(R"({{"step": {}, "loss": {:.9g}, "lr": {:.9g}, "grad_norm": {:.9g}, )"
                          R"("ms": {:.3f})",
                          r.step, r.loss, r.lr, r.grad_norm, r.ms);
  if (r.val_loss)
    metrics_ << fmt::format(R"(, "val_loss": {:.9g})", *r.val_loss);
  metrics_ << "}\n" << std::flush;
  if (!metrics_)
    throw FileError(fmt::format("{}/metrics.jsonl: writing failed", path_));
}

}  // namespace char_transformer
