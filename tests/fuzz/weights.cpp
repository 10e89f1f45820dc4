// State dicts that xgrad accepts in place of a checkpoint.

#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>

#include <xgrad/lm/program/checkpoint_info.hpp>
#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  const std::string& path = file_with(bytes);
  refused<xgrad::FileError>([&] { program::read_weights(path); });
}

std::vector<std::string> seeds() {
  return {small_state_dict(small_config), small_state_dict(R"({"n_head":0})"),
          small_state_dict("")};
}

}  // namespace

const Target weights{"weights", run, seeds};

}  // namespace fuzz
