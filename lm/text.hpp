#pragma once
// Reads texts, converts UTF-8 to and from code points, and makes batches of a text.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "../autograd/random.hpp"
#include "../autograd/tensor.hpp"
#include "characters.hpp"

namespace xgrad::lm {

/// A text as ids, and the characters of these ids.
struct Text {
  Characters characters;
  Ids ids;
};

/// Reads a whole UTF-8 file or pipe as Python's open(path, encoding="utf-8-sig").read(): drops a
/// byte order mark at the start, and "\r\n" and "\r" become "\n".  It must be as in Python, because
/// every later position, and so every random batch, depends on it.  Ids are those of `characters`,
/// by default the text's own.  Reads once, in chunks, and keeps only the ids.  Throws FileError for
/// a file that is missing, a directory or device, unreadable, empty, or not UTF-8 (with the
/// position, and a command for likely UTF-16 or Latin-1); ValueError for unknown characters as
/// Characters::encode does.
Text read_text(const std::string& path, const std::optional<Characters>& characters = {});

/// The code points of UTF-8 bytes; newlines stay as they are.  `what` names the bytes in messages.
/// Throws ValueError as read_text() does unless they are UTF-8.
std::u32string decode_utf8(std::string_view bytes, std::string_view what);

/// "\r\n" and a lone "\r" become "\n", as in Python's text mode.  Returns the last character before
/// that; `before` is that of the previous part of a text.
char32_t normalize_newlines(std::u32string& text, char32_t before = 0);

/// Code points as UTF-8.  Throws ValueError for a value that is not a code point (a surrogate, or
/// above U+10FFFF).
std::string encode_utf8(std::u32string_view text);

// Splits ids for training and validation, and makes batches.

/// A text in two parts; the later one is kept from training.
struct Split {
  Ids train, validation;
};

/// The first int(fraction * size) ids and the rest, as in nanoGPT; they share memory.  Throws
/// ValueError unless 0 < fraction < 1.
Split split(const Ids& ids, double fraction = 0.9);

/// Inputs and targets, both (batch, block): y is x one character later.
struct Batch {
  Indices x, y;
};

/// Blocks at random positions: torch.randint(size - block_size, (batch_size,)), one draw each, as
/// in nanoGPT.  Throws ValueError if data has fewer than block_size + 1 ids; `part` names it in the
/// message.
Batch random_batch(const Ids& data, std::size_t block_size, std::size_t batch_size,
                   Generator& generator, std::string_view part = "training");

/// The same in two steps: the positions, and the blocks at these positions.
std::vector<std::size_t> random_starts(const Ids& data, std::size_t block_size,
                                       std::size_t batch_size, Generator& generator,
                                       std::string_view part = "training");
Batch blocks_at(const Ids& data, std::size_t block_size, std::span<const std::size_t> starts);

/// The position in its block where the document of each position begins, (batch, block), of such
/// blocks: documents end with the ids `end`, and a block's first document may have begun before it.
/// ValueError if `end` is empty; others as of blocks_at().
Indices document_starts(const Ids& data, std::size_t block_size,
                        std::span<const std::size_t> starts, std::span<const std::int64_t> end);

/// The number of consecutive blocks: (size - 1) / block_size.  A loss over all of them has no
/// sampling noise.  Throws ValueError if there is none.
std::size_t block_count(const Ids& data, std::size_t block_size,
                        std::string_view part = "validation");

/// Consecutive blocks first, first + 1, ...; at most `count`, fewer at the end.  Throws ValueError
/// if there is no block `first`.
Batch block_batch(const Ids& data, std::size_t block_size, std::size_t first,
                  std::size_t count = 64, std::string_view part = "validation");

}  // namespace xgrad::lm
