#include "autograd/ops/catalogue.hpp"

#include <regex>

#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

namespace xgrad::testing {

std::set<std::string> declared_ops() {
  const std::string folder = source_dir + "/autograd/";
  std::string text = read_bytes(folder + "ops.hpp");
  static const std::regex include("\n#include \"(ops/(?!factories)\\w+\\.hpp)\"");
  static const std::regex declaration(R"(\n(?:Tensor|Extremum|std::vector<Tensor>) (\w+)\()");
  const std::string main = text;
  for (std::sregex_iterator at(main.begin(), main.end(), include), none; at != none; ++at)
    text += read_bytes(folder + at->str(1));
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), none; at != none; ++at)
    names.insert((*at)[1]);
  return names;
}

}  // namespace xgrad::testing
