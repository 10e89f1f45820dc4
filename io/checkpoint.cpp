#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/json.hpp>

namespace xgrad::io {
namespace {

constexpr const char* version_key = "xgrad_checkpoint";
constexpr const char* version = "1";
constexpr std::string_view optimizer_prefix = "optimizer.";
constexpr std::string_view state_prefix = "state.";

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size())
    return std::nullopt;
  return value;
}

// The optimizer counts parameters, "state.3.exp_avg"; the file names them,
// "optimizer.exp_avg.h.0.weight".

std::string file_name(std::string_view state_name, const std::vector<std::string>& parameters) {
  const std::string_view rest = state_name.substr(std::min(state_prefix.size(), state_name.size()));
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  const std::optional<std::uint64_t> index = whole_number(rest.substr(0, dot));
  check<ValueError>(state_name.starts_with(state_prefix) && dot < rest.size() && index &&
                        *index < parameters.size(),
                    "save_checkpoint: the optimizer's '{}' is of none of the {} parameters named",
                    state_name, parameters.size());
  return fmt::format("{}{}.{}", optimizer_prefix, rest.substr(dot + 1), parameters[*index]);
}

std::string state_name(const Checkpoint& checkpoint, const std::string& file_name) {
  const std::string_view rest = std::string_view(file_name).substr(optimizer_prefix.size());
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  const auto& names = checkpoint.parameters;
  const auto at =
      std::find(names.begin(), names.end(), rest.substr(std::min(dot + 1, rest.size())));
  if (dot == rest.size() || at == names.end())
    fail<FileError>("{}: tensor '{}' is of no parameter that the optimizer knows", checkpoint.path,
                    file_name);
  return fmt::format("{}{}.{}", state_prefix, at - names.begin(), rest.substr(0, dot));
}

std::string optimizer_json(const Checkpoint& checkpoint) {
  const auto& names = checkpoint.parameters;
  const auto& numbers = checkpoint.optimizer.numbers;
  return format_json(JsonObject{{"numbers", JsonObject(numbers.begin(), numbers.end())},
                                {"parameters", JsonArray(names.begin(), names.end())}});
}

void read_optimizer_json(const std::string& text, Checkpoint& checkpoint) {
  const auto refuse = [&checkpoint](const std::string& what) {
    fail<FileError>("{}: the metadata's 'optimizer' {}", checkpoint.path, what);
  };
  Json json;
  try {
    json = parse_json(text);
  } catch (const ValueError& error) {
    refuse(error.what());
  }
  const auto* const parameters = json.find<JsonArray>("parameters");
  const auto* const numbers = json.find<JsonObject>("numbers");
  if (parameters == nullptr || numbers == nullptr)
    refuse("is not JSON with a list of parameters and a map of numbers");
  for (const Json& parameter : *parameters) {
    const auto* const name = parameter.as<std::string>();
    if (name == nullptr)
      refuse("names a parameter by something other than a string");
    checkpoint.parameters.push_back(*name);
  }
  for (const auto& [name, value] : *numbers) {
    const std::optional<double> number = value.number();
    if (!number)
      refuse("gives something other than a number for one");
    checkpoint.optimizer.numbers.emplace_back(name, *number);
  }
}

const std::string& metadata(const TensorFile& file, const std::string& path, const char* key) {
  const auto found = file.metadata.find(key);
  check<FileError>(found != file.metadata.end(),
                   "{}: a safetensors file, but not a checkpoint: its metadata has no '{}'", path,
                   key);
  return found->second;
}

data::Characters read_characters(const std::string& list, const std::string& path) {
  try {
    return data::Characters::from_list(data::decode_utf8(list, "characters"));
  } catch (const ValueError& error) {
    fail<FileError>("{}: the metadata's 'characters': {}", path, error.what());
  }
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  TensorFile file;
  for (const auto& [name, x] : checkpoint.model) {
    check<ValueError>(!name.starts_with(optimizer_prefix),
                      "save_checkpoint: '{}' would be taken for the optimizer's", name);
    file.tensors.emplace(name, x);
  }
  for (const auto& [name, x] : checkpoint.optimizer.tensors)
    file.tensors.emplace(file_name(name, checkpoint.parameters), x);
  file.metadata = {{version_key, version},
                   {"step", std::to_string(checkpoint.step)},
                   {"generator", checkpoint.generator},
                   {"config", checkpoint.config},
                   {"characters", data::encode_utf8(checkpoint.characters.list())},
                   {"optimizer", optimizer_json(checkpoint)}};
  save_safetensors(path, file);
}

Checkpoint load_checkpoint(const std::string& path) {
  const TensorFile file = load_safetensors(path);
  const std::string& found = metadata(file, path, version_key);
  check<FileError>(found == version, "{}: a checkpoint of version '{}'; this is for version {}",
                   path, found, version);
  check<FileError>(file.indices.empty(), "{}: a checkpoint has no I64 tensors, and this has", path);

  Checkpoint checkpoint;
  checkpoint.path = path;
  const std::string& step = metadata(file, path, "step");
  const std::optional<std::uint64_t> steps = whole_number(step);
  check<FileError>(steps.has_value(), "{}: the metadata's 'step' is '{}', not a number", path,
                   step);
  checkpoint.step = *steps;
  checkpoint.generator = metadata(file, path, "generator");
  checkpoint.config = metadata(file, path, "config");
  checkpoint.characters = read_characters(metadata(file, path, "characters"), path);
  read_optimizer_json(metadata(file, path, "optimizer"), checkpoint);
  for (const auto& [name, x] : file.tensors) {
    if (name.starts_with(optimizer_prefix))
      checkpoint.optimizer.tensors.emplace_back(state_name(checkpoint, name), x);
    else
      checkpoint.model.emplace_back(name, x);
  }
  return checkpoint;
}

namespace detail {

std::vector<std::string> parameter_names(const nn::StateDict& named,
                                         const optim::Optimizer& optimizer) {
  std::map<const void*, std::string> names;
  for (const auto& [name, x] : named)
    names.emplace(x.handle().get(), name);
  std::vector<std::string> result;
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

void restore(const Checkpoint& checkpoint, const nn::StateDict& named, optim::Optimizer& optimizer,
             Generator& generator) {
  check<FileError>(parameter_names(named, optimizer) == checkpoint.parameters,
                   "{}: its optimizer trained other parameters, or in another order",
                   checkpoint.path);
  Generator stored;
  try {
    stored.set_state(checkpoint.generator);
    optimizer.load_state_dict(checkpoint.optimizer);
  } catch (const Error& error) {
    fail<FileError>("{}: {}", checkpoint.path, error.what());
  }
  generator = stored;
}

}  // namespace detail
}  // namespace xgrad::io
