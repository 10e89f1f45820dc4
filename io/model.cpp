#include <algorithm>
#include <limits>
#include <map>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/listed.hpp>
#include <xgrad/io/model.hpp>

namespace xgrad::io::detail {

// I64, which buffers may be: a BatchNorm's count of batches.
static Tensor read_counts(const SafetensorsFile& file, const std::string& name, DType dtype) {
  const Indices counts = file.indices(name);
  return dispatch(dtype, [&]<class T>() {
    constexpr std::int64_t limit = std::int64_t{1} << std::numeric_limits<T>::digits;
    auto values = empty_array<T>(counts.shape());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t count = counts.data()[i];
      check<FileError>(-limit <= count && count <= limit,
                       "{}: tensor '{}' holds {}, which no {} holds exactly", file.path(), name,
                       count, to_string(dtype));
      values.data()[i] = static_cast<T>(count);
    }
    return Tensor(std::move(values));
  });
}

void check_fits(const std::string& message, const std::vector<nn::detail::StateEntry>& expected,
                std::span<const SafetensorsFile> files, const std::set<std::string>& ignored,
                const char* where) {
  std::vector<nn::detail::StateEntry> entries;
  std::vector<std::string> unsupported;
  for (const SafetensorsFile& file : files)
    for (const auto& [name, stored] : file.tensors()) {
      if (ignored.contains(name))
        continue;
      entries.push_back({name, stored.shape});
      const auto counts = [&name = name](const nn::detail::StateEntry& e) {
        return e.is_buffer && e.name == name;
      };
      if (const std::string& dtype = stored.dtype;
          dtype != "F16" && dtype != "BF16" && dtype != "F32" && dtype != "F64" &&
          (dtype != "I64" || std::ranges::none_of(expected, counts)))
        unsupported.push_back(fmt::format("{} is {}", printable_name(name), dtype));
    }
  std::string problems = nn::detail::mismatches(expected, entries, where);
  if (!unsupported.empty())
    problems += fmt::format("\n  unsupported dtype (F16, BF16, F32 and F64 are supported): {}",
                            listed(unsupported));
  check<FileError>(problems.empty(), "{}{}", message, problems);
  for (const SafetensorsFile& file : files)
    file.verify();
}

Converted read_for(const nn::detail::Members& members, const SafetensorsFile& file,
                   const std::set<std::string>& ignored) {
  // The header says whether the file fits, so values are read only if it does.
  check_fits(file.path() + ": does not fit the model", nn::detail::state_entries(members),
             {&file, 1}, ignored);
  Converted result;
  std::map<std::string, std::size_t> conversions;
  for (const nn::detail::Member& m : members.tensors) {
    if (!file.contains(m.name) || ignored.contains(m.name))
      continue;
    const std::string& from = file.tensors().at(m.name).dtype;
    const DType to = m.tensor.dtype();
    result.state.emplace_back(
        m.name, from == "I64" ? read_counts(file, m.name, to) : file.tensor(m.name, to));
    if (from != (to == DType::float32 ? "F32" : "F64"))
      ++conversions[fmt::format("{} -> {}", from, to_string(to))];
  }
  for (const auto& [what, count] : conversions)
    result.what += fmt::format("{}{} ({} tensor{})", result.what.empty() ? "" : ", ", what, count,
                               count == 1 ? "" : "s");
  return result;
}

}  // namespace xgrad::io::detail
