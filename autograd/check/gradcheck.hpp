#pragma once
// Checks gradients of functions of Tensors, of layers (nn/check.hpp), a user's ops (custom_op.hpp).
//
//   const auto report = gradcheck([](const auto& in) { return my_op(in[0], in[1]); }, {a, b});
//   if (!report)
//     std::cout << report.message << '\n' << report.table();
//
// Compares the gradient by formulas ("analytic") with finite differences of the function
// ("numeric").  The report tells which elements disagree, by how much, and the reason, as far as
// the numbers show it.  An element for which differences are inconclusive is neither right nor
// wrong: it is unchecked, counted and listed.

#include <cstdint>
#include <string>
#include <vector>
#include "../tensor.hpp"
#include "tensor_function.hpp"

namespace xgrad {

/// The defaults are torch.autograd.gradcheck's.
struct GradcheckOptions {
  double eps = 1e-6;   ///< central differences (f(x + eps) - f(x - eps)) / (2 eps); if they
                       ///< disagree, or rounding hides what they say, other steps are tried
  double atol = 1e-5;  ///< |analytic - numeric| <= atol + rtol * |numeric|
  double rtol = 1e-3;
  bool strict = false;  ///< unchecked elements are failures, too
  /// Compares vᵀJu for a random direction u of each input and a random v of each output, instead of
  /// every element of J: two calls of the function an input, instead of two an element.  With
  /// |u| = |v| = 1 the error of vᵀJu is about the root mean square of the errors in J, so a single
  /// wrong element of a large J can hide.  If a product is not right, the whole J is compared.
  bool fast_mode = false;
  std::uint64_t seed = 0;               ///< of random directions and cotangents
  std::vector<std::string> names = {};  ///< of the inputs; "input 0", ... if empty
};

/// Why a check failed, or an element is unchecked.
enum class GradcheckReason {
  none,              ///< it did not fail
  float32_rounding,  ///< the function computes in float32 inside, too coarse for differences
  rounding,          ///< unchecked: large values cancel and leave no digit
  truncation,        ///< unchecked: the function is steep, or jumps, within every step
  kink,              ///< unchecked: the derivative jumps at the point
  nondeterministic,  ///< two calls, or two backward runs, give different results
  not_finite,        ///< NaN or infinity in the gradient alone; in the function: unchecked
  inputs_modified,   ///< the function changes its inputs
  wrong_shape,       ///< a backward formula gives a gradient of the wrong shape
  wrong_dtype,       ///< ... of the wrong dtype
  not_linear,        ///< not linear in the cotangent, or not 0 for a zero one
  transposed,        ///< the Jacobian, or the gradient of a matrix, is transposed
  wrong_factor,      ///< analytic = c * numeric
  wrong_sign,        ///< analytic = -numeric
  absent,            ///< a gradient is missing
  spurious,          ///< a gradient arrives although the function does not change
  unvisited,         ///< a layer's visit omits a Tensor that the output depends on
  unknown
};
/// "kink", "wrong_factor".
const char* to_string(GradcheckReason reason);

/// d output[output_index] / d input[input_index].
struct GradcheckElement {
  std::vector<std::size_t> output_index = {}, input_index = {};
  double analytic = 0, numeric = 0;
  double error = 0;  ///< |analytic - numeric|; infinite if either is not finite
};

/// The Jacobian of one output by one input.
struct GradcheckPair {
  std::size_t output = 0, input = 0;  ///< positions among the outputs and the inputs
  std::string output_name, input_name;
  Shape output_shape, input_shape;
  /// (elements of the output, elements of the input), float64.  In fast mode (1, 1): vᵀJu.  numeric
  /// is NaN for unchecked elements.
  Tensor analytic, numeric;
  std::size_t elements = 0;   ///< elements that were compared
  std::size_t disagree = 0;   ///< elements that disagree
  std::size_t unchecked = 0;  ///< elements that differences cannot check
  std::size_t zeros = 0;      ///< elements whose analytic one is 0, and numeric agrees; all of a
                              ///< Jacobian that is below the rounding of its terms
  double worst_error = 0;     ///< largest |analytic - numeric| / max(1, |numeric|)
  /// The element with the largest error / max(1, |numeric|), among disagreeing ones if any.
  GradcheckElement worst;
  GradcheckReason reason = GradcheckReason::none;
  std::string explanation;  ///< the reason with its particulars, and the cure
};

/// An element for which differences are inconclusive.
struct GradcheckUnchecked {
  std::size_t output = 0, input = 0;
  std::vector<std::size_t> output_index = {}, input_index = {};
  GradcheckReason reason = GradcheckReason::none;
  std::string message;  ///< "d output 0 (1) / d input 0 (1): a kink at the point: ..."
};

/// The zeros in the Jacobian of all outputs by one input.  If all are 0, agreement proves little:
/// relu of negative numbers, an expert without tokens, a mask that hides everything.
struct GradcheckZeros {
  std::size_t input = 0;
  std::string input_name;
  std::size_t zeros = 0, elements = 0;  ///< sums of the pairs'
  /// If all are 0, a point where some are not: "input 0 = randn(2, 3) from seed 1", with the other
  /// inputs unchanged.  Empty if seeds 1 to 3 gave none for any input.
  std::string nonzero_at = {};
};

/// The result.  Converts to true if nothing disagrees.
struct GradcheckReport {
  bool ok = true;
  GradcheckReason reason = GradcheckReason::none;
  std::string explanation = {};
  std::string message = {};                ///< a summary of all this in one line
  std::size_t checked = 0;                 ///< elements compared; in fast mode products vᵀJu
  std::size_t disagree = 0;                ///< elements that disagree
  std::size_t unchecked = 0;               ///< elements that differences cannot check
  double worst_error = 0;                  ///< largest |analytic - numeric| / max(1, |numeric|)
  bool fast_mode = false;                  ///< no Jacobians were needed or kept
  double eps = 0, atol = 0, rtol = 0;      ///< as requested
  std::vector<GradcheckPair> pairs = {};   ///< every output with every input that is checked
  std::vector<GradcheckZeros> zeros = {};  ///< of every input that requires a gradient
  std::vector<GradcheckUnchecked> unchecked_elements = {};  ///< the first 100 of each pair
  std::vector<std::string> notes = {};                      ///< remarks that are no failures
  explicit operator bool() const { return ok; }

