#include "checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include "../autograd/fail.hpp"

namespace xgrad::io {

namespace {

constexpr const char* version_key = "xgrad_checkpoint";
constexpr std::string_view optimizer_prefix = "optimizer.";
constexpr std::string_view state_prefix = "state.", groups_prefix = "param_groups.";
constexpr const char* default_name = "default";
constexpr std::size_t deepest_user = 64;

using Names = std::vector<std::string>;

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// "state.3.exp_avg" is {3, "exp_avg"} if the prefix is "state.".
struct Numbered {
  std::size_t index;
  std::string rest;
};
std::optional<Numbered> numbered(std::string_view name, std::string_view prefix,
                                 std::size_t count) {
  if (!name.starts_with(prefix))
    return std::nullopt;
  name.remove_prefix(prefix.size());
  const std::size_t dot = name.find('.');
  const auto index = whole_number(name.substr(0, dot));
  if (dot == std::string_view::npos || !index || *index >= count)
    return std::nullopt;
  return Numbered{static_cast<std::size_t>(*index), std::string(name.substr(dot + 1))};
}

/// The index of each name.
using Places = std::map<std::string_view, std::size_t>;
Places places_of(const Names& names) {
  Places places;
  for (std::size_t i = 0; i < names.size(); ++i)
    places.emplace(names[i], i);
  return places;
}

// ---- the optimizer: it numbers parameters, "state.3.exp_avg"; the file uses their names ----

Names parameter_names(const nn::StateDict& named, const optim::Optimizer& optimizer) {
  std::map<const void*, std::string> names;
  for (const auto& [name, x] : named)
    names.emplace(x.handle().get(), name);
  Names result;
  for (const Tensor& p : optimizer.params()) {
    const auto found = names.find(p.handle().get());
    check<ValueError>(found != names.end(),
                      "checkpoint: the optimizer's parameter {} of shape {} is not one of the "
                      "model's",
                      result.size(), to_string(p.shape()));
    result.push_back(found->second);
  }
  return result;
}

/// Adds "optimizer.exp_avg.h.0.weight" to the state of its parameter.
void add_tensor(Checkpoint& checkpoint, const Places& parameters, std::string_view file_name,
                const Tensor& x) {
  const std::string_view rest = file_name.substr(optimizer_prefix.size());
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  const auto at = parameters.find(rest.substr(std::min(dot + 1, rest.size())));
  if (dot == rest.size() || at == parameters.end())
    fail<FileError>("{}: tensor '{}' belongs to no parameter of the optimizer", checkpoint.path,
                    file_name);
  checkpoint.optimizer.parameters[at->second].tensors.emplace_back(rest.substr(0, dot), x);
}

std::string only_in(const char* what, const Places& names, const Places& without) {
  std::vector<std::string> list;
  for (const auto& [name, place] : names)
    if (!without.contains(name))
      list.push_back(printable_name(name));
  return list.empty() ? "" : fmt::format("\n  {}: {}", what, listed(list));
}

/// The checkpoint's optimizer state, in the order and groups of this optimizer, whose parameters
/// have these names.  ValueError if they do not fit.
optim::OptimizerState arranged(const Checkpoint& checkpoint, const optim::Optimizer& optimizer,
                               const Names& names) {
  const Names& stored = checkpoint.parameters;
  const Places places = places_of(names), stored_places = places_of(stored);
  const std::string differences =
      only_in("trained only by the checkpoint's", stored_places, places) +
      only_in("trained only by this one", places, stored_places);
  check<ValueError>(differences.empty(), "its optimizer trained other parameters:{}", differences);

  const optim::OptimizerState& before = checkpoint.optimizer;
  std::vector<std::size_t> group_of;  // of each stored parameter
  for (std::size_t g = 0; g < before.groups.size(); ++g)
    group_of.insert(group_of.end(), before.groups[g].params, g);
  optim::OptimizerState result = optimizer.state_dict();
  std::size_t i = 0;
  for (optim::OptimizerState::Group& group : result.groups)
    for (const std::size_t begin = i; i < begin + group.params; ++i) {
      const std::size_t at = stored_places.at(names[i]);
      result.parameters[i] = before.parameters[at];
      const auto& options = before.groups[group_of.at(at)].options;
      if (i == begin)
        group.options = options;
      const auto [first, own] = std::ranges::mismatch(group.options, options);
      if (first != group.options.end() && own != options.end())
        fail<ValueError>(
            "one group of this optimizer holds {}, trained with {} {}, and {}, trained with {}; "
            "give each a group of its own{}",
            names[begin], own->first, first->second, names[i], own->second,
            own->first == "weight_decay"
                ? ", as decay_matrices(nn::parameters(model), options) does"
                : "");
    }
  return result;
}

void check_generators(const char* caller, const Generators& generators) {
  for (const auto& [name, generator] : generators)
    check<ValueError>(name != default_name && generator != nullptr, "{}: generator '{}' is {}",
                      caller, name, generator == nullptr ? "null" : "default_generator()'s name");
}

// ---- the metadata ----

/// Reads the entries of a file's metadata; its errors name the entry.
struct Metadata {
  const std::map<std::string, std::string>& entries;
  const std::string& path;

