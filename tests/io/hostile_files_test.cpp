// Links, pipes and names that somebody made to do harm.

#include <sys/stat.h>

#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/safetensors.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;
using io::load_safetensors;
using io::save_safetensors;
using io::TensorFile;

TEST_CASE("safetensors: links, pipes and devices in the place of a file") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder, elsewhere;
  TensorFile good;
  good.tensors["x"] = tensor({1});
  save_safetensors(elsewhere / "target", good);
  const std::string before = read_bytes(elsewhere / "target");
  const std::string path = folder / "link";
  fs::create_symlink(elsewhere / "target", path);
  CHECK(load_safetensors(path).tensors.size() == 1);  // a link is read through
  good.tensors["y"] = tensor({2});
  save_safetensors(path, good);  // and replaced, so that nothing is written elsewhere
  CHECK_FALSE(fs::is_symlink(path));
  CHECK(load_safetensors(path).tensors.size() == 2);
  CHECK(read_bytes(elsewhere / "target") == before);

  // What is there under a name that a temporary file might get stays, and what it leads to.
  fs::create_symlink(elsewhere / "none", folder / "link.tmp");
  for (int i = 0; i < 1000; ++i)
    fs::create_symlink(elsewhere / "none",
                       path + "." + std::to_string(::getpid()) + "." + std::to_string(i) + ".tmp");
  save_safetensors(path, good);
  CHECK_FALSE(fs::exists(elsewhere / "none"));
  CHECK(folder.count() == 1002);

  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(save_safetensors(pipe, good), pipe + ": cannot be written: not a regular file");
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("safetensors: what a message says of a name is one short line without escapes") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const auto message = [&](const std::string& name) {
    write_bytes(path, file_of("{\"" + name + "\":{\"dtype\":\"F32\"}}"));
    return message_of<FileError>([&] { load_safetensors(path); });
  };
  CHECK(message(R"(a\u001b[2J\nb)") ==
        path + R"(: not a safetensors file: tensor 'a\x1b[2J\x0ab' has no shape)");
  CHECK(message(std::string(100'000, 'a')) ==
        path + ": not a safetensors file: tensor '" + std::string(200, 'a') + "...' has no shape");
}
