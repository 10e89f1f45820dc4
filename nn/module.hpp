#pragma once
// Models: the definition of a layer, and functions that follow from it.
//
// A layer is a struct with Tensors or other layers as members, a call operator, and one line that
// lists the members:
//
//   struct MLP {
//     Linear c_fc, c_proj;
//     Tensor operator()(const Tensor& x) const { return c_proj(gelu(c_fc(x))); }
//     static void visit(auto& self, auto&& v) { v("c_fc", self.c_fc); v("c_proj", self.c_proj); }
//   };
//
// visit may name Tensors (parameters), buffer(t) (Tensors that are not trained), may_be_bfloat16(t,
// m) (weights that may be in bfloat16 instead), layers, std::vector, std::array and std::optional
// of these, the flag `bool training`, and ties.  All functions below use it alone.  Copying a layer
// shares its Tensors; clone() copies them.

#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include "../autograd/ops/matmul.hpp"
#include "../autograd/tensor.hpp"

namespace xgrad::nn {

struct Linear;

/// Names and values, in the order of the model's members.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

/// In visit, marks a Tensor that is saved with the model but is no parameter.
template <class T>
struct Buffer {
  T& tensor;
};
template <class T>
concept TensorOrConst = std::same_as<std::remove_const_t<T>, Tensor>;
template <TensorOrConst T>
Buffer<T> buffer(T& tensor) {
  return {tensor};
}

/// In visit, declares that a Tensor, or all Tensors of a layer, are the same as those under the
/// name `target`: v("lm_head.weight", tied_to("transformer.wte.weight")).  Both names are relative
/// to the declaring layer.  A tied Tensor counts once and is saved under the target's name.  A tie
/// does not name its member, so visit contains v("lm_head", self.lm_head) as well.
struct Tie {
  std::string_view target;
};
constexpr Tie tied_to(std::string_view target) { return {target}; }

namespace detail {

struct AnyVisitor {
  template <class T>
  void operator()(std::string_view, T&&) const {}
};
template <class M>
concept HasVisit =
    requires(std::remove_const_t<M>& model) { std::remove_const_t<M>::visit(model, AnyVisitor{}); };
template <class M>
concept VisitOfObject =
    requires(M& m) { m.visit(m, AnyVisitor{}); } || requires(M& m) { m.visit(AnyVisitor{}); };
template <class M>
concept MeantAsLayer = HasVisit<M> || VisitOfObject<M>;
template <class M, class X = const Tensor&>
concept HasForward =
    requires(M& m, X x) { m.forward(x); } || requires(M& m, X x) { m.forward(x, x); };

// Says in one sentence why a class is no Layer.  Functions take any class and say it, because the
// compiler's report of an unsatisfied concept has its cause after dozens of lines.
template <class M>
constexpr bool check_layer_type() {
  static_assert(HasVisit<M> || !VisitOfObject<M>,
                "the visit of this layer is not static: static void visit(auto& self, auto&& v)");
  static_assert(HasVisit<M> || VisitOfObject<M>,
                "this layer has no public static void visit(auto& self, auto&& v), which names its "
                "members: v(\"weight\", self.weight)");
  return HasVisit<M>;
}
// The same of a class that cannot be called as `const M&`, or not even as `M&`.
template <class M, bool called, bool called_if_mutable>
constexpr void check_call_type() {
  static_assert(called || !called_if_mutable,
                "the call operator of this layer is not const: Tensor operator()(const Tensor& x) "
                "const");
  static_assert(called || called_if_mutable || !HasForward<M>,
                "this layer has forward in place of Tensor operator()(const Tensor& x) const");
}

struct Member {
  std::string name;
  Tensor tensor;      ///< another handle on the same Tensor
  Tensor* place;      ///< its location in the model; null for a const model
  std::size_t layer;  ///< index into layers
  bool is_buffer;
  bool is_alias = false;  ///< tied to another member and counted there
};
struct Weight {  ///< in bfloat16, or convertible
  std::string name;
  Tensor* tensor;
  Bfloat16Matrix* bfloat16;
  std::size_t layer;  ///< index into layers
};
struct LayerEntry {
  std::string name;       ///< "" for the model itself
  std::string_view type;  ///< a compiler's rendering of the type's name
};
struct Alias {
  std::string name, target;
  std::string layer = {};  ///< the declaring layer
};

// Everything that visit names in a model and its layers.
struct Members {
  Members();  // these in module.cpp, or each file that lists members compiles them
  Members(const Members&);
  Members(Members&&) noexcept;
  ~Members();

