#pragma once
// Holding one recorded op's backward against its forward: explain_gradient() does it with each.

#include <cstddef>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::detail {

/// Differentiates the op of this event at the values that it was given, by its own backward in both
/// readings and by differences of its forward.
OpCheck check_op(const Trace::Event& event, std::size_t number, const ExplainOptions& options);

}  // namespace xgrad::detail
