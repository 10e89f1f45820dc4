#include "reference.hpp"

#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include "../autograd/fail.hpp"
#include "safetensors.hpp"

namespace xgrad::io {

ReferenceRun load_reference(const std::string& path) {
  const TensorFile file = load_safetensors(path);
  ReferenceRun run;
  // The index in run.events of each op that was read; none for a constant, which depends on neither
  // an input nor a parameter: a port may make it in another way.
  std::map<std::string, std::optional<std::size_t>> ops;
  struct Source {
    Tensor x;
    std::optional<std::size_t> made_by;
    bool constant;
  };
  // The values whose names metadata has for this name.
  const auto sources = [&](const std::string& name) {
    std::vector<Source> found;
    const auto listed = file.metadata.find(name);
    std::istringstream lines(listed == file.metadata.end() ? "" : listed->second);
    for (std::string source; std::getline(lines, source);) {
      const auto op = ops.find(source);
      const auto value = file.tensors.find(source);
      if (op != ops.end())
        found.push_back({value->second, op->second, !op->second});
      else if (value != file.tensors.end() && source[0] > '9')
        found.push_back({value->second, {}, false});
      else
        check<FileError>(file.indices.count(source) != 0,
                         "{}: '{}' is computed from '{}', which is no earlier value of the file",
                         path, printable_name(name), printable_name(source));
    }
    return found;
  };
  for (const auto& [name, value] : file.tensors) {  // sorted: ops come first, in running order
    if (name.starts_with("input ")) {
      run.inputs.push_back(value);
    } else if (name.starts_with("state ")) {
      run.state.emplace_back(name.substr(6), value);
    } else {
      const std::size_t scope = name.find(' '), op = name.rfind(' ');
      check<FileError>(scope != op && name[0] >= '0' && name[0] <= '9',
                       "{}: the tensor '{}' is not of a run that scripts/pytorch/dump.py wrote",
                       path, printable_name(name));
      Trace::Event event{
          name.substr(op + 1), name.substr(scope + 1, op - scope - 1), {}, {}, value, {}};
      bool constant = true;
      for (const Source& source : sources(name)) {
        event.inputs.push_back(source.x);
        event.made_by.push_back(source.made_by);
        constant = constant && source.constant;
      }
      ops.emplace(name, constant ? std::nullopt : std::optional(run.events.size()));
      if (!constant)
        run.events.push_back(std::move(event));
    }
  }
  for (const auto& [name, value] : file.indices)
    if (name.starts_with("input "))
      run.indices.push_back(value);
  for (const Source& result : sources("results"))
    run.results.push_back(result.x);
  check<FileError>(!run.results.empty(),
                   "{}: no result of floating-point numbers is among its metadata: "
                   "scripts/pytorch/dump.py writes such a file",
                   path);
  return run;
}

}  // namespace xgrad::io
