// Several processes that train one model.  Hidden: mpirun starts them (../CMakeLists.txt).

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/threads.hpp"
#include "ranks.hpp"

TEST_CASE("ranks give the bits of one process", "[.mpi]") {
  const TinyTransformer model = tiny_model();
  const auto parameters = nn::named_parameters(model);
  const auto loss = [&](const Indices& x, const Indices& y) { return model.loss(x, y); };
  for (const std::size_t threads : {1, 2, 3}) {
    const Threads these(threads);
    DataParallel ranks(parameters, all_ranks(), {.shards = 8});
    for (const std::size_t rows : {8, 9, 21}) {
      CAPTURE(threads, rows, ranks.rank());
      const auto [x, y] = tiny_batch(rows);
      const double expected = in_one_process(loss, x, y);
      const std::string bits = take_gradients(parameters);
      CHECK(ranks.backward(loss, x, y) == expected);
      CHECK(take_gradients(parameters) == bits);
      CHECK(ranks.mean_loss(loss, x, y) == expected);
    }
  }
}

TEST_CASE("ranks add to the gradients that are there, in double as well", "[.mpi]") {
  TinyTransformer model = tiny_model();
  nn::to(model, DType::float64);
  const auto parameters = nn::named_parameters(model);
  const auto loss = [&](const Indices& x, const Indices& y) { return model.loss(x, y); };
  DataParallel ranks(parameters, all_ranks(), {.shards = 8});
  const auto twice = [&](auto&& backward) {
    backward(tiny_batch(8, 1));
    backward(tiny_batch(16, 2));
    return take_gradients(parameters);
  };
  const std::string one =
      twice([&](const TinyBatch& batch) { in_one_process(loss, batch.x, batch.y); });
  CHECK(twice([&](const TinyBatch& batch) { ranks.backward(loss, batch.x, batch.y); }) == one);
}

TEST_CASE("all ranks begin with the weights and the generator of the first", "[.mpi]") {
  TinyTransformer model = tiny_model();
  const auto expected = nn::named_parameters(tiny_model());
  manual_seed(100 + all_ranks()->rank());
  const std::string first = Generator(100).state();
  if (all_ranks()->rank() > 0)
    for (Tensor p : nn::parameters(model))
      p.fill_(static_cast<double>(all_ranks()->rank()));
  const DataParallel ranks(nn::named_parameters(model), all_ranks(), {.shards = 8});
  CHECK(bits_of(nn::named_parameters(model)) == bits_of(expected));
  CHECK(default_generator().state() == first);
}

TEST_CASE("ranks average over the targets that count", "[.mpi]") {
  const TinyTransformer model = tiny_model();
  const auto parameters = nn::named_parameters(model);
  const auto loss = [&](const Indices& x, const Indices& y) { return model.loss(x, y); };
  const auto [x, all] = tiny_batch(8);
  DataParallel ranks(parameters, all_ranks(), {.shards = 8});
  for (const bool in_one_shard : {false, true}) {  // which other ranks cannot know
    const Indices y =
        in_one_shard
            ? cat({where(x.narrow(0, 0, 1) < 4, -100, all.narrow(0, 0, 1)), all.narrow(0, 1, 7)})
            : where(x < 4, -100, all);
    const Tensor whole = loss(x, y);
    whole.backward();
    const std::string bits = take_gradients(parameters);
    CHECK(ranks.backward(loss, x, y) == whole.item());
    CHECK(take_gradients(parameters) == bits);
    CHECK(ranks.mean_loss(loss, x, y) == whole.item());
  }
}

TEST_CASE("ranks share a batch in spite of dropout", "[.mpi]") {
  const xgrad::detail::SameDraws after;
  const TinyTransformer model = tiny_model(0.3);
  const auto parameters = nn::named_parameters(model);
  const auto [x, y] = tiny_batch(8);
  std::atomic<std::size_t> rows = 0;
  bool uneven = false;
  const auto loss = [&, &all = y](const Indices& ids, const Indices& targets) {
    rows += static_cast<std::size_t>(ids.size(0));
    const Tensor mean = model.loss(ids, targets);
    // one mask more where the batch begins
    return uneven && targets.data()[0] == all.data()[0] && targets.data()[1] == all.data()[1]
               ? mean + 0 * dropout(zeros({ids.size(0), 3}), 0.5).sum()
               : mean;
  };
  DataParallel ranks(parameters, all_ranks(), {.shards = 8});
  for (const bool now : {false, true, false}) {
    uneven = now;
    manual_seed(8);
    const double expected = in_one_process(loss, x, y);
    const std::string bits = take_gradients(parameters), state = default_generator().state();
    manual_seed(8);
    rows = 0;
    CHECK(ranks.backward(loss, x, y) == expected);
    CHECK(take_gradients(parameters) == bits);
    CHECK(default_generator().state() == state);
    const auto [begin, end] = parallel::shards_of_rank(8, ranks.size(), ranks.rank());
    CHECK((uneven || rows == end - begin));
  }
}

TEST_CASE("an observer on one rank makes all compute the whole batch", "[.mpi]") {
  const TinyTransformer model = tiny_model();
  const auto parameters = nn::named_parameters(model);
  const auto loss = [&](const Indices& x, const Indices& y) { return model.loss(x, y); };
  const auto [x, y] = tiny_batch(8);
  DataParallel ranks(parameters, all_ranks(), {.shards = 8});
  const double whole = loss(x, y).item();
  for (int i = 0; i < 2 && ranks.size() > 1; ++i) {  // a single rank has no other
    if (ranks.rank() == 1) {
      const Trace trace;
      CHECK(ranks.backward(loss, x, y) == whole);
    } else {
      CHECK(ranks.backward(loss, x, y) == whole);
    }
  }
}

