// In the tests every formula is checked for Tensors that it captures.
#include <xgrad/autograd/graph.hpp>

static const bool every_formula_is_checked = xgrad::detail::checks_captures = true;
