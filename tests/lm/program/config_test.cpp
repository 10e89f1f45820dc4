// Configuration files of xgrad: --config and config.json.

#include <fmt/format.h>

#include "lm/program/run.hpp"

TEST_CASE("xgrad: --config reads a run's config.json", "[config]") {
  const TinyFolder folder;
  const std::string odd = "a \"b\"\n\xC3\xA9";
  write_bytes(folder / odd, tiny_text());
  const auto of_file = [&](const std::string& file) {
    return config_written(folder, {"train", "--config", file, "--out", "out"});
  };
  for (const Arguments& arguments :
       std::vector<Arguments>{{},
                              {"--preset", "baby", "--n-layer", "2", "--bias", "--dropout=1e-3",
                               "--data", odd, "--sample-interval", "0", "--sample-prompt", "the\n"},
                              {"--learning-rate 0.0123456789012345678 --seed 4294967295 "
                               "--grad-clip 1e9 --max-iters 1000000000 --save-interval 7"},
                              {"--val-data text"}}) {
    CAPTURE(arguments);
    const std::string text = config_of(folder, arguments);
    write_bytes(folder / "c.json", text);
    CHECK(of_file("c.json") == text);
    // The same as one line with '-' in the keys.
    Json other = Json::object();
    const Json json = Json::parse(text);
    for (const auto& [key, value] : json.items()) {
      std::string name = key;
      std::replace(name.begin(), name.end(), '_', '-');
      other[name] = value;
    }
    write_bytes(folder / "d.json", other.dump());
    CHECK(of_file("d.json") == text);
  }
}

TEST_CASE("xgrad: flags beat the file, the file beats the preset", "[config]") {
  const TinyFolder folder;
  const auto with = [&](const std::string& json, Arguments more) {
    write_bytes(folder / "c.json", json);
    more.insert(more.begin(), {"--config", "c.json"});
    return Json::parse(config_of(folder, more));
  };
  const Json file = with(R"({"n_layer": 3, "bias": true, "val_data": null})", {});
  CHECK(file.at("n_layer") == 3);
  CHECK(file.at("bias") == true);
  CHECK(file.at("n_head") == 4);
  CHECK(file.at("val_data") == nullptr);
  const Json flags = with(R"({"n_layer": 3, "bias": true})", "--n-layer 2 --bias=false");
  CHECK(flags.at("n_layer") == 2);
  CHECK(flags.at("bias") == false);
  const Json preset = with(R"({"preset": "baby", "n-layer": 3})", {});
  CHECK(preset.at("preset") == "baby");
  CHECK(preset.at("n_layer") == 3);
  CHECK(preset.at("n_embd") == 384);
  const Json other = with(R"({"preset": "baby", "n-layer": 3})", "--preset nano");
  CHECK(other.at("preset") == "nano");
  CHECK(other.at("n_layer") == 3);
  CHECK(other.at("n_embd") == 128);
  // The learning rate falls to a tenth of its value, wherever that comes from.
  CHECK(with(R"({"learning_rate": 0.01})", {}).at("min_lr") == 0.001);
  CHECK(with(R"({"learning_rate": 0.01, "min_lr": 0.002})", {}).at("min_lr") == 0.002);
}

TEST_CASE("xgrad: a run's config.json makes the run again", "[config]") {
  const TrainedFolder folder;
  const std::string config = "run/config.json";
  run_well(folder, {"train", "--config", config, "--out", "again"});
  CHECK(read_bytes(folder / "again/checkpoint.safetensors") ==
        read_bytes(folder / folder.checkpoint));
  CHECK(read_bytes(folder / "again/config.json") == read_bytes(folder / config));
  run_well(folder, {"train", "--config", config, "--overfit-one-batch", "--dry-run"});
  run_well(folder, {"train", "--config", config, "--out", "other", "--seed", "1"});
  CHECK(read_bytes(folder / "other/checkpoint.safetensors") !=
        read_bytes(folder / folder.checkpoint));
}

TEST_CASE("xgrad: --config with --resume and --init-from", "[config]") {
  const TrainedFolder folder;
  // Entries of the file count as given.
  write_bytes(folder / "same.json", R"({"n_layer": 1, "max_iters": 42, "resume": "run"})");
  run_well(folder, "train --config same.json");
  CHECK(metrics_of(folder / "run").size() == 42);
  write_bytes(folder / "other.json", R"({"n_layer": 2, "n_embd": 16})");
  check_refused(folder, "train --resume run --config other.json", 1,
                {"--n-layer 2 is given, but the run has 1"});
  check_refused(folder, {"train", "--init-from", folder.checkpoint, "--config", "other.json"}, 1,
                {"--n-layer 2 is given, but the model has 1"});
  run_well(folder, "train --resume run --config other.json --n-layer 1 --max-iters 43");
  CHECK(metrics_of(folder / "run").size() == 43);
}