TEST_CASE("a batch's result does not depend on the batches before it", "[.mpi]") {
  const Tensor w = ones({3}).requires_grad_();
  DataParallel ranks({{"w", w}}, all_ranks(), {.shards = 8});
  const Tensor x = linspace(0.1, 0.9, 24).reshape({8, 3});
  bool draws = false;
  const auto loss = [&](const Tensor& rows) {
    const Tensor product = exp(rows * w);
    return (draws ? product * rand(product.shape()) : product).mean();
  };
  for (const bool drawn : {true, false, false, true, true, false}) {
    draws = drawn;
    manual_seed(4);
    const double expected = in_one_process(loss, x);
    const std::string bits = take_gradients({{"w", w}});
    manual_seed(4);
    CHECK(ranks.backward(loss, x) == expected);
    CHECK(take_gradients({{"w", w}}) == bits);
  }
}

TEST_CASE("a Tensor under two names is one parameter", "[.mpi]") {
  const Tensor w = tensor({0.5, 1.5}).requires_grad_();
  DataParallel ranks({{"in", w}, {"out", w}}, all_ranks(), {.shards = 8});
  const Tensor x = linspace(0, 1, 8);
  const auto loss = [&](const Tensor& rows) { return ((w * w).sum() * rows).mean(); };
  for (int i = 0; i < 2; ++i)
    in_one_process(loss, x);
  const std::string bits = take_gradients({{"w", w}});
  for (int i = 0; i < 2; ++i)
    ranks.backward(loss, x);
  CHECK(take_gradients({{"w", w}}) == bits);
}

TEST_CASE("parameters that some ranks, or none, use", "[.mpi]") {
  const Tensor often = scalar(2).requires_grad_(), seldom = scalar(3).requires_grad_(),
               never = scalar(4).requires_grad_(), frozen = scalar(5);
  DataParallel ranks({{"often", often}, {"seldom", seldom}, {"never", never}, {"frozen", frozen}},
                     all_ranks(), {.shards = 8});
  const auto loss = [&](const Tensor& rows) {
    const Tensor sum = rows.mean() * often * frozen;
    return rows.narrow(0, 0, 1).item() >= 7 ? sum + seldom : sum;
  };
  ranks.backward(loss, arange(0, 8));
  CHECK(often.grad().item() == Approx(3.5 * 5));
  CHECK(seldom.grad().item() == Approx(1.0 / 8));
  CHECK_FALSE(never.grad().defined());
  CHECK_FALSE(frozen.grad().defined());
}

TEST_CASE("gradients that a loss, a hook or a formula takes for itself go nowhere", "[.mpi]") {
  const Tensor w = tensor({1.0, 2.0}).requires_grad_();
  DataParallel ranks({{"w", w}}, all_ranks(), {.shards = 8});
  const auto loss = [&](const Tensor& rows) {
    const Tensor of_itself = grad({(w * w).sum()}, {w}).front();  // 2 w, as a constant
    (w * 1000).sum().backward();
    Tensor product = (w * of_itself).sum() * rows.mean();
    product.register_hook([&](const Tensor&) {
      const ModeGuard on({true, nullptr});
      grad({(w * 10).sum()}, {w});
      return Tensor();
    });
    return product;
  };
  const Threads one(1);
  ranks.backward(loss, ones({8}));
  // Its own backward() has added to grad(), once for each of this rank's shards.
  const auto shards = parallel::shards_of_rank(8, ranks.size(), ranks.rank());
  const double own = 1000.0 * static_cast<double>(shards.second - shards.first);
  const Tensor g = w.grad();
  CHECK(g.data<float>()[0] == Approx(2 + own));
  CHECK(g.data<float>()[1] == Approx(4 + own));
}

TEST_CASE("messages between ranks", "[.mpi]") {
  const parallel::Communicator& world = *all_ranks();
  const std::vector<double> numbers = parallel::gather(world, 10.0 + double(world.rank()));
  REQUIRE(numbers.size() == world.size());
  for (std::size_t r = 0; r < world.size(); ++r) {
    CHECK(numbers[r] == 10.0 + double(r));
    CHECK(parallel::text_of(world, r, "rank " + std::to_string(world.rank())) ==
          "rank " + std::to_string(r));
    CHECK(parallel::text_of(world, r, "").empty());
  }
  std::vector<std::byte> bytes(1000, static_cast<std::byte>(world.rank() + 1));
  world.broadcast(bytes);
  CHECK(bytes == std::vector<std::byte>(1000, std::byte{1}));
}

TEST_CASE("ranks train a model with every optimizer's bits", "[.mpi]") {
  const auto train = [&](auto&& backward) {
    const TinyTransformer model = tiny_model();
    optim::AdamW optimizer(nn::parameters(model), {.lr = 1e-2});
    const auto loss = [&](const Indices& x, const Indices& y) { return model.loss(x, y); };
    auto step = backward(model);
    for (std::uint64_t i = 0; i < 20; ++i) {
      optimizer.zero_grad();
      step(loss, tiny_batch(8, i));
      optim::clip_grad_norm_(nn::parameters(model), 0.5);
      optimizer.step();
    }
    return bits_of(nn::named_parameters(model));
  };
  const std::string one = train([](const TinyTransformer&) {
    return [](const auto& loss, const TinyBatch& batch) { in_one_process(loss, batch.x, batch.y); };
  });
  const std::string many = train([](const TinyTransformer& model) {
    const auto ranks = std::make_shared<DataParallel>(nn::named_parameters(model), all_ranks(),
                                                      parallel::DataParallelOptions{.shards = 8});
    return [ranks](const auto& loss, const TinyBatch& batch) {
      ranks->backward(loss, batch.x, batch.y);
    };
  });
  CHECK(many == one);
}
