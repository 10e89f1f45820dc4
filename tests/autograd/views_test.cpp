// Values are views of shared memory: which ops copy, and that no change is visible elsewhere.

#include <memory>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using List = std::vector<double>;

const float* place(const Tensor& x) { return x.data<float>(); }

// The gradient that reaches x, as the engine passes it.
Tensor gradient_at(Tensor x, const std::function<Tensor()>& loss) {
  Tensor seen;
  const auto id = x.register_hook([&seen](const Tensor& g) {
    seen = g;
    return Tensor();
  });
  loss().backward();
  x.remove_hook(id);
  return seen;
}

}  // namespace

TEST_CASE("reshapes and parts of the first dimension are views", "[views]") {
  const Tensor x = arange(24).reshape({4, 3, 2});
  CHECK(place(x.reshape({6, 4})) == place(x));
  CHECK(place(x.view({-1})) == place(x));
  CHECK(place(x.flatten(1)) == place(x));
  CHECK(place(x.unsqueeze(1)) == place(x));
  CHECK(place(x.unsqueeze(1).squeeze(1)) == place(x));
  CHECK(place(x.detach()) == place(x));
  CHECK(place(x[2]) == place(x) + 12);
  CHECK(place(x[2][1]) == place(x) + 14);
  CHECK(place(x.select(0, -1)) == place(x) + 18);
  CHECK(place(x.narrow(0, 1, 2)) == place(x) + 6);
  CHECK(place(x[Slice{1, 3}]) == place(x) + 6);
  CHECK(place(x.chunk(2)[1]) == place(x) + 12);
  CHECK(place(x.split(3)[1]) == place(x) + 18);
  CHECK(place(x[1].narrow(0, 2, 1).reshape({2, 1})) == place(x) + 10);
  CHECK(place(permute(ones({1, 4}), {1, 0})) != nullptr);
  CHECK(numbers(x[2]) == List{12, 13, 14, 15, 16, 17});
  CHECK(x[2].shape() == Shape{3, 2});
  // a single row: parts of the second dimension are contiguous, too
  const Tensor row = x[1].unsqueeze(0);
  CHECK(place(row.narrow(1, 1, 2)) == place(row) + 2);
  // these copy
  CHECK(place(x.narrow(1, 0, 2)) != place(x));
  CHECK(place(x.transpose(0, 1)) != place(x));
  CHECK(x.narrow(0, 4, 0).numel() == 0);
}

TEST_CASE("the gradient of a reshape is a view, too", "[views]") {
  const Tensor x = ones({2, 3}).requires_grad_(), w = arange(6).requires_grad_();
  Tensor inner;
  const Tensor at_x = gradient_at(x, [&] {
    inner = x.reshape({6});
    inner.retain_grad();
    return sum(inner * w);
  });
  CHECK(at_x.shape() == Shape{2, 3});
  CHECK(place(at_x) == place(inner.grad()));
  CHECK(numbers(x.grad()) == List{0, 1, 2, 3, 4, 5});
}

TEST_CASE("the parts of a chunk add to one gradient", "[views]") {
  const Tensor x = ones({6}).requires_grad_();
  const auto parts = x.chunk(3);
  (sum(parts[0]) + sum(parts[2] * 3) + sum(parts[2])).backward();
  CHECK(numbers(x.grad()) == List{1, 1, 0, 0, 4, 4});
}

TEST_CASE("a view and its array protect each other", "[views]") {
  // a few elements, stored inside the value, and a part of a large block
  Tensor x = GENERATE(false, true) ? arange(60).narrow(0, 0, 6) : arange(6);
  Tensor part = x[Slice{2, 4}];
  const Tensor all = x.reshape({2, 3});
  SECTION("update of the whole") {
    x.update([](auto& a) { a.fill(9); });
    CHECK(numbers(part) == List{2, 3});
    CHECK(numbers(all) == List{0, 1, 2, 3, 4, 5});
  }
  SECTION("update of the view") {
    part.update([](auto& a) { a.fill(9); });
    CHECK(numbers(x) == List{0, 1, 2, 3, 4, 5});
    CHECK(numbers(part) == List{9, 9});
  }
  SECTION("an optimizer steps on the whole, or on the view") {
    for (Tensor* leaf : {&x, &part}) {
      leaf->requires_grad_();
      sum(*leaf).backward();
      optim::SGD({*leaf}, {.lr = 1}).step();
    }
    CHECK(numbers(x) == List{-1, 0, 1, 2, 3, 4});
    CHECK(numbers(part) == List{1, 2});
    CHECK(numbers(all) == List{0, 1, 2, 3, 4, 5});
  }
  SECTION("a graph holds a view") {
    part.requires_grad_();
    const Tensor y = sum(part * part);
    x.update([](auto& a) { a.fill(100); });
    part.update([](auto& a) { a.fill(100); });
    y.backward();
    CHECK(numbers(part.grad()) == List{4, 6});
  }
  SECTION("a view outlives the whole, and then may be written in place") {
    x = Tensor();
    CHECK(numbers(part) == List{2, 3});
    const_cast<Tensor&>(all) = Tensor();
    const float* const before = place(part);
    *detail::writable_data<float>(part) = 7;
    CHECK(place(part) == before);
  }
  SECTION("gradients gathered through views do not change one another") {
    const Tensor a = ones({4}).requires_grad_(), b = ones({2, 2}).requires_grad_();
    const auto loss = [&] { return sum((a.reshape({2, 2}) + b) * 2); };
    loss().backward();
    const Tensor kept = a.grad().reshape({2, 2});
    loss().backward();
    CHECK(numbers(a.grad()) == List{4, 4, 4, 4});
    CHECK(numbers(b.grad()) == List{4, 4, 4, 4});
    CHECK(numbers(kept) == List{2, 2, 2, 2});
  }
}

