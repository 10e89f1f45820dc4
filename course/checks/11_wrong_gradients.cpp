// Stage 11: finding a wrong gradient
// Hint 1: Move one element of a copy of x up and down by eps, and look at f.
// Hint 2: (f(x + eps) - f(x - eps)) / (2 eps), with an eps of 1e-5 or 1e-6.
// Hint 3: The largest of std::abs(gradient[i] - numeric) over all i.
// Next: `scripts/learn check 11.1`: twelve attention layers with a mistake each

#include <cmath>

#include "../checks.hpp"

#include "exercises/11_wrong_gradients.cpp"

namespace learn {

TEST_CASE("my_gradcheck") {
  using Doubles = std::vector<double>;
  // It bends so much along x[3] that a one-sided difference is wrong; x[4] is 0, and so is the
  // slope along x[5].  It has a large constant, which hides a step of 1e-8; one of 1e-3 is wrong by
  // x[4].
  const auto f = [](const Doubles& x) {
    return x[0] * x[0] * x[1] + std::sin(x[1]) - 3 * x[2] + 1000 * (x[3] + 1) * (x[3] + 1) +
           std::exp(3 * x[4]) + 1000;
  };
  const Doubles x = {1.5, 0.5, 2, -0.99, 0, 1};
  const Doubles right = {
      2 * x[0] * x[1], x[0] * x[0] + std::cos(x[1]), -3, 2000 * (x[3] + 1), 3, 0};
  const double none = my_gradcheck(f, x, right);
  expect(std::abs(none) < 1e-6,
         "my_gradcheck: it says that a right gradient is wrong by {}\n\nThe difference quotient is "
         "(f(x + eps) - f(x - eps)) / (2 eps) with eps about 1e-6; x is put back before the next "
         "element, and the quotient is compared with the same element of the gradient.  The "
         "largest error begins at 0.",
         number(none));
  const auto finds = [&](const Doubles& by, double largest, const std::string& what) {
    Doubles gradient = right;
    for (std::size_t i = 0; i < x.size(); ++i)
      gradient[i] += by[i];
    const double said = my_gradcheck(f, x, gradient);
    expect(
        std::abs(said - largest) < 1e-6,
        "my_gradcheck: {}, and it says that the largest error is {}\n\nAll elements are checked, "
        "an error counts whatever its sign, and the largest |difference| itself is returned: no "
        "square, no ratio, no sum or mean.",
        what, number(said));
  };
  const Doubles errors = {0.5,    0.25, 3,
                          0.0123, 6,    0.7};  // (3 - 6 has the other sign, no other size)
  for (std::size_t i = 0; i < x.size(); ++i)
    for (const double sign : {1.0, -1.0}) {
      Doubles by(x.size());
      by[i] = sign * errors[i];
      finds(by, errors[i],
            fmt::format("element {} of a gradient is {} too {}", i, errors[i],
                        sign > 0 ? "large" : "small"));
    }
  finds({-0.5, 0.25, 0, 4000, -1, 0}, 4000, "four elements are wrong, the worst by 4000");
  for (const std::size_t n : {0, 1, 8}) {
    const auto squares = [](const Doubles& at) {
      double total = 0;
      for (std::size_t i = 0; i < at.size(); ++i)
        total += static_cast<double>(i + 1) * at[i] * at[i];
      return total;
    };
    Doubles at(n, 0.5), gradient(n);
    for (std::size_t i = 0; i < n; ++i)
      gradient[i] = static_cast<double>(i + 1) + (i + 1 == n ? 0.5 : 0);
    const double said = my_gradcheck(squares, at, gradient), wrong_by = n > 0 ? 0.5 : 0;
    expect(std::abs(said - wrong_by) < 1e-6,
           "my_gradcheck: of {} element{} the last is wrong by {}, and it says {}: x has as many "
           "elements as x.size() says",
           n, n == 1 ? "" : "s", wrong_by, number(said));
  }
}

}  // namespace learn
