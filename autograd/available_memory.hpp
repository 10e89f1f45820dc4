#pragma once
// How much memory there is left, for who wants to know before asking for a lot: Linux promises
// more than it has, and ends the process that writes to it.

#include <cstddef>
#include <string>

namespace xgrad {

/// The bytes that the machine has free or can free, with its swap: MemAvailable and SwapFree of
/// `meminfo`.  The largest number where nothing says.
std::size_t available_memory(const std::string& meminfo = "/proc/meminfo");

}  // namespace xgrad
