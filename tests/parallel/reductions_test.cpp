// Shards give the loss and the gradients of the whole batch for every reduction of the catalogue's
// losses, with ignored targets and class weights.

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/parallel/shards.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "helpers/threads.hpp"
#include "helpers/tiny_transformer.hpp"

namespace {

// A loss of logits (N, 5), class ids (N), where -100 is ignored, and numbers (N, 5) between 0 and
// 1.
struct ReducedLoss {
  std::string name;
  std::function<Tensor(const Tensor&, const Indices&, const Tensor&)> of;
  bool cut;  // into four shards if all targets count
};

std::vector<ReducedLoss> losses_of_shards() {
  std::vector<ReducedLoss> all;
  const Tensor classes = tensor({0.5, 1, 2, 0, 3}, DType::float64);
  for (const Reduction r : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const auto add = [&](const std::string& name, bool equal, const auto& loss) {
      if (r != Reduction::none) {
        const bool mean = r == Reduction::mean;
        all.push_back({name + (mean ? ", mean" : ", sum"), loss, equal && mean});
        return;
      }
      const auto of_rows = [loss](const Tensor& x, const Indices& ids, const Tensor& t) {
        const Tensor y = loss(x, ids, t);
        return y.dim() == 1 ? y : mean(y, 1);
      };
      all.push_back({name + ", own mean",
                     [=](const auto&... batch) { return of_rows(batch...).mean(); }, equal});
      all.push_back({name + ", own sum",
                     [=](const auto&... batch) { return of_rows(batch...).sum(); }, false});
      all.push_back({name + ", own mean of what counts",
                     [=](const Tensor& x, const Indices& ids, const Tensor& t) {
                       const Tensor counts = (ids != -100).to(DType::float64);
                       return (of_rows(x, ids, t) * counts).sum() / counts.sum();
                     },
                     false});
      all.push_back({name + ", mean of what is selected",
                     [=](const Tensor& x, const Indices& ids, const Tensor& t) {
                       return masked_select(of_rows(x, ids, t), ids != -100).mean();
                     },
                     false});
      all.push_back({name + ", mean of the rows found",
                     [=](const Tensor& x, const Indices& ids, const Tensor& t) {
                       const Indices found = nonzero(ids != -100).flatten();
                       return index_select(of_rows(x, ids, t), 0, found).mean();
                     },
                     false});
      all.push_back({name + ", by a number of those that count",
                     [=](const Tensor& x, const Indices& ids, const Tensor& t) {
                       const auto n = sum(ids != -100).item();
                       return of_rows(x, ids, t).mean() / static_cast<double>(1 + n);
                     },
                     false});
    };
    for (const Tensor& weight : {Tensor(), classes}) {
      const bool equal = !weight.defined();
      const std::string with = equal ? "" : ", weighted";
      for (const double e : {0.0, 0.2})
        add("cross_entropy" + with + (e > 0 ? ", smoothed" : ""), equal,
            [=](const Tensor& x, const Indices& ids, const Tensor&) {
              return cross_entropy(x, ids,
                                   {.weight = weight, .label_smoothing = e, .reduction = r});
            });
      add("linear_cross_entropy" + with, equal,
          [=](const Tensor& x, const Indices& ids, const Tensor&) {
            const Tensor head = diag(ones({x.size(-1)}, x.dtype()));
            return linear_cross_entropy(x, head, ids, {}, {.weight = weight, .reduction = r});
          });
      add("cross_entropy of probabilities" + with, true,
          [=](const Tensor& x, const Indices&, const Tensor& t) {
            return cross_entropy(x, t, {.weight = weight, .reduction = r});
          });
      add("nll_loss" + with, equal, [=](const Tensor& x, const Indices& ids, const Tensor&) {
        return nll_loss(log_softmax(x, -1), ids, {.weight = weight, .reduction = r});
      });
      add("binary_cross_entropy" + with, true,
          [=](const Tensor& x, const Indices&, const Tensor& t) {
            return binary_cross_entropy(sigmoid(x), t, {.weight = weight, .reduction = r});
          });
      add("binary_cross_entropy_with_logits" + with, true,
          [=](const Tensor& x, const Indices&, const Tensor& t) {
            return binary_cross_entropy_with_logits(
                x, t, {.weight = weight, .reduction = r, .pos_weight = weight});
          });
    }
    const auto add_plain = [&](const std::string& name, auto loss) {
      add(name, true,
          [=](const Tensor& x, const Indices&, const Tensor& t) { return loss(x, t, r); });
    };
    add_plain("mse_loss", mse_loss);
    add_plain("l1_loss", l1_loss);
    add_plain("huber_loss", [](const Tensor& x, const Tensor& t, Reduction reduction) {
      return huber_loss(x, t, {reduction, 0.3});
    });
    add_plain("smooth_l1_loss", [](const Tensor& x, const Tensor& t, Reduction reduction) {
      return smooth_l1_loss(x, t, {reduction, 0.3});
    });
    add_plain("kl_div", [](const Tensor& x, const Tensor& t, Reduction reduction) {
      return kl_div(x, t, {reduction});
    });
  }
  return all;
}

}  // namespace

