#include <xgrad/autograd/kernels/control_group.hpp>

#include <fstream>

namespace xgrad::kernels {

// A line is number:controllers:path; of version 2 it is 0::path.
std::string own_group(std::string_view controller, const std::string& groups) {
  std::ifstream file(groups);
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers.find("," + std::string(controller) + ",") != std::string::npos &&
        path.starts_with('/'))
      return path == "/" ? "" : path;
  }
  return "";
}

std::vector<std::string> group_folders(const std::string& root, std::string group) {
  std::vector<std::string> folders{root + group};
  for (std::size_t slash; (slash = group.rfind('/')) != std::string::npos;) {
    group.erase(slash);
    folders.push_back(root + group);
  }
  return folders;
}

}  // namespace xgrad::kernels
