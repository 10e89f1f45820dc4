#pragma once
// Python's print() and assert for the notebooks, and a main() around their cells.

#include <concepts>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <xgrad/autograd/ops.hpp>

namespace notebook {

inline std::string text(const std::string& words) { return words; }
inline std::string text(const char* words) { return words; }
inline std::string text(std::same_as<bool> auto truth) { return truth ? "True" : "False"; }
inline std::string text(const xgrad::Tensor& x) { return to_string(x); }
/// torch.Size([4, 8, 32]).
std::string text(const xgrad::Shape& shape);

/// Python's print(): the arguments with blanks between them, then a new line.
template <class First, class... Others>
void print(const First& first, const Others&... others) {
  std::cout << text(first);
  ((std::cout << ' ' << text(others)), ...);
  std::cout << '\n';
}

/// Python's assert: an xgrad::Error unless it is true.
void assert_that(bool truth, const std::string& what);

/// Runs the cells of a program that takes no arguments.  Returns the exit code: 0, 1 after an
/// error, 2 if there are arguments.
int run(int argc, char** argv, const std::function<void()>& cells);
/// The same with one optional argument: the path of a picture, and --overwrite.
int run(int argc, char** argv,
        const std::function<void(const std::optional<std::string>& picture)>& cells);

}  // namespace notebook
