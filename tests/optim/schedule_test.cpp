// Learning-rate schedules, against their formulas.

#include <xgrad/autograd/ops.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

TEST_CASE("Schedules", "[optim][schedule]") {
  CHECK(optim::constant(0.3)(1000) == 0.3);
  CHECK(optim::step_decay(1, 10)(9) == 1);
  CHECK(optim::step_decay(1, 10)(10) == Approx(0.1));
  CHECK(optim::step_decay(1, 10, 0.5)(35) == Approx(0.125));
  CHECK(optim::exponential(2, 0.5)(3) == Approx(0.25));
  CHECK_THROWS_AS(optim::step_decay(1, 0), ValueError);

  // nanoGPT's, at the defaults of its character example; values by its formula in Python.
  const optim::Schedule rate = optim::warmup_cosine(
      {.learning_rate = 1e-3, .min_lr = 1e-4, .warmup_iters = 100, .lr_decay_iters = 2000});
  CHECK(rate(0) == 1e-3 / 101);
  CHECK(rate(99) == 1e-3 * 100 / 101);
  CHECK(rate(100) == 1e-3);
  CHECK(rate(1050) == Approx(0.00055).epsilon(1e-14));
  CHECK(rate(575) == Approx(0.0008681980515339464).epsilon(1e-14));
  CHECK(rate(2000) == 1e-4);
  CHECK(rate(5000) == 1e-4);
  const optim::Schedule short_run =
      optim::warmup_cosine({.warmup_iters = 10, .lr_decay_iters = 10});
  CHECK(short_run(10) == 1e-4);  // no division by zero
  CHECK(optim::warmup_cosine({.learning_rate = 5e-5})(2000) == 5e-5 / 10);
  CHECK_THROWS_WITH(optim::warmup_cosine({.learning_rate = 5e-5, .min_lr = 1e-4}),
                    ContainsSubstring("min_lr 0.0001 is above learning_rate 5e-05"));
  CHECK_THROWS_WITH(optim::warmup_cosine({.warmup_iters = 11, .lr_decay_iters = 10}),
                    ContainsSubstring("warmup_iters 11 is beyond lr_decay_iters 10"));

  optim::SGD sgd({ones({1}).requires_grad_()});
  sgd.set_learning_rate(rate(99));
  CHECK(sgd.learning_rate() == rate(99));
}
