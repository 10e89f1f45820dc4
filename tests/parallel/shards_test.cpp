// Gradients of a sharded batch equal those of the whole batch, on any number of threads.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/recurrent.hpp>
#include <xgrad/parallel/shards.hpp>

#include "helpers/allocations.hpp"
#include "helpers/catch.hpp"
#include "helpers/threads.hpp"
#include "helpers/tiny_transformer.hpp"

namespace {

auto loss_of(const TinyTransformer& model) {
  return [&model](const Indices& x, const Indices& y) { return model.loss(x, y); };
}

std::vector<std::vector<double>> gradients(const TinyTransformer& model) {
  std::vector<std::vector<double>> all;
  for (Tensor p : nn::parameters(model)) {
    const Tensor g = p.grad().to(DType::float64);
    all.emplace_back(g.data<double>(), g.data<double>() + g.numel());
    p.zero_grad();
  }
  return all;
}

double largest_difference(const std::vector<std::vector<double>>& a,
                          const std::vector<std::vector<double>>& b) {
  double largest = 0;
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    for (std::size_t j = 0; j < a[i].size(); ++j)
      largest = std::max(largest, std::abs(a[i][j] - b[i][j]));
  }
  return largest;
}

}  // namespace

TEST_CASE("shards give the gradients of the whole batch", "[parallel]") {
  TinyTransformer model = tiny_model();
  nn::to(model, DType::float64);
  for (const std::size_t rows : {1, 2, 3, 5, 8}) {
    const auto [x, y] = tiny_batch(rows);
    const Tensor whole = model.loss(x, y);
    whole.backward();
    const auto expected = gradients(model);
    CHECK(parallel::backward(loss_of(model), x, y) == Approx(whole.item()).epsilon(1e-14));
    CHECK(largest_difference(gradients(model), expected) < 1e-15);
    CHECK(parallel::mean_loss(loss_of(model), x, y) == Approx(whole.item()).epsilon(1e-14));
  }
}

TEST_CASE("shards give the same bits on any number of threads", "[parallel]") {
  const TinyTransformer model = tiny_model();
  const auto [x, y] = tiny_batch(7);
  std::vector<std::vector<double>> first;
  double loss = 0;
  for (const std::size_t n : {1, 2, 3, 4, 8, 16}) {
    const Threads threads(n);
    const double now = parallel::backward(loss_of(model), x, y);
    const auto found = gradients(model);
    if (first.empty()) {
      first = found;
      loss = now;
    }
    CHECK(now == loss);
    CHECK(found == first);
    CHECK(parallel::mean_loss(loss_of(model), x, y) == loss);
  }
}

TEST_CASE("a loss that draws runs whole, with the same draws", "[parallel]") {
  // Also from a generator of the caller's, and if only a kept normal would be taken.
  const Tensor w = ones({3}).requires_grad_();
  const Tensor rows = randn({8, 3});
  Generator mine(4), other(4);
  mine.normal();
  other.normal();
  const auto noisy = [&](Generator& generator) {
    return [&](const Tensor& part) { return (part * w).mean() * generator.normal(); };
  };
  const double sharded = parallel::backward(noisy(mine), rows);
  CHECK(sharded == noisy(other)(rows).item());
  CHECK(mine.state() == other.state());
}

TEST_CASE("dropout between layers of an LSTM is of the whole batch", "[parallel]") {
  const xgrad::detail::SameDraws after;
  nn::LSTM lstm(3, 5, {.num_layers = 2, .batch_first = true, .dropout = 0.5});
  const Tensor x = randn({16, 4, 3});  // as many steps as a shard has rows
  const auto loss = [&](std::size_t most) {
    manual_seed(7);
    return parallel::backward(
        16,
        [&](std::size_t begin, std::size_t end) {
          const auto from = static_cast<std::int64_t>(begin);
          return mean(square(lstm(x.narrow(0, from, end - begin)).output));
        },
        most);
  };
  CHECK(loss(4) == loss(1));
}

