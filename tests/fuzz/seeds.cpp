// Runs targets without libFuzzer, with any compiler.
//
//   fuzz_seeds TARGET                 on its seeds
//   fuzz_seeds TARGET FILE...         on files, such as a finding's
//   fuzz_seeds TARGET --write FOLDER  writes the seeds to files

#include <algorithm>
#include <cstdio>
#include <exception>

#include "helpers/temporary_folder.hpp"
#include "target.hpp"

namespace {

int run(const fuzz::Target& target, const std::vector<std::string>& arguments) {
  const std::vector<std::string> seeds = target.seeds();
  if (seeds.empty()) {
    std::fprintf(stderr, "%s has no seeds\n", target.name);
    return 1;
  }
  if (arguments.size() == 2 && arguments[0] == "--write") {
    std::filesystem::create_directories(arguments[1]);
    for (std::size_t i = 0; i < seeds.size(); ++i)
      write_bytes(arguments[1] + "/seed-" + std::to_string(i), seeds[i]);
    return 0;
  }
  std::vector<std::string> inputs;
  for (const std::string& path : arguments)
    inputs.push_back(read_bytes(path));
  if (arguments.empty())
    inputs = seeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    try {
      target.run(inputs[i]);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s, input %zu: %s\n", target.name, i, error.what());
      return 1;
    }
  }
  std::printf("%s: %zu inputs\n", target.name, inputs.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto* const found = std::ranges::find_if(fuzz::targets, [&](const fuzz::Target* target) {
    return argc > 1 && std::string_view(target->name) == argv[1];
  });
  if (found != fuzz::targets.end())
    return run(**found, {argv + 2, argv + argc});
  std::fprintf(stderr, "usage: fuzz_seeds TARGET [FILE... | --write FOLDER]; targets:");
  for (const fuzz::Target* const target : fuzz::targets)
    std::fprintf(stderr, " %s", target->name);
  std::fprintf(stderr, "\n");
  return 2;
}
