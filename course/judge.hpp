#pragma once
// Judges a learner's functions, which have been compiled and loaded.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>
#include <xgrad/autograd/check/tensor_function.hpp>

#include "course/exercise.hpp"

namespace learn {

/// The verdict on a file, with reasons in plain words.
struct Answer {
  bool right = false;
  std::string said;
};

/// A function that the learner's file does not define.
struct Missing {
  std::string name;
};

/// The learner's file, loaded.
class Work {
 public:
  /// Error if it cannot be loaded.
  explicit Work(const std::string& library);
  /// The function that exercise.hpp declares under this name; throws Missing.
  template <class F>
  F* find(const char* name) const {
    return reinterpret_cast<F*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;
  void* library_;
};

using Judge = Answer (*)(const Work&);

/// The judge of a stage, "5" or "11.3".
Judge judge_of(std::string_view stage);

// ---- shared by judges (judging.cpp) ----

/// Checks the gradient of an op: by gradcheck() alone, by explain_gradient() among other layers;
/// that it is not zero or cut off; and that an update of an input before the backward does not
/// change it.  `name` is the function's.
Answer judge_gradient(const std::string& name, const xgrad::TensorFunction& f,
                      const exercise::Inputs& inputs);
/// Checks that both give the same shapes and, by compare(), the same numbers.
Answer judge_values(const std::string& name, const xgrad::TensorFunction& mine,
                    const xgrad::TensorFunction& reference, const exercise::Inputs& inputs);
/// Both checks on each case, of several sizes and magnitudes, because an op may be right for one
/// size alone.
Answer judge_op(const std::string& name, const xgrad::TensorFunction& mine,
                const xgrad::TensorFunction& reference, const std::vector<exercise::Inputs>& cases);
/// Runs judges one after the other: returns the first answer that is not right, or the last.
Answer ask(const std::vector<std::function<Answer()>>& judges);
/// A learner's function as a function of Inputs.  Clears its inputs after the call, so that a
/// backward that captured a reference fails instead of reading freed memory.
template <class... T>
std::function<xgrad::Tensor(const exercise::Inputs&)> lent(xgrad::Tensor (*mine)(const T&...)) {
  return [mine, given = std::make_shared<std::array<xgrad::Tensor, sizeof...(T)>>()](
             const exercise::Inputs& x) {
    std::copy_n(x.begin(), given->size(), given->begin());
    xgrad::Tensor y = std::apply(mine, *given);
    given->fill({});
    return y;
  };
}
/// A number with six digits.
std::string number(double x);
/// Two numbers, with enough digits to show that they differ.
std::array<std::string, 2> numbers(double a, double b);
/// Whether two Tensors have the same bits.
bool same(const xgrad::Tensor& a, const xgrad::Tensor& b);

// ---- by stage ----

Answer judge_slope(const Work& work);
Answer judge_graph(const Work& work);
Answer judge_engine(const Work& work);
Answer judge_broadcasting(const Work& work);
Answer judge_softmax(const Work& work);
Answer judge_attention(const Work& work);
Answer judge_masks(const Work& work);
Answer judge_heads(const Work& work);
Answer judge_adam(const Work& work);
Answer judge_training(const Work& work);
Answer judge_gradcheck(const Work& work);
Answer judge_second(const Work& work);
Answer judge_explained(const Work& work);  ///< 11.1 to 11.6
Answer judge_compared(const Work& work);   ///< 11.7 to 11.9
Answer judge_causal(const Work& work);     ///< 11.10
Answer judge_dropout(const Work& work);    ///< 11.11
Answer judge_dropped(const Work& work);    ///< 11.12

}  // namespace learn
