// Forms of calls that PyTorch's users expect: parts by name, tensors of vectors, members.

#include <regex>
#include <utility>
#include <vector>
#include <xgrad/autograd/ops.hpp>

#include "autograd/ops/catalogue.hpp"
#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using testing::declared_ops;

TEST_CASE("chunk and split give parts that have names", "[ops]") {
  const Tensor x = tensor({{1, 2, 3, 4}, {5, 6, 7, 8}}).requires_grad_();
  const auto [k, v] = chunk<2>(x, -1);
  CHECK(same_bits(k.detach(), tensor({{1, 2}, {5, 6}})));
  CHECK(same_bits(v.detach(), tensor({{3, 4}, {7, 8}})));
  const auto [a, b, c] = x.split<3>({1, 2, 1}, 1);
  CHECK(same_bits(b.detach(), tensor({{2, 3}, {6, 7}})));
  const auto [first, second] = split<2>(x, 1);
  CHECK(same_bits(second.detach(), tensor({{5, 6, 7, 8}})));
  const auto [left, right] = x.chunk<2>(1);
  ((k * right).sum() + (a * c).sum()).backward();
  CHECK(same_bits(x.grad(), tensor({{3 + 4, 4, 1, 2 + 1}, {7 + 8, 8, 5, 6 + 5}})));
}

TEST_CASE("a number of parts other than the names is an error", "[ops]") {
  const Tensor x = zeros({2, 5});
  check_contains(message_of<ValueError>([&] { chunk<4>(x, 1); }),
                 {"chunk: x (2, 5)", "3 parts", "dimension 1", "4 are named"});
  check_contains(message_of<ValueError>([&] { split<1>(x, 2, -1); }),
                 {"split: x (2, 5)", "3 parts", "1 is named"});
}

TEST_CASE("a tensor of vectors", "[ops]") {
  const std::vector<double> row{0.5, -2};
  CHECK(same_bits(tensor(row), tensor({0.5, -2})));
  CHECK(same_bits(tensor(row, DType::float64), tensor({0.5, -2}, DType::float64)));
  const std::vector<std::vector<int>> rows{{1, 2, 3}, {4, 5, 6}};
  CHECK(same_bits(tensor(rows), tensor({{1, 2, 3}, {4, 5, 6}})));
  CHECK(tensor(std::vector<float>{}).shape() == Shape{0});
  CHECK(tensor(std::vector<std::vector<float>>(2)).shape() == Shape{2, 0});
  const std::vector<std::vector<float>> ragged{{1, 2}, {3}};
  check_contains(message_of<ShapeError>([&] { tensor(ragged); }),
                 {"tensor: ragged", "one of 1", "one of 2", "depth 1"});
}

