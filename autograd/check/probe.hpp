#pragma once
// A function at a point, in a common form for all checkers.
//
// A Probe has leaves, with the sizes by which their elements may move; a function that computes the
// outputs for other values of the leaves; and the size of the numbers that round in each.  It is
// made
//
// - from a TensorFunction, a layer or the gradient of another: CheckedFunction::probe();
// - from one event of a Trace: RecordedOp::probe() (op_check.hpp);
// - from a part of a recorded graph (viz/graph_check.cpp);
// - from the slope of another probe: slope_along().
//
// Every checker has check_claims() ask Differences along lines of a probe: along one element, or
// along several at once, each by its size.  Sizes, directions and points nearby are chosen here
// alone.  Not for users.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "../engine.hpp"
#include "../ops/index.hpp"
#include "../random.hpp"
#include "describe.hpp"
#include "differences.hpp"

namespace xgrad::detail {

using Doubles = std::vector<double>;
using Point = std::vector<Doubles>;  ///< the values of each leaf; empty for one that is not moved
using Elements = std::span<const std::size_t>;
using Weights = Differences::Weights;

/// Elements that may move.
struct Leaf {
  explicit Leaf(Doubles its_values);
  Doubles values;
  double typical = 1;  ///< size of its elements
  Doubles sizes = {};  ///< largest joint move of each; 0 for a mask's -1e9 and infinities
  /// Lets tiny elements move as far as the others, in case their size makes a place special.
  void even_out();
};

/// The line along which elements move.
struct Direction {
  Point by = {};           ///< of each leaf; empty for one that is not moved
  double x = 0, size = 1;  ///< of a single element; several move by their sizes
};

struct Probe {
  std::vector<Leaf> leaves = {};
  /// The elements of all outputs at these values.  `step` times the leaves' sizes is the step of a
  /// function that is itself a difference.
  std::function<Doubles(Point values, double step)> at = {};
  Doubles center = {};    ///< at the leaves' own values
  Doubles scales = {};    ///< the size of the numbers that round in each output
  int order = 1;          ///< 2 if the function is itself a difference
  double noise = 0;       ///< of its values, times the step
  double unit = 0x1p-53;  ///< half a unit in the last place of 1, in its precision