  /// ValueError if that input was not checked, or there is no such output.
  const GradcheckPair& pair(std::size_t output, std::size_t input) const;
  /// The pair with the worst element of all.  ValueError if there are no pairs, because nothing
  /// could be compared (reason is wrong_shape, for example).
  const GradcheckPair& worst() const;
  /// A line per output and input: elements, how many disagree, the worst, the reason.
  std::string table() const;
  /// |analytic - numeric|, (elements of the output, elements of the input): for
  /// viz::save_svg("error.svg", viz::heat_map(report.error_map(0, 0))), or for
  /// viz::heat_map_text().  ValueError in fast mode.
  Tensor error_map(std::size_t output, std::size_t input) const;
};

/// Compares d output / d input for every element of every output and of every input that requires a
/// gradient (torch.autograd.gradcheck).  Also checks that a second analytic Jacobian has the same
/// bits, that a zero cotangent gives zero, that the gradient is linear in the cotangent, and that f
/// does not change its inputs.  Each call of f draws the same numbers from default_generator(),
/// which is reset in the end.
///
/// Unchecked are: a kink at the point, if the gradient lies between its slopes; a function that is
/// steep, or jumps, within every step; infinite and NaN values; and derivatives that rounding
/// leaves no digit of.  If each op of f is right, so is a gradient that is right at nearby points:
/// ops take one side each of their kinks, and the sum may be no derivative.  A gradient that is
/// infinite or NaN because of an op's slope is unchecked if f has no slope along that element
/// either, and wrong if f is smooth: where(mask, sqrt(x), 0) needs sqrt(where(mask, x, 1)).
///
/// An output that changes by its rounding alone, as the sum of a softmax, is constant: its
/// derivative is 0, unless an op of f is as steep as sin at 1e16.  A gradient is a sum over paths,
/// and agrees if it differs by less than the rounding of its largest term.
///
/// The message names an op that casts to float32, even if all elements agree.
///
/// Costs two calls of f for each element of the inputs and two backward runs for each element of
/// the outputs, and 16 bytes for each element of the Jacobian; more calls if the step of eps is not
/// conclusive, and about three times as much if something is wrong.  If no graph leads from an
/// output to an input, the derivative counts as zero; outputs that are infinite because of a
/// constant (an additive mask of -inf) have none and are skipped.
///
/// A function that cannot be checked is an error: DTypeError for float32 (with the cure),
/// GraphError for an input that is the result of an op, ValueError if no input requires a gradient,
/// one is given twice, or an option is invalid; f's own errors pass through.
GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

/// The same for the gradient of f, a function of the inputs and of a random cotangent for each
/// output (torch.autograd.gradgradcheck).  Compares differences of the ordinary gradient with
/// derivatives of the gradient under create_graph.
GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options = {});

/// The error of differences for eps = 1e-1 ... 1e-10.
struct EpsSweep {
  struct Point {
    double eps = 0;
    double error = 0;  ///< |analytic - numeric| / |analytic|, of the worst input
    std::string input;
  };
  std::vector<Point> points;
  const Point& best() const;  ///< the point with the smallest error
  /// One line: a conclusion from the curve's shape, or, without points, that two calls differ.
  std::string conclusion;
  std::string table() const;  ///< a line per eps with a bar, and the conclusion
};
/// The error as a function of eps, along a random direction of each input that requires a gradient.
/// It falls with eps^2, as the function's curvature vanishes, and rises with 1 / eps, which
/// multiplies rounding.  A kink, a cast to float32 and a wrong gradient each have a typical shape.
/// Throws as gradcheck does.
EpsSweep eps_sweep(const TensorFunction& f, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options = {});

}  // namespace xgrad
