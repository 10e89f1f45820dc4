// The configuration in a checkpoint: JSON that describes the model.

#include <xgrad/autograd/error.hpp>
#include <xgrad/io/json.hpp>

#include <xgrad/lm/program/checkpoint_info.hpp>
#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  const std::string config(bytes);
  refused<xgrad::ValueError>([&] {
    const xgrad::io::Json json = xgrad::io::parse_json(config);
    // Reading returns the JSON that was written.
    const std::string text = xgrad::io::format_json(json);
    demand(xgrad::io::format_json(xgrad::io::parse_json(text)) == text, "JSON changes");
  });
  refused<xgrad::FileError>(
      [&] { program::load_trained_model(file_with(small_checkpoint(config))); });
}

std::vector<std::string> seeds() {
  const std::string config = small_config;
  const auto with = [&](const std::string& from, const std::string& to) {
    return std::string(config).replace(config.find(from), from.size(), to);
  };
  return {config,
          with("null", R"("/dev/zero\u001b[2J")"),
          with(R"("n_head":1)", R"("n_head":0)"),
          with(R"("n_layer":1)", R"("n_layer":2147483647)"),
          with(R"("n_layer":1)", R"("n_layer":11)"),
          with(R"("n_embd":2)", R"("n_embd":18446744073709551615)"),
          with("0.1", "1e308"),
          with("0.1", "-0"),
          with("3", "3.0"),
          R"([[[[0]]]])",
          R"({"a":1,"a":2})",
          "\"\\ud800\"",
          ""};
}

}  // namespace

const Target configuration{"configuration", run, seeds};

}  // namespace fuzz