  Direction axis(std::size_t leaf, std::size_t element) const;
  /// Several elements at once: by weights that differ, so that a permuted gradient does not pass,
  /// and signs at random or, so that nothing cancels, those of a gradient.
  Direction along(std::size_t leaf, Elements some, std::span<const double> signs_of = {}) const;
  /// The leaves' values at a point of a line.
  Point moved(const Direction& direction, const LinePoint& point) const;
  /// Refers to this probe.
  Line line(const Direction& direction) const;
};

/// The derivative of the sum of weights * outputs along w, by differences, as a function of the
/// same leaves.  Doubles of size `rounds` round in that sum.  Refers to its arguments.
Probe slope_along(const Probe& probe, Weights weights, const Point& w, double rounds);

/// sum(g * u) over the elements where u is not 0: an element that stays does not count, even if its
/// gradient is NaN.
double dot(std::span<const double> g, const Doubles& u);
/// Adds |a * b| of all elements where that is finite.
void add_sizes(double& sum, std::span<const double> a, std::span<const double> b);
/// The elements, or n zeros of an undefined gradient.
Doubles or_zeros(const Tensor& gradient, std::size_t n);

// ---- the check ----

/// "These are the derivatives of the sum of weights * outputs by the elements of a leaf."
struct Claim {
  std::vector<std::pair<std::size_t, double>> weights;  ///< (output, weight)
  std::span<const double> gradient;
};

/// The judgement of a claim along one element.
struct Finding : Judgement {
  std::size_t leaf = 0, claim = 0, element = 0;
  double analytic = 0;
  /// |analytic - numeric| / max(1, |numeric|); infinite if either is not finite.
  double error() const;
};

/// Sums over the elements that were judged, as all reports have them.
struct Findings {
  std::size_t checked = 0, disagree = 0, unchecked = 0;
  bool infinite = false;     ///< an unchecked element is at an infinite or NaN place
  bool steep = false;        ///< an unchecked one is steep, or rounding leaves it no digit
  std::string because = {};  ///< why the first unchecked one is
  double worst_error = 0;    ///< of the elements that could be checked
  Finding worst = {};        ///< of the elements that disagree or, if none does, of all
  double alike = 0;  ///< among errors that differ by less than this part, the first is the worst
  void add(const Finding& found);
};

struct CheckOptions {
  /// For a claim along one element, or along several; none where an element has no slope.
  std::function<std::optional<Tolerance>(std::size_t claim, Elements, const Direction&)> tolerance;
  Elements among = {};  ///< the elements that may move; all if empty
  /// So many of these, evenly spaced, are judged one at a time; all, if there are several claims.
  /// The others are judged along one line and, where that is not right, along its halves, and so
  /// on, down to at most so many single elements.
  std::size_t one_by_one = std::numeric_limits<std::size_t>::max(), most_suspects = 64;
  bool halve_unchecked = true;  ///< not only a line that is wrong
  bool by_signs = false;        ///< lines follow the gradient's signs, so that nothing cancels
};

/// Judges claims about a leaf.  Tells of the elements that are judged one at a time, and of those
/// that halves lead to.  Returns the judgement along the line.
Finding check_claims(const Probe& probe, std::size_t leaf, std::span<const Claim> claims,
                     const CheckOptions& options, const std::function<void(const Finding&)>& tell);

/// The gradient by a probe's only leaf that a run computed, which may be float32.
struct RecordedGradient {
  Doubles gradient;
  bool exact = false;  ///< it is float64
  double slack = 0;    ///< rounding may change a right gradient by so much along a direction, ...
  Doubles rounding = {};  ///< ... and each of its elements by so much besides
};
/// Judges a gradient of the sum of weights * outputs as check_claims() does, with tolerances for
/// the precision of gradient and probe.  An exact one is judged sharply at first: a line sees one
/// wrong element of many.  Adds what it tells of to `found`.
Finding check_recorded(Probe probe, Weights weights, const RecordedGradient& of,
                       CheckOptions options, Findings& found,
                       const std::function<void(const Finding&)>& tell);

// ---- gradients ----

/// An error of shapes or dtypes, or of another library, in a backward run.
struct BackwardError : Error {
  BackwardError(GradcheckReason r, const std::string& what) : Error(what), reason(r) {}
  GradcheckReason reason;
};
/// d sum(outputs * cotangents) / d inputs by grad(); undefined if no graph leads to an input.
std::vector<Tensor> partial_gradients(const std::vector<Tensor>& outputs,
                                      const std::vector<Tensor>& inputs,
                                      const std::vector<Tensor>& cotangents,
                                      const GradOptions& options);
using OnGradient = std::function<void(const Node&, const Tensor&)>;
/// The same; an error of shapes or dtypes, or of another library, becomes a BackwardError.  Calls
/// `on_gradient` with the gradient of each node's output.
std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& cotangents, const GradOptions& options,
                              const OnGradient& on_gradient = {});

/// Magnitudes in [0.5, 1.5), so that every element matters, with random signs.
Tensor random_signed(const Shape& shape, Generator& generator);
/// Zeros like y, with a 1 at one element.
Tensor one_hot(const Tensor& y, std::size_t at);
/// These values in the shape and dtype of x.
Tensor like(const Tensor& x, Doubles values);

// ---- functions of Tensors ----

/// An input that is checked, and its position among the inputs.
struct CheckedLeaf {
  std::size_t position;
  std::string name;
  Tensor x;
};

