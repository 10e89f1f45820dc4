#pragma once
// The processes that train one model together, called ranks.  This program is one of one;
// extras/mpi starts it as one of several.

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/parallel/shards.hpp>

namespace char_transformer {

/// All ranks make the same calls in the same order.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  /// The first, 0, prints and writes for all.
  virtual std::size_t rank() const { return 0; }
  virtual std::size_t size() const { return 1; }
  /// The words before the program's name in a command line that starts as many.
  virtual std::string launcher() const { return ""; }

  /// Takes a model that is to be trained, which must not move.
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
  /// The first rank's text on all.
  virtual std::string text_of_first(std::string text) const { return text; }
  /// Throws on all ranks unless `what` is the same text on all.
  virtual void check_same(const char* /*what*/, const std::string& /*text*/) const {}
  /// A signal that has come to any of them; 0 if none has.
  virtual int any_signal(int mine) const { return mine; }
  /// Says why this rank ends, unless the first, which speaks for all, says it.
  virtual void failed(const std::string& /*why*/) const {}
};

/// The program; its exit code.
int main(int argc, char** argv, Ranks& ranks);

}  // namespace char_transformer
