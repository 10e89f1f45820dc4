#pragma once
// A profile for a trace viewer: chrome://tracing, Perfetto.

#include <span>
#include <string>
#include <xgrad/autograd/profile.hpp>

namespace xgrad::io {

/// Writes the events in Chrome's trace event format, in microseconds.  FileError if the file cannot
/// be written.
void write_chrome_trace(const std::string& path, std::span<const Profile::Event> events);

}  // namespace xgrad::io
