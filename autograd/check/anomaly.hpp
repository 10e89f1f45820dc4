#pragma once
// Finds the op at which numbers stop being finite.
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
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>
#include "../error.hpp"
#include "../trace.hpp"
#include "describe.hpp"

namespace xgrad {

/// While one lives, an op on this thread whose output is not finite, and in a backward run an op
/// whose gradient is not finite, throws an AnomalyError that names the op, the Scopes around it
/// (layer names), shapes and values (torch.autograd.detect_anomaly, which checks gradients for NaN
/// alone).  The failed backward run has changed no grad().
///
/// NaN in a value is always an error.  -inf may be intended, as a masked score or the log of 0: it
/// is an error in a parameter (a leaf that requires a gradient) and in a value of one element (a
/// loss), and the message names the op that made it.  +inf is an error there and wherever finite
/// inputs make it, unless the op yields it for any inputs (where, a user's op that writes it).  NaN
/// or an infinity in a gradient is an error; in the gradient of an op that yielded -inf only if it
/// arrives at a leaf.
///
/// It checks every element of every value, so a step takes longer; without a DetectAnomaly there is
/// no cost.  Scopes that were entered before it are not named.  Ops of a recorded backward run
/// (create_graph) count as forward.
class DetectAnomaly final : public PassesOn {
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
  // The place and the inputs of an op, for reporting a gradient that is not finite.
  struct Place {
    std::size_t number = 0;
    std::string scope;
    std::vector<ValueSummary> inputs;
    ValueSummary output;
  };

  std::size_t ops_ = 0;
  std::unordered_map<const Node*, Place> places_;
  // The op that made the infinities of a value: "op 2, log, made it".
  std::unordered_map<const Value*, std::pair<std::weak_ptr<const Value>, std::string>> made_;
  std::string held_back_;  // of a gradient that is not finite, until it arrives at a leaf
  std::unordered_map<const Node*, ValueSummary> gradients_;  // that have arrived at a node
  const Node* running_ = nullptr;
};

}  // namespace xgrad
