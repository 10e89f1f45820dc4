#pragma once
// The table of the program's corners: each command, as it is used, and its files.

#include "lm/program/run.hpp"

/// A command line in a CornersFolder.  words[1] is the model or the run, but for `train`.
struct Use {
  Arguments words;
  Names writes = {};     ///< all files that it writes
  Names reads = {};      ///< files that it must not replace
  std::string run = {};  ///< the folder in which it trains
};

/// Names in a folder.
inline Names in(const std::string& folder, const Names& names) {
  Names paths;
  for (const std::string& name : names)
    paths.insert(folder + "/" + name);
  return paths;
}

/// Whether the program has the playground's page, which scripts/web makes.
inline bool has_playground() {
  static const bool has = run(TemporaryFolder(), "playground").code == 0;
  return has;
}

/// All commands.  The first row begins a run, and the second resumes one.
inline std::vector<Use> uses() {
  const std::string run = "run/checkpoint.safetensors", rows = "run/metrics.jsonl";
  const Names adapted = {"base.safetensors", "ad/checkpoint.safetensors"};
  const auto training = [](const Arguments& words, const std::string& folder,
                           const Names& more = {}) {
    Names files = {"config.json", "environment.json",       "metrics.jsonl",   "samples.jsonl",
                   "report.html", "checkpoint.safetensors", "best.safetensors"};
    files.insert(more.begin(), more.end());
    return Use{words, in(folder, files), {"text"}, folder};
  };
  std::vector<Use> all = {
      training(tiny_train("--out new --max-iters 20"), "new"),
      training("train --resume run --max-iters 60", "run"),
      training(tiny_train("--out new --max-iters 20 --init-from base.safetensors"), "new"),
      training(tiny_train("--out new --max-iters 20 --init-from base.safetensors --lora-rank 4"),
               "new", {"adapter_config.json", "adapter_model.safetensors"}),
      {"eval run"},
      {"sample run --tokens 20"},
      {"explain run --data text", {"explain.html"}, {run, "text"}},
      {"graph run", {"graph.html"}, {run}},
      {"graph run --format dot --out a.dot", {"a.dot"}, {run}},
      {"graph run --format text --out a.txt", {"a.txt"}, {run}},
      {"graph run --format text"},
      {"export run", {"model.safetensors"}, {run}},
      {"export ad --out mine.safetensors", {"mine.safetensors"}, adapted},
      {"export run --out gpt2/",
       in("gpt2", {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}),
       {run}},
      {"export ad --adapters --out peft/",
       in("peft", {"adapter_config.json", "adapter_model.safetensors"}), adapted},
      {"report run", {"run/report.html"}, {rows}},
      {"compare run --out a.html", {"a.html"}, {rows}},
      {"compare run --out a.svg", {"a.svg"}, {rows}},
      {"compare run"},
  };
  if (has_playground())
    all.push_back({"playground --out p.html", {"p.html"}});
  return all;
}

/// The text, a run without a report, its weights, and adapters to these.
struct CornersFolder : TrainedFolder {
  Files usual;
  CornersFolder() {
    run_well(*this, "export run --out base.safetensors");
    run_well(*this,
             tiny_train("--init-from base.safetensors --lora-rank 2 --max-iters 2 --out ad"));
    std::filesystem::remove(*this / "run/report.html");
    usual = files_under(*this);
  }
  /// Makes it as it was.
  void tidy() const {
    for (const auto& entry : std::filesystem::directory_iterator(*this / ""))
      std::filesystem::remove_all(entry.path());
    for (const auto& [name, content] : usual)
      if (!name.ends_with('/'))
        write(name, content);
  }
  /// Writes a file, and makes its folder.
  void write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = *this / name;
    std::filesystem::create_directories(path.parent_path());
    write_bytes(path.string(), content);
  }
};
