#pragma once
// The samples of all optimizers (tests/golden/table_optimizers.py), and the list of optimizers.

#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <vector>
#include <xgrad/optim/optimizer.hpp>

#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

namespace xgrad::testing {

using Parameters = std::vector<Tensor>;

struct OptimizerSample {
  const char* name;                                                ///< "SGD/momentum"
  std::unique_ptr<optim::Optimizer> (*make)(const Parameters& p);  ///< of two parameters or more
  bool pauses = false;     ///< the second has no gradient in steps 0, 1 and 7
  bool scheduled = false;  ///< the rate changes
};

std::span<const OptimizerSample> optimizer_samples();

/// "SGD", ...: the declarations in headers of optim/.
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
