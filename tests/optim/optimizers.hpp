#pragma once
// Every optimizer there is.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>
#include <xgrad/optim/adagrad.hpp>
#include <xgrad/optim/adam.hpp>
#include <xgrad/optim/lion.hpp>
#include <xgrad/optim/muon.hpp>
#include <xgrad/optim/rmsprop.hpp>
#include <xgrad/optim/sgd.hpp>

#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

namespace xgrad::testing {

using MakeOptimizer =
    std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>& params)>;

template <class O, class Options>
MakeOptimizer maker(const Options& options) {
  return
      [options](const std::vector<Tensor>& params) { return std::make_unique<O>(params, options); };
}

/// By name, and what follows a / for another set of options.
inline std::map<std::string, MakeOptimizer> all_optimizers() {
  using namespace optim;
  return {{"SGD", maker<SGD>(SGDOptions{.lr = 0.1})},
          {"SGD/momentum", maker<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9})},
          {"Adam", maker<Adam>(AdamOptions{})},
          {"AdamW", maker<AdamW>(AdamWOptions{})},
          {"RMSprop", maker<RMSprop>(RMSpropOptions{})},
          {"RMSprop/momentum", maker<RMSprop>(RMSpropOptions{.momentum = 0.9})},
          {"Adagrad", maker<Adagrad>(AdagradOptions{})},
          {"Lion", maker<Lion>(LionOptions{})},
          {"Muon", maker<Muon>(MuonOptions{})}};
}

/// "SGD", ...: what the headers of optim/ declare.
inline std::set<std::string> declared_optimizers() {
  static const std::regex declaration(
      R"((?:using (\w+) = OptimizerOf|class (\w+) (?:final )?: public Optimizer(?:Of)?\b))");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir + "/optim")) {
    const std::string text = read_bytes(entry.path().string());
    for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at)
      names.insert((*at)[1].matched ? (*at)[1] : (*at)[2]);
  }
  names.erase("OptimizerOf");
  return names;
}

}  // namespace xgrad::testing
