// Stage 8: many heads
// Hint 1: Channel h D + d is channel d of head h: C is (H, D), H slow and D fast.
// Hint 2: reshape to (B, T, H, D), then permute to (B, H, T, D): a head is like one more batch.
// Hint 3: Back: permute first, so that H and D are neighbours again, then reshape.
// Next: course/pages/09_model.md; lm/gpt.hpp

#include "../checks.hpp"

#include "exercises/08_heads.cpp"

namespace learn {

using namespace xgrad;

TEST_CASE("my_heads") {
  for (const auto& [b, t, n_head, d] : std::vector<std::array<std::size_t, 4>>{
           {2, 4, 2, 3}, {3, 5, 3, 4}, {2, 3, 1, 5}, {1, 1, 4, 2}}) {
    const std::string name = fmt::format("my_heads with n_head = {}", n_head);
    const Inputs in = {exercise::random({b, t, 3 * n_head * d}, 1)};
    const auto f = [heads = n_head](const Inputs& x) { return my_heads(x[0], heads); };
    const auto right = [b = b, t = t, n_head = n_head, d = d](const Inputs& x) {
      const auto parts = chunk<3>(x[0], -1);
      const auto split = [&](const Tensor& part) {
        return permute(reshape(part, {b, t, n_head, d}), {0, 2, 1, 3});
      };
      const Tensor y = plain_attention(split(parts[0]), split(parts[1]), split(parts[2]), true);
      return reshape(permute(y, {0, 2, 1, 3}), {b, t, n_head * d});
    };
    INFO((b == 2 && t == 4
              ? ""
              : name + " (with n_head = 2 and x of the shape (2, 4, 18) it is right: is a number "
                       "fixed that should come from n_head or the shape?)\n"));
    check_values(name, f, right, in);
    check_future([&](const Tensor& x) { return f({x}); }, in[0]);
    check_gradient(name, f, in);
  }
}

}  // namespace learn
