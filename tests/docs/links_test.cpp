// Files and names in the documentation exist.

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "helpers/catch.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;

std::vector<std::string> found(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> all;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    all.push_back((*at)[1]);
  return all;
}

// The project's own files, from its folder.
std::vector<std::string> files(const std::string& extension) {
  std::vector<std::string> all;
  for (const char* const folder : {"autograd", "course", "docs", "examples", "io", "lm", "nn",
                                   "optim", "parallel", "tests", "viz"})
    for (const auto& entry : fs::recursive_directory_iterator(source_dir + "/" + folder))
      if (extension.empty() || entry.path().extension() == extension)
        all.push_back(entry.path().lexically_relative(source_dir).generic_string());
  for (const char* const page : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"})
    all.emplace_back(page);
  return all;
}

}  // namespace

TEST_CASE("Links between pages lead to files that are there", "[docs]") {
  // (`h[1](x)` is code: a file's name has a dot, a folder's a slash.)
  static const std::regex link(R"(\]\(([^()# &]*[./][^()# &]*)(#[^)]*)?\))");
  std::size_t links = 0;
  for (const std::string& page : files(".md"))
    for (const std::string& target : found(read_bytes(source_dir + "/" + page), link)) {
      if (target.starts_with("http"))
        continue;
      ++links;
      INFO(page << ": " << target);
      CHECK(fs::exists(fs::path(source_dir + "/" + page).parent_path() / target));
    }
  CHECK(links > 80);
}

TEST_CASE("Headers that pages name are there", "[docs]") {
  static const std::regex header("<xgrad/([a-z_/]+[.]hpp)>");
  std::size_t headers = 0;
  for (const std::string& page : files(".md"))
    for (const std::string& name : found(read_bytes(source_dir + "/" + page), header)) {
      ++headers;
      INFO(page << ": " << name);
      CHECK(fs::exists(source_dir + "/" + name));
    }
  CHECK(headers > 6);
}

TEST_CASE("docs/code_layout.md names files that are there", "[docs]") {
  static const std::regex path("`([a-z_/]+(?:\\.[hc]pp|/))`");
  const std::vector<std::string> all = files("");
  const auto names = found(read_bytes(source_dir + "/docs/code_layout.md"), path);
  CHECK(names.size() > 40);
  for (const std::string& name : names) {
    INFO(name);
    CHECK(std::ranges::any_of(all, [&](const std::string& file) {
      return name.ends_with('/') ? file.starts_with(name)
                                 : file == name || file.ends_with("/" + name);
    }));
  }
}

TEST_CASE("The map of the API reference lists every example", "[docs]") {
  const std::string map = read_bytes(source_dir + "/docs/map.dox");
  std::size_t examples = 0;
  for (const std::string& file : files(".cpp"))
    if (file.starts_with("examples/") && file != "examples/notebooks/notebook.cpp") {
      const std::string name = file.substr(9);
      ++examples;
      INFO(name);
      CHECK(map.find("@example " + name + " ") != std::string::npos);
      CHECK(map.find("@ref " + name) != std::string::npos);
    }
  CHECK(examples > 8);
  CHECK(found(map, std::regex("(@example)")).size() == examples);
}
