#pragma once
// Ranks: the processes that train one model together.  This program has one; parallel/mpi makes it
// one of several.

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/parallel/shards.hpp>

namespace program {

/// All ranks make the same calls in the same order.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  /// Rank 0 prints and writes for all.
  virtual std::size_t rank() const { return 0; }
  virtual std::size_t size() const { return 1; }
  /// The words before the program's name in a command line that starts as many ranks.
  virtual std::string launcher() const { return ""; }

  /// Registers a model for training, which must not move.
  virtual void share(std::vector<std::pair<std::string, xgrad::Tensor>> /*named_parameters*/) {}
  /// As those of xgrad::parallel, with the same bits on all ranks.
  virtual double backward(std::size_t rows, const xgrad::parallel::ShardLoss& loss) {
    return xgrad::parallel::backward(rows, loss);
  }
  virtual double mean_loss(std::size_t rows, const xgrad::parallel::ShardLoss& loss) const {
    return xgrad::parallel::mean_loss(rows, loss);
  }

  /// Calls f.  If it throws on one rank, throws on all.
  virtual void together(const std::function<void()>& f) const { f(); }
  /// The first rank's text, on all ranks.
  virtual std::string text_of_first(std::string text) const { return text; }
  /// Throws on all ranks unless `text` is the same on all; `what` names it.
  virtual void check_same(const char* /*what*/, const std::string& /*text*/) const {}
  /// A signal that any rank received; 0 if none did.
  virtual int any_signal(int mine) const { return mine; }
  /// Reports why this rank ends, unless it is the first, which reports for all.
  virtual void failed(const std::string& /*why*/) const {}
};

/// The program; its exit code.
int main(int argc, char** argv, Ranks& ranks);

}  // namespace program
