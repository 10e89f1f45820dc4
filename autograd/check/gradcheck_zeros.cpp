// A Jacobian that is 0 everywhere agrees with anything that computes nothing.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::detail {
namespace {

constexpr std::uint64_t last_seed = 3;

// For each leaf, whether the gradient of a random cotangent is not 0 where `moved` is normal.
std::vector<bool> nonzero_where(const CheckedFunction& f, const CheckedLeaf& moved,
                                std::uint64_t seed) {
  Generator generator(seed);
  const Tensor normal = randn(moved.x.shape(), generator, DType::float64);
  Nudge nudge(moved.x);
  for (Size i = 0; i < normal.numel(); ++i)
    if (std::isfinite(nudge.before(i)))  // a mask's -inf stays
      nudge.set(i, normal.data<double>()[i]);
  std::vector<bool> nonzero(f.leaves().size());
  try {
    const auto outputs = f.with_graph();
    std::vector<Tensor> cotangents;
    for (const Tensor& y : outputs)
      cotangents.push_back(random_signed(y.shape(), generator));
    const auto found = gradients(outputs, f.tensors(), cotangents, {});
    for (std::size_t k = 0; k < found.size(); ++k)
      if (found[k].defined())
        nonzero[k] = std::ranges::any_of(elements(found[k]),
                                         [](double g) { return g != 0 && std::isfinite(g); });
  } catch (const std::exception&) {  // f is not for such values
  }
  return nonzero;
}

bool all_zero(const GradcheckZeros& z) { return z.elements > 0 && z.zeros == z.elements; }

}  // namespace

void count_zeros(GradcheckReport& report, const CheckedFunction& f) {
  const auto& leaves = f.leaves();
  for (const CheckedLeaf& leaf : leaves) {
    GradcheckZeros z{leaf.position, leaf.name};
    for (const GradcheckPair& pair : report.pairs)
      if (pair.input == leaf.position) {
        z.zeros += pair.zeros;
        z.elements += pair.elements;
      }
    report.zeros.push_back(std::move(z));
  }
  if (!report.ok)
    return;
  const auto open = [](const GradcheckZeros& z) { return all_zero(z) && z.nonzero_at.empty(); };
  for (std::uint64_t seed = 1; seed <= last_seed; ++seed)
    for (const CheckedLeaf& moved : leaves) {
      if (std::ranges::none_of(report.zeros, open))
        break;
      const auto nonzero = nonzero_where(f, moved, seed);
      for (std::size_t k = 0; k < leaves.size(); ++k)
        if (nonzero[k] && open(report.zeros[k]))
          report.zeros[k].nonzero_at = fmt::format("{} = randn({}) from seed {}", moved.name,
                                                   fmt::join(moved.x.shape(), ", "), seed);
    }
  std::map<std::string, std::vector<std::string>> by_point;
  for (const GradcheckZeros& z : report.zeros)
    if (all_zero(z))
      by_point[z.nonzero_at].push_back(
          report.fast_mode
              ? z.input_name
              : fmt::format("{} ({} of {} elements)", z.input_name, z.zeros, z.elements));
  // The second derivative of what is linear is 0: that is nothing to be said.
  if (std::string_view(f.caller()) == "gradgradcheck")
    by_point.erase("");
  for (const auto& [point, names] : by_point)
    report.message += fmt::format(
        "; but the Jacobian in {} is 0, which proves little: {}", fmt::join(names, ", "),
        point.empty() ? fmt::format("it stays 0 with randn in any one input, seeds 1 to {}; a mask "
                                    "or a selection may hide it",
                                    last_seed)
                      : fmt::format("at {} it is not, check there", point));
}

}  // namespace xgrad::detail
