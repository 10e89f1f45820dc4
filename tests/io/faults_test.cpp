// Saving, loading and training with a failure at every place in turn.

#include <map>
#include <new>
#include <thread>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/allocations.hpp"
#include "helpers/catch.hpp"
#include "helpers/faults.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

namespace {

struct Trained {
  nn::Sequential net{nn::Linear(3, 4), nn::Linear(4, 1)};
  optim::AdamW optimizer{optim::decay_matrices(nn::parameters(net), {})};
  Tensor input = linspace(-1, 1, 6).reshape({2, 3});

  void step() {
    optimizer.zero_grad();
    mse_loss(net(input), ones({2, 1})).backward();
    optimizer.step();
  }
  void save(const std::string& path, std::uint64_t step) const {
    io::save_checkpoint(path, net, optimizer, {.step = step, .user = "notes"});
  }
  /// All its contents.
  std::string bytes() const {
    std::string all = default_generator().state();
    const auto add = [&all](const auto& named) {
      for (const auto& [name, x] : named)
        all += name + std::string(reinterpret_cast<const char*>(x.template data<float>()),
                                  sizeof(float) * static_cast<std::size_t>(x.numel()));
    };
    add(nn::state_dict(net));
    const optim::OptimizerState state = optimizer.state_dict();
    for (const auto& [step, tensors] : state.parameters) {
      add(tensors);
      all += std::to_string(step.value_or(-1));
    }
    for (const auto& group : state.groups)
      for (const auto& [name, number] : group.options)
        all += name + std::to_string(number);
    return all;
  }
};

/// The number of failures, by call.
using Counts = std::map<std::string, std::size_t>;

/// Calls f with system call number k failing, for k = 0, 1, ... until f succeeds without a failure;
/// after each, `check` examines the state.
template <class F, class Check>
Counts each_call(bool ever_after, const F& f, const Check& check) {
  Counts counts;
  for (std::size_t k = 0;; ++k) {
    bool threw = false;
    std::string failed;
    {
      const FailingCall failing(k, ever_after);
      try {
        f();
      } catch (const FileError&) {
        threw = true;
      }
      failed = FailingCall::failed();
    }
    if (failed.empty()) {
      CHECK_FALSE(threw);
      return counts;
    }
    INFO(failed << ", call " << k);
    check(threw, failed);
    ++counts[failed];
  }
}

/// The same for allocations, on a thread of its own, which has no free blocks.
template <class F, class Check>
std::size_t each_allocation(const F& f, const Check& check) {
  for (std::size_t k = 0;; ++k) {
    bool threw = false;
    std::thread([&] {
      try {
        const FailingAllocation failing(k);
        f();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
    }).join();
    if (!threw)
      return k;
    INFO("allocation " << k);
    check();
  }
}

}  // namespace

TEST_CASE("faults: a save that fails leaves the checkpoint before it", "[faults]") {
  if (!FailingCall::possible())
    return;
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint";
  Trained run;
  run.step();
  run.save(path, 1);
  const std::string before = read_bytes(path);
  run.step();
  for (const bool ever_after : {false, true}) {
    const Counts counts = each_call(
        ever_after, [&] { run.save(path, 2); },
        [&](bool threw, const std::string& failed) {
          // Once the file has its name, only the folder's entry is made safe against power cuts.
          const bool done = io::load_checkpoint(path).step == 2;
          CHECK(threw == !done);
          if (!done)
            CHECK((read_bytes(path) == before));
          else
            CHECK((failed == "open" || failed == "fsync"));
          CHECK((ever_after || folder.count() == 1));
          write_bytes(path, before);
        });
    CHECK(counts.at("open") >= 1);
    CHECK(counts.at("write") >= 4);
    CHECK(counts.at("fsync") >= 1);
    CHECK(counts.at("rename") == 1);
    CHECK(io::load_checkpoint(path).step == 2);
    write_bytes(path, before);
  }
  const std::size_t failures = each_allocation([&] { run.save(path, 2); },
                                               [&] {
                                                 CHECK((read_bytes(path) == before));
                                                 CHECK(folder.count() == 1);
                                               });
  CHECK(failures > 100);
}

TEST_CASE("faults: a load that fails has changed nothing", "[faults]") {
  if (!FailingCall::possible())
    return;
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint";
  Trained saved, run;
  saved.step();
  saved.save(path, 1);
  run.step();
  run.step();
  const auto load = [&] { io::restore(path, run.net, run.optimizer); };
  const std::string before = run.bytes();
  const Counts counts = each_call(false, load, [&](bool threw, const std::string&) {
    CHECK(threw);
    CHECK((run.bytes() == before));
  });
  CHECK(counts.at("open") == 1);
  CHECK(counts.at("pread") > 10);
  CHECK((run.bytes() == saved.bytes()));

  Trained second;
  second.step();
  second.step();
  const std::string before_second = second.bytes();
  const std::size_t failures =
      each_allocation([&] { io::restore(path, second.net, second.optimizer); },
                      [&] { CHECK((second.bytes() == before_second)); });
  CHECK(failures > 100);
  CHECK((second.bytes() == saved.bytes()));
}

TEST_CASE("faults: a training step that fails for want of memory has changed no parameter",
          "[faults]") {
  const TemporaryFolder folder;
  Trained run, untroubled;
  io::save_checkpoint(folder / "same", run.net, run.optimizer);
  io::restore(folder / "same", untroubled.net, untroubled.optimizer);
  for (int step = 0; step < 2; ++step) {
    const std::string before = run.bytes();
    const std::size_t failures =
        each_allocation([&] { run.step(); }, [&] { CHECK((run.bytes() == before)); });
    CHECK(failures > 40);  // the second step finds blocks that the first has freed
    untroubled.step();
    CHECK((run.bytes() == untroubled.bytes()));
  }
}

TEST_CASE("faults: a file that cannot be read to its end gives no fewer lines", "[faults]") {
  if (!FailingCall::possible())
    return;
  const TemporaryFolder folder;
  const std::string lines(100'000, 'a'), text = lines + "\n\nb\n" + lines;
  write_bytes(folder / "lines", text);
  std::string joined;
  const auto read = [&] {
    joined.clear();
    io::for_each_line(folder / "lines", [&](const std::string& line, bool whole) {
      joined += line + (whole ? "\n" : "");
    });
  };
  const Counts counts =
      each_call(false, read, [](bool threw, const std::string&) { CHECK(threw); });
  CHECK(counts.at("pread") == 4);
  CHECK((joined == text));
}
