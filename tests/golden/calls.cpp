#include "golden/calls.hpp"

#include <algorithm>
#include <cmath>

#include "helpers/tensors.hpp"  // inf and not_a_number, which calls may name

namespace xgrad::testing {

OpOutputs::OpOutputs(const Mask& y) {
  auto a = empty_array<std::int64_t>(y.shape());
  std::copy_n(y.data(), y.numel(), a.data());
  indices.emplace_back(std::move(a));
}

// ---- inputs of large samples ----

template <class Fill>
static Tensor rounded(const Dims& sizes, const Fill& fill) {
  auto a = empty_array<double>(to_shape(sizes, "draws"));
  fill(std::span(a.data(), a.size()));
  std::for_each_n(a.data(), a.size(), [](double& v) { v = std::nearbyint(v * 1024) / 1024; });
  return Tensor(std::move(a));
}

Tensor Draws::randn(const Dims& sizes) {
  return rounded(sizes, [&](std::span<double> out) { fill_normal(out, generator_); });
}

Tensor Draws::uniform(double low, double high, const Dims& sizes) {
  return rounded(sizes, [&](std::span<double> out) {
    fill_uniform(out, generator_);
    for (double& v : out)
      v = low + (high - low) * v;
  });
}

// ---- the calls ----

// Too few letters would need a separate call.
#define CALL(...)                                                           \
  [](const OpInputs& in) -> OpOutputs {                                     \
    [[maybe_unused]] const auto& [x, y, z, u, v, w, c, i, j, k, m, n] = in; \
    return __VA_ARGS__;                                                     \
  }

namespace elementwise {
#include "golden/generated/elementwise.inc"
}
namespace reduce {
#include "golden/generated/reduce.inc"
}
namespace shape {
#include "golden/generated/shape.inc"
}
namespace network {
#include "golden/generated/network.inc"
}

static OpGroup group(const char* name, std::span<const OpCall> calls,
                     std::span<const BadCall> bad_calls) {
  OpGroup made{name, {calls.begin(), calls.end()}, bad_calls};
  for (std::size_t i = 1; i < made.calls.size(); ++i)
    if (made.calls[i].f == nullptr)
      made.calls[i].f = made.calls[i - 1].f;
  return made;
}

const std::vector<OpGroup>& op_groups() {
  static const std::vector<OpGroup> all = {
      group("elementwise", elementwise::calls, elementwise::bad_calls),
      group("reduce", reduce::calls, reduce::bad_calls),
      group("shape", shape::calls, shape::bad_calls),
      group("network", network::calls, network::bad_calls)};
  return all;
}

}  // namespace xgrad::testing
