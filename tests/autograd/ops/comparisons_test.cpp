// any, all and allclose; golden/table_elementwise.py has the comparisons that give Masks.

#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

TEST_CASE("any and all", "[compare]") {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  CHECK(any(x == 3.0));
  CHECK_FALSE(any(x == 5.0));
  CHECK(all(x > 0.0));
  CHECK_FALSE(all(x > 1.0));
  CHECK_FALSE(any(zeros({0}) == 0.0));
  CHECK(all(zeros({0}) == 1.0));
}

TEST_CASE("allclose", "[compare]") {
  const Tensor a = tensor({1, 100}, DType::float64);
  CHECK(allclose(a, tensor({1.000009, 100.0009}, DType::float64)));
  CHECK_FALSE(allclose(a, tensor({1.00002, 100}, DType::float64)));
  CHECK(allclose(a, tensor({1.4, 100}, DType::float64), 0, 0.5));
  CHECK_FALSE(allclose(a, tensor({1.6, 100}, DType::float64), 0, 0.5));
  // relative to the second
  const Tensor one = full({1}, 1, DType::float64), two = full({1}, 2, DType::float64);
  CHECK(allclose(one, two, 0.5, 0));
  CHECK_FALSE(allclose(two, one, 0.5, 0));

  CHECK(allclose(tensor({inf, -inf}), tensor({inf, -inf})));
  CHECK_FALSE(allclose(tensor({inf}), tensor({-inf})));
  CHECK_FALSE(allclose(tensor({1}), tensor({inf})));
  CHECK_FALSE(allclose(tensor({not_a_number}), tensor({not_a_number})));
  CHECK_FALSE(allclose(zeros({2}), zeros({1})));
  CHECK(allclose(zeros({0}), zeros({0})));
  CHECK_THROWS_AS(allclose(zeros({2}), zeros({2}, DType::float64)), DTypeError);
  CHECK_THROWS_AS(allclose(zeros({2}), zeros({2}), -1), ValueError);
}
