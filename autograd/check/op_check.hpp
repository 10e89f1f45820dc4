#pragma once
// Compares one recorded op's backward with differences of its forward, for explain_gradient().

#include <cstddef>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::detail {

/// Differentiates the op of this event at the inputs it ran on, by its own backward in both
/// readings and by differences of its forward.
OpCheck check_op(const Trace::Event& event, std::size_t number, const ExplainOptions& options);

}  // namespace xgrad::detail
