// Stage 12: second derivatives
// Hint 1: The backward of x³ is g times 3 x².
// Hint 2: A backward that is made of ops is a graph by itself, if what it captured is in the graph.
// Hint 3: Capture Saved(x) and use x.tensor(); a detach()ed copy is a constant.
// Next: docs/write_an_op.md, docs/write_a_layer.md, docs/design.md

#include <cmath>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>

#include "../checks.hpp"

#include "exercises/12_second_derivatives.cpp"

namespace learn {

using namespace xgrad;

TEST_CASE("my_cube") {
  using exercise::random;
  const Inputs in = {
      tensor({{0.0, 0.5, -1.25}, {2.0, -0.75, 1.5}}, DType::float64).requires_grad_()};
  const auto f = lent(my_cube);
  check_op("my_cube", f, [](const Inputs& x) { return x[0] * x[0] * x[0]; },
           {in, {random({}, 1)}, {random({3, 2, 2}, 2, 20)}, {random({1}, 3, 0.1)}});
  for (const Tensor& x : {in[0], random({3, 2, 2}, 2, 20)}) {
    const Tensor once = grad({sum(f({x}))}, {x}, {.create_graph = true}).at(0);
    Tensor twice;
    if (once.requires_grad())
      twice = grad({sum(once)}, {x}, {.allow_unused = true}).at(0);
    const auto at = xgrad::detail::elements(x.detach());
    const auto yours = xgrad::detail::elements(twice.defined() ? twice : zeros_like(x));
    for (std::size_t i = 0; i < at.size(); ++i)
      expect(std::abs(yours[i] - 6 * at[i]) <= 1e-9 * std::abs(at[i]),
             "my_cube: the gradient is right, and its own gradient is not: at x = {} it is 6 x = "
             "{}, and yours is {}\n\nIn the second run each x in 3 x x must still be the x of the "
             "graph. Doubles that were copied (detach(), item()) are constants, which takes away "
             "their terms; and nothing may be divided by what can be 0.",
             number(at[i]), number(6 * at[i]), number(yours[i]));
  }
  const GradcheckReport second = gradgradcheck(f, in);
  expect(bool(second),
         "my_cube: the gradient is right, and its own gradient is not: {}\n\nIn the second run x, "
         "and the gradient that arrives, must still be those of the graph. Doubles that were "
         "copied (detach(), item()) are constants.",
         second.message);
}

}  // namespace learn
