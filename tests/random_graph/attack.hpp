#pragma once
// Shared by the properties: a program's graph, its expected gradients, and checks that throw.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/graph.hpp>

#include "random_graph/random_graph.hpp"

namespace xgrad::testing {

/// Throws a std::runtime_error with this text unless the condition holds.
void demand(bool condition, const std::string& what);
std::string name_of(std::size_t at);

template <class E, class F>
bool throws(const F& f) {
  try {
    f();
  } catch (const E&) {
    return true;
  }
  return false;
}

/// Copies of the leaves' current gradients, which later runs do not change.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& leaves);
void demand_same(const std::vector<Tensor>& now, const std::vector<Tensor>& before,
                 const std::string& what);
/// Demands that gradients are enabled and there is no observer.
void demand_mode();
Doubles times(double factor, Doubles xs);

/// A program that has run on Tensors.
struct Graph {
  std::vector<Tensor> inputs, registers;
  std::vector<Tensor> roots, cotangents;

  Graph(const Program& program, const std::vector<Tensor>& ins, const std::vector<Tensor>& all);
  /// From all roots.
  void backward(GradOptions options = {}) const;
  /// The same, and undefined where no gradient arrives.
  std::vector<Tensor> grad(const std::vector<Tensor>& of, GradOptions options = {}) const;
};

/// Weak pointers to all nodes and values of some graphs.
class Watch {
 public:
  void graphs_of(const std::vector<Tensor>& ys);
  std::size_t nodes() const { return nodes_.size(); }
  std::size_t alive() const;  ///< nodes and values that are not freed

 private:
  std::vector<std::weak_ptr<Node>> nodes_;
  std::vector<std::weak_ptr<const Value>> values_;
};

/// A program under test.
struct Attack {
  const Program& program;
  Random random;
  Watch watch = {};
  double worst_error = 0;

  /// Runs the program, and watches its graph.
  Graph run(const std::vector<Tensor>& inputs, const After& after = {});
  /// The gradient of every input, by plain loops; empty for those that get none.
  std::vector<Doubles> expected_gradients() const;
  /// The results of steps that a gradient reaches; never empty.
  std::vector<std::size_t> reached_steps() const;

  void compare(const Tensor& x, const Doubles& expected, const std::string& what);
  /// A gradient where one arrives, undefined where none may.
  void compare(const Tensor& x, const Doubles& expected, bool arrives, const std::string& what);
  /// Checks the grad() of all inputs against `factor` times the expected gradients.
  void compare_all(const std::vector<Tensor>& inputs, const std::vector<Doubles>& expected,
                   double factor, const std::string& what);
};

}  // namespace xgrad::testing