  std::vector<Member> tensors;  ///< without undefined ones
  std::vector<Weight> weights;
  std::vector<LayerEntry> layers;
  std::vector<std::pair<std::string, Linear*>> linears;
  std::vector<Alias> aliases;
  std::vector<bool*> training;
  std::vector<std::string> names;      ///< all given names, but those of ties
  std::vector<std::string> absent;     ///< names of optionals that are empty
  std::vector<std::string> sequences;  ///< names of Sequentials

  /// ValueError if a name is given twice or is empty, a Tensor has two names without a tie, or a
  /// tie is wrong; marks the aliases.  A layer that a Sequential has twice is tied.
  void resolve();
  /// ValueError, beginning with `caller`, if a weight is in bfloat16.
  void check_tensors(const char* caller) const;
  /// Whether a Tensor with both names would count once.
  bool tied(const std::string& a, const std::string& b) const;

 private:
  void check_names() const;
  bool in_one_sequence(const std::string& a, const std::string& b) const;
};

template <class T>
std::string_view type_name() {
  return __PRETTY_FUNCTION__;
}

template <class>
inline constexpr bool never = false;

/// "h" and "0" give "h.0"; "" and "h" give "h".
std::string name_below(const std::string& layer, std::string_view name);

class Collector {
 public:
  explicit Collector(Members& found) : found_(found) {}

  template <class M>
  void layer(const std::string& name, M& model);

 private:
  struct Scope {
    Collector& collector;
    const std::string& layer;
    template <class T>
    void operator()(std::string_view name, T&& member) const {
      if constexpr (std::same_as<std::remove_cvref_t<T>, Tie>)
        collector.tie(layer, name, member);
      else
        collector.named_member(layer, name_below(layer, name), member);
    }
  };

  template <class T>
  void named_member(const std::string& owner, const std::string& name, T& x);
  template <class T>
  void member(const std::string& owner, const std::string& name, T& x);

  // Each adds to the lists of Members.
  std::size_t enter(const std::string& name, std::string_view type);  // gives the layer around it
  void linear(const std::string& name, Linear& layer);
  void tie(const std::string& layer, std::string_view name, Tie tie);
  void tensor(const std::string& name, const Tensor& x, Tensor* place, bool is_buffer);
  void weight(const std::string& name, Tensor& tensor, Bfloat16Matrix& bfloat16);

