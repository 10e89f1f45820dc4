#pragma once
// What a model is asked to continue.

#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/ids.hpp>

namespace char_transformer {

/// The text of a file without the newline at its end, if it has one.  FileError as of
/// xgrad::text::read_text().
std::string read_prompt(const std::string& path);

/// A text as ids; of line ends and a byte order mark as of a text that is trained on.  ValueError,
/// beginning with `what`, for bytes that are not UTF-8, and for characters that the model does not
/// know, with those that it does.
xgrad::text::Ids encode_given(const std::string& what, const std::string& text,
                              const xgrad::text::Characters& characters);
/// The same; with no text, a newline, or the first character of a model that has no newline.
xgrad::text::Ids encode_prompt(const std::string& what, const std::string& text,
                               const xgrad::text::Characters& characters);

std::vector<std::int64_t> list_of(const xgrad::text::Ids& ids);
/// Ids as a batch of one row.
xgrad::Indices as_row(std::span<const std::int64_t> ids);

/// 'a', or for what would not show as itself '\n'.
std::string shown(char32_t c);

}  // namespace char_transformer
