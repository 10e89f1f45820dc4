// Notebook 002: one causal head.  Its scores are not scaled, and its weights mix x itself, not
// values made of x.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/xgrad.hpp>

#include "notebook.hpp"

using namespace xgrad;
using notebook::print;

static void cells() {
  // ---- a causal head ----
  manual_seed(1337);
  const Size B = 4, T = 8, C = 32;
  const Tensor x = randn({B, T, C});  // (batch, time, channels)
  print(x.shape());
  print(x[Slice{0, 1}]);

  const Size head_size = 16;
  const nn::Linear key(C, head_size, false);
  const nn::Linear query(C, head_size, false);
  const Tensor k = key(x);                      // (B, T, head_size)
  const Tensor q = query(x);                    // (B, T, head_size)
  Tensor wei = matmul(q, k.transpose(-2, -1));  // (B, T, T)

  const Tensor tril = xgrad::tril(ones({T, T}));
  wei = wei.masked_fill(tril == 0, -INFINITY);  // position t sees 0 ... t
  wei = softmax(wei, -1);
  const Tensor out = matmul(wei, x);  // (B, T, T), (B, T, C) -> (B, T, C)

  print(out.shape());

  // ---- its weights for the first sequence ----
  print(wei[0]);

  // ---- what the last row says ----
  const Tensor last = wei[0][-1].detach();
  const auto percent = [&](std::int64_t position) {
    return fmt::format("{} ({:.2f}%)", position, 100 * last[position].item());
  };
  const Indices most = topk(last, 3).indices, least = argmin(last);
  print("Position", std::to_string(T - 1), "looks most at position", percent(most.data()[0]) + ",",
        "then at", percent(most.data()[1]), "and", percent(most.data()[2]) + ",", "and least at",
        percent(least.item()) + ".");
}

int main(int argc, char** argv) { return notebook::run(argc, argv, cells); }
