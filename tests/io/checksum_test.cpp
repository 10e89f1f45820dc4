// A file that is damaged is not read.

#include <fstream>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/checksum.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/optim/sgd.hpp>

#include "helpers/catch.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

namespace {

/// Small enough to flip each of its bits.
struct Tiny {
  nn::Linear layer{1, 1};
  Tensor operator()(const Tensor& x) const { return layer(x); }
  static void visit(auto& self, auto&& v) { v("layer", self.layer); }
};

}  // namespace

TEST_CASE("a checksum is XXH3's, in whatever parts the bytes come", "[checksum]") {
  io::Checksum nothing, whole, parts;
  CHECK(nothing.digits() == "2d06800538d394c2");
  const std::string bytes(1000, 'x');
  whole.add(bytes.data(), bytes.size());
  parts.add(bytes.data(), 1);
  parts.add(bytes.data() + 1, 0);
  parts.add(bytes.data() + 1, bytes.size() - 1);
  CHECK(parts.digits() == whole.digits());
  CHECK(whole.digits() != nothing.digits());
}

TEST_CASE("safetensors: a damaged file is not read") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  io::save_safetensors(path, {.tensors = {{"x", ones({3})}}});
  std::string bytes = read_bytes(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(path, bytes);
  CHECK_THROWS_WITH(io::load_safetensors(path),
                    StartsWith(path + ": the file has been damaged: its checksum is "));
  const io::SafetensorsFile file(path);
  CHECK_THROWS_AS(file.verify(), FileError);
  CHECK(io::SafetensorsFile(golden_weights("gpt")).verify() == false);  // PyTorch's has none
}

TEST_CASE("checkpoint: each of its bits is noticed if it flips") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  Tiny tiny;
  optim::SGD optimizer(nn::parameters(tiny), {.lr = 0.1, .momentum = 0.9});
  tiny(ones({1, 1})).sum().backward();
  optimizer.step();
  io::save_checkpoint(path, tiny, optimizer, {.user = "notes"});
  // Most of it would be the generator's 624 words, of which a few will do.
  io::TensorFile file = io::load_safetensors(path);
  file.metadata["generators"] = R"({"default": "1 2 3"})";
  io::save_safetensors(path, file);
  const std::string good = read_bytes(path);
  CHECK_NOTHROW(io::load_checkpoint(path));
  std::size_t flipped = 0, noticed = 0;
  std::fstream changed(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, int mask) {
    changed.seekp(static_cast<std::streamoff>(at));
    changed.put(static_cast<char>(good[at] ^ mask)).flush();
  };
  for (std::size_t at = 0; at < good.size(); put(at++, 0))
    for (int bit = 0; bit < 8; ++bit, ++flipped) {
      put(at, 1 << bit);
      try {
        io::load_checkpoint(path);
        UNSCOPED_INFO("byte " << at << ", bit " << bit << " was not noticed");
      } catch (const FileError&) {
        ++noticed;
      }
    }
  CAPTURE(flipped);
  CHECK(read_bytes(path) == good);
  CHECK(flipped > 5000);
  CHECK(noticed == flipped);
}
