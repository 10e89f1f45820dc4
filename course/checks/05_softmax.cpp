// Stage 5: softmax and its Jacobian
// Hint 1: Every y_i depends on every x_j, because all share the sum below.
// Hint 2: d y_i / d x_j = y_i (1 if i = j, else 0) - y_i y_j.  Multiply by g_i, sum over i.
// Hint 3: y * (g - the sum of y * g along the row); keepdim lets the sum broadcast.
// Next: course/pages/06_attention.md

#include <cmath>
#include <xgrad/autograd/check/describe.hpp>

#include "../checks.hpp"

#include "exercises/05_softmax.cpp"

namespace learn {

using namespace xgrad;

namespace {

// Checks that rows sum to 1, and stay the same where exp() alone is infinite or 0.
void check_rows(const Tensor& x) {
  const std::vector<double> right = xgrad::detail::elements(softmax(x, -1));
  for (const double shift : {0.0, 1000.0, -1000.0}) {
    const Tensor y = my_softmax(cat({narrow(x, 0, 0, 1) + shift, narrow(x, 0, 1, 1)}).detach());
    const std::vector<double> yours = xgrad::detail::elements(y);
    for (std::size_t i = 0; i < right.size(); ++i)
      expect(
          std::abs(yours[i] - right[i]) <= 1e-6,
          "my_softmax: with {} added to all numbers of some rows, element {} is {}, and should "
          "still be {}: exp(1000) is infinite, exp(-1000) is 0\n\nSoftmax does not change if the "
          "same number is subtracted from a whole row: subtract each row's largest before "
          "exp(). Then no exp() is above 1.",
          shift, i, number(yours[i]), number(right[i]));
    for (const double total : xgrad::detail::elements(sum(y, {-1})))
      expect(std::abs(total - 1) <= 1e-12,
             "my_softmax: a row sums to {:.12g}, and should sum to 1\n\nThe divisor is the sum of "
             "the exp() and nothing else: if the largest is subtracted before, it is at least 1.",
             total);
  }
}

}  // namespace

TEST_CASE("my_softmax") {
  using exercise::random;
  const Inputs in = {random({2, 3, 4}, 1)};
  const auto f = lent(my_softmax);
  const auto right = [](const Inputs& x) { return softmax(x[0], -1); };
  // Numbers so far apart that a probability is 0; one row; more dimensions.
  const Tensor apart =
      tensor({{0.5, -1000, 0.25}, {1000, 1001, 1000.5}}, DType::float64).requires_grad_();
  check_values("my_softmax", f, right, in);
  check_rows(in[0]);
  check_op("my_softmax", f, right,
           {in, {random({5, 2}, 2)}, {apart}, {random({3}, 3)}, {random({2, 1, 3, 2}, 4)}});
}

}  // namespace learn