  const std::string& text(const char* key) const {
    const auto found = entries.find(key);
    check<FileError>(found != entries.end(),
                     "{}: a safetensors file, but not a checkpoint: its metadata has no '{}'", path,
                     key);
    return found->second;
  }
  Json json(const char* key, std::size_t deepest = 3) const {
    try {
      return parse_json(text(key), 0, deepest);
    } catch (const ValueError& error) {
      refuse(key, error.what());
    }
  }
  [[noreturn]] void refuse(const char* key, std::string_view what) const {
    fail<FileError>("{}: the metadata's '{}' {}", path, key, what);
  }
};

void read_optimizer(const Metadata& metadata, Checkpoint& checkpoint) {
  const char* const key = "optimizer";
  const Json json = metadata.json(key);
  const auto* const parameters = json.find<JsonArray>("parameters");
  const auto* const numbers = json.find<JsonObject>("numbers");
  if (parameters == nullptr || numbers == nullptr)
    metadata.refuse(key, "is not JSON with a list of parameters and a map of numbers");
  for (const Json& parameter : *parameters) {
    const auto* const name = parameter.as<std::string>();
    if (name == nullptr)
      metadata.refuse(key, "has a parameter's name that is not a string");
    checkpoint.parameters.push_back(*name);
  }
  auto& [states, groups] = checkpoint.optimizer;
  const std::size_t n = parameters->size();
  states.resize(n);
  for (const auto& [name, value] : *numbers) {
    const std::optional<double> number = value.number();
    const auto of_state = numbered(name, state_prefix, n),
               of_group = numbered(name, groups_prefix, numbers->size());
    if (!number)
      metadata.refuse(key, "has a number that is not one");
    if (of_state && of_state->rest == "step") {
      states[of_state->index].step = number;
      continue;
    }
    if (!of_group)
      metadata.refuse(key, "has a number of no parameter and of no group");
    groups.resize(std::max(groups.size(), of_group->index + 1));
    auto& [options, params] = groups[of_group->index];
    if (of_group->rest != "params")
      options.emplace_back(of_group->rest, *number);
    else if (*number >= 0 && *number <= static_cast<double>(n))
      params = static_cast<std::size_t>(*number);
  }
  std::size_t held = 0;
  for (const auto& group : groups)
    held += group.params;
  check<FileError>(held == n, "{}: its groups do not hold its {}", checkpoint.path,
                   counted(n, "parameter", "parameters"));
}

void read_generators(const Metadata& metadata, Checkpoint& checkpoint) {
  const char* const key = "generators";
  const Json json = metadata.json(key);
  const auto* const states = json.as<JsonObject>();
  if (states == nullptr)
    metadata.refuse(key, "is not a JSON object");
  for (const auto& [name, value] : *states) {
    const auto* const state = value.as<std::string>();
    if (state == nullptr)
      metadata.refuse(key, "has a state that is not a string");
    checkpoint.generators.emplace(name, *state);
  }
}

}  // namespace

Checkpoint load_checkpoint(const std::string& path) {
  const SafetensorsFile file(path);
  const Metadata metadata{file.metadata(), path};
  const std::string& version = metadata.text(version_key);
  check<FileError>(version == "2", "{}: a checkpoint of version '{}'; this reads version 2", path,
                   version);
  check<FileError>(file.verify(), "{}: the file has been damaged: it has no checksum", path);

  Checkpoint checkpoint;
  checkpoint.path = path;
  const std::string& step = metadata.text("step");
  const std::optional<std::uint64_t> steps = whole_number(step);
  check<FileError>(steps.has_value(), "{}: the metadata's 'step' is '{}', not a number", path,
                   step);
  checkpoint.step = *steps;
  read_optimizer(metadata, checkpoint);
  read_generators(metadata, checkpoint);
  checkpoint.user = metadata.json("user", deepest_user);
  const Places parameters = places_of(checkpoint.parameters);
  for (const auto& [name, stored] : file.tensors()) {
    if (name.starts_with(optimizer_prefix))
      add_tensor(checkpoint, parameters, name, file.tensor(name));
    else
      checkpoint.model.emplace_back(name, file.tensor(name));
  }
  return checkpoint;
}

namespace detail {

// Reads I64, the dtype of a count in a buffer (BatchNorm's number of batches).
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

void load_state(const nn::detail::Members& members, const nn::StateDict& state,
                const std::string& path) {
  try {
    nn::detail::load_state_dict(members, state);
  } catch (const ValueError& error) {
    throw FileError(path + ": does not fit the model: " + error.what());
  }
}

void save(const nn::detail::Members& members, const std::string& path) {
  const nn::StateDict state = nn::detail::state_dict(members);
  save_safetensors(path, {.tensors = {state.begin(), state.end()}});
}

std::string load(const nn::detail::Members& members, const SafetensorsFile& file,
                 const std::set<std::string>& ignored) {
  // The header tells whether the file fits, so values are read only if it does.
  check_fits(file.path() + ": does not fit the model", nn::detail::state_entries(members),
             {&file, 1}, ignored);
  nn::StateDict state;
  std::map<std::string, std::size_t> conversions;
  for (const nn::detail::Member& m : members.tensors) {
    if (!file.contains(m.name) || ignored.contains(m.name))
      continue;
    const std::string& from = file.tensors().at(m.name).dtype;
    const DType to = m.tensor.dtype();
    state.emplace_back(m.name,
                       from == "I64" ? read_counts(file, m.name, to) : file.tensor(m.name, to));
    if (from != (to == DType::float32 ? "F32" : "F64"))
      ++conversions[fmt::format("{} -> {}", from, to_string(to))];
  }
  load_state(members, state, file.path());
  std::string converted;
  for (const auto& [what, count] : conversions)
    converted += fmt::format("{}{} ({})", converted.empty() ? "" : ", ", what,
                             counted(count, "tensor", "tensors"));
  return converted;
}

void save_checkpoint(const std::string& path, const nn::detail::Members& model,
                     const optim::Optimizer& optimizer, const CheckpointOptions& options) {
  TensorFile file;
  const nn::StateDict tensors = nn::detail::state_dict(model);
  const Names names = parameter_names(nn::detail::named_parameters(model), optimizer);
  const Places trained = places_of(names);
  for (const auto& [name, x] : tensors) {
    if (options.trained_only && !trained.contains(name))
      continue;
    check<ValueError>(!name.starts_with(optimizer_prefix),
                      "save_checkpoint: '{}' is reserved for the optimizer", name);
    file.tensors.emplace(name, x);
  }
  const optim::OptimizerState state = optimizer.state_dict();
  JsonObject numbers;
  const auto add = [&numbers](std::string_view prefix, std::size_t i, const std::string& name,
                              double number) {
    check<ValueError>(std::isfinite(number), "save_checkpoint: the optimizer's {}{}.{} is {}",
                      prefix, i, name, number);
    numbers.emplace_back(fmt::format("{}{}.{}", prefix, i, name), number);
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const auto& [name, x] : state.parameters[i].tensors)
      file.tensors.emplace(fmt::format("{}{}.{}", optimizer_prefix, name, names[i]), x);
    if (state.parameters[i].step)
      add(state_prefix, i, "step", *state.parameters[i].step);
  }
  for (std::size_t g = 0; g < state.groups.size(); ++g) {
    for (const auto& [name, number] : state.groups[g].options)
      add(groups_prefix, g, name, number);
    add(groups_prefix, g, "params", static_cast<double>(state.groups[g].params));
  }
  JsonObject generators{{default_name, default_generator().state()}};
  check_generators("save_checkpoint", options.generators);
  for (const auto& [name, generator] : options.generators)
    generators.emplace_back(name, generator->state());
  const std::string user = format_json(options.user);
  try {
    parse_json(user, 0, deepest_user);  // or it could not be read again
  } catch (const ValueError& error) {
    fail<ValueError>("save_checkpoint: the user's JSON {}", error.what());
  }
  file.metadata = {
      {version_key, "2"},
      {"step", std::to_string(options.step)},
      {"generators", format_json(generators)},
      {"optimizer", format_json(JsonObject{{"numbers", std::move(numbers)},
                                           {"parameters", JsonArray(names.begin(), names.end())}})},
      {"user", user}};
  save_safetensors(path, file);
}

// The optimizer's part, and the generators'.
static void restore(const Checkpoint& checkpoint, const nn::StateDict& named_parameters,
                    optim::Optimizer& optimizer, const Generators& generators) {
  check_generators("restore", generators);
  const Names names = parameter_names(named_parameters, optimizer);
  Places wanted{{default_name, 0}}, stored;
  for (const auto& [name, generator] : generators)
    wanted.emplace(name, 0);
  for (const auto& [name, state] : checkpoint.generators)
    stored.emplace(name, 0);
  try {
    const std::string differences = only_in("only in the checkpoint", stored, wanted) +
                                    only_in("only asked for", wanted, stored);
    check<ValueError>(differences.empty(), "its generators have other names:{}", differences);
    std::vector<std::pair<Generator*, Generator>> states;
    for (const auto& [name, state] : checkpoint.generators) {
      const auto found = generators.find(name);
      states.emplace_back(found == generators.end() ? &default_generator() : found->second,
                          Generator());
      states.back().second.set_state(state);
    }
    optimizer.load_state_dict(arranged(checkpoint, optimizer, names));
    for (auto& [generator, state] : states)
      *generator = state;
  } catch (const Error& error) {
    fail<FileError>("{}: {}", checkpoint.path, error.what());
  }
}

void restore(const Checkpoint& checkpoint, const nn::detail::Members& model,
             optim::Optimizer& optimizer, const Generators& generators) {
  const nn::StateDict before = nn::detail::state_dict(model);
  load_state(model, checkpoint.model, checkpoint.path);
  try {
    restore(checkpoint, nn::detail::named_parameters(model), optimizer, generators);
  } catch (...) {
    nn::detail::load_state_dict(model, before);
    throw;
  }
}

}  // namespace detail

}  // namespace xgrad::io
