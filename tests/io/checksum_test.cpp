// A damaged file is rejected.

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/optim/optimizers.hpp>

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

/// The bytes of a file as another program saves it again: other offsets, other blanks, keys in
/// another order.
std::string saved_again(
    const std::string& bytes,
    const std::function<void(nlohmann::ordered_json& metadata)>& change = [](auto&) {}) {
  using Json = nlohmann::ordered_json;
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const Json old = Json::parse(bytes.substr(8, length));
  Json metadata, header;
  for (auto entry = old.at("__metadata__").rbegin(); entry != old.at("__metadata__").rend();
       ++entry)
    metadata[entry.key()] = entry.value();
  change(metadata);
  std::string data;
  for (auto entry = old.rbegin(); entry != old.rend(); ++entry) {
    if (entry.key() == "__metadata__")
      continue;
    const std::uint64_t begin = entry.value()["data_offsets"][0];
    const std::uint64_t size = std::uint64_t{entry.value()["data_offsets"][1]} - begin;
    header[entry.key()] = Json{{"dtype", entry.value()["dtype"]},
                               {"shape", entry.value()["shape"]},
                               {"data_offsets", {data.size(), data.size() + size}}};
    data += bytes.substr(8 + length + begin, size);
  }
  header["__metadata__"] = metadata;
  return file_of(header.dump() + "   ", data);
}

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

TEST_CASE("safetensors: a file that another program has saved again", "[checksum]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const io::TensorFile written{
      .tensors = {{"b", randn({3, 4})},
                  {"a", randn({2}, DType::float64)},
                  {"empty", zeros({0, 5})},
                  {"one", tensor(2.5)}},
      .indices = {{"ids", Indices({3, 1, 2})}},
      .metadata = {{"format", "pt"}, {"text", "a \"ß\"\n\\u00e9 xgrad_checksum\":\""}}};
  io::save_safetensors(path, written);
  const std::string bytes = read_bytes(path);
  write_bytes(path, saved_again(bytes));
  REQUIRE(read_bytes(path) != bytes);
  CHECK(io::SafetensorsFile(path).verify());
  const io::TensorFile read = io::load_safetensors(path);
  CHECK(read.metadata == written.metadata);
  for (const auto& [name, x] : written.tensors)
    CHECK(allclose(read.tensors.at(name), x, 0, 0));
  io::save_safetensors(path, read);
  CHECK(read_bytes(path) == bytes);

  // A changed file is rejected, and the message tells how to change one on purpose.
  const std::string cure =
      "; if another program changed it on purpose, it must leave 'xgrad_checksum' out of the "
      "metadata";
  const auto refused = [&](const std::string& changed) {
    write_bytes(path, changed);
    CHECK_THROWS_WITH(
        io::load_safetensors(path),
        StartsWith(path + ": the file has been damaged: its checksum is ") && EndsWith(cure));
  };
  std::string last = saved_again(bytes);
  last.back() = static_cast<char>(last.back() ^ 1);
  refused(last);
  refused(saved_again(bytes, [](auto& metadata) { metadata["more"] = "x"; }));
  refused(saved_again(bytes, [](auto& metadata) { metadata["format"] = "np"; }));
  std::string renamed = saved_again(bytes);
  renamed.replace(renamed.find("\"one\""), 5, "\"two\"");
  refused(renamed);
  write_bytes(path, saved_again(bytes, [](auto& metadata) {
                metadata["more"] = "x";
                metadata.erase("xgrad_checksum");
              }));
  CHECK(io::load_safetensors(path).metadata.at("more") == "x");

  Tiny tiny;
  const optim::SGD optimizer(nn::parameters(tiny), {.lr = 0.1});
  io::save_checkpoint(path, tiny, optimizer, {.step = 7, .user = "notes"});
  write_bytes(path, saved_again(read_bytes(path)));
  CHECK(io::load_checkpoint(path).step == 7);
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