TEST_CASE("a batch is cut in spite of dropout, with the whole batch's masks", "[parallel]") {
  const xgrad::detail::SameDraws after;
  TinyTransformer model = tiny_model(0.3);
  const auto batch = tiny_batch(7);  // (Clang 14 captures no structured binding)
  const Indices &x = batch.x, &y = batch.y;
  manual_seed(8);
  randn({3});  // the second normal of a pair is kept
  const Generator before = default_generator();
  model.loss(x, y);
  const std::string drawn = default_generator().state();
  const auto in_shards = [&](std::size_t shards, std::size_t threads) {
    const Threads these(threads);
    default_generator() = before;
    std::atomic<std::size_t> calls = 0;
    const double loss = parallel::backward(
        7,
        [&](std::size_t begin, std::size_t end) {
          ++calls;
          const auto from = static_cast<std::int64_t>(begin);
          return model.loss(x.narrow(0, from, end - begin), y.narrow(0, from, end - begin));
        },
        shards);
    CHECK(calls == shards);
    CHECK(default_generator().state() == drawn);
    return std::pair(loss, gradients(model));
  };
  CHECK(in_shards(4, 1) == in_shards(4, 2));
  CHECK(in_shards(4, 1) == in_shards(4, 9));
  nn::to(model, DType::float64);
  default_generator() = before;
  const Tensor whole = model.loss(x, y);
  whole.backward();
  const auto expected = gradients(model);
  for (const std::size_t shards : {2, 3, 4, 7}) {
    const auto [loss, found] = in_shards(shards, 2);
    CHECK(loss == Approx(whole.item()).epsilon(1e-14));
    CHECK(largest_difference(found, expected) < 1e-15);
  }
  if (XGRAD_SANITIZER)  // a child may start no threads
    return;
  // A forked child draws the same.
  const pid_t child = ::fork();
  if (child == 0) {
    default_generator() = before;
    ::_exit(parallel::backward(loss_of(model), x, y) == in_shards(4, 2).first ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("masks that are not of a shard's rows, or not drawn by all shards alike", "[parallel]") {
  const xgrad::detail::SameDraws after;
  const Tensor w = ones({3}).requires_grad_();
  const Tensor x = linspace(0, 7, 24).reshape({8, 3});
  const auto first_shard = [](const Tensor& rows) { return rows.data<float>()[0] == 0; };
  Generator own;
  const Generator seeded(99);
  const std::vector<std::function<Tensor(const Tensor&)>> losses = {
      [&](const Tensor& rows) { return (dropout(w, 0.5) * rows).mean(); },
      [&](const Tensor& rows) { return (dropout(rows, 0.5, true, own) * w).mean(); },
      // another number of masks in each shard, masks of other sizes, other probabilities
      [&](const Tensor& rows) {
        const Tensor product = dropout(rows, 0.5) * w;
        return (first_shard(rows) ? dropout(product, 0.5) : product).mean();
      },
      [&](const Tensor& rows) {
        const Size n = first_shard(rows) ? 3 : 2;
        return (w * rows).mean() + 0 * dropout(zeros({rows.size(0), n}), 0.5).sum();
      },
      [&](const Tensor& rows) { return dropout(rows * w, first_shard(rows) ? 0.5 : 0.4).mean(); },
      // a generator that is seeded, set or replaced within
      [&](const Tensor& rows) {
        manual_seed(5);
        return (dropout(rows, 0.5) * w).mean();
      },
      [&](const Tensor& rows) {
        default_generator() = seeded;
        return (dropout(rows, 0.5) * w).mean();
      },
      // a DrawRefused that the loss catches
      [&](const Tensor& rows) {
        Tensor noise = zeros({rows.size(0), 3});
        try {
          noise = randn({rows.size(0), 3});
        } catch (...) {
        }
        return ((rows + noise) * w).mean();
      },
      // recomputation with the generator set back, as in checkpointing
      [&](const Tensor& rows) {
        const Generator before = default_generator();
        const Tensor first = dropout(rows, 0.5);
        default_generator() = before;
        return (first * dropout(rows, 0.5) * w).mean();
      }};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(i);
    const auto run = [&](const auto& backward) {
      own.manual_seed(4);
      manual_seed(6);
      const double loss = backward();
      const Tensor g = w.grad().clone();
      Tensor(w).zero_grad();
      return std::tuple(loss, xgrad::detail::elements(g), own.state(), default_generator().state());
    };
    const auto whole = run([&] {
      const Tensor loss = losses[i](x);
      loss.backward();
      return loss.item();
    });
    const auto [loss, g, one, other] = run([&] { return parallel::backward(losses[i], x); });
    CHECK(loss == Approx(std::get<0>(whole)));
    for (std::size_t k = 0; k < g.size(); ++k)
      CHECK(g[k] == Approx(std::get<1>(whole)[k]));
    CHECK(one == std::get<2>(whole));
    CHECK(other == std::get<3>(whole));
  }
}

TEST_CASE("a batch within a shard, and a shard that throws after a mask", "[parallel]") {
  const xgrad::detail::SameDraws after;
  const Tensor w = ones({3}).requires_grad_();
  const Tensor x = linspace(0, 7, 24).reshape({8, 3});
  const auto dropped = [&](const Tensor& rows) { return (dropout(rows, 0.5) * w).mean(); };
  const auto nested = [&](const Tensor& rows) {
    return (rows * w).mean() + parallel::mean_loss(dropped, rows);
  };
  manual_seed(6);
  const double expected = nested(x).item();
  const std::string drawn = default_generator().state();
  manual_seed(6);
  CHECK(parallel::mean_loss(nested, x) == Approx(expected));
  CHECK(default_generator().state() == drawn);

  manual_seed(6);
  const std::string before = default_generator().state();
  const auto throws = [&](const Tensor& rows) {
    const Tensor loss = dropped(rows);
    check<ValueError>(rows.data<float>()[0] == 0, "not the first shard");
    return loss;
  };
  CHECK_THROWS_AS(parallel::backward(throws, x), ValueError);
  CHECK(default_generator().state() == before);
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("gradients of shards are added as they arrive: few copies exist", "[parallel][memory]") {
  const Threads one(1);
  const std::size_t n = 114'688;
  // A sum for each level of the tree; then one copy of all gradients, while the other shard runs.
  for (const auto& [shards, leaves, most] : {std::array<std::size_t, 3>{16, 1, 10}, {2, 16, 44}}) {
    std::vector<Tensor> w;
    while (w.size() < leaves)
      w.push_back(ones({n}).requires_grad_());
    const auto loss = [&](std::size_t begin, std::size_t) {
      Tensor y = full({n}, static_cast<double>(begin));
      for (const Tensor& x : w)
        y = y * x;  // keeps y
      return mean(y);
    };
    const PeakMemory peak;
    parallel::backward(shards, loss, shards);
    CHECK(peak.bytes() < most * n * sizeof(float));
    CHECK(sum(w[0].grad()).item() == Approx(static_cast<double>(shards - 1) / 2));
  }
}

TEST_CASE("an observer sees the whole batch", "[parallel]") {
  const TinyTransformer model = tiny_model();
  const TinyBatch batch = tiny_batch(6);
  const auto ops_of = [&](const auto& run) {
    const Trace trace;
    run();
    std::vector<std::pair<std::string, Shape>> ops;
    for (const Trace::Event& event : trace.events())
      ops.emplace_back(event.op, event.output.shape());
    return ops;
  };
  CHECK(ops_of([&] { parallel::backward(loss_of(model), batch.x, batch.y); }) ==
        ops_of([&] { model.loss(batch.x, batch.y).backward(); }));
}

TEST_CASE("gradients of shards are added to those that are there", "[parallel]") {
  const Tensor w = tensor({1.0, 2.0}).requires_grad_();
  const Tensor x = tensor({{1.0, 0.0}, {0.0, 1.0}, {2.0, 2.0}, {1.0, 1.0}, {4.0, 0.0}});
  const auto loss = [&](const Tensor& rows) { return matmul(rows, w).mean(); };
  CHECK(parallel::backward(loss, x) == Approx(3.2));
  parallel::backward(loss, x);
  const Tensor twice = w.grad();
  CHECK(twice.data<float>()[0] == Approx(3.2));
  CHECK(twice.data<float>()[1] == Approx(1.6));
}

TEST_CASE("leaves that some shards do not use, and leaves that share a gradient", "[parallel]") {
  const Tensor often = scalar(2).requires_grad_(), seldom = scalar(3).requires_grad_();
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0});
  const auto loss = [&](const Tensor& rows) {
    const Tensor sum = rows.mean() * often;
    const double first = rows.narrow(0, 0, 1).item();
    return first > 4 ? sum + seldom : sum;
  };
  parallel::backward(loss, x);
  CHECK(often.grad().item() == Approx(4.5));
  CHECK(seldom.grad().item() == Approx(0.5));  // half of the rows

  const Tensor a = zeros({3}).requires_grad_(), b = zeros({3}).requires_grad_();
  parallel::backward([&](const Tensor& rows) { return ((a + b) * rows.mean()).sum(); }, x);
  const Tensor da = a.grad(), db = b.grad();
  for (int i = 0; i < 3; ++i) {
    CHECK(da.data<float>()[i] == Approx(4.5));
    CHECK(db.data<float>()[i] == Approx(4.5));
  }
}

TEST_CASE("a shard that throws leaves every gradient as it was", "[parallel]") {
  const Tensor w = ones({4}).requires_grad_();
  const Tensor x = arange(0, 8);
  const auto mean = [&](const Tensor& rows) { return (w * rows.mean()).sum(); };
  parallel::backward(mean, x);
  const Tensor before = w.grad().clone();
  for (const std::size_t threads : {1, 2, 8}) {
    const Threads these(threads);
    for (const double bad : {0.0, 2.0, 4.0, 6.0}) {
      const auto throws = [&](const Tensor& rows) {
        if (rows.narrow(0, 0, 1).item() == bad)
          throw std::runtime_error("this shard");
        return mean(rows);
      };
      CHECK_THROWS_WITH(parallel::backward(throws, x), "this shard");
      const Tensor now = w.grad();
      CHECK(std::memcmp(now.data<float>(), before.data<float>(), 4 * sizeof(float)) == 0);
    }
  }
  CHECK(parallel::backward(mean, x) == Approx(14));
}

TEST_CASE("batches that cannot be sharded are rejected", "[parallel]") {
  const Tensor w = ones({2}).requires_grad_();
  const auto loss = [&](const Tensor& x, const Indices&) { return (x * w).mean(); };
  CHECK_THROWS_WITH(
      parallel::backward(loss, ones({4, 2}), Indices{1, 2, 3}),
      ContainsSubstring("(4, 2)") && ContainsSubstring("(3,)") && ContainsSubstring("rows"));
  CHECK_THROWS_AS(parallel::backward(loss, ones({0, 2}), Indices()), ValueError);
  CHECK_THROWS_AS(parallel::backward(loss, scalar(1), Indices{1}), ShapeError);
  const auto all = [&](const Tensor& x) { return x * w; };
  CHECK_THROWS_WITH(parallel::backward(all, ones({4, 2})), ContainsSubstring("one element"));
  const auto constant = [](const Tensor& x) { return x.mean(); };
  CHECK_THROWS_AS(parallel::backward(constant, ones({4, 2})), GraphError);
  CHECK_FALSE(w.grad().defined());
  CHECK(parallel::mean_loss(constant, ones({4, 2})) == 1);
}

TEST_CASE("two threads cut batches over the same leaves at once", "[parallel]") {
  const TinyTransformer model = tiny_model();
  const TinyBatch batch = tiny_batch(8);
  parallel::backward(loss_of(model), batch.x, batch.y);
  auto expected = gradients(model);
  constexpr int times = 5;
  const auto work = [&] {
    for (int i = 0; i < times; ++i)
      parallel::backward(loss_of(model), batch.x, batch.y);
  };
  std::thread other(work);
  work();
  other.join();
  for (auto& list : expected)
    for (double& g : list)
      g *= 2 * times;
  CHECK(largest_difference(gradients(model), expected) < 1e-5);
}

TEST_CASE("a hook's result is not accumulated into", "[parallel]") {
  Tensor w = ones({4}).requires_grad_();
  const Tensor constant = ones({4});
  const Tensor x = arange(0, 8);
  const auto loss = [&](const Tensor& rows) { return (w * rows.mean()).sum(); };
  const std::size_t id = w.register_hook([&](const Tensor&) { return constant; });
  for (int i = 0; i < 3; ++i) {
    parallel::backward(loss, x);
    CHECK(w.grad().sum().item() == 16);  // 1, of each of four shards
    w.zero_grad();
  }
  CHECK(constant.sum().item() == 4);
  w.remove_hook(id);
  std::vector<Tensor> seen;
  std::mutex mutex;
  w.register_hook([&](const Tensor& g) {
    const std::lock_guard lock(mutex);
    seen.push_back(g);
    return g * 2;
  });
  parallel::backward(loss, x);
  CHECK(w.grad().sum().item() == Approx(4 * 2 * 3.5));
  double sum = 0;
  for (const Tensor& g : seen)
    sum += g.sum().item();
  CHECK(sum == Approx(4 * 3.5));
}

TEST_CASE("shards may share a graph that was made before them", "[parallel]") {
  const Threads threads(4);
  const Tensor w = full({64}, 0.5).requires_grad_();
  for (int i = 0; i < 200; ++i) {
    const Tensor square = (w * w).sum();
    parallel::backward([&](const Tensor& rows) { return square * rows.mean(); }, ones({8}));
    REQUIRE(w.grad().sum().item() == Approx(64));
    Tensor(w).zero_grad();
  }
}
