// Malicious links, pipes and names.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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
  save_safetensors(path, good);  // and written through
  CHECK(fs::is_symlink(path));
  CHECK(load_safetensors(elsewhere / "target").tensors.size() == 2);
  CHECK(elsewhere.count() == 1);

  // A file or link with the name of a temporary file stays, and so does its target.
  fs::create_symlink(elsewhere / "none", folder / "link.tmp");
  for (int i = 0; i < 1000; ++i)
    fs::create_symlink(elsewhere / "none",
                       path + "." + std::to_string(::getpid()) + "." + std::to_string(i) + ".tmp");
  fs::remove(path);
  save_safetensors(path, good);
  CHECK_FALSE(fs::exists(elsewhere / "none"));
  CHECK(folder.count() == 1002);

  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(save_safetensors(pipe, good), pipe + ": cannot be written: not a regular file");
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("files: a link is followed to its end, and nothing but a file is replaced", "[files]") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder, elsewhere;
  const TensorFile file{.tensors = {{"x", tensor({1})}}};
  // Through folders that are links, relative to each link's place, and to files that do not exist
  // yet.
  fs::create_directory(elsewhere / "deep");
  fs::create_directory_symlink(elsewhere / "deep", folder / "deep");
  fs::create_symlink("../second", elsewhere / "deep/first");
  fs::create_symlink("third", elsewhere / "second");
  fs::create_symlink("deep/first", folder / "link");
  for (int i = 0; i < 2; ++i) {
    save_safetensors(folder / "link", file);
    CHECK(load_safetensors(elsewhere / "third").tensors.size() == 1);
    CHECK(folder.count() == 2);
    CHECK(elsewhere.count() == 3);
    for (const std::string& link :
         {folder / "link", elsewhere / "deep/first", elsewhere / "second"})
      CHECK(fs::is_symlink(link));
  }
  const auto refused = [&](const std::string& path, const std::string& why) {
    CHECK(message_of<FileError>([&] { save_safetensors(path, file); }) ==
          path + ": cannot be written: " + why);
  };
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  fs::create_symlink("self", folder / "self");
  refused(folder / "a", std::strerror(ELOOP));
  refused(folder / "self", std::strerror(ELOOP));
  fs::create_directory(folder / "folder");
  fs::create_symlink("folder", folder / "to_folder");
  fs::create_symlink("/dev/null", folder / "to_null");
  fs::create_symlink("none/x", folder / "to_none");
  for (const char* const name : {"folder", "to_folder", "to_null"})
    refused(folder / name, "not a regular file");
  refused("/dev/null", "not a regular file");
  refused(folder / "to_none", "No such file or directory");
  CHECK(fs::is_character_file("/dev/null"));
  for (const char* const name : {"a", "b", "self", "to_folder", "to_null", "to_none"})
    CHECK(fs::is_symlink(folder / name));
  CHECK(folder.count() == 9);
#ifdef __linux__
  // An open file that has no name any more.
  write_bytes(folder / "gone", "x");
  const int open = ::open((folder / "gone").c_str(), O_RDONLY | O_CLOEXEC);
  fs::remove(folder / "gone");
  refused("/proc/self/fd/" + std::to_string(open), "no name leads to it");
  ::close(open);
#endif
}

TEST_CASE("safetensors: a name in a message is one short line without escapes") {
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

TEST_CASE("safetensors: a shape has at most 64 dimensions, read or written") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const auto load = [&](std::size_t dimensions) {
    std::string shape = "1";
    while (shape.size() < 2 * dimensions - 1)
      shape += ",1";
    write_bytes(path,
                file_of(R"({"x":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,4]}})",
                        "1234"));
    return load_safetensors(path).tensors.at("x").dim();
  };
  CHECK(load(64) == 64);
  CHECK(message_of<FileError>([&] { load(65); }) ==
        path +
            ": not a safetensors file: tensor 'x': its shape has 65 dimensions, and at most 64 "
            "are allowed");
  save_safetensors(path, {.tensors = {{"x", zeros(Shape(64, 1))}}});
  CHECK_THROWS_AS(save_safetensors(path, {.tensors = {{"x", zeros(Shape(65, 1))}}}), ValueError);
}
