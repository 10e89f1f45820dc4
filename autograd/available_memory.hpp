#pragma once
// How much memory there is left, for who wants to know before asking for a lot: Linux promises
// more than it has, and ends the process that writes to it.

#include <cstddef>
#include <string>

namespace xgrad {

/// The bytes that this process can still have: what the machine has free or can free, with its
/// swap, or less if its control group (containers) or RLIMIT_AS (ulimit -v) leaves it less.  The
/// largest number where nothing says.
std::size_t available_memory();

namespace detail {

/// The same of the machine alone; `meminfo` is what /proc/meminfo says.
std::size_t memory_of_machine(const std::string& meminfo = "/proc/meminfo");
/// Of a control group and those above it, of either version; `root` is where groups are mounted,
/// `group` the path below it.
std::size_t memory_of_group(const std::string& root, const std::string& group);

}  // namespace detail

}  // namespace xgrad
