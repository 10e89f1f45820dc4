#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>
#include "../tensor.hpp"

namespace xgrad {

namespace detail {

[[noreturn]] void wrong_number_of_inputs(std::size_t takes, std::size_t given);
[[noreturn]] void no_function();

template <class F, class... Xs>
concept GivesTensors = std::is_invocable_r_v<Tensor, const F&, const Xs&...> ||
                       std::is_invocable_r_v<std::vector<Tensor>, const F&, const Xs&...>;

}  // namespace detail

/// A function of Tensors that returns one Tensor, or several in a vector.  It takes its inputs as
/// one vector, or as one, two, three or four Tensors; a layer is such a function, too.  A generic
/// lambda, [](const auto& in), gets the vector.
class TensorFunction {
 public:
  using Inputs = std::vector<Tensor>;
  template <class F>
    requires detail::GivesTensors<F, Inputs>
  TensorFunction(F f)
      : call_([f = there(std::move(f))](const Inputs& in) { return listed(f(in)); }) {}
  template <class F>
    requires(!detail::GivesTensors<F, Inputs> && detail::GivesTensors<F, Tensor>)
  TensorFunction(F f) : TensorFunction(std::move(f), std::make_index_sequence<1>()) {}
  template <class F>
    requires(!detail::GivesTensors<F, Inputs> && !detail::GivesTensors<F, Tensor> &&
             detail::GivesTensors<F, Tensor, Tensor>)
  TensorFunction(F f) : TensorFunction(std::move(f), std::make_index_sequence<2>()) {}
  template <class F>
    requires(!detail::GivesTensors<F, Inputs> && !detail::GivesTensors<F, Tensor> &&
             detail::GivesTensors<F, Tensor, Tensor, Tensor>)
  TensorFunction(F f) : TensorFunction(std::move(f), std::make_index_sequence<3>()) {}
  template <class F>
    requires(!detail::GivesTensors<F, Inputs> && !detail::GivesTensors<F, Tensor> &&
             detail::GivesTensors<F, Tensor, Tensor, Tensor, Tensor>)
  TensorFunction(F f) : TensorFunction(std::move(f), std::make_index_sequence<4>()) {}
  std::vector<Tensor> operator()(const Inputs& inputs) const { return call_(inputs); }
  /// The only result; ValueError naming `caller` if there are several.
  Tensor single(const char* caller, const Inputs& inputs) const;

 private:
  template <class F, std::size_t... i>
  TensorFunction(F f, std::index_sequence<i...>)
      : call_([f = there(std::move(f))](const Inputs& in) {
          if (in.size() != sizeof...(i))
            detail::wrong_number_of_inputs(sizeof...(i), in.size());
          return listed(f(in[i]...));
        }) {}
  // A std::function, or a pointer, may be empty.
  template <class F>
  static F there(F f) {
    if constexpr (std::is_pointer_v<F> || requires { typename F::result_type; })
      if (f == nullptr)
        detail::no_function();
    return f;
  }
  static std::vector<Tensor> listed(Tensor y) { return {std::move(y)}; }
  static std::vector<Tensor> listed(std::vector<Tensor> ys) { return ys; }

  std::function<std::vector<Tensor>(const Inputs&)> call_;
};

}  // namespace xgrad
