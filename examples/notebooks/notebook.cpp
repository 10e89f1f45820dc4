#include "notebook.hpp"

#include <exception>
#include <vector>
#include <xgrad/io/file.hpp>

namespace notebook {
namespace {

/// The file name of the program.
std::string name_of(int argc, char** argv) {
  const std::string path = argc > 0 ? argv[0] : "notebook";
  return path.substr(path.rfind('/') + 1);
}

int run(const std::string& name, const std::function<void()>& cells) try {
  cells();
  if (!std::cout.flush())
    throw xgrad::FileError("standard output: writing failed");
  return 0;
} catch (const std::exception& error) {
  std::cout.flush();
  std::cerr << name << ": " << error.what() << '\n';
  return 1;
}

int refuse(const std::string& name, const std::string& argument, const std::string& usage) {
  std::cerr << name << ": unexpected argument '" << argument << "'\nusage: " << name << usage
            << '\n';
  return 2;
}

}  // namespace

std::string text(const xgrad::Shape& shape) {
  std::string sizes;
  for (const std::size_t size : shape)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return "torch.Size([" + sizes + "])";
}

void assert_that(bool truth, const std::string& what) {
  if (!truth)
    throw xgrad::Error("assertion failed: " + what);
}

int run(int argc, char** argv, const std::function<void()>& cells) {
  const std::string name = name_of(argc, argv);
  return argc > 1 ? refuse(name, argv[1], "") : run(name, cells);
}

int run(int argc, char** argv,
        const std::function<void(const std::optional<std::string>&)>& cells) {
  const std::string name = name_of(argc, argv);
  std::vector<std::string> arguments(argv + (argc > 0), argv + argc);
  const bool overwrite = std::erase(arguments, "--overwrite") > 0;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (i > 0 || arguments[i].empty() || arguments[i].front() == '-')
      return refuse(name, arguments[i], " [PICTURE.svg [--overwrite]]");
  const auto picture = arguments.empty() ? std::nullopt : std::optional(arguments.front());
  return run(name, [&] {
    if (picture)
      xgrad::io::check_output(*picture, overwrite);
    cells(picture);
  });
}

}  // namespace notebook
