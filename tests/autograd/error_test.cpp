// Messages that quote untrusted texts.

#include <xgrad/autograd/error.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

TEST_CASE("a message holds nothing that a terminal obeys", "[error]") {
  CHECK(printable("caf\u00E9 \u4F60\u597D \U0001F986\n\ta") ==
        "caf\u00E9 \u4F60\u597D \U0001F986\n\ta");
  CHECK(printable("\x1b[2J\r\a\x7f") == R"(\x1b[2J\x0d\x07\x7f)");
  CHECK(printable(std::string("a\0b", 3)) == R"(a\x00b)");
  CHECK(printable("\u009B31m") == R"(\x9b31m)");  // an escape of one character
  CHECK(printable("\u202Etxt.exe\u2066") == R"(\u202etxt.exe\u2066)");  // right to left
  CHECK(printable("\u2028") == R"(\u2028)");
  CHECK(printable("\x9b\xC3(\xED\xA0\x80\xF0\x9F") ==
        R"(\x9b\xc3(\xed\xa0\x80\xf0\x9f)");  // not UTF-8
  CHECK(std::string(ValueError("\x1b").what()) == R"(\x1b)");
  CHECK(std::string(FileError("one\ntwo").what()) == "one\ntwo");
}

TEST_CASE("a name in a message is one short line", "[error]") {
  CHECK(printable_name("transformer.wte.weight") == "transformer.wte.weight");
  CHECK(printable_name("a\nerror: b\t\x1b") == R"(a\x0aerror: b\x09\x1b)");
  CHECK(printable_name(std::string(200, 'a')) == std::string(200, 'a'));
  CHECK(printable_name(std::string(201, 'a')) == std::string(200, 'a') + "...");
  CHECK(printable_name(std::string(199, 'a') + "\u00E9\u00E9") == std::string(199, 'a') + "...");
  CHECK(printable_name(std::string(300, '\x80')).size() == 4 * 196 + 3);
}
