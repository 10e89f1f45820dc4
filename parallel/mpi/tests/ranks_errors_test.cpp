// Ranks that fail, differ or leave.  The tests are hidden, because mpirun starts them
// (../CMakeLists.txt).

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/xtensor.hpp>

#include "ranks.hpp"

TEST_CASE("hooks with misshapen results are errors of all ranks", "[.mpi]") {
  Tensor w = ones({5}).requires_grad_(), frozen = ones({5});
  DataParallel ranks({{"w", w}, {"frozen", frozen}}, all_ranks(), {.shards = 8});
  const Tensor x = ones({8});
  const auto loss = [&](const Tensor& rows) { return ((w + frozen) * rows.mean()).sum(); };
  const bool mine = ranks.rank() + 1 == ranks.size();
  for (const Tensor& wrong : {ones({2'000'000}), ones({5}, DType::float64)}) {
    const std::size_t id = w.register_hook([&](const Tensor&) { return mine ? wrong : Tensor(); });
    CHECK_THAT(said_by([&] { ranks.backward(loss, x); }), ContainsSubstring("hook on"));
    CHECK_FALSE(w.grad().defined());
    w.remove_hook(id);
  }
}

// mpirun ends the remaining ranks, with an error (../CMakeLists.txt).
TEST_CASE("a rank that leaves ends those that wait for it", "[.mpi-leaves]") {
  const Tensor w = ones({2}).requires_grad_();
  DataParallel ranks({{"w", w}}, all_ranks(), {.shards = 8});
  if (ranks.rank() == 1)
    return;
  const auto loss = [&](const Tensor& rows) { return rows.mean() * w.sum(); };
  const std::string message = said_by([&] {
    for (;;)
      ranks.backward(loss, ones({8}));
  });
  CHECK(message == "rank 1 has ended");
  fmt::print("{}\n", message);
}

TEST_CASE("if one rank throws, all throw, and no gradient has changed", "[.mpi]") {
  const Tensor w = ones({4}).requires_grad_(), v = ones({300}).requires_grad_();
  const nn::StateDict parameters{{"w", w}, {"v", v}};
  DataParallel ranks(parameters, all_ranks(), {.shards = 8});
  const Tensor x = arange(0, 16);
  for (std::size_t bad = 0; bad < 24; ++bad) {
    CAPTURE(bad, ranks.rank());
    bool mine = false;
    const auto loss = [&](const Tensor& rows) {
      const Tensor mean = (w * rows.mean()).sum() + (v * rows.mean()).sum();
      if (rows.narrow(0, 0, 1).item() == static_cast<double>(bad)) {
        mine = true;
        throw std::runtime_error("this shard");
      }
      return mean;
    };
    // A shard begins at every second row.
    if (bad % 2 == 0 && bad < 16) {
      const std::string message = said_by([&] { ranks.backward(loss, x); });
      std::size_t thrower = 0;  // the first rank whose shards reach beyond the one that throws
      while ((thrower + 1) * 8 / ranks.size() <= bad / 2)
        ++thrower;
      CHECK(mine == (ranks.rank() == thrower));
      CHECK(message == (mine ? "this shard" : fmt::format("rank {}: this shard", thrower)));
      CHECK_FALSE(w.grad().defined());
      CHECK_FALSE(v.grad().defined());
      CHECK_THAT(said_by([&] { ranks.mean_loss(loss, x); }), EndsWith("this shard"));
    } else {
      CHECK(ranks.backward(loss, x) == Approx(7.5 * 304));
      CHECK(w.grad().sum().item() == Approx(4 * 7.5));
      Tensor(w).zero_grad();
      Tensor(v).zero_grad();
    }
  }
  const auto draws = [&](const Tensor& rows) {  // it draws numbers, so the batch runs whole
    const Tensor noise = rand({4});
    if (rows.numel() == x.numel() && ranks.rank() + 1 == ranks.size())
      throw std::runtime_error("the last rank");
    return (w * noise).sum();
  };
  CHECK_THAT(said_by([&] { ranks.backward(draws, x); }), EndsWith("the last rank"));
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("a leaf that is no parameter is refused on all ranks", "[.mpi]") {
  const Tensor w = ones({2}).requires_grad_(), other = ones({3}).requires_grad_();
  DataParallel ranks({{"w", w}}, all_ranks(), {.shards = 8});
  const auto loss = [&](const Tensor& rows) { return rows.mean() * (w.sum() + other.sum()); };
  CHECK_THROWS_WITH(ranks.backward(loss, arange(0, 8)),
                    ContainsSubstring("a leaf of shape (3,) that is not one of the parameters"));
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("ranks that have drifted apart say which parameter", "[.mpi]") {
  const Tensor a = ones({3}).requires_grad_();
  Tensor b = ones({5}).requires_grad_();
  DataParallel ranks({{"first.weight", a}, {"second.bias", b}}, all_ranks(),
                     {.shards = 8, .check_interval = 3});
  const auto loss = [&](const Tensor& rows) { return rows.mean() * (a.sum() + b.sum()); };
  const Tensor x = arange(0, 8);
  for (int i = 0; i < 2; ++i)
    ranks.backward(loss, x);
  if (ranks.rank() + 1 == ranks.size() && ranks.size() > 1)
    b.update([](auto& values) { values(4) += 1e-7f; });
  CHECK_NOTHROW(ranks.backward(loss, x));
  const std::string message = said_by([&] { ranks.backward(loss, x); });
  if (ranks.size() > 1)
    CHECK_THAT(message, ContainsSubstring("drifted apart: parameter second.bias"));
}

TEST_CASE("ranks with different models are refused", "[.mpi]") {
  const bool other = all_ranks()->rank() == 1;
  const auto make = [&](const nn::StateDict& parameters) {
    return said_by([&] { DataParallel(parameters, all_ranks(), {.shards = 8}); });
  };
  if (all_ranks()->size() == 1)
    return;
  CHECK_THAT(make({{"w", ones({other ? std::size_t{3} : std::size_t{4}})}}),
             ContainsSubstring("shape (3,)") && ContainsSubstring("shape (4,)"));
  CHECK_THAT(make({{other ? "b" : "a", ones({2})}}), ContainsSubstring("rank 0's is a: float32"));
  nn::StateDict more{{"a", ones({2})}};
  if (other)
    more.emplace_back("b", ones({2}));
  CHECK_THAT(make(more), ContainsSubstring("b: float32") && ContainsSubstring("none"));
}

TEST_CASE("more ranks than shards are refused", "[.mpi]") {
  const Tensor w = ones({2}).requires_grad_();
  if (all_ranks()->size() == 1)
    return;
  CHECK_THROWS_WITH(DataParallel({{"w", w}}, all_ranks(), {.shards = 1}),
                    ContainsSubstring("1 shard, which is too few"));
  DataParallel ranks({{"w", w}}, all_ranks(), {.shards = 8});
  const auto loss = [&](const Tensor& rows) { return rows.mean() * w.sum(); };
  CHECK_THROWS_AS(ranks.backward(loss, ones({1})), parallel::RankError);
  CHECK(ranks.mean_loss(loss, ones({1})) == 2);  // a smaller batch, which every rank computes
  CHECK_THROWS_AS(ranks.backward(0, [&](std::size_t, std::size_t) { return w.sum(); }), ValueError);
}
