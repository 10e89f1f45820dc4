// One run at a time in a folder.

#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "examples/char_transformer_run.hpp"

namespace {

namespace fs = std::filesystem;

/// Until SIGCONT, and not before it has stopped.
void stop(const Process& process) {
  process.signal(SIGSTOP);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(process.id()), &info, WSTOPPED | WNOWAIT);
}

}  // namespace

TEST_CASE("char_transformer: one run at a time in a folder", "[resume]") {
  const TinyFolder folder;
  const Arguments endless =
      tiny_train({"--out", "run", "--max-iters", "1000000000", "--eval-interval", "100"});
  Process first(folder, endless);
  wait_until([&] { return fs::exists(folder / "run/checkpoint.safetensors"); });
  // Another folder, so that what they print goes to other files.
  const TemporaryFolder elsewhere;
  check_refused(elsewhere, {"train", "--resume", folder / "run"}, 1,
                {"run: another process is training in this folder"});
  first.signal(SIGKILL);
  first.wait();
  // A lock dies with its process.  What a killed process left half written goes.
  write_bytes(folder / "run/checkpoint.safetensors.123.4.tmp", "half");
  write_bytes(folder / "run/best.safetensors.123.5.tmp", "half");
  write_bytes(folder / "run/mine.safetensors.123.4.tmp", "not its own");
  Process second(elsewhere, {"train", "--resume", folder / "run"});
  wait_until([&] { return second.err().find("step ") != std::string::npos; });
  second.signal(SIGTERM);
  const Result result = second.wait();
  INFO(result.out << result.err);
  CHECK(result.code == 128 + SIGTERM);
  CHECK_FALSE(fs::exists(folder / "run/checkpoint.safetensors.123.4.tmp"));
  CHECK_FALSE(fs::exists(folder / "run/best.safetensors.123.5.tmp"));
  CHECK(fs::exists(folder / "run/mine.safetensors.123.4.tmp"));
}

TEST_CASE("char_transformer: a folder that is moved, and another in its place", "[saves]") {
  const TinyFolder folder;
  Process process(folder,
                  tiny_train({"--out", "run", "--max-iters", "1000000", "--eval-interval", "100"}));
  wait_until([&] { return fs::exists(folder / "run/checkpoint.safetensors"); });
  fs::rename(folder / "run", folder / "moved");
  const TinyFolder elsewhere;
  run_well(elsewhere, tiny_train({"--out", folder / "run", "--max-iters", "10"}));
  const std::string another = read_bytes(folder / "run/checkpoint.safetensors");
  wait_until([&] {
    return process.ended() || process.err().find("the folder was moved") != std::string::npos;
  });
  INFO(process.err());
  REQUIRE_FALSE(process.ended());
  check_refused(elsewhere, {"train", "--resume", folder / "moved"}, 1, {" is training in this"});
  process.signal(SIGINT);
  const Result result = process.wait();
  INFO(result.out << result.err);
  CHECK(result.code == 128 + SIGINT);
  const std::string now = fs::canonical(folder / "moved").string();
  CHECK(result.err.find("training goes on") == std::string::npos);
  check_contains(result.err, {"run: the folder was moved; the run goes on in " + now + "\n",
                              "the model is in " + now + "/checkpoint.safetensors"});
  CHECK((read_bytes(folder / "run/checkpoint.safetensors") == another));
  CHECK(metrics_of(folder / "run").size() == 10);
  CHECK(metrics_of(folder / "moved").size() ==
        xgrad::io::load_checkpoint(folder / "moved/checkpoint.safetensors").step);
  CHECK(fs::exists(folder / "moved/report.html"));
}

TEST_CASE("char_transformer: a folder that is removed ends its run", "[saves]") {
  const TinyFolder folder;
  Process process(folder, tiny_train({"--out", "a/run", "--max-iters", "1000000"}));
  wait_until([&] { return fs::exists(folder / "a/run/best.safetensors"); });
  stop(process);
  fs::remove_all(folder / "a");
  process.signal(SIGCONT);
  const Result result = process.wait();
  INFO(result.out << result.err);
  CHECK(result.code == 1);
  check_contains(result.err,
                 {"a/run: the folder was removed, so the run ends; what it has learnt "});
  CHECK_FALSE(fs::exists(folder / "a"));
}

TEST_CASE("char_transformer: where another run has taken the place of one, that ends", "[saves]") {
  const TinyFolder folder, elsewhere;
  Process process(folder,
                  tiny_train({"--out", "run", "--max-iters", "1000000", "--eval-interval", "100"}));
  wait_until([&] { return fs::exists(folder / "run/checkpoint.safetensors"); });
  stop(process);
  fs::remove_all(folder / "run");
  run_well(elsewhere, tiny_train({"--out", folder / "run", "--max-iters", "10"}));
  const std::string another = read_bytes(folder / "run/checkpoint.safetensors");
  process.signal(SIGCONT);
  const Result result = process.wait();
  INFO(result.out << result.err);
  CHECK(result.code == 1);
  check_contains(result.err, {"run: the folder was removed, so the run ends"});
  CHECK((read_bytes(folder / "run/checkpoint.safetensors") == another));
}

#ifdef __linux__
TEST_CASE("char_transformer: a file system without locks", "[resume]") {
  const TinyFolder folder;
  const auto result = [&](int error) {
    return Process(
               folder, tiny_train({"--out", "run" + std::to_string(error)}),
               [=] {
                 // The kernel says so instead of locking.
                 sock_filter code[] = {
                     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
                 const sock_fprog program{4, code};
                 if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                     ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
                   ::_exit(97);
               })
        .wait();
  };
  for (const int error : {ENOLCK, ENOTSUP, EINVAL, ENOSYS}) {
    const Result without = result(error);
    if (without.code == 97) {
      WARN("the system filters no calls");
      return;
    }
    const std::string run = "run" + std::to_string(error);
    INFO(without.out << without.err);
    CHECK(without.code == 0);
    CHECK(warnings_in(without.err) == "char_transformer: " + run + ": cannot be locked (" +
                                          std::strerror(error) +
                                          "); see to it that no other process trains there\n");
    CHECK(metrics_of(folder / run).size() == 40);
  }
}
#endif
