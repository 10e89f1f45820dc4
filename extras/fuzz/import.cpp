// State dicts that `char_transformer import` makes a checkpoint of.

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>

#include "char_transformer/command.hpp"
#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  const std::string& path = file_with(bytes);
  refused<xgrad::FileError>([&] {
    const std::string out = path + ".out";
    const std::array<const char*, 6> argv = {"char_transformer", "import", "--state",
                                             path.c_str(),       "--out",  out.c_str()};
    CLI::App program;
    const std::vector<char_transformer::Command> commands = {char_transformer::add_import(program)};
    char_transformer::parse(program, commands, static_cast<int>(argv.size()), argv.data())->run();
  });
}

std::vector<std::string> seeds() {
  return {small_state_dict(small_config), small_state_dict(R"({"n_head":0})"),
          small_state_dict("")};
}

}  // namespace

const Target import{"import", run, seeds};

}  // namespace fuzz
