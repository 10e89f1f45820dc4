#pragma once
// Reading texts, UTF-8 to and from code points, and batches of a text.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/data/characters.hpp>

namespace xgrad::text {

/// A text as ids, and the characters that they stand for.
struct Text {
  Characters characters;
  Ids ids;
};

/// A whole UTF-8 file, or pipe: its characters as Python's open(path, encoding="utf-8-sig").read()
/// gives them, where a byte order mark at the start is dropped, and "\r\n" and "\r" become "\n".
/// Python's reading is followed to the letter because the position of every later character, and so
/// every random batch, hangs on it.  Ids are those of `characters`, or without them of the text's
/// own.  The file is read once, piece by piece: nothing but the ids is held.  Throws FileError for
/// a file that is missing, a directory or device, unreadable, empty, or not UTF-8 (saying where,
/// and how to make UTF-8 of what seems to be UTF-16 or Latin-1), ValueError for characters that are
/// not known, as Characters::encode does.
Text read_text(const std::string& path, const std::optional<Characters>& characters = {});

/// The code points of UTF-8 bytes; newlines stay as they are.  `what` names the bytes in the
/// message.  Throws ValueError as read_text() does unless they are UTF-8.
std::u32string decode_utf8(std::string_view bytes, std::string_view what);

/// "\r\n" and a lone "\r" become "\n", as in Python's text mode.  Returns the last character that
/// there was; `before` is that of the part before, of a text that comes in several.
char32_t normalize_newlines(std::u32string& text, char32_t before = 0);

/// Code points as UTF-8.  Throws ValueError for a value that is not a code point (a surrogate, or
/// above U+10FFFF).
std::string encode_utf8(std::u32string_view text);

// Ids cut into what a model is trained and judged on.

/// A text in two parts, the later one kept from training.
struct Split {
  Ids train, validation;
};

/// The first int(fraction * size) ids and the rest, as nanoGPT cuts; they share memory.  Throws
/// ValueError unless 0 < fraction < 1.
Split split(const Ids& ids, double fraction = 0.9);

/// Inputs and targets, both (batch, block): y is x one character later.
struct Batch {
  Indices x, y;
};

/// Blocks that begin anywhere: torch.randint(size - block_size, (batch_size,)), one draw a block,
/// as nanoGPT draws them. Throws ValueError if data has fewer than block_size + 1 ids; `part` names
/// it in the message.
Batch random_batch(const Ids& data, std::size_t block_size, std::size_t batch_size,
                   Generator& generator, std::string_view part = "training");

/// The same in two steps: where blocks begin, and those that begin there.
std::vector<std::size_t> random_starts(const Ids& data, std::size_t block_size,
                                       std::size_t batch_size, Generator& generator,
                                       std::string_view part = "training");
Batch blocks_at(const Ids& data, std::size_t block_size, std::span<const std::size_t> starts);

/// How many blocks fit side by side: (size - 1) / block_size.  A loss averaged over all of them has
/// no sampling noise.  Throws ValueError if not one does.
std::size_t block_count(const Ids& data, std::size_t block_size,
                        std::string_view part = "validation");

/// Blocks first, first + 1, ... side by side; at most `count`, fewer at the end.  Throws ValueError
/// if there is no block `first`.
Batch block_batch(const Ids& data, std::size_t block_size, std::size_t first,
                  std::size_t count = 64, std::string_view part = "validation");

}  // namespace xgrad::text
