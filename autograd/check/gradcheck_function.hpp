#pragma once
// The function under check, as gradcheck calls it: at the inputs' values and at points nearby.  Not
// for users.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/differences.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad::detail {

/// An input that is checked, and its position among the inputs.
struct CheckedLeaf {
  std::size_t position;
  std::string name;
  Tensor x;
};

/// A backward run that ended in an error of shapes or dtypes, or in one of another library.
struct BackwardError : Error {
  BackwardError(GradcheckReason r, const std::string& what) : Error(what), reason(r) {}
  GradcheckReason reason;
};

/// "input 1", or the name in the options.
std::string input_name(const GradcheckOptions& options, std::size_t i);

/// The inputs that require a gradient; throws as gradcheck() does.
std::vector<CheckedLeaf> checked_leaves(const char* caller, const std::vector<Tensor>& inputs,
                                        const GradcheckOptions& options);

/// d sum(outputs * cotangents) / d inputs by grad(); undefined where no graph leads to an input.
std::vector<Tensor> partial_gradients(const std::vector<Tensor>& outputs,
                                      const std::vector<Tensor>& inputs,
                                      const std::vector<Tensor>& cotangents,
                                      const GradOptions& options);
using OnGradient = std::function<void(const Node&, const Tensor&)>;
/// The same; an error of shapes or dtypes, or one of another library, becomes a BackwardError.
/// `on_gradient` is told the gradient of each node's output.
std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& cotangents, const GradOptions& options,
                              const OnGradient& on_gradient = {});

/// Magnitudes in [0.5, 1.5), so that every element matters, with random signs.
Tensor random_signed(const Shape& shape, Generator& generator);
/// A random vector of length 1; 0 where x is not finite, because that cannot be moved.
Tensor random_direction(const Tensor& x, Generator& generator);
/// sum(g * u) over the elements where u is not 0.
double dot(const Tensor& g, const std::vector<double>& u);
/// Zeros like y, with a 1 at one element.
Tensor one_hot(const Tensor& y, std::size_t at);
std::vector<Shape> shapes_of(const std::vector<Tensor>& xs);

/// Changes elements of a leaf; the destructor restores them all.
class Nudge {
 public:
  explicit Nudge(const Tensor& x);
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;
  ~Nudge();
  double before(std::size_t at) const { return before_->data<double>()[at]; }
  void set(std::size_t at, double value);
  /// x = before + scale * direction, element by element; what is infinite stays.
  void move(const Tensor& direction, double scale);

 private:
  Tensor x_;
  std::shared_ptr<const Value> before_;
};

/// Moves all leaves in a random direction, by so much of their sizes, while these live.
std::vector<std::unique_ptr<Nudge>> moved_away(const std::vector<CheckedLeaf>& leaves, double by,
                                               std::uint64_t seed);

class CheckedFunction {
 public:
  /// Computes the outputs from the inputs' present values, with graphs if asked to.
  using Call = std::function<std::vector<Tensor>(bool with_graph)>;

  CheckedFunction(const char* caller, Call call, std::vector<CheckedLeaf> leaves,
                  std::vector<std::string> output_names)
      : caller_(caller),
        call_(std::move(call)),
        leaves_(std::move(leaves)),
        output_names_(std::move(output_names)) {
    for (const CheckedLeaf& leaf : leaves_)
      tensors_.push_back(leaf.x);
  }

  const char* caller() const { return caller_; }
  const std::vector<CheckedLeaf>& leaves() const { return leaves_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::string output_name(std::size_t i) const;
  /// The outputs; throws unless they are defined and float64.
  std::vector<Tensor> with_graph() const { return checked(call_(true)); }
  std::vector<Tensor> values() const;  ///< without graphs

  /// ShapeError unless the outputs have these shapes.
  void check_shapes(const std::vector<Tensor>& outputs, const std::vector<Shape>& shapes) const;

  /// All elements of all outputs, of these shapes, after `move` has changed the leaf; at a point
  /// away from here the other leaves move, too.
  std::vector<double> moved(const CheckedLeaf& leaf, const LinePoint& point,
                            const std::vector<Shape>& shapes,
                            const std::function<void(Nudge&)>& move) const;
  /// The same where all elements of all leaves are 0.5; nothing if the function refuses that.  An
  /// output that is infinite here and not there is so because of its arguments.
  std::vector<double> at_half(const std::vector<Shape>& shapes) const;

 private:
  std::vector<double> in_a_row(const std::vector<Shape>& shapes) const;
  std::vector<Tensor> checked(std::vector<Tensor> outputs) const;

  const char* caller_;
  Call call_;
  std::vector<CheckedLeaf> leaves_;
  std::vector<Tensor> tensors_;
  std::vector<std::string> output_names_;
};

/// f as a function of these inputs, some of which are checked leaves.
CheckedFunction checked_function(const char* caller, const TensorFunction& f,
                                 const std::vector<Tensor>& inputs,
                                 const GradcheckOptions& options);

/// The direction in which x really moves from x - h u to x + h u: u with rounding errors.
std::vector<double> really_moved(const Tensor& x, const Tensor& u, double h);

/// The two Jacobians of one output in one leaf, and what each element is.
struct JudgedPair {
  Array<double> analytic, numeric;
  std::vector<Verdict> verdicts = {};
  bool reached = false;            ///< whether the output's graph leads to the input
  bool refined = false;            ///< whether eps alone did not do
  std::size_t wrong = 0, nan = 0;  ///< finite and not
  double largest = 0;              ///< of the analytic ones
  Tolerance tolerance = {};
  std::set<std::size_t> rounded = {};  ///< elements that are wrong, but may be rounding
  std::string infinite = {};           ///< "op 2, sqrt", of infinite or NaN slope, if there is one
  std::string wrong_op = {};           ///< "op 2, mine: its backward is wrong: ...", if one is
};
GradcheckPair summarized(const CheckedFunction& f, std::size_t output, const Shape& shape,
                         const CheckedLeaf& leaf, JudgedPair&& judged);
/// Fills in what the report says of all pairs together.
void sum_up(GradcheckReport& report, const char* caller, bool strict);
/// Counts the zeros of each input.  Where a right Jacobian is 0 everywhere, looks for a point where
/// it is not, and says so in the message.
void count_zeros(GradcheckReport& report, const CheckedFunction& f);

/// Why a pair disagrees.
void explain(GradcheckPair& pair, const JudgedPair& judged);
/// The first op that makes float32 numbers of others, in a float32 Tensor or, in a loop of its own,
/// in a float64 one.  Empty if none does.
std::string float32_op(const CheckedFunction& f);

}  // namespace xgrad::detail
