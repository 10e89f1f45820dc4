#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

/// A function of Tensors that returns one Tensor, or several in a vector.
class TensorFunction {
 public:
  using Inputs = std::vector<Tensor>;
  template <class F>
  requires std::is_invocable_r_v<Tensor, const F&, const Inputs&> TensorFunction(F f)
      : call_([f = std::move(f)](const Inputs& in) { return std::vector<Tensor>{f(in)}; }) {}
  template <class F>
  requires std::is_invocable_r_v < std::vector<Tensor>,
  const F&, const Inputs& > TensorFunction(F f) : call_(std::move(f)) {}
  std::vector<Tensor> operator()(const Inputs& inputs) const { return call_(inputs); }

 private:
  std::function<std::vector<Tensor>(const Inputs&)> call_;
};

}  // namespace xgrad