TEST_CASE("xgrad: configuration files that do not do", "[config]") {
  const TinyFolder folder;
  const auto refused = [&](const std::string& json, const std::vector<std::string>& fragments) {
    write_bytes(folder / "c.json", json);
    std::vector<std::string> all = fragments;
    all.push_back("xgrad train: c.json: ");
    check_refused(folder, "train --config c.json", 2, all);
    CHECK_THAT(run(folder, "train --config c.json").err, !ContainsSubstring("json.exception"));
  };
  refused(R"({"n_layers": 3})", {"'n_layers' is no flag of train; did you mean --n-layer?"});
  refused(R"({"block-sise": 3})", {"'block-sise' is no flag of train; did you mean --block-size?"});
  refused(R"({"config": "d.json"})", {"'config' is no flag"});
  refused(R"({"\u001b[2J": 3})", {"'\\x1b[2J' is no flag"});
  for (const char* const value : {"0", "-1", "2.5", "[2]", "true", "\"two\"", "{}", "1e30"})
    refused(fmt::format(R"({{"n_layer": {}}})", value),
            {"--n-layer: '", "' is not a whole number from 1 to 1024"});
  for (const char* const value : {"1e999", "-1e999", "NaN", "-nan", "Infinity"})
    refused(fmt::format(R"({{"learning_rate": {}}})", value), {"JSON"});
  refused(R"({"learning_rate": "nan"})", {"--learning-rate: 'nan' is not a number from 0 to 10"});
  refused(R"({"dropout": 1})", {"--dropout: '1' is not a number from 0 to 0.999999"});
  refused(R"({"learning_rate": "fast"})", {"--learning-rate: 'fast' is not a number from 0 to 10"});
  refused(R"({"bias": 1})", {"--bias: '1' is not true or false"});
  refused(R"({"preset": "tiny"})", {"--preset: 'tiny' is not one of nano, baby"});
  refused(R"({"data": ""})", {"--data: '' is not a path"});
  refused(R"({"data": "a\u0000b"})", {"--data: 'a\\x00b' is not a path"});
  refused(R"({"n_layer": 2, "n-layer": 2})", {"has 'n-layer' twice"});
  refused(R"({"n_layer": 2, "n_layer": 2})", {"has the key 'n_layer' twice"});
  refused("[1]", {"is not a JSON object"});
  refused("n_layer = 2", {"c.json: line 1, column 2: is not JSON"});
  refused("", {"c.json: line 1, column 1: is not JSON"});
  // Columns count characters.
  refused("{\n  \"n_layer\": 2,\n  \"data\": \"\xC3\xA9\" 3\n}",
          {"c.json: line 3, column 15: is not JSON"});
  refused("{\n  \"data\": \"\\\"n-layer\\\": \",\n\t\"n-layer\" : 0}",
          {"c.json: line 3, column 2: --n-layer: '0' is not"});
  refused("{\"bias\": true, \"n_layers\": 2}",
          {"c.json: line 1, column 16: 'n_layers' is no flag"});
  refused("{\"n_layer\": 2,\n\"n-layer\": 2}", {"c.json: line 2, column 1: has 'n-layer' twice"});
  refused("{\"n_l\\u0061yer\": 0}", {"c.json: --n-layer: '0' is not"});
  refused(std::string("{\0\"\0}\0", 6), {"holds a zero byte"});
  refused("{\"data\": \"caf\xE9\"}", {"c.json: line 1, column 15: is not JSON"});
  refused(std::string(2 << 20, ' '), {"line 1, column 1048577: is not JSON"});
  write_bytes(folder / "c.json", "\xEF\xBB\xBF{\r\n \"n_layer\": 3}\r\n");
  CHECK(Json::parse(config_of(folder, "--config c.json")).at("n_layer") == 3);
  // An entry that contradicts a flag is refused, with the name of its file.
  write_bytes(folder / "c.json", R"({"min_lr": 0.002, "warmup_iters": 9})");
  check_refused(folder, "train --config c.json --learning-rate 0.001", 2,
                {"--min-lr 0.002 is above --learning-rate 0.001\n"});
  check_refused(folder, "train --config c.json --config c.json", 2, {"--config needs one value"});
  check_refused(folder, "train --config none", 2, {"none: cannot be opened"});
  check_refused(folder, "train --config .", 2, {".: is not a regular file"});
  check_refused(folder, "train --config /dev/zero", 2, {"is not a regular file"});
  check_refused(folder, "train --config ''", 2, {"--config: '' is not a path"});
  write_bytes(folder / "c.json", R"({"n_layer": 2})");
  check_refused(folder, "eval --config c.json", 2, {"'n_layer' is no flag of eval"});
  write_bytes(folder / "c.json", R"({"n_embd": 130})");
  check_refused(folder, "train --config c.json", 2, {"--n-embd 130 is not divisible"});
}
