// The files that a run saves, and the weights with which one begins.

#include <fmt/format.h>

#include <limits>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/version.hpp>
#include <xgrad/io/safetensors.hpp>

#include "lm/program/run.hpp"

TEST_CASE("xgrad: when a run is saved changes nothing", "[saves]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --save-interval 8"));
  run_well(folder, tiny_train("--out plain"));
  for (const std::string name : {"checkpoint", "best"})
    CHECK((read_bytes(folder / ("run/" + name + ".safetensors")) ==
           read_bytes(folder / ("plain/" + name + ".safetensors"))));
}

TEST_CASE("xgrad: --init-from begins with a model's weights", "[saves]") {
  const TrainedFolder folder;
  const auto from = [](const std::string& file, const Arguments& more) {
    return overridden({"train", "--init-from", file, "--data", "text", "--max-iters", "3", "--out",
                       "new", "--eval-interval", "1", "--batch-size", "4", "--warmup-iters", "0"},
                      more);
  };
  const Result result = run_well(folder, from(folder.checkpoint, {}));
  CHECK_THAT(result.err, ContainsSubstring("From:  run/checkpoint.safetensors, after 40 steps."));
  const Json config = Json::parse(read_bytes(folder / "new/config.json"));
  CHECK(config.at("n_embd") == 16);
  CHECK_THAT(config.at("init_from").get<std::string>(), EndsWith("/run/checkpoint.safetensors"));
  CHECK(metrics_of(folder / "new")[0].at("loss").get<double>() < 2.2);  // at random it is 3.1
  CHECK(xgrad::io::load_checkpoint(folder / "new/checkpoint.safetensors").step == 3);
  run_well(folder, "train --resume new --max-iters 5");
  // In a loop that restarts a run, the flag serves the first start.
  const Result again = run_well(folder, from(folder.checkpoint, "--resume --max-iters 7"));
  CHECK_THAT(again.err, StartsWith("From:  new/checkpoint.safetensors, after 5 steps; --init-from "
                                   "is for a new run, and not used.\n"));
  CHECK(read_bytes(folder / "new/config.json").find("run/checkpoint.safetensors") !=
        std::string::npos);
  check_refused(folder, from(folder.checkpoint, "--resume new"), 2,
                {"--init-from begins a new run, and --resume new continues one"});

  // Weights alone, and a text with some of the model's characters.
  run_well(folder, "export --checkpoint " + folder.checkpoint);
  write_bytes(folder / "cats", std::string(50, 't') + std::string(200, 'c'));
  run_well(folder, from("model.safetensors", "--data cats --out cat"));

  const auto refused = [&](const Arguments& more, const std::vector<std::string>& fragments) {
    const Arguments all = overridden(from(folder.checkpoint, "--out no"), more);
    check_refused(folder, all, 1, fragments);
  };
  refused("--n-layer 3 --n-embd 32 --bias", {"--n-layer 3 is given, but the model has 1",
                                             "--n-embd 32 is given, but the model has 16",
                                             "--bias true is given, but the model has false"});
  write_bytes(folder / "greek", tiny_text() + "αβ");
  refused("--data greek", {"greek: ", "'α'"});
  refused("--init-from none", {"none: cannot be opened"});
}

TEST_CASE("xgrad: weights that are not finite are named", "[saves]") {
  const TrainedFolder folder;
  run_well(folder, "export --checkpoint " + folder.checkpoint);
  for (const std::string& file : {folder.checkpoint, std::string("model.safetensors")}) {
    xgrad::io::TensorFile content = xgrad::io::load_safetensors(folder / file);
    std::vector<float> values(16, 1);
    values[3] = values[7] = std::numeric_limits<float>::quiet_NaN();
    content.tensors["transformer.ln_f.weight"] = xgrad::Tensor(values);
    xgrad::io::save_safetensors(folder / file, content);
  }
  const std::vector<std::string> named = {"2 of the 16 values of transformer.ln_f.weight",
                                          "not finite"};
  check_refused(folder, "eval --checkpoint " + folder.checkpoint, 1, named);
  check_refused(folder, "sample --checkpoint " + folder.checkpoint, 1, named);
  check_refused(folder, {"export", "--checkpoint", folder.checkpoint, "--out", "new"}, 1, named);
  for (const std::string& file : {folder.checkpoint, std::string("model.safetensors")})
    check_refused(folder, tiny_train({"--init-from", file, "--out", "no"}), 1, named);
}

TEST_CASE("xgrad: --version") {
  const TemporaryFolder folder;
  CHECK_THAT(run_well(folder, {"--version"}).out,
             Catch::Matchers::Matches("xgrad " + xgrad::version() +
                                      "( \\(commit [-0-9a-z]+\\))?, (GCC|Clang) .+\n"
                                      "instructions: .+\nmatrix products: .+\nthreads: [0-9]+\n"));
}

TEST_CASE("xgrad: a rate that nobody chose may undo what weights have learnt", "[saves]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --min-lr 0.0001"));
  Arguments plain = {"train --init-from run --data text --max-iters 1"};
  const auto note = [&](const Arguments& more) {
    const std::string err = run_well(folder, overridden(plain, more)).err;
    const std::size_t at = err.find("Note:  ");
    return at == std::string::npos ? "" : err.substr(at, err.find('\n', at) - at);
  };
  const std::string last = fmt::format("they were last trained with {:.4g}",
                                       metrics_of(folder / "run").back().at("lr").get<double>());
  CHECK(note("--out a") ==
        "Note:  --learning-rate is 0.001 unless it is given, which may undo what these weights "
        "have learnt: " +
            last + ".");
  CHECK(note("--out c --learning-rate 0.001").empty());
  CHECK(note("--out d --lora-rank 2").empty());
  run_well(folder, "export run --out weights.safetensors");
  CHECK_THAT(note("--out e --init-from weights.safetensors"),
             EndsWith("learnt: fine-tuning usually takes 0.0001."));
}
