#pragma once
// The environment in which the rows of a documentation page run: see docs_page.cmake.

#include <cctype>
#include <cmath>
#include <exception>
#include <sstream>
#include <string>
#include <type_traits>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"

namespace page {

/// Every row has its own files and generator state.
struct Row {
  TemporaryFolder folder;
  std::string path = folder / "file.safetensors";

  Row() { xgrad::manual_seed(0); }  // before the names of the page
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  ~Row() {
    xgrad::print_options() = print_options_before_;
    xgrad::set_num_threads(threads_before_);
  }

 private:
  xgrad::PrintOptions print_options_before_ = xgrad::print_options();
  std::size_t threads_before_ = xgrad::num_threads();
};

/// The printed form.
template <class T>
std::string printed(const T& value) {
  if constexpr (requires { xgrad::to_string(value); }) {
    return xgrad::to_string(value);
  } else {
    std::ostringstream out;
    out << std::boolalpha << value;
    return out.str();
  }
}

/// Removes blanks that align numbers: a row of a page is one line.
inline std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank)
      line += c;
    else if (!line.empty() && line.back() != ' ' && line.back() != '[')
      line += ' ';
  }
  return line;
}

/// Checks that the result of f is printed as expected.
template <class F>
void shows(const char* line, const char* expected, const F& f) {
  INFO(line);
  CHECK(one_line(printed(f())) == one_line(expected));
}

/// Checks that f throws this error, or one derived from it.
template <class E, class F>
void throws(const char* line, const F& f) {
  INFO(line);
  CHECK_THROWS_AS(f(), E);
}

/// Runs a row; an error in it does not stop the next ones.
template <class R>
void run(const char* where) {
  INFO(where);
  try {
    R row;
    xgrad::manual_seed(0);
    row.run();
  } catch (const std::exception& error) {
    FAIL_CHECK("a row threw: " << error.what());
  }
}

}  // namespace page
