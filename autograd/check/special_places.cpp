#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/differences.hpp>
#include <xgrad/autograd/check/isolated_op.hpp>
#include <xgrad/autograd/check/op_check.hpp>
#include <xgrad/autograd/check/special_places.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::detail {
namespace {

// Whether an op's outputs bend at its inputs: along some direction the change of slope does not
// fall with the step, as that of relu at 0, of the maximum of equal numbers.
bool at_kink(const IsolatedOp& op, Generator& generator) {
  std::vector<std::vector<double>> moves(op.sources());
  const std::vector<double> here = op.forward(moves);
  for (std::size_t k = 0; k < op.sources(); ++k) {
    const std::vector<double> x = elements(op.source(k));
    const std::vector<double> w = elements(random_signed(op.source(k).shape(), generator));
    const double typical = typical_size(x);
    std::vector<std::vector<double>> bends;
    for (const double h : {1e-3, 1e-5}) {
      const auto moved = [&](double by) {
        moves[k].resize(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          moves[k][i] = std::abs(x[i]) < 1e8
                            ? by * w[i] * std::max(std::abs(x[i]), typical > 0 ? typical : 1)
                            : 0;
        return op.forward(moves);
      };
      std::vector<double> bend = moved(h);
      const std::vector<double> down = moved(-h);
      for (std::size_t j = 0; j < bend.size(); ++j)
        bend[j] = std::abs((bend[j] - here[j]) + (down[j] - here[j]));
      bends.push_back(std::move(bend));
    }
    moves[k].clear();
    for (std::size_t j = 0; j < here.size(); ++j)
      if (bends[1][j] > std::max(1e-3 * bends[0][j], 1e-12 * std::abs(here[j])))
        return true;
  }
  return false;
}

}  // namespace

SpecialPlaces special_places(const CheckedFunction& f, const GradcheckOptions& options) {
  SpecialPlaces found;
  Generator generator(options.seed);
  const Trace trace;
  f.with_graph();
  const ModeGuard unobserved({true, nullptr});
  std::size_t number = 0;
  for (const Trace::Event& event : trace.events()) {
    const OpCheck op =
        check_op(event, ++number, {.eps = options.eps, .atol = options.atol, .rtol = options.rtol});
    if (op.verdict == OpCheck::Verdict::wrong) {
      found.wrong = fmt::format("op {}, {}{}{}: {}", number, op.op, op.scope.empty() ? "" : " in ",
                                op.scope, op.message);
      return found;
    }
    if (op.infinite && found.infinite.empty())
      found.infinite = fmt::format("op {}, {}", number, op.op);
    found.kink =
        found.kink || (event.output.requires_grad() && at_kink(IsolatedOp(event), generator));
  }
  found.ops = number;
  return found;
}

}  // namespace xgrad::detail
