// Texts for training, and their characters.

#include <xgrad/autograd/error.hpp>
#include <xgrad/lm/characters.hpp>
#include <xgrad/lm/text.hpp>

#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

namespace lm = xgrad::lm;

void run(std::string_view bytes) {
  const bool bad = refused<xgrad::ValueError>([&] {
    const std::u32string decoded = lm::decode_utf8(bytes, "the input");
    demand(lm::encode_utf8(decoded) == bytes, "UTF-8 there and back differs");
    const lm::Characters characters = lm::Characters::of(decoded);
    demand(characters.decode(characters.encode(decoded)) == bytes, "ids there and back differ");
    demand(lm::Characters::from_list(characters.list()) == characters, "the list differs");
    refused<xgrad::ValueError>(
        [&] { demand(lm::Characters::from_list(decoded).list() == decoded, "a list changes"); });
  });
  refused<xgrad::FileError>([&] {
    const auto [characters, ids] = lm::read_text(file_with(bytes));
    demand(!bad, "a text is read that is not UTF-8");
    const std::string read = characters.decode(ids);
    demand(!read.empty() && read.find('\r') == std::string::npos, "a text with \\r, or none");
    // Reading changes only newlines and the mark at the start.
    if (bytes.find('\r') == std::string_view::npos && !bytes.starts_with("\xEF\xBB\xBF"))
      demand(read == bytes, "a text is read otherwise than it is");
  });
}

std::vector<std::string> seeds() {
  return {"",
          "abc\n",
          "\xEF\xBB\xBF\r\n\r",
          "\xEF\xBB\xBF",
          "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80",
          "\xED\xA0\x80",
          "\xF4\x90\x80\x80",
          "\xC0\x80",
          "a\xE2\x82",
          std::string("\0\x1b[2J\x7f\xC2\x9B", 8)};
}

}  // namespace

const Target text{"text", run, seeds};

}  // namespace fuzz