TEST_CASE("few elements or many: a view and an xtensor expression outlive their Tensors",
          "[views]") {
  const DType dtype = GENERATE(DType::float32, DType::float64);
  for (Size n = 2; n <= 20; ++n) {  // 16 floats or 8 doubles are stored inside the value
    CAPTURE(n);
    Tensor x = arange(0, static_cast<double>(n), 1, dtype);
    const Tensor before = x;
    Tensor part = x[Slice{1, n}].unsqueeze(1);
    const Tensor part_of_part = part[Slice{n - 2, n - 1}];
    dispatch(dtype, [&]<class T>() {
      const auto seen = x.array<T>();
      x.fill_(-1);
      CHECK(before.array<T>()(0) == -1);
      CHECK(seen(n - 1) == static_cast<T>(n - 1));
      CHECK(part.data<T>()[0] == 1);
      part.fill_(-2);
      CHECK(part_of_part.item() == static_cast<double>(n - 1));
      CHECK(x.data<T>()[1] == -1);
      const auto last = Tensor(part_of_part).array<T>();
      x = part = Tensor();
      CHECK(last(0, 0) == static_cast<T>(n - 1));
    });
  }
}

TEST_CASE("memory of any owner is released with its last view", "[views]") {
  std::vector<double> elements = {1, 2, 3, 4};
  const double* const at = elements.data();
  Tensor x(std::move(elements), {2, 2});
  CHECK(x.data<double>() == at);
  CHECK(Tensor(std::vector<float>{1, 2}).shape() == Shape{2});
  CHECK(Tensor(std::vector<float>{}).numel() == 0);
  CHECK_THROWS_AS(Tensor(std::vector<float>{1, 2}, {3}), ShapeError);

  bool gone = false;
  float raw[4] = {1, 2, 3, 4};
  Tensor blob = from_blob(std::shared_ptr<float>(raw, [&](float*) { gone = true; }), {2, 2});
  CHECK(place(blob) == raw);
  Tensor row = blob[1];
  blob = Tensor();
  CHECK_FALSE(gone);
  row.update([](auto& a) { a *= 2; });  // a copy: raw is released, unchanged
  CHECK(gone);
  CHECK(raw[2] == 3);
  CHECK(numbers(row) == List{6, 8});
  CHECK_THROWS_AS(from_blob(std::shared_ptr<float>(), {2}), ValueError);
  CHECK_THROWS_AS(from_blob(std::shared_ptr<double>(), {-1}), ShapeError);
  CHECK(from_blob(std::shared_ptr<double>(), {0, 3}).shape() == Shape{0, 3});

  // If an owner keeps a handle, elements are copied before they are written.
  const auto shared = std::shared_ptr<float>(new float[2]{5, 6}, std::default_delete<float[]>());
  Tensor mine = from_blob(shared, {2});
  detail::writable_data<float>(mine)[0] = 0;
  CHECK(shared.get()[0] == 5);
}

TEST_CASE("shapes are indexed from both ends, and checked", "[views]") {
  const Shape shape{2, 5, 7};
  CHECK(shape[-1] == 7);
  CHECK(shape[0] == 2);
  CHECK_THROWS_AS(shape[3], ValueError);
  CHECK_THROWS_AS(shape[-4], ValueError);
  CHECK_THROWS_WITH(shape[3], ContainsSubstring("(2, 5, 7) has no dimension 3: expected -3 to 2"));
  CHECK_THROWS_WITH(scalar(1).size(-1),
                    ContainsSubstring("the shape () of a 0-d tensor has no dimensions"));
  Shape many(9, 1);
  many.insert(many.begin() + 8, 4);
  many.erase(many.begin());
  CHECK(many == Shape{1, 1, 1, 1, 1, 1, 1, 4, 1});
  Shape moved = std::move(many);
  CHECK(moved.size() == 9);
  many = moved;
  CHECK(many == moved);
  moved.resize(2);
  CHECK(moved == Shape{1, 1});
  moved.resize(12);
  CHECK(moved[11] == 0);
  CHECK(many[7] == 4);
}