TEST_CASE("members are the functions of their names", "[ops]") {
  const Tensor x = tensor({{1, 2}, {3, 5}}), y = tensor({{2, -1}, {4, 0.5}});
  const Indices ids = {{1, 0}, {0, 1}}, row{1};
  const std::vector<std::pair<Tensor, Tensor>> pairs = {
      {x.add(y), x + y},
      {x.add(2), x + 2},
      {x.sub(y), x - y},
      {x.sub(2), x - 2},
      {x.mul(y), x * y},
      {x.mul(2), x * 2},
      {x.div(y), x / y},
      {x.div(2), x / 2},
      {-x, neg(x)},
      {(-x).abs(), x},
      {(x - 2.0).relu(), relu(x - 2.0)},
      {x.tanh(), tanh(x)},
      {x.sigmoid(), sigmoid(x)},
      {x.pow(2), pow(x, 2)},
      {x.pow(y), pow(x, y)},
      {x.expm1(), expm1(x)},
      {x.log1p(), log1p(x)},
      {x.rsqrt(), rsqrt(x)},
      {x.sin(), sin(x)},
      {x.cos(), cos(x)},
      {x.erf(), erf(x)},
      {x.prod(), prod(x)},
      {x.prod(1, true), prod(x, 1, true)},
      {x.maximum(y), maximum(x, y)},
      {x.div(y, RoundingMode::floor), div(x, y, RoundingMode::floor)},
      {x.clamp({}, 2), clamp(x, {}, 2)},
      {x.clamp(2, 3), clamp(x, 2, 3)},
      {x.clamp(y, Tensor()), clamp(x, y, Tensor())},
      {x.masked_fill(x > 3, 9), masked_fill(x, x > 3, 9)},
      {x.masked_fill(x > 3, x.max()), masked_fill(x, x > 3, 5)},
      {x.sum(1, true), sum(x, 1, true)},
      {x.mean(0), mean(x, 0)},
      {x.amax({0, 1}), scalar(5)},
      {x.std(1, true, true), xgrad::std(x, 1, true, true)},
      {x.norm(), vector_norm(x)},
      {x.view(-1), flatten(x)},
      {x.permute({1, 0}), permute(x, {1, 0})},
      {x.unsqueeze(1).squeeze(1), x},
      {x.unsqueeze(1).unsqueeze(0).squeeze({0, 2}), x},
      {x.narrow(1, 1, 1), narrow(x, 1, 1, 1)},
      {x.select(1, 1), select(x, 1, 1)},
      {x.split(1, 1)[1], split(x, 1, 1)[1]},
      {x.chunk(2)[1], chunk(x, 2)[1]},
      {x.var(), var(x)},
      {x.var(1, false), var(x, 1, false)},
      {x.amin(0, true), amin(x, 0, true)},
      {x.logsumexp({0, 1}, true), logsumexp(x, {0, 1}, true)},
      {x.max(1, true).values, max(x, 1, true).values},
      {x.min(0, true).values, min(x, 0, true).values},
      {x.topk(1, 0, false).values, topk(x, 1, 0, false).values},
      {x.mm(y), mm(x, y)},
      {x.unsqueeze(0).bmm(y.unsqueeze(0)), bmm(x.unsqueeze(0), y.unsqueeze(0))},
      {x[0].dot(y[1]), dot(x[0], y[1])},
      {x.tril(-1), tril(x, -1)},
      {x.triu(1), triu(x, 1)},
      {x.flip(1), flip(x, 1)},
      {x.repeat({2, 1}), repeat(x, {2, 1})},
      {x.repeat_interleave(2, 1), repeat_interleave(x, 2, 1)},
      {x.repeat_interleave({2, 1}, 1), repeat_interleave(x, {2, 1}, 1)},
      {x.split({1, 1}, 1)[1], split(x, {1, 1}, 1)[1]},
      {x.index_select(1, row), index_select(x, 1, row)},
      {x.gather(1, ids), gather(x, 1, ids)},
      {x.index_add(0, row, y[Slice{0, 1}]), index_add(x, 0, row, y[Slice{0, 1}])},
      {x.scatter(1, ids, y), scatter(x, 1, ids, y)},
      {x.scatter(1, ids, 2), scatter(x, 1, ids, 2)},
      {x.scatter_add(1, ids, y), scatter_add(x, 1, ids, y)},
      {x.select_scatter(y[0], 1, 0), select_scatter(x, y[0], 1, 0)},
      {x.index_put({row}, y[0], true), index_put(x, {row}, y[0], true)},
      {x.norm(3, 1, true), vector_norm(x, 3, 1, true)},
      {x.maximum(2), maximum(x, full_like(x, 2))},
      {x.minimum(2), minimum(x, full_like(x, 2))},
      {x.lerp(y, 0.5), lerp(x, y, full_like(x, 0.5))},
      {x.sort(0, true).values, x.flip(0)},
      {x.unbind(1)[1], index(x, {Slice{}, 1})},
      {x.movedim(0, 1), x.t()},
      {x.roll(1, 0), x.flip(0)},
      {x.expand_as(zeros({3, 2, 2})), x.broadcast_to({3, 2, 2})},
      {x.contiguous(), x},
      {x.sum({}, false, DType::float64), x.to(DType::float64).sum()},
      {x.prod(DType::float64), x.to(DType::float64).prod()},
      {x.prod(1, true, DType::float64), x.to(DType::float64).prod(1, true)},
      {x.cumsum(1, DType::float64), x.to(DType::float64).cumsum(1)},
      {x.softmax(1, DType::float64), x.to(DType::float64).softmax(1)},
      {x.log_softmax(1, DType::float64), x.to(DType::float64).log_softmax(1)},
      {empty({2, 2}), zeros({2, 2})},
      {empty_like(x), zeros_like(x)},
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    INFO("pair " << i);
    CHECK(same_bits(pairs[i].first, pairs[i].second));
  }
  CHECK(x.argmin().item() == 0);
  CHECK(x.argmax().item() == 3);
  CHECK(to_string(x[0].argsort(0, true)) == "tensor([1, 0])");
  CHECK(x.argmin(1, true).shape() == Shape{2, 1});
}

TEST_CASE("a member that is an op is made from its declaration, and not written by hand", "[ops]") {
  const std::string by_hand = read_bytes(source_dir + "/autograd/tensor.hpp") +
                              read_bytes(source_dir + "/autograd/tensor.cpp");
  for (const std::string& op : declared_ops()) {
    INFO(op);
    CHECK_FALSE(std::regex_search(by_hand, std::regex("[ :]" + op + R"(\([^;{)]*\) const)")));
  }
}
