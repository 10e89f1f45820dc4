// Draws the losses of several runs into one picture.
//
//   plot_losses runs/000/metrics.jsonl runs/001/metrics.jsonl --out losses.png

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/picture.hpp>

namespace {

using Json = nlohmann::json;
using xgrad::FileError;
using xgrad::io::Series;

/// The losses in a metrics.jsonl, under the name of its folder.
Series read_losses(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw FileError(fmt::format("{}: cannot be read", path));
  Series series;
  series.name = std::filesystem::absolute(path).parent_path().filename().string();
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("step") || !row["step"].is_number() ||
        !row.contains("loss") || !row["loss"].is_number())
      throw FileError(fmt::format(
          "{}: line {} is not a JSON object with the numbers \"step\" and \"loss\"", path, number));
    series.xs.push_back(row["step"].get<double>());
    series.ys.push_back(row["loss"].get<double>());
  }
  if (series.xs.empty())
    throw FileError(fmt::format("{}: it has no lines", path));
  return series;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Draws the losses of runs into one picture.", "plot_losses");
  std::vector<std::string> paths;
  std::string out = "losses.png", title;
  app.add_option("runs", paths, "metrics.jsonl of each run, written by char_transformer")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", out, "the picture, a PNG [losses.png]")->type_name("FILE");
  app.add_option("--title", title, "what stands above it")->type_name("TEXT");
  CLI11_PARSE(app, argc, argv);
  try {
    std::vector<Series> runs;
    for (const std::string& path : paths)
      runs.push_back(read_losses(path));
    // Curves that agree cover each other: the first is thick, so that it shows under the others,
    // and these are thin where steps are many, as the loss of a batch goes up and down.
    if (runs.size() > 1) {
      for (Series& run : runs)
        run.thickness = run.xs.size() > 300 ? 1 : 2;
      runs.front().thickness = 6;
    }
    xgrad::io::line_chart(runs, out, {.title = title, .x_label = "step", .y_label = "loss"});
  } catch (const std::exception& error) {
    fmt::print(stderr, "plot_losses: {}\n", error.what());
    return 1;
  }
}
