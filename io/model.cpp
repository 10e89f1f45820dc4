#include <map>
#include <optional>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/model.hpp>

namespace xgrad::io::detail {

Converted read_for(const nn::detail::Members& members, const SafetensorsFile& file,
                   const std::set<std::string>& ignored) {
  static const std::map<std::string, std::optional<DType>> readable = {
      {"F16", {}}, {"BF16", {}}, {"F32", DType::float32}, {"F64", DType::float64}};

  // The header says whether the file fits, so values are read only if it does.
  std::vector<nn::detail::StateEntry> entries;
  std::string unsupported;
  for (const auto& [name, stored] : file.tensors()) {
    if (ignored.contains(name))
      continue;
    entries.push_back({name, stored.shape, {}});
    if (!readable.contains(stored.dtype))
      unsupported += fmt::format("{}{} is {}", unsupported.empty() ? "" : ", ", name, stored.dtype);
  }
  std::string problems = nn::detail::mismatches(members, entries);
  if (!unsupported.empty())
    problems += fmt::format("\n  unsupported dtype (F16, BF16, F32 and F64 are supported): {}",
                            unsupported);
  if (!problems.empty())
    fail<FileError>("{}: does not fit the model{}", file.path(), problems);
  file.verify();

  Converted result;
  std::map<std::string, std::size_t> conversions;
  for (const nn::detail::Member& m : members.tensors) {
    if (!file.contains(m.name) || ignored.contains(m.name))
      continue;
    const std::string& from = file.tensors().at(m.name).dtype;
    const DType to = m.tensor.dtype();
    result.state.emplace_back(m.name, file.tensor(m.name, to));
    if (readable.at(from) != to)
      ++conversions[fmt::format("{} -> {}", from, to_string(to))];
  }
  for (const auto& [what, count] : conversions)
    result.what += fmt::format("{}{} ({} tensor{})", result.what.empty() ? "" : ", ", what, count,
                               count == 1 ? "" : "s");
  return result;
}

}  // namespace xgrad::io::detail
