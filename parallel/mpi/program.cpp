// lm/program on several processes.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <xgrad/autograd/threads.hpp>

#include <xgrad/lm/program/output.hpp>
#include <xgrad/lm/program/ranks.hpp>
#include <xgrad/lm/program/run.hpp>
#include "data_parallel.hpp"

namespace {

using xgrad::parallel::ShardLoss;

class MpiRanks : public program::Ranks {
 public:
  std::size_t rank() const override { return world_->rank(); }
  std::size_t size() const override { return world_->size(); }
  std::string launcher() const override {
    return size() > 1 ? fmt::format("mpirun -n {} ", size()) : "";
  }
  void share(std::vector<std::pair<std::string, xgrad::Tensor>> named_parameters) override {
    model_.emplace(std::move(named_parameters), world_);
  }
  double backward(std::size_t rows, const ShardLoss& loss) override {
    return model_->backward(rows, loss);
  }
  double mean_loss(std::size_t rows, const ShardLoss& loss) const override {
    return model_->mean_loss(rows, loss);
  }
  void together(const std::function<void()>& f) const override {
    xgrad::parallel::together(*world_, f);
  }
  std::string text_of_first(std::string text) const override {
    return xgrad::parallel::text_of(*world_, 0, std::move(text));
  }
  void check_same(const char* what, const std::string& text) const override {
    const std::string first = text_of_first(text);
    together([&] {
      if (text != first)
        throw xgrad::parallel::RankError(
            fmt::format("the ranks do not begin with the same: {} here is {}, rank 0's is {}", what,
                        text, first));
    });
  }
  int any_signal(int mine) const override {
    return static_cast<int>(std::ranges::max(xgrad::parallel::gather(*world_, mine)));
  }
  void failed(const std::string& why) const override {
    if (rank() > 0 && !xgrad::parallel::ended_together())
      std::fprintf(stderr, "xgrad: rank %zu: %s\n", rank(), why.c_str());
  }

 private:
  std::shared_ptr<const xgrad::parallel::Communicator> world_ = xgrad::parallel::world();
  std::optional<xgrad::parallel::DataParallel> model_;
};

/// Divides a machine's processors among its ranks, unless mpirun has assigned them or the user has
/// set the number of threads.
void share_processors(std::size_t neighbours) {
  const std::size_t all = xgrad::num_threads();
  if (neighbours > 1 && std::getenv("OMP_NUM_THREADS") == nullptr &&
      all >= std::thread::hardware_concurrency())
    xgrad::set_num_threads(std::max<std::size_t>(1, all / neighbours));
}

}  // namespace

int main(int argc, char** argv) {
  program::occupy_closed_streams();
  const xgrad::parallel::Launched launched = xgrad::parallel::launched();
  if (launched.rank > 0)
    program::be_silent();
  if (launched.size > 1)
    ::setenv("TERM", "dumb", 1);  // mpirun gives each rank a terminal that nobody sees
  try {
    MpiRanks ranks;
    if (ranks.size() > 1) {
      std::string line;
      for (int i = 1; i < argc; ++i)
        line += fmt::format("{}{}", i > 1 ? " " : "", argv[i]);
      ranks.check_same("the command line", line);
      ranks.check_same("the program", program::file_checksum("/proc/self/exe"));
      ranks.check_same("its processor's instructions", xgrad::simd_name());
      share_processors(launched.neighbours);
    }
    return program::main(argc, argv, ranks);
  } catch (const xgrad::parallel::RankError& error) {  // on all ranks
    program::warn(error.what());
    return 1;
  }
}
