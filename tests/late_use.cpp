// Uses the library late: from an object with static storage, a function of atexit() and
// thread_local objects, which are destroyed after (and before) all that the library has for each
// thread.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

// All that has memory of its own for each thread: attention (forward and backward, both dtypes),
// products with bfloat16 (few rows and many, Autocast's), names of scopes, a profile, small blocks,
// draws.
double use_all() {
  manual_seed(1);
  double sum = 0;
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = randn({2, 40, 8}, dtype).requires_grad_();
    const Tensor y = scaled_dot_product_attention(x, x, x, {.is_causal = true});
    y.sum().backward();
    sum += y.sum().item() + x.grad().sum().item();
  }
  nn::Linear layer(64, 80);
  nn::to_bfloat16(layer);
  const NoGrad no_grad;
  for (const Size rows : {2, 40})
    sum += layer(ones({rows, 64})).sum().item();
  const Autocast autocast;
  static Size rows = 0;  // always others, for which oneDNN compiles a new product
  sum += matmul(ones({++rows, 8}), ones({8, 70})).mean().item();
  const Profile profile;
  const Trace trace;
  const Scope scope("a name that is too long to be kept in a string itself", 12);
  sum += (ones({3}) * rand({3})).sum().item();
  return trace.events().back().scope.size() + profile.events().size() > 50 ? sum : 0;
}

double expected = 0;
std::array<int, 3> late{};  // uses of each kind

void use_late(int kind) {
  if (use_all() != expected) {
    std::puts("a late use gives other numbers");
    std::_Exit(1);
  }
  if (++late[static_cast<std::size_t>(kind)]; kind == 0) {
    std::printf("late uses: %d static, %d atexit, %d thread_local\n", late[0], late[1], late[2]);
    std::fflush(stdout);
  }
}

struct User {
  int kind;
  void wake() const {}
  ~User() { use_late(kind); }
};
const User with_static_storage{0};          // made first: destroyed last
thread_local const User before_library{2};  // destroyed after the library's, which are made later

void live() {
  before_library.wake();
  use_all();
  thread_local const User after_library{2};  // destroyed before them
  after_library.wake();
}

}  // namespace

int main() {
  expected = use_all();
  std::thread([] { live(); }).join();
  std::atexit([] { use_late(1); });
  std::thread([] { before_library.wake(); }).join();  // the first use of a thread is a late one
  live();
  return 0;
}
