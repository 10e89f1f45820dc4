#pragma once
// The transformer of examples/char_transformer in a page.

#include <xgrad/io/json.hpp>

namespace playground {

/// The answer to start, step, sample, attention and save (playground.hpp).
xgrad::io::JsonObject trained(const std::string& what, const xgrad::io::Json& request);

// Parts of requests; ValueError if one is missing or of another kind.
const xgrad::io::Json& part(const xgrad::io::Json& request, const char* key);
std::string text_of(const xgrad::io::Json& request, const char* key);
std::size_t count_of(const xgrad::io::Json& request, const char* key, std::size_t most,
                     std::size_t least = 0);
xgrad::io::Json numbers(const xgrad::Tensor& x);

}  // namespace playground
