#include "autograd/ops/catalogue.hpp"

#include <regex>

#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

namespace xgrad::testing {

std::set<std::string> declared_ops(const std::string& first, const std::string& last) {
  const std::string text = read_bytes(source_dir + "/autograd/ops.hpp");
  const std::size_t begin = text.find("// ---- " + first);
  const std::size_t end = last.empty() ? text.size() : text.find("// ---- " + last);
  if (begin == std::string::npos || end == std::string::npos)
    return {};
  const std::string part = text.substr(begin, end - begin);
  static const std::regex declaration(R"((?:^|\n)(?:Tensor|Extremum|std::vector<Tensor>) (\w+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator at(part.begin(), part.end(), declaration), none; at != none; ++at)
    names.insert((*at)[1]);
  return names;
}

std::set<std::string> differentiable_ops() {
  std::set<std::string> names = declared_ops("elementwise", "comparisons");
  names.merge(declared_ops("reductions", "operators"));
  return names;
}

}  // namespace xgrad::testing
