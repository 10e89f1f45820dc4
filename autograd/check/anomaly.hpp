#pragma once
// Finding the op where the numbers go wrong.
//
//   const DetectAnomaly guard;
//   model.loss(x, y).backward();
//
// throws an AnomalyError at the first op whose output or gradient is not finite:
//
//   anomaly in the forward of op 31, log, in h.2.attn: the output holds NaN, first at (0, 3)
//     input 0: (4, 8) float32, -0.25 ... 1
//     output:  (4, 8) float32, -4.6 ... 0, 2 NaN

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/mode.hpp>

namespace xgrad {

/// While one lives, an op on this thread whose output is not finite, and in a backward run an op
/// that yields a gradient that is not finite, throws an AnomalyError: the op, the Scopes around it
/// (layer names), shapes and values (torch.autograd.detect_anomaly, which looks at gradients only
/// and for NaN only).  A backward run that it ends has changed no grad().
///
/// NaN is always an error.  An infinity is allowed where it was put on purpose, as attention does
/// with the scores of positions that must not be seen:
/// - an op that yields the same infinities whatever its inputs are (masked_fill, where, an op of
///   your own that writes -inf) has put them there;
/// - an infinite constant (a mask that is added) may make infinities, and so may what came of it;
/// - -inf that an op makes of constants is such a constant while graphs are recorded, and without
///   them if the op's inputs are zeros and ones alone (log of a mask).
/// It is an error in a parameter (a leaf that requires a gradient), in a value of one element (a
/// loss), in a gradient, and wherever finite inputs make it.
///
/// Looks at every element of every value, so a step takes longer; without a DetectAnomaly there is
/// no cost.  Scopes that were entered before it are not named.  Ops of a backward run that is
/// recorded (create_graph) count as forward.
class DetectAnomaly final : public Observer {
 public:
  DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;
  ~DetectAnomaly() override;

  void on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                  const Forward& forward) override;
  void on_gradient(const Node& node, const Tensor& gradient) override;
  void on_backward(const Node& node, std::size_t input, const Tensor& gradient) override;

 private:
  // Where and on what an op ran, to report if its gradient is not finite.
  struct Place {
    std::size_t number = 0;
    std::string scope;
    std::vector<ValueSummary> inputs;
    ValueSummary output;
  };

  Observer* before_;
  std::size_t ops_ = 0;
  std::unordered_map<const Node*, Place> places_;
  std::unordered_map<const Node*, ValueSummary> gradients_;  // that have arrived at a node
  const Node* running_ = nullptr;
};

}  // namespace xgrad
