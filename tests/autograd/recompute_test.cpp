// checkpoint(): the same numbers as without it, and less memory.

#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/recompute.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/parallel/shards.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "helpers/tiny_transformer.hpp"

using namespace xgrad;

namespace {

using Several = std::vector<Tensor>;

// The gradients of y in some leaves, and y itself.
std::vector<std::vector<double>> run_of(const Tensor& y, const Several& leaves) {
  std::vector<std::vector<double>> all{numbers(y)};
  for (const Tensor& g : grad({sum(y * y)}, leaves))
    all.push_back(numbers(g));
  return all;
}

struct CountedCalls {
  Tensor w = normal({3, 3}, 2).requires_grad_();
  int calls = 0;
  Tensor operator()(const Several& in) {
    ++calls;
    return tanh(matmul(exp(in[0] * 0.3), w)) * in[1];
  }
};

}  // namespace

TEST_CASE("checkpoint gives the same numbers and calls f again", "[checkpoint]") {
  CountedCalls f;
  const Tensor x = normal({2, 3}, 1).requires_grad_(), z = normal({2, 3}, 3).requires_grad_();
  const auto call = [&f](const Several& in) { return f(in); };
  const auto expected = run_of(f({x, z}), {x, z, f.w});
  f.calls = 0;
  const Tensor y = checkpoint(call, {x, z});
  CHECK(f.calls == 1);
  CHECK(y.identity().node->op == "checkpoint");
  CHECK(run_of(y, {x, z, f.w}) == expected);
  CHECK(f.calls == 2);
  CHECK_THROWS_AS(grad({sum(y)}, {x}), GraphError);  // freed
  const Tensor kept = checkpoint(call, {x, z});
  const Tensor total = sum(kept * kept);
  const auto once = grad({total}, {f.w}, {.retain_graph = true}), again = grad({total}, {f.w});
  CHECK(numbers(once[0]) == expected[3]);
  CHECK(numbers(again[0]) == expected[3]);
}

TEST_CASE("checkpoint: everything that f may capture", "[checkpoint]") {
  const Tensor x = normal({3}, 1).requires_grad_(), w = normal({3}, 2).requires_grad_();
  const auto all_of = [&](const auto& maybe) {
    const Tensor h = exp(w), other = x * w;  // results of ops, which f captures as well
    const Tensor y =
        maybe([&](const Tensor& in) { return sin(in * h) + w * in + x * other * h; }, x * 2);
    return run_of(y + h * other, {x, w, h, other});
  };
  const auto plainly = [](const auto& f, const Tensor& in) { return f(in); };
  const auto expected = all_of(plainly);
  const auto got = all_of([](const auto& f, const Tensor& in) { return checkpoint(f, in); });
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(got[i][k] == Approx(expected[i][k]).epsilon(1e-13));

  const auto of = [&](const auto& f) { return run_of(checkpoint(f, x), {x}); };
  CHECK(of([](const Tensor& in) { return in; }) == run_of(x, {x}));  // itself
  CHECK(of([&](const Tensor&) { return x; }) == run_of(x, {x}));
  CHECK_FALSE(checkpoint([](const Tensor&) { return ones(2); }, x).requires_grad());
  const auto of_first = [](const Several& in) { return in[0] * 2; };
  CHECK_FALSE(
      grad({sum(checkpoint(of_first, {x, w}))}, {x, w}, {.allow_unused = true})[1].defined());
}

TEST_CASE("checkpoint: higher derivatives", "[checkpoint][gradcheck]") {
  const Tensor w = normal({3}, 2).requires_grad_();
  const auto inner = [](const Several& in) { return exp(sin(in[0]) * in[1]) * in[1]; };
  const auto once = [&](const Several& in) { return checkpoint(inner, in); };
  const auto nested = [&](const Several& in) {
    return checkpoint(
        [&](const Several& outer) {
          const Tensor h = outer[0] * outer[1];
          return tanh(checkpoint([=](const Several& i) { return inner(i) * h; }, {h, outer[1]})) +
                 h;
        },
        in);
  };
  const Several in{normal({3}, 1).requires_grad_(), w};
  for (const auto& f : {std::function<Tensor(const Several&)>(once),
                        std::function<Tensor(const Several&)>(nested)}) {
    CHECK(gradcheck(f, in));
    CHECK(gradgradcheck(f, in));
    const auto gradient = [&](const Several& at) {
      return grad({sum(f(at))}, at, {.create_graph = true})[0];
    };
    CHECK(gradgradcheck(gradient, in));
  }
}

