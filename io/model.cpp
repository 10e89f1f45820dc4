#include <limits>
#include <map>
#include <optional>
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

Converted read_for(const nn::detail::Members& members, const SafetensorsFile& file,
                   const std::set<std::string>& ignored) {
  static const std::map<std::string, std::optional<DType>> readable = {
      {"F16", {}}, {"BF16", {}}, {"F32", DType::float32}, {"F64", DType::float64}};

  std::set<std::string> buffers;
  for (const nn::detail::Member& m : members.tensors)
    if (m.is_buffer)
      buffers.insert(m.name);
  const auto is_count = [&](const std::string& name, const StoredTensor& stored) {
    return stored.dtype == "I64" && buffers.contains(name);
  };

  // The header says whether the file fits, so values are read only if it does.
  std::vector<nn::detail::StateEntry> entries;
  std::vector<std::string> unsupported;
  for (const auto& [name, stored] : file.tensors()) {
    if (ignored.contains(name))
      continue;
    entries.push_back({name, stored.shape, {}});
    if (!readable.contains(stored.dtype) && !is_count(name, stored))
      unsupported.push_back(fmt::format("{} is {}", printable_name(name), stored.dtype));
  }
  std::string problems = nn::detail::mismatches(members, entries);
  if (!unsupported.empty())
    problems += fmt::format("\n  unsupported dtype (F16, BF16, F32 and F64 are supported): {}",
                            listed(unsupported));
  if (!problems.empty())
    fail<FileError>("{}: does not fit the model{}", file.path(), problems);
  file.verify();

  Converted result;
  std::map<std::string, std::size_t> conversions;
  for (const nn::detail::Member& m : members.tensors) {
    if (!file.contains(m.name) || ignored.contains(m.name))
      continue;
    const StoredTensor& stored = file.tensors().at(m.name);
    const std::string& from = stored.dtype;
    const DType to = m.tensor.dtype();
    const bool counts = is_count(m.name, stored);
    result.state.emplace_back(m.name,
                              counts ? read_counts(file, m.name, to) : file.tensor(m.name, to));
    if (counts || readable.at(from) != to)
      ++conversions[fmt::format("{} -> {}", from, to_string(to))];
  }
  for (const auto& [what, count] : conversions)
    result.what += fmt::format("{}{} ({} tensor{})", result.what.empty() ? "" : ", ", what, count,
                               count == 1 ? "" : "s");
  return result;
}

}  // namespace xgrad::io::detail
