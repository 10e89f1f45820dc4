// State dicts that `char_transformer import` makes a checkpoint of.

#include <xgrad/autograd/error.hpp>

#include "char_transformer/exchange.hpp"
#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  const std::string& path = file_with(bytes);
  refused<xgrad::FileError>([&] {
    char_transformer::import_model({.state = path, .out = path + ".out", .data = {}, .n_head = {}});
  });
}

std::vector<std::string> seeds() {
  return {small_state_dict(small_config), small_state_dict(R"({"n_head":0})"),
          small_state_dict("")};
}

}  // namespace

const Target import{"import", run, seeds};

}  // namespace fuzz