TEST_CASE("checkpoint: dropout has the same mask, and draws go on", "[checkpoint]") {
  TinyBlock block(8, 2, 0.4);
  const Tensor x = normal({2, 5, 8}, 1, DType::float32).requires_grad_();
  const auto run = [&](bool saves) {
    manual_seed(3);
    const Tensor y = saves ? checkpoint(block, checkpoint(block, x)) : block(block(x));
    auto all = run_of(y, {x, block.attn.c_attn.weight});
    all.push_back(numbers(rand(2)));
    return all;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("checkpoint keeps nothing of f", "[checkpoint]") {
  std::vector<std::weak_ptr<const Value>> made;
  const auto f = [&](const Tensor& in) {
    const Tensor a = exp(in), b = sin(a);
    made = {a.identity().value, b.identity().value};
    return a * b;
  };
  const Tensor x = normal({4}, 1).requires_grad_();
  const auto alive = [&] { return made[0].lock() != nullptr && made[1].lock() != nullptr; };
  const Tensor plain = f(x);
  CHECK(alive());
  const Tensor y = checkpoint(f, x);
  CHECK_FALSE(made[0].lock());
  CHECK_FALSE(made[1].lock());
  CHECK(run_of(y, {x}) == run_of(plain, {x}));
  CHECK_FALSE(made[0].lock());
  {
    const NoGrad guard;
    CHECK_FALSE(checkpoint(f, x).requires_grad());
  }
  // nested: an inner call keeps nothing while the outer one is recomputed
  const auto nested = [&](const Tensor& in) {
    const Tensor inner = checkpoint(f, in);
    CHECK_FALSE(made[0].lock());
    return inner * 2;
  };
  sum(checkpoint(nested, x)).backward();
}

TEST_CASE("checkpoint in a chain, and in shards on threads", "[checkpoint][parallel]") {
  Tensor x = normal({2}, 1).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 20'000; ++i)  // minutes, if a backward searched beyond its checkpoint
    y = checkpoint([](const Tensor& in) { return sin(in) * 1.01; }, y);
  CHECK(grad({sum(y)}, {x})[0].shape() == x.shape());

  TinyBlock block(8, 2);
  const Tensor batch = normal({4, 3, 8}, 4, DType::float32);
  const auto gradient = [&](bool saves) {
    nn::zero_grad(block);
    parallel::backward(4, [&](std::size_t begin, std::size_t end) {
      const Tensor part = narrow(batch, 0, static_cast<Size>(begin), end - begin);
      return mean(saves ? checkpoint(block, part) : block(part));
    });
    return numbers(block.mlp.c_fc.weight.grad());
  };
  CHECK(gradient(true) == gradient(false));
}

TEST_CASE("checkpoint: masks of a batch in shards", "[checkpoint][parallel]") {
  const xgrad::detail::SameDraws after;
  const Tensor x = normal({16, 3}, 1);
  const Tensor w = normal({3, 5}, 2).requires_grad_();
  const auto gradient = [&](bool inside, std::size_t most) {
    manual_seed(7);
    const auto part = [&](const Tensor& z) { return dropout(matmul(z, w), 0.5); };
    // As many rows as a shard has, but other rows.
    const Tensor before = checkpoint(part, narrow(x, 0, 0, 4));
    Tensor leaf = w;
    leaf.zero_grad();
    parallel::backward(
        16,
        [&](std::size_t begin, std::size_t end) {
          const Tensor rows = narrow(x, 0, static_cast<Size>(begin), end - begin);
          return mean(square(inside ? checkpoint(part, rows)
                                    : sum(rows, {1}, true) * reshape(before, {1, 20})));
        },
        most);
    return numbers(leaf.grad());
  };
  for (const bool inside : {false, true}) {
    const auto whole = gradient(inside, 1), cut = gradient(inside, 4);
    for (std::size_t i = 0; i < whole.size(); ++i)
      CHECK(cut[i] == Approx(whole[i]).epsilon(1e-12));
  }
}

TEST_CASE("checkpoint of a function with its own leaves, a gradient penalty", "[checkpoint]") {
  const Tensor w = normal({3}, 2).requires_grad_(), x = normal({3}, 1).requires_grad_();
  const auto penalty = [&](const Tensor& in) {
    const Tensor z = in.detach().requires_grad_();
    const Tensor slope = grad({sum(sin(z * w))}, {z}, {.create_graph = true})[0];
    return square(slope) + in * w;
  };
  CHECK(run_of(checkpoint(penalty, x), {x, w}) == run_of(penalty(x), {x, w}));
}

TEST_CASE("checkpoint under an observer is f", "[checkpoint]") {
  const Tensor x = leaf({1, 2});
  const auto f = [](const Tensor& in) { return log(in) * in; };
  const Trace trace;
  const Tensor y = checkpoint(f, x);
  CHECK(trace.events().size() == 2);
  const DetectAnomaly guard;
  CHECK_THROWS_WITH(sum(checkpoint(f, x * -1)), ContainsSubstring("log"));
}

TEST_CASE("checkpoint says if f is not the same any more", "[checkpoint]") {
  Tensor w = leaf({2, 3}), v = leaf({5, 7});
  const Tensor x = leaf({1, 2});
  bool first = true;
  const Tensor changed = checkpoint([&](const Tensor& in) { return in * w; }, x);
  w.fill_(4);
  CHECK_THROWS_WITH(sum(changed).backward(),
                    ContainsSubstring("a leaf that f uses, of shape (2,), has been changed"));
  const Tensor other = checkpoint([&](const Tensor& in) { return in * (first ? w : v); }, x);
  first = false;
  CHECK_THROWS_WITH(sum(other).backward(), ContainsSubstring("f used other Tensors"));
  CHECK_FALSE(x.grad().defined());
  CHECK_FALSE(w.grad().defined());

  Tensor input = leaf({1, 2});  // used as an argument and by its name
  const Tensor y = checkpoint([&](const Tensor& in) { return in * in * input; }, input);
  input.fill_(9);
  CHECK_THROWS_WITH(sum(y).backward(), ContainsSubstring("has been changed"));
  first = true;
  const Tensor wider = checkpoint(
      [&](const Tensor& in) { return std::exchange(first, false) ? in : cat({in, in}); }, x);
  CHECK_THROWS_WITH(sum(wider).backward(), ContainsSubstring("f returned (4,)"));
  CHECK_THROWS_AS(checkpoint(std::function<Tensor(const Several&)>(), {x}), ValueError);
}
