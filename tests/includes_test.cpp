// Arrows run downward only: a folder's files include only layers below it, and nothing outside
// autograd/ includes its kernels.  One header handles the locations of xtensor's headers.  A file
// opens a namespace once.

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "helpers/catch.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

namespace {

using Names = std::vector<std::string>;

// The layers that each layer may include besides itself and the base.
struct Layer {
  std::string name;
  Names below;
};
const std::vector<Layer> layers = {
    {"base", {}},
    {"kernels", {}},
    {"autograd", {"kernels"}},
    {"check", {"autograd"}},
    {"nn", {"autograd", "check"}},
    {"optim", {"autograd"}},
    {"parallel", {"autograd"}},
    {"io", {"autograd", "check", "nn", "optim"}},
    {"xgrad.hpp", {"autograd", "check", "nn", "optim", "parallel", "io"}},
    {"lm", {"autograd", "check", "nn", "optim", "io"}},
    {"lm.hpp", {"lm"}},
    {"viz", {"autograd", "check", "nn", "optim", "io"}},
    {"viz.hpp", {"viz"}},
    {"programs",
     {"autograd", "check", "nn", "optim", "parallel", "io", "lm", "viz", "xgrad.hpp", "lm.hpp",
      "viz.hpp"}},
};

// The layer of a path below the project's folder; usually its folder's name.
std::string layer_of(const std::string& path) {
  static const std::regex base(
      "autograd/(memory|shape|buffer|threads|error|fail|fork|per_thread|sanitizers)\\..*");
  if (std::regex_match(path, base))
    return "base";
  if (path == "autograd/custom_op.hpp")  // collects headers for users, as xgrad.hpp does
    return "xgrad.hpp";
  for (const char* const program :
       {"examples/", "lm/program/", "course/", "parallel/mpi/", "tests/bench/", "tests/fuzz/"})
    if (path.starts_with(program))
      return "programs";
  for (const char* const name : {"kernels", "check"})
    if (path.starts_with(std::string("autograd/") + name + "/"))
      return name;
  return path.substr(0, path.find('/'));
}

// The lines of a file with forbidden includes.
Names violations(const std::string& path, const std::string& text) {
  const auto layer = std::ranges::find(layers, layer_of(path), &Layer::name);
  REQUIRE(layer != layers.end());
  static const std::regex include(
      "(?:^|\n)(#include (?:<xgrad/([^>]*\\.hpp)>|\"([^\"]*\\.hpp)\"))");
  const bool in_library = layer->name != "programs";
  Names found;
  for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at) {
    if ((*at)[2].matched && in_library)
      found.push_back(path + ": the library includes its files by relative paths, not " +
                      at->str(1));
    if (!(*at)[2].matched && !in_library)
      continue;  // a file of the program beside it
    const std::filesystem::path file = (*at)[2].matched
                                           ? std::filesystem::path(at->str(2))
                                           : std::filesystem::path(path).parent_path() / at->str(3);
    const std::string other = layer_of(file.lexically_normal().generic_string());
    if (other != "base" && other != layer->name &&
        std::ranges::find(layer->below, other) == layer->below.end())
      found.push_back(path + ": " + at->str(1));
  }
  if (path != "autograd/xtensor.hpp" && text.find("#include <xtensor/") != std::string::npos)
    found.push_back(path + ": xtensor's headers are included by autograd/xtensor.hpp");
  static const std::regex opening("(?:^|\n)namespace (?:\\w+::)*(\\w*) ?\\{");
  std::set<std::string> opened;
  for (std::sregex_iterator at(text.begin(), text.end(), opening), end; at != end; ++at)
    if (!opened.insert(at->str(1)).second && path != "autograd/kernels/simd.hpp" &&
        path != "nn/check.hpp")  // these say why
      found.push_back(path + ": namespace " + at->str(1) + " is opened twice");
  return found;
}

}  // namespace

TEST_CASE("Source files include only lower layers", "[includes]") {
  Names found;
  std::size_t files = 0;
  const auto look_at = [&](const std::filesystem::path& path) {
    if (path.extension() != ".hpp" && path.extension() != ".cpp")
      return;
    ++files;
    const std::string name = path.lexically_relative(source_dir).generic_string();
    for (const std::string& line : violations(name, read_bytes(path.string())))
      found.push_back(line);
  };
  for (const char* const header : {"/xgrad.hpp", "/lm.hpp", "/viz.hpp"})
    look_at(source_dir + header);
  for (const char* const folder : {"autograd", "parallel", "nn", "optim", "io", "lm", "viz",
                                   "examples", "course", "tests/bench", "tests/fuzz"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(source_dir + "/" + folder))
      look_at(entry.path());
  CHECK(files > 150);
  std::ranges::sort(found);
  for (const std::string& line : found)
    FAIL_CHECK(line);
}

TEST_CASE("An include of something above is found", "[includes]") {
  const auto of = [](const std::string& path, const std::string& included) {
    const std::string up = path.find('/') == std::string::npos  ? ""
                           : std::ranges::count(path, '/') == 1 ? "../"
                                                                : "../../";
    return violations(path,
                      "#pragma once\n#include <vector>\n#include \"" + up + included + "\"\n");
  };
  CHECK(of("optim/sgd.cpp", "autograd/kernels/gemm.hpp") ==
        Names{"optim/sgd.cpp: #include \"../autograd/kernels/gemm.hpp\""});
  CHECK(violations("optim/sgd.cpp", "#include <xgrad/autograd/tensor.hpp>\n").size() == 1);
  CHECK(violations("examples/mine.cpp", "#include <xgrad/autograd/kernels/gemm.hpp>\n").size() ==
        1);
  CHECK(violations("examples/mine.cpp", "#include <xgrad/nn/module.hpp>\n").empty());
  CHECK(of("optim/sgd.cpp", "nn/module.hpp").size() == 1);
  CHECK(violations("optim/sgd.cpp", "#include \"../nn/module.hpp\"\n").size() == 1);
  for (const char* header : {"tensor", "graph", "engine"})
    CHECK(of("autograd/kernels/gemm.hpp", std::string("autograd/") + header + ".hpp").size() == 1);
  CHECK(of("autograd/buffer.hpp", "autograd/tensor.hpp").size() == 1);
  CHECK(of("autograd/ops/norm.cpp", "autograd/check/gradcheck.hpp").size() == 1);
  CHECK(of("autograd/check/compare.cpp", "nn/module.hpp").size() == 1);
  CHECK(of("io/checkpoint.hpp", "lm/gpt.hpp").size() == 1);
  CHECK(of("nn/layers.hpp", "lm/gpt.hpp").size() == 1);
  CHECK(of("viz/attention.cpp", "lm/gpt.hpp").size() == 1);
  CHECK(of("lm/gpt.cpp", "lm/program/flags.hpp").size() == 1);
  CHECK(of("xgrad.hpp", "lm/gpt.hpp").size() == 1);
  CHECK(of("xgrad.hpp", "autograd/kernels/parallel.hpp").size() == 1);
  CHECK(violations("examples/mine.cpp", "#include <xtensor/xview.hpp>\n").size() == 1);

  CHECK(violations("nn/a.hpp", "namespace xgrad {\nnamespace a {\n}\nnamespace xgrad::a {\n}\n") ==
        Names{"nn/a.hpp: namespace a is opened twice"});

  CHECK(of("autograd/kernels/gemm.hpp", "autograd/fail.hpp").empty());
  CHECK(of("autograd/ops/norm.cpp", "autograd/kernels/norm.hpp").empty());
  CHECK(of("io/checkpoint.cpp", "optim/sgd.hpp").empty());
}
