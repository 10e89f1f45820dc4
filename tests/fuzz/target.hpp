#pragma once
// The fuzz targets: all code that parses untrusted bytes.

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

struct Target {
  const char* name;
  /// Takes any bytes.  A crash, an exception or a timeout is a finding.
  void (*run)(std::string_view bytes);
  /// Initial inputs: some of each kind, and all earlier findings.
  std::vector<std::string> (*seeds)();
};

extern const Target checkpoint, configuration, flags, metrics, pretrained, random_graph,
    safetensors, text, tokenizer, weights;
inline const std::array targets{&checkpoint,   &configuration, &flags, &metrics,   &pretrained,
                                &random_graph, &safetensors,   &text,  &tokenizer, &weights};

/// Throws unless the condition holds.
inline void demand(bool condition, const char* what) {
  if (!condition)
    throw std::logic_error(what);
}

/// Calls f; returns whether it threw an E.  Any other exception is a finding.
template <class E, class F>
bool refused(const F& f) {
  try {
    f();
  } catch (const E&) {
    return true;
  }
  return false;
}

}  // namespace fuzz
