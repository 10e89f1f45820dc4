#include "module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include "../autograd/check/describe.hpp"
#include "../autograd/engine.hpp"
#include "../autograd/fail.hpp"
#include "../autograd/ops.hpp"

namespace xgrad::nn::detail {

// The name to which `name` is tied: an alias covers its own name and, if it is a layer's, all names
// below.
static std::string tied_target(const std::vector<Alias>& aliases, const std::string& name) {
  for (const Alias& alias : aliases)
    if (name == alias.name || name.starts_with(alias.name + "."))
      return alias.target + name.substr(alias.name.size());
  return {};
}

std::string name_below(const std::string& layer, std::string_view name) {
  return layer.empty() ? std::string(name) : fmt::format("{}.{}", layer, name);
}

// ---- what visit names ----

Members::Members() = default;
Members::Members(const Members&) = default;
Members::Members(Members&&) noexcept = default;
Members::~Members() = default;

std::size_t Collector::enter(const std::string& name, std::string_view type) {
  found_.layers.push_back({name, type});
  return std::exchange(layer_, found_.layers.size() - 1);
}
void Collector::linear(const std::string& name, Linear& layer) {
  found_.linears.emplace_back(name, &layer);
}
void Collector::tie(const std::string& layer, std::string_view name, Tie tie) {
  found_.aliases.push_back({name_below(layer, name), name_below(layer, tie.target), layer});
}
void Collector::tensor(const std::string& name, const Tensor& x, Tensor* place, bool is_buffer) {
  if (x.defined())
    found_.tensors.push_back({name, x, place, layer_, is_buffer});
}
void Collector::weight(const std::string& name, Tensor& tensor, Bfloat16Matrix& bfloat16) {
  this->tensor(name, tensor, &tensor, false);
  found_.weights.push_back({name, &tensor, &bfloat16, layer_});
}
template void Collector::member(const std::string&, const std::string&, Tensor&);

// ---- names and ties ----

void Members::check_names() const {
  const auto twice = [](std::vector<std::string_view> list) {
    std::ranges::sort(list);
    const auto at = std::ranges::adjacent_find(list);
    return at == list.end() ? std::string() : std::string(*at);
  };
  for (const std::string& name : names)
    check<ValueError>(!name.empty() && !name.ends_with('.'), "visit: a name is empty");
  if (const std::string name = twice({names.begin(), names.end()}); !name.empty())
    fail<ValueError>("visit: the name '{}' is given twice", name);
  std::vector<std::string_view> tied;
  for (const Alias& alias : aliases) {
    tied.emplace_back(alias.name);
    check<ValueError>(!alias.target.empty() && !alias.target.ends_with('.'),
                      "visit: '{}' is tied to a name that is empty", alias.name);
    const auto is_or_is_below = [](const std::string& name, const std::string& layer) {
      return name == layer || name.starts_with(layer + ".");
    };
    const auto covers = [&](const std::string& name) { return is_or_is_below(name, alias.name); };
    const auto without = [&](const std::string& name) { return is_or_is_below(alias.name, name); };
    if (std::ranges::any_of(names, covers) || std::ranges::any_of(absent, without))
      continue;
    const std::size_t from = alias.layer.empty() ? 0 : alias.layer.size() + 1;
    const std::string name = alias.name.substr(from);
    fail<ValueError>(
        "visit: '{0}' is tied to '{1}', but visit names no member '{0}'; write both: "
        "v(\"{2}\", self.{2}); v(\"{3}\", tied_to(\"{4}\"))",
        alias.name, alias.target, name.substr(0, name.find('.')), name, alias.target.substr(from));
  }
  if (const std::string name = twice(tied); !name.empty())
    fail<ValueError>("visit: '{}' is tied twice", name);
}

// Whether these are names in two layers of one Sequential.
bool Members::in_one_sequence(const std::string& a, const std::string& b) const {
  return std::ranges::any_of(sequences, [&](const std::string& name) {
    const std::string above = name.empty() ? name : name + ".";
    const auto layer = [&](const std::string& below) {
      return below.substr(above.size(), below.find('.', above.size()) - above.size());
    };
    return a.starts_with(above) && b.starts_with(above) && layer(a) != layer(b);
  });
}

bool Members::tied(const std::string& a, const std::string& b) const {
  const auto counted_as = [this](const std::string& name) {
    const std::string target = tied_target(aliases, name);
    return target.empty() ? name : target;
  };
  return counted_as(a) == counted_as(b) || in_one_sequence(a, b);
}

void Members::resolve() {
  check_names();
  std::map<std::string, const Member*> by_name;
  for (const Member& m : tensors)
    by_name.emplace(m.name, &m);

  for (Member& m : tensors) {
    const std::string target = tied_target(aliases, m.name);
    if (target.empty())
      continue;
    const auto at = by_name.find(target);
    if (at == by_name.end() || !tied_target(aliases, target).empty())
      fail<ValueError>("visit: '{}' is tied to '{}', which is {}", m.name, target,
                       at == by_name.end() ? "no defined Tensor of the model" : "tied itself");
    if (at->second->tensor.handle() != m.tensor.handle())
      fail<ValueError>(
          "visit: '{}' is tied to '{}', but they are different Tensors; assign one to the other",
          m.name, target);
    m.is_alias = true;
  }

  std::unordered_map<const void*, const Member*> by_tensor;
  for (Member& m : tensors) {
    if (m.is_alias)
      continue;
    const auto [at, is_new] = by_tensor.emplace(m.tensor.handle().get(), &m);
    if (is_new)
      continue;
    m.is_alias = in_one_sequence(at->second->name, m.name);
    if (m.is_alias)
      aliases.push_back({m.name, at->second->name});
    else
      fail<ValueError>(
          "visit: '{0}' and '{1}' are the same Tensor; if that is meant, declare it in visit: "
          "v(\"{1}\", tied_to(\"{0}\"))",
          at->second->name, m.name);
  }
}

static StateDict select(const Members& members, bool buffers) {
  StateDict list;
  for (const Member& m : members.tensors)
    if (!m.is_alias && m.is_buffer == buffers)
      list.emplace_back(m.name, m.tensor);
  return list;
}
StateDict named_parameters(const Members& members) { return select(members, false); }
std::vector<Tensor> parameters(const Members& members) {
  std::vector<Tensor> list;
  for (auto& [name, tensor] : named_parameters(members))
    list.push_back(std::move(tensor));
  return list;
}
StateDict named_buffers(const Members& members) { return select(members, true); }

// ---- saving and loading ----

void Members::check_tensors(const char* caller) const {
  for (const Weight& w : weights)
    check<ValueError>(!w.bfloat16->defined(),
                      "{}: {} is in bfloat16, for answers alone; load the model in float32", caller,
                      w.name);
}

StateDict state_dict(const Members& members) {
  members.check_tensors("state_dict");
  StateDict list;
  for (const Member& m : members.tensors)
    if (!m.is_alias)
      list.emplace_back(m.name, m.tensor.detach());
  return list;
}

static void report(std::string& problems, const char* what, const std::vector<std::string>& list) {
  if (!list.empty())
    problems += fmt::format("\n  {}: {}", what, listed(list));
}

// The name under which a member is saved.
static std::string key_of(const Members& members, const Member& m) {
  return m.is_alias ? tied_target(members.aliases, m.name) : m.name;
}

std::vector<StateEntry> state_entries(const Members& members) {
  members.check_tensors("load_state_dict");
  std::vector<StateEntry> entries;
  for (const Member& m : members.tensors)
    entries.push_back({m.name, m.tensor.shape(), m.tensor.dtype(),
                       m.is_alias ? key_of(members, m) : "", m.is_buffer});
  return entries;
}

std::vector<StateEntry> state_entries(const StateDict& state) {
  std::vector<StateEntry> entries;
  for (const auto& [name, x] : state)
    entries.push_back({name, x.shape(), x.dtype()});
  return entries;
}

std::string mismatches(const std::vector<StateEntry>& expected,
                       const std::vector<StateEntry>& state, const char* where) {
  std::map<std::string, const StateEntry*> by_name;
  for (const StateEntry& e : expected)
    by_name.emplace(e.name, &e);

  std::set<std::string> seen, covered;
  std::vector<std::string> missing, unexpected, repeated, shapes, dtypes;
  for (const StateEntry& x : state) {
    const auto at = by_name.find(x.name);
    const StateEntry* const e = at == by_name.end() ? nullptr : at->second;
    if (e != nullptr)
      covered.insert(e->tied_to.empty() ? e->name : e->tied_to);
    if (!seen.insert(x.name).second)
      repeated.push_back(printable_name(x.name));
    else if (e == nullptr)
      unexpected.push_back(printable_name(x.name));
    else if (x.shape != e->shape)
      shapes.push_back(fmt::format("{} is {} here and {} {}", x.name, to_string(x.shape),
                                   to_string(e->shape), where));
    else if (x.dtype && e->dtype && x.dtype != e->dtype)
      dtypes.push_back(fmt::format("{} is {} here and {} {}", x.name, to_string(*x.dtype),
                                   to_string(*e->dtype), where));
  }
  for (const StateEntry& e : expected)
    if (e.tied_to.empty() && !covered.contains(e.name))
      missing.push_back(e.name);

  std::string problems;
  report(problems, "missing", missing);
  report(problems, "unexpected", unexpected);
  report(problems, "given twice", repeated);
  report(problems, "wrong shape", shapes);
  report(problems, "wrong dtype", dtypes);
  return problems;
}

void load_state_dict(const Members& members, const StateDict& state) {
  std::string problems = mismatches(state_entries(members), state_entries(state));

  // Values by the name under which a Tensor is saved.
  std::map<std::string, const Member*> expected;
  for (const Member& m : members.tensors)
    expected.emplace(m.name, &m);
  std::map<std::string, std::pair<std::string, const Tensor*>> values;
  std::vector<std::string> conflicts;
  for (const auto& [name, tensor] : state) {
    const auto at = expected.find(name);
    if (at == expected.end())
      continue;
    const auto [value, is_new] = values.try_emplace(key_of(members, *at->second), name, &tensor);
    if (!is_new && value->second.first != name &&
        !xgrad::detail::same_bits(*value->second.second, tensor))
      conflicts.push_back(fmt::format("{} and {}", value->second.first, name));
  }
  report(problems, "tied in the model but different here", conflicts);
  if (!problems.empty())
    fail<ValueError>("load_state_dict: the state does not fit the model{}", problems);

  for (const auto& [name, value] : values)
    check<GraphError>(expected.at(name)->tensor.is_leaf(),
                      "load_state_dict: '{}' of the model is the result of an op, not a leaf",
                      name);
  for (const auto& [name, value] : values) {
    Tensor own = expected.at(name)->tensor;
    own.set_value(value.second->identity().value);
  }
}

// ---- converting and copying ----

void convert(const Members& members, DType dtype) {
  members.check_tensors("to");
  std::vector<Tensor> tensors;
  for (const Member& m : members.tensors)
    tensors.push_back(m.tensor);
  xgrad::detail::convert(tensors, dtype);
}

void to_bfloat16(const Members& members) {
  for (const Member& m : members.tensors)
    check<ValueError>(m.tensor.dtype() == DType::float32,
                      "to_bfloat16: {} is float64; call to(model, DType::float32) before", m.name);
  for (const Member& m : members.tensors)
    for (const Weight& w : members.weights)
      check<ValueError>(
          m.name == w.name || m.tensor.handle() != w.tensor->handle() ||
              std::ranges::find(members.weights, m.name, &Weight::name) != members.weights.end(),
          "to_bfloat16: {} is {}'s Tensor, and cannot be in bfloat16", m.name, w.name);
  std::unordered_map<const void*, Bfloat16Matrix> made;  // by the Tensor: ties stay
  for (const Weight& w : members.weights)
    if (w.tensor->defined())
      if (Bfloat16Matrix& own = made[w.tensor->handle().get()]; !own.defined()) {
        own = Bfloat16Matrix(w.tensor->shape());
        check<ValueError>(own.put(0, 0, *w.tensor),
                          "to_bfloat16: {} has a finite value that bfloat16 cannot hold", w.name);
      }
  for (const Weight& w : members.weights)
    if (w.tensor->defined()) {
      *w.bfloat16 = made.at(w.tensor->handle().get());
      *w.tensor = Tensor();
    }
}

void requires_grad(std::vector<Tensor> parameters, bool on) {
  for (const Tensor& p : parameters)
    check<GraphError>(p.is_leaf(), "requires_grad_: a parameter of shape {} is the result of an op",
                      to_string(p.shape()));
  for (Tensor& p : parameters)
    p.requires_grad_(on);
}

void make_own(const Members& members) {
  std::unordered_map<const void*, Tensor> copies;
  for (const Member& m : members.tensors) {
    auto& copy = copies[m.tensor.handle().get()];
    check<ValueError>(m.place != nullptr,
                      "clone: visit names '{}' as const: it takes auto& self, not const auto& self",
                      m.name);
    if (!copy.defined()) {
      copy = m.tensor.detach();  // shares the value until either is updated
      if (m.tensor.requires_grad() || m.tensor.is_frozen())
        copy.requires_grad_(m.tensor.requires_grad());
    }
  }
  for (const Member& m : members.tensors)
    *m.place = copies[m.tensor.handle().get()];
}

// ---- tables and checks ----

// "xgrad::nn::Linear" of "... [with T = xgrad::nn::Linear; ...]", without namespaces and template
// arguments.
static std::string short_type_name(std::string_view pretty) {
  if (const auto at = pretty.find("T = "); at != pretty.npos)
    pretty.remove_prefix(at + 4);
  pretty = pretty.substr(0, pretty.find_first_of("<;]"));
  if (const auto at = pretty.rfind("::"); at != pretty.npos)
    pretty.remove_prefix(at + 2);
  return std::string(pretty);
}

// The weights in bfloat16, each once.
static std::vector<const Weight*> in_bfloat16(const Members& members) {
  std::vector<const Weight*> list;
  for (const Weight& w : members.weights)
    if (w.bfloat16->defined() && std::ranges::none_of(list, [&](const Weight* other) {
          return other->bfloat16->handle() == w.bfloat16->handle();
        }))
      list.push_back(&w);
  return list;
}

Size num_parameters(const Members& members) {
  Size n = 0;
  for (const auto& [name, x] : named_parameters(members))
    n += x.numel();
  for (const Weight* w : in_bfloat16(members))
    n += numel(w->bfloat16->shape());
  return n;
}

static std::string with_commas(std::size_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string summary(const Members& members) {
  std::vector<std::vector<std::string>> lines{{"layer", "type", "parameters", "shapes"}};
  std::size_t total = 0, trainable = 0, bytes = 0;
  for (std::size_t i = 0; i < members.layers.size(); ++i) {
    std::size_t count = 0;
    std::string shapes;
    for (const Member& m : members.tensors) {
      if (m.layer != i)
        continue;
      const std::string& layer = members.layers[i].name;
      shapes += shapes.empty() ? "" : ", ";
      shapes +=
          m.name.substr(layer.empty() ? 0 : layer.size() + 1) + " " + to_string(m.tensor.shape());
      if (m.is_alias) {
        shapes += " = " + tied_target(members.aliases, m.name);
      } else if (m.is_buffer) {
        shapes += " buffer";
      } else {
        const std::size_t n = m.tensor.numel();
        count += n;
        trainable += m.tensor.requires_grad() ? n : 0;
        bytes += n * (m.tensor.dtype() == DType::float32 ? 4 : 8);
      }
    }
    for (const Weight* w : in_bfloat16(members)) {
      if (w->layer != i)
        continue;
      const std::size_t n = numel(w->bfloat16->shape());
      shapes += (shapes.empty() ? "" : ", ") + w->name.substr(w->name.rfind('.') + 1) + " " +
                to_string(w->bfloat16->shape()) + " bfloat16";
      count += n;
      bytes += 2 * n;
    }
    total += count;
    if (!shapes.empty())
      lines.push_back({members.layers[i].name.empty() ? "(model)" : members.layers[i].name,
                       short_type_name(members.layers[i].type), with_commas(count), shapes});
  }
  return in_columns(lines, "<<>") +
         fmt::format("total {} parameter{}, {} of them trainable, {:.2f} MB\n", with_commas(total),
                     total == 1 ? "" : "s", with_commas(trainable),
                     static_cast<double>(bytes) / 1e6);
}

std::vector<Tensor> unvisited_leaves(const Members& members, const Tensor& output) {
  std::unordered_set<const Node*> seen;
  for (const Member& m : members.tensors)
    seen.insert(m.tensor.handle()->node.get());
  std::vector<const Node*> todo;
  const auto discover = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second)
      todo.push_back(node);
  };
  discover(output.identity().node.get());
  std::vector<Tensor> found;
  while (!todo.empty()) {
    const Node* const node = todo.back();
    todo.pop_back();
    if (node->sequence == 0)
      if (auto identity = node->leaf.lock())
        found.emplace_back(std::move(identity));
    for (const auto& input : node->inputs)
      discover(input.get());
  }
  return found;
}

}  // namespace xgrad::nn::detail