TEST_CASE("shards of every reduction equal the whole batch", "[parallel]") {
  const Tensor w = normal({3, 5}, 1).requires_grad_(), x = normal({9, 3}, 2),
               t = softmax(normal({9, 5}, 3), -1);
  const Indices some{1, -100, 4, 0, 2, -100, -100, 3, 1};
  const std::vector<std::pair<std::string, Indices>> targets = {
      {"all count", {1, 2, 4, 0, 2, 3, 0, 3, 1}},
      {"some are ignored", some},
      {"of two shards all are ignored", {-100, -100, -100, -100, 2, 3, 0, 3, 1}},
      {"all are ignored", where(some < 9, -100, some)}};
  const auto taken = [&] {
    const Tensor g = w.grad();
    Tensor(w).zero_grad();
    return g;
  };
  for (const ReducedLoss& loss : losses_of_shards())
    for (const auto& [name, ids] : targets) {
      CAPTURE(loss.name, name);
      std::atomic<int> calls = 0;
      const auto f = [&](const Tensor& in, const Indices& y, const Tensor& p) {
        ++calls;
        return loss.of(matmul(in, w), y, p);
      };
      const Tensor whole = f(x, ids, t);
      whole.backward();
      const Tensor expected = taken();
      const auto close = [](const Tensor& a, const Tensor& b) {
        const auto known = [](const Tensor& v) { return masked_fill(v, v != v, 7); };  // no NaN
        return allclose(known(a), known(b), 1e-12, 1e-14);
      };
      Tensor first, bits;
      for (const std::size_t threads : {1, 2, 8}) {
        const Threads these(threads);
        calls = 0;
        const Tensor now = scalar(parallel::backward(f, x, ids, t), DType::float64), g = taken();
        CHECK((!loss.cut || &name != &targets[0].first || calls == 4));
        if (threads == 1) {
          first = now;
          bits = g;
        }
        CHECK(close(now, whole));
        CHECK(close(g, expected));
        CHECK(same_bits(now, first));
        CHECK(same_bits(g, bits));
        CHECK(same_bits(scalar(parallel::mean_loss(f, x, ids, t), DType::float64), first));
      }
    }
}

TEST_CASE("a model's targets that do not count are not averaged by shard", "[parallel]") {
  const TinyTransformer model = tiny_model();
  const auto parameters = nn::named_parameters(model);
  const auto [x, all] = tiny_batch(7);
  const Indices y = where(x < 4, -100, all);  // another number in each row
  const auto loss = [&](const Indices& in, const Indices& out) { return model.loss(in, out); };
  const Tensor whole = loss(x, y);
  whole.backward();
  const std::string expected = take_gradients(parameters);
  CHECK(parallel::backward(loss, x, y) == whole.item());
  CHECK(take_gradients(parameters) == expected);
}
