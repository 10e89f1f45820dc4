// In tests, every formula is checked for captured Tensors.
#include <xgrad/autograd/graph.hpp>

static const bool every_formula_is_checked = xgrad::detail::checks_captures = true;