  Members& found_;
  std::size_t layer_ = 0;
};

// These are no inline functions: those of our own layers are compiled in the library alone
// (layers.hpp, extern template).

template <class M>
void Collector::layer(const std::string& name, M& model) {
  const std::size_t outer = enter(name, type_name<std::remove_const_t<M>>());
  if constexpr (std::same_as<M, Linear>)
    linear(name, model);
  std::remove_const_t<M>::visit(model, Scope{*this, name});
  layer_ = outer;
}

template <class T>
void Collector::named_member(const std::string& owner, const std::string& full, T& x) {
  found_.names.push_back(full);
  member(owner, full, x);
}

template <class T>
void Collector::member(const std::string& owner, const std::string& name, T& x) {
  using M = std::remove_const_t<T>;
  if constexpr (std::same_as<T, Tensor>) {
    tensor(name, x, &x, false);
  } else if constexpr (std::same_as<M, Tensor>) {
    tensor(name, x, nullptr, false);
  } else if constexpr (std::same_as<M, Buffer<Tensor>>) {
    tensor(name, x.tensor, &x.tensor, true);
  } else if constexpr (std::same_as<M, Buffer<const Tensor>>) {
    tensor(name, x.tensor, nullptr, true);
  } else if constexpr (std::same_as<M, bool>) {
    if constexpr (!std::is_const_v<T>)
      found_.training.push_back(&x);
  } else if constexpr (HasVisit<M>) {
    layer(name, x);
  } else if constexpr (requires { x.tensor, x.bfloat16; }) {
    weight(name, x.tensor, x.bfloat16);
  } else if constexpr (requires { x.collect(*this, name); }) {
    found_.sequences.push_back(owner);
    x.collect(*this, name);  // a layer of erased type: see Sequential
  } else if constexpr (requires { std::begin(x); }) {
    std::size_t i = 0;
    for (auto& element : x)
      named_member(owner, name_below(name, std::to_string(i++)), element);
  } else if constexpr (requires {
                         x.has_value();
                         *x;
                       }) {
    if (x.has_value())
      member(owner, name, *x);
    else
      found_.absent.push_back(name);
  } else {
    static_assert(never<T>,
                  "visit names a member that is neither a Tensor, a layer (a struct with a "
                  "static visit), a vector, array or optional of these, `bool training`, a "
                  "buffer() nor a tied_to(): numbers and strings are not visited");
  }
}

extern template void Collector::member(const std::string&, const std::string&, Tensor&);

// Collects a const model's members as mutable ones, which are only read, so that visit is compiled
// once.
template <class M>
Members members(const M& model) {
  Members found;
  if constexpr (check_layer_type<M>())
    Collector(found).layer("", const_cast<M&>(model));
  found.resolve();
  return found;
}

StateDict named_parameters(const Members& members);
std::vector<Tensor> parameters(const Members& members);
StateDict named_buffers(const Members& members);
StateDict state_dict(const Members& members);
void load_state_dict(const Members& members, const StateDict& state);
/// A Tensor in a state, existing or expected, without its values.
struct StateEntry {
  std::string name;
  Shape shape;
  std::optional<DType> dtype = {};  ///< none: it will be converted
  std::string tied_to = {};         ///< a name that may stand for it
  bool is_buffer = false;
};
/// The entries that a model's state must have, and the entries of a given state.
std::vector<StateEntry> state_entries(const Members& members);
std::vector<StateEntry> state_entries(const StateDict& state);
/// A line for each kind of mismatch between a state and the expected one, with names; empty if it
/// fits.  `where` says in messages to what a shape belongs.
std::string mismatches(const std::vector<StateEntry>& expected,
                       const std::vector<StateEntry>& state, const char* where = "in the model");
void convert(const Members& members, DType dtype);
void to_bfloat16(const Members& members);
void requires_grad(std::vector<Tensor> parameters, bool on);
Size num_parameters(const Members& members);
void make_own(const Members& members);
std::string summary(const Members& members);
std::vector<Tensor> unvisited_leaves(const Members& members, const Tensor& output);

}  // namespace detail

/// A struct with `static void visit(auto& self, auto&& v)` that lists its members.
template <class M>
concept Layer = detail::HasVisit<M>;

/// In functions that change a layer's flags or members.
template <class M>
concept MutableLayer = !std::is_const_v<M>;

// M is a Layer.  Each of these throws ValueError if visit gives one name twice, if one Tensor has
// two names without a tie, or if a tie's target is not a member that visit names.

/// The parameters by name, as "h.0.attn.c_attn.weight"; each once, frozen ones too.
template <class M>
StateDict named_parameters(const M& model) {
  return detail::named_parameters(detail::members(model));
}
/// The parameters, each once.
template <class M>
std::vector<Tensor> parameters(const M& model) {
  return detail::parameters(detail::members(model));
}
/// The Tensors that visit names as buffer().
template <class M>
StateDict named_buffers(const M& model) {
  return detail::named_buffers(detail::members(model));
}
/// The number of elements of all parameters, those in bfloat16 too; a tied one counts once.
template <class M>
Size num_parameters(const M& model) {
  return detail::num_parameters(detail::members(model));
}

/// Parameters and buffers by name, without graph.  A snapshot: later updates do not change it.  A
/// tied Tensor occurs once, under its target's name.
template <class M>
StateDict state_dict(const M& model) {
  return detail::state_dict(detail::members(model));
}
/// Sets every Tensor of the model to the value of that name, in place, so optimizers that hold the
/// parameters see it.  A tied Tensor may have any of its names, or several with equal values.  If
/// names are missing or unexpected, or shapes or dtypes differ, one ValueError lists them all and
/// nothing has changed.
template <class M>
void load_state_dict(M& model, const StateDict& state) {
  detail::load_state_dict(detail::members(model), state);
}

/// Sets the training flag of all layers, which switches dropout.
template <MutableLayer M>
void train(M& model, bool mode = true) {
  for (bool* const flag : detail::members(model).training)
    *flag = mode;
}
template <class M>
void eval(M& model) {
  train(model, false);
}
/// Freezes or unfreezes the parameters.  GraphError, before anything changes, if one is the result
/// of an op.
template <class M>
void requires_grad_(M& model, bool on = true) {
  detail::requires_grad(parameters(model), on);
}
/// Clears the gradients.
template <class M>
void zero_grad(M& model) {
  for (Tensor& p : parameters(model))
    p.zero_grad();
}
/// Converts parameters, buffers and gradients in place: other handles on them, such as an
/// optimizer's, see the new dtype.
template <class M>
void to(M& model, DType dtype) {
  detail::convert(detail::members(model), dtype);
}
/// Rounds weights of Linear and Embedding (MayBeBfloat16) and keeps them in 2 bytes an element;
/// other handles on their Tensors are not affected.  ValueError for a model that is not float32,
/// and for a finite value that rounds to infinity.
template <MutableLayer M>
void to_bfloat16(M& model) {
  detail::to_bfloat16(detail::members(model));
}
/// A copy that shares no Tensor with the model; tied Tensors are tied in the copy.  Gradients are
/// not copied; matrices in bfloat16 never change and are shared.
template <class M>
M clone(const M& model) {
  M copy = model;
  detail::make_own(detail::members(copy));
  return copy;
}

/// A table: each layer with Tensors of its own, its type, parameter count and shapes; the total.
template <class M>
std::string summary(const M& model) {
  return detail::summary(detail::members(model));
}

/// For tests of a layer: the leaves that the graph of `output` reaches and visit does not name.
/// Empty, if no input requires a gradient, unless visit forgot a member.
template <class M>
std::vector<Tensor> unvisited_leaves(const M& model, const Tensor& output) {
  return detail::unvisited_leaves(detail::members(model), output);
}

// Weights in bfloat16, 2 bytes an element, for inference, where one token reads every weight once.
// Linear and Embedding may have them in place of a Tensor:
//
//   nn::to_bfloat16(model);  // or lm::load_pretrained(folder, {.bfloat16 = true})
//   const NoGrad no_grad;
//   model.last_logits(idx, caches);
//
// Such a model cannot be trained, saved or converted: a function that needs its weights as Tensors
// throws a ValueError, and a gradient a GraphError.

/// In visit, marks a weight that may be in bfloat16 instead: v("weight",
/// may_be_bfloat16(self.weight, self.bfloat16)).
template <class T, class M>
struct MayBeBfloat16 {
  T& tensor;
  M& bfloat16;
};
template <class T, class M>
MayBeBfloat16<T, M> may_be_bfloat16(T& tensor, M& bfloat16) {
  return {tensor, bfloat16};
}

}  // namespace xgrad::nn