/// Sets leaves to other values; the destructor restores the old ones.
class Moved {
 public:
  Moved(const std::vector<CheckedLeaf>& leaves, Point values);
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  ~Moved();

 private:
  std::vector<std::pair<Tensor, std::shared_ptr<const Value>>> before_;
};

/// The checked function, at the inputs' values and at nearby points.
class CheckedFunction {
 public:
  /// Computes the outputs from the inputs' current values, with graphs on request.
  using Call = std::function<std::vector<Tensor>(bool with_graph)>;

  CheckedFunction(const char* caller, Call call, std::vector<CheckedLeaf> leaves,
                  std::vector<std::string> output_names = {})
      : caller_(caller),
        call_(std::move(call)),
        leaves_(std::move(leaves)),
        output_names_(std::move(output_names)) {
    for (const CheckedLeaf& leaf : leaves_)
      tensors_.push_back(leaf.x);
  }

  const char* caller() const { return caller_; }
  bool is_second() const { return std::string_view(caller_) == "gradgradcheck"; }
  const std::vector<CheckedLeaf>& leaves() const { return leaves_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::string output_name(std::size_t i) const;
  /// The outputs; throws unless they are defined and float64.
  std::vector<Tensor> with_graph() const { return checked(call_(true)); }
  std::vector<Tensor> values() const;  ///< without graphs

  /// ShapeError unless the outputs have these shapes.
  void check_shapes(const std::vector<Tensor>& outputs, const std::vector<Shape>& shapes) const;
  /// A probe at the leaves' current values, for outputs of these shapes.  Refers to this function.
  Probe probe(const std::vector<Shape>& shapes, Doubles scales = {}) const;

 private:
  std::vector<Tensor> checked(std::vector<Tensor> outputs) const;

  const char* caller_;
  Call call_;
  std::vector<CheckedLeaf> leaves_;
  std::vector<Tensor> tensors_;
  std::vector<std::string> output_names_;
};

/// f as a function of these inputs, with those that require a gradient as leaves; throws as
/// gradcheck() does.
CheckedFunction checked_function(const char* caller, const TensorFunction& f,
                                 const std::vector<Tensor>& inputs,
                                 const GradcheckOptions& options);
/// Its gradient for a random cotangent of each output, as a function of its leaves and of these
/// cotangents, which are appended to the inputs and to the names in the options.
CheckedFunction gradient_of(const CheckedFunction& f, std::vector<Tensor>& inputs,
                            GradcheckOptions& options);

/// The direction in which x really moves from x - h u to x + h u: u with rounding errors.
Doubles really_moved(const Tensor& x, const Doubles& u, double h);

// ---- reports (gradcheck_report.cpp) ----

/// The two Jacobians of one output by one leaf, and the verdict on each element.
struct JudgedPair {
  Array<double> analytic, numeric;
  std::vector<Verdict> verdicts = {};
  bool reached = false;            ///< whether the output's graph leads to the input
  std::size_t wrong = 0, nan = 0;  ///< finite and not
  double largest = 0;              ///< of the analytic ones
  Tolerance tolerance = {};
  std::set<std::size_t> rounded = {};  ///< wrong elements that may be rounding
  std::set<std::size_t> steep = {};    ///< wrong elements, unless an op is steep
  std::string infinite = {};           ///< "op 2, sqrt", with an infinite or NaN slope
  std::string wrong_op = {};           ///< "op 2, mine: its backward is wrong: ..."
};

/// The pair as in a report: counts, the worst element and, if some disagree, the reason.
GradcheckPair summarized(const CheckedFunction& f, std::size_t output, const Shape& shape,
                         const CheckedLeaf& leaf, JudgedPair&& judged);
/// Fills in the report's sums over all pairs, its reason and its message.
void sum_up(GradcheckReport& report, const char* caller, bool strict);
/// "output 0 at (1, 2)".
std::string at(const std::string& name, std::size_t flat, const Shape& shape);

}  // namespace xgrad::detail
