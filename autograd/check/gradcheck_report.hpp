#pragma once
// From verdicts on the elements of a Jacobian to the words of a report.  Not for users.

#include <set>
#include <string>
#include <vector>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/check/probe.hpp>

namespace xgrad::detail {

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

/// The pair as a report has it: counts, the worst element and, if some disagree, the reason.
GradcheckPair summarized(const CheckedFunction& f, std::size_t output, const Shape& shape,
                         const CheckedLeaf& leaf, JudgedPair&& judged);
/// Fills in what the report says of all pairs together.
void sum_up(GradcheckReport& report, const char* caller, bool strict);
/// "output 0 at (1, 2)".
std::string at(const std::string& name, std::size_t flat, const Shape& shape);

}  // namespace xgrad::detail
