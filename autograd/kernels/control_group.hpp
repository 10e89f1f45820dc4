#pragma once
// Linux' control groups: what a container, or the system's manager, lets a process have.

#include <string>
#include <string_view>
#include <vector>

namespace xgrad::kernels {

/// The path of this process's group below where groups are mounted: of version 2, or of version 1
/// of a controller ("memory").  "" is the outermost, and what is taken where there are none.
/// `groups` is what /proc/self/cgroup says.
std::string own_group(std::string_view controller = "",
                      const std::string& groups = "/proc/self/cgroup");

/// The folders of a group and of all those above it, whose limits hold for it as well.  `root` is
/// where groups are mounted.
std::vector<std::string> group_folders(const std::string& root, std::string group);

}  // namespace xgrad::kernels
