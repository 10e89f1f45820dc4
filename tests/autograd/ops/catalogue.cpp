#include "autograd/ops/catalogue.hpp"

#include <regex>

#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

namespace xgrad::testing {

namespace {

std::string text_of_indices() { return read_bytes(source_dir + "/autograd/ops/indices.hpp"); }

std::set<std::string> names_in(const std::string& part) {
  static const std::regex declaration(R"((?:^|\n)(?:Tensor|Extremum|std::vector<Tensor>) (\w+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator at(part.begin(), part.end(), declaration), none; at != none; ++at)
    names.insert((*at)[1]);
  return names;
}

}  // namespace

std::set<std::string> declared_ops(const std::string& first, const std::string& last) {
  const std::string text =
      read_bytes(source_dir + "/autograd/ops.hpp") + (last.empty() ? text_of_indices() : "");
  const std::size_t begin = text.find("// ---- " + first);
  const std::size_t end = last.empty() ? text.size() : text.find("// ---- " + last);
  if (begin == std::string::npos || end == std::string::npos)
    return {};
  return names_in(text.substr(begin, end - begin));
}

std::set<std::string> differentiable_ops() {
  std::set<std::string> names = declared_ops("elementwise", "comparisons");
  names.merge(declared_ops("reductions", "operators"));
  names.merge(names_in(text_of_indices()));
  return names;
}

}  // namespace xgrad::testing
