#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/safetensors.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;
using io::load_safetensors;
using io::save_safetensors;
using io::TensorFile;

namespace {

/// The message with which bytes are rejected; "" if they are accepted.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  write_bytes(path, bytes);
  try {
    load_safetensors(path);
    return {};
  } catch (const FileError& error) {
    CHECK_THAT(error.what(), StartsWith(path));
    return error.what();
  }
}

void check_refused(const std::string& bytes, const std::vector<std::string>& fragments) {
  const std::string message = refusal(bytes);
  INFO(message);
  CHECK_FALSE(message.empty());
  check_contains(message, fragments);
}

Array<float> floats(const Shape& shape, const std::vector<float>& values) {
  Array<float> array = empty_array<float>(shape);
  std::copy(values.begin(), values.end(), array.data());
  return array;
}

template <class T>
std::vector<T> values_of(const T* data, std::size_t n) {
  return {data, data + n};
}

TensorFile mixed_file() {
  TensorFile file;
  file.tensors["b"] = tensor({{1, 2, 3}, {4, 5, 6}});
  file.tensors["a.weight"] = tensor({0.1, -0.2}, DType::float64);
  file.tensors["scalar"] = scalar(7);
  file.tensors["empty"] = zeros({3, 0, 2});
  file.indices["ids"] = Indices({{1, -2}, {3, 4}});
  file.metadata = {{"format", "pt"}, {"letters", "\xC3\xA9 \"\\ \n"}};
  return file;
}

}  // namespace

TEST_CASE("safetensors: a written file is read again, bit for bit") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const TensorFile written = mixed_file();
  save_safetensors(path, written);
  const TensorFile read = load_safetensors(path);

  CHECK(read.metadata == written.metadata);
  REQUIRE(read.tensors.size() == 4);
  for (const auto& [name, x] : written.tensors) {
    INFO(name);
    const Tensor& y = read.tensors.at(name);
    CHECK(y.dtype() == x.dtype());
    CHECK(y.shape() == x.shape());
    CHECK_FALSE(y.requires_grad());
    dispatch(x.dtype(), [&y = y, &x = x]<class T>() {
      CHECK(values_of(y.data<T>(), y.numel()) == values_of(x.data<T>(), x.numel()));
    });
  }
  REQUIRE(read.indices.size() == 1);
  CHECK(read.indices.at("ids").shape() == Shape{2, 2});
  CHECK(values_of(read.indices.at("ids").data(), 4) == std::vector<std::int64_t>{1, -2, 3, 4});
  CHECK(folder.count() == 1);
}

TEST_CASE("safetensors: names, keys and values may hold the checksum's key") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors", key = "\"xgrad_checksum\":\"0123456789abcdef";
  TensorFile written;
  written.tensors["\"xgrad_checksum"] = ones(2);
  written.metadata = {{"a\"xgrad_checksum", "v"}, {"a" + key, key}, {"\"xgrad_checksum", "w"}};
  save_safetensors(path, written);
  const TensorFile read = load_safetensors(path);
  CHECK(read.metadata == written.metadata);
  CHECK(read.tensors.contains("\"xgrad_checksum"));
  CHECK(xgrad::io::SafetensorsFile(path).verify());
}

TEST_CASE("safetensors: infinities, NaN and signed zero keep their bits") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const float float_inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {float_inf, -float_inf, std::nanf("5"), -0.0f, 1e-45f};
  TensorFile file;
  file.tensors["x"] = Tensor(floats({5}, values));
  save_safetensors(path, file);
  const TensorFile read = load_safetensors(path);
  CHECK(std::memcmp(read.tensors.at("x").data<float>(), values.data(), 5 * sizeof(float)) == 0);
}

TEST_CASE("safetensors: the bytes are the format's") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  TensorFile file;
  file.tensors["b"] = tensor({1});
  file.tensors["a"] = tensor({2}, DType::float64);
  file.metadata["k"] = "v";
  save_safetensors(path, file);
  // Wide values first, so that all are aligned; blanks up to a multiple of 8.
  const std::string header = R"({"__metadata__":{"k":"v","xgrad_checksum":"0000000000000000"},)"
                             R"("a":{"data_offsets":[0,8],"dtype":"F64","shape":[1]},)"
                             R"("b":{"data_offsets":[8,12],"dtype":"F32","shape":[1]}})";
  std::string data(12, '\0');
  const double two = 2;
  const float one = 1;
  std::memcpy(data.data(), &two, 8);
  std::memcpy(data.data() + 8, &one, 4);
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  std::string expected = file_of(padded, data);
  io::Checksum checksum;
  checksum.add(expected.data(), 3);
  checksum.add(expected.data() + 3, expected.size() - 3);
  expected.replace(expected.find("0000000000000000"), 16, checksum.digits());
  CHECK(read_bytes(path) == expected);
}

TEST_CASE("safetensors: all of the format is read") {
  const std::string four(4, '\0');
  CHECK(refusal(file_of("{}")) == "");
  CHECK(refusal(file_of("{}   ")) == "");
  CHECK(refusal(file_of(R"({"__metadata__":{}})")) == "");
  CHECK(refusal(file_of(R"({"":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", four)) == "");
  CHECK(refusal(file_of(R"({"x":{"dtype":"F32","shape":[0,9223372036854775807],)"
                        R"("data_offsets":[0,0]}})")) != "");  // F32: 4 * 2^63 bytes is no number
  CHECK(refusal(file_of(R"({"x":{"dtype":"F32","shape":[1152921504606846976,0],)"
                        R"("data_offsets":[0,0]}})")) != "");
  CHECK((refusal(file_of(R"({"x":{"dtype":"F32","shape":[72057594037927936,0],)"
                         R"("data_offsets":[0,0]}})")) == "") == (sizeof(std::size_t) == 8));
  // The order in the header need not be that of the data, and an empty tensor may be anywhere.
  CHECK(refusal(file_of(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                        R"("e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},)"
                        R"("f":{"dtype":"F64","shape":[0],"data_offsets":[8,8]},)"
                        R"("y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                        four + four)) == "");
}

TEST_CASE("safetensors: a file that is too short, or whose header has a wrong length") {
  check_refused("", {"it has 0 bytes"});
  check_refused("1234567", {"it has 7 bytes", "header's length"});
  check_refused(std::string(8, '\0'), {"does not begin with '{'", "byte 8"});
  check_refused(file_of("{}").substr(0, 9), {"length is 2", "only 1 byte follows"});
  std::string huge = file_of("{}");
  huge[7] = '\x7f';
  check_refused(huge, {"at most 100000000", "byte 0"});
  check_refused("First Citizen:\nBefore we proceed any further",
                {"its first 8 bytes are no header's length, which is at most 100000000 (byte 0)"});
}

TEST_CASE("safetensors: a header that is not JSON as the format wants it") {
  check_refused(file_of(" {}"), {"does not begin with '{'", "byte 8"});
  check_refused(file_of("[]"), {"does not begin with '{'"});
  check_refused(file_of("{}\n"), {"ends with something other", "byte 10"});
  check_refused(file_of("{} x"), {"ends with something other", "byte 11"});
  check_refused(file_of(std::string("{\0}", 3)), {"zero byte", "byte 9"});
  check_refused(file_of(std::string("{}\0}", 4)), {"zero byte", "byte 10"});
  check_refused(file_of("{} }"), {"not JSON", "byte 11"});
  check_refused(file_of("{\"x\": }"), {"not JSON", "byte 14"});
  check_refused(file_of("{\"\xFF\":{}}"), {"not JSON", "byte 10"});
  check_refused(file_of(R"({"x":[[[[[[]]]]]]})"), {"nested more than 3 deep"});
  check_refused(file_of("{\"x\":" + std::string(100000, '[') + "}"), {"nested more than 3 deep"});
}

TEST_CASE("safetensors: a key that stands twice") {
  const std::string x = R"("x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  check_refused(file_of("{" + x + "," + x + "}"), {"key 'x' twice"});
  check_refused(file_of(R"({"x":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[0,0]}})"),
                {"key 'dtype' twice"});
  check_refused(file_of(R"({"__metadata__":{"a":"1","a":"1"}})"), {"key 'a' twice"});
  check_refused(file_of(R"({"__metadata__":{},"__metadata__":{}})"), {"'__metadata__' twice"});
  // The same key in different objects is allowed.
  CHECK(refusal(file_of(R"({"dtype":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                        R"("shape":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})")) == "");
}

TEST_CASE("safetensors: metadata maps strings to strings") {
  check_refused(file_of(R"({"__metadata__":1})"), {"__metadata__ is not an object"});
  check_refused(file_of(R"({"__metadata__":{"step":1}})"), {"__metadata__", "'step'"});
  check_refused(file_of(R"({"__metadata__":{"a":{}}})"), {"__metadata__", "'a'"});
  check_refused(file_of(R"({"__metadata__":{"a":null}})"), {"__metadata__", "'a'"});
}

TEST_CASE("safetensors: a tensor that is described wrongly") {
  const std::string four(4, '\0');
  const auto refused = [&](const std::string& entry, const std::vector<std::string>& fragments) {
    check_refused(file_of("{\"w\":" + entry + "}", four), fragments);
  };
  refused("1", {"'w' is not described by an object"});
  refused(R"({"shape":[1],"data_offsets":[0,4]})", {"'w' has no dtype"});
  refused(R"({"dtype":"F32","data_offsets":[0,4]})", {"'w' has no shape"});
  refused(R"({"dtype":"F32","shape":[1]})", {"'w' has no data_offsets"});
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]})",
          {"'w'", "unknown key 'strides'"});
  refused(R"({"dtype":5,"shape":[1],"data_offsets":[0,4]})", {"'w'", "dtype is not a string"});
  refused(R"({"dtype":"f32","shape":[1],"data_offsets":[0,4]})",
          {"only F32, F64 and I64", "'w' (f32)"});
  refused(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})", {"'w'", "shape is not a list"});
  refused(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", {"'w'", "shape holds -1"});
  refused(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", {"'w'", "shape holds 1.0"});
  refused(R"({"dtype":"F32","shape":["1"],"data_offsets":[0,4]})", {"'w'", "shape holds \"1\""});
  refused(R"({"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4]})",
          {"'w'", "shape holds"});
  refused(R"({"dtype":"F32","shape":[[1]],"data_offsets":[0,4]})", {"nested"});
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":4})", {"'w'", "list of two numbers"});
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", {"'w'", "list of two numbers"});
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})", {"'w'", "list of two numbers"});
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", {"'w'", "data_offsets holds -4"});
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4.5]})", {"'w'", "holds 4.5"});
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", {"'w'", "end before they begin"});
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", {"'w'", "beyond the file", "4"});
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]})",
          {"'w'", sizeof(std::size_t) > 4 ? "beyond the file" : "2^32 - 1"});
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})",
          {"'w'", "(2,) of F32 has 8 bytes", "[0, 4) hold 4"});
  refused(R"({"dtype":"F64","shape":[],"data_offsets":[0,4]})", {"'w'", "() of F64 has 8 bytes"});
  refused(R"({"dtype":"F32","shape":[0],"data_offsets":[0,4]})", {"'w'", "has 0 bytes"});
}

TEST_CASE("safetensors: a shape whose product overflows") {
  const auto refused = [](const std::string& shape) {
    check_refused(file_of(R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4]}})",
                          std::string(4, '\0')),
                  {"'w'", sizeof(std::size_t) > 4 ? "overflows" : "2^32 - 1"});
  };
  refused("[4294967296,4294967296]");  // 2^64: the product would be 0
  refused("[4611686018427387905]");    // times 4 bytes: 2^64 + 4
  refused("[2305843009213693953,1]");  // times 32 bits: 2^66 + 32
  refused("[18446744073709551615,18446744073709551615]");
  refused("[4294967296,4294967296,0]");
}

TEST_CASE("safetensors: holes, overlaps and trailing bytes") {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + a +
           R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + b + "}}";
  };
  const std::string twelve(12, '\0');
  const std::string header = two("[0,4]", "[8,12]");
  check_refused(file_of(header, twelve),
                {"'b'", "hole of 4 bytes", "byte " + std::to_string(8 + header.size() + 4)});
  check_refused(file_of(two("[4,8]", "[8,12]"), twelve), {"'a'", "hole of 4 bytes"});
  check_refused(file_of(two("[0,4]", "[2,6]"), twelve.substr(6)), {"'b'", "overlaps", "2 bytes"});
  check_refused(file_of(two("[0,4]", "[0,4]"), twelve.substr(8)), {"overlaps", "4 bytes"});
  check_refused(file_of(two("[0,4]", "[4,8]"), twelve), {"4 bytes follow the last tensor"});
  check_refused(file_of("{}", "x"), {"1 byte follows the last tensor"});
  check_refused(file_of(R"({"e":{"dtype":"F32","shape":[0],"data_offsets":[2,2]},)"
                        R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                        twelve.substr(8)),
                {"overlaps"});
}

TEST_CASE("safetensors: dtypes that have no counterpart are named") {
  const auto header = [](const std::string& dtype, int size, int bytes) {
    return R"({"w":{"dtype":")" + dtype + R"(","shape":[)" + std::to_string(size) +
           R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
  };
  const std::vector<std::pair<std::string, int>> dtypes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2}, {"U16", 2},     {"F16", 2},    {"BF16", 2},
      {"I32", 4},  {"U32", 4}, {"U64", 8}, {"C64", 8}, {"F8_E5M2", 1}, {"F8_E4M3", 1}};
  for (const auto& [dtype, width] : dtypes) {
    const std::string data(static_cast<std::size_t>(3 * width), '\1');
    check_refused(file_of(header(dtype, 3, 3 * width), data),
                  {"only F32, F64 and I64", "'w' (" + dtype + ")"});
    if (dtype == "F16" || dtype == "BF16")  // sizes of convertible dtypes are checked
      check_refused(file_of(header(dtype, 2, 3 * width), data), {"'w'", "has"});
  }
  check_refused(file_of(header("F4", 4, 2), "ab"), {"'w' (F4)"});

  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  write_bytes(path, file_of(R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},)"
                            R"("i":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                            R"("x":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})",
                            std::string(16, '\0')));
  const io::SafetensorsFile file(path);
  CHECK(file.tensors().size() == 3);
  CHECK(file.tensors().at("h").dtype == "F16");
  CHECK(file.tensors().at("h").shape == Shape{2});
  CHECK(file.tensors().at("h").bytes == 4);
  CHECK(file.tensor("x").item() == 0);
  CHECK(file.indices("i").item() == 0);
  CHECK_THROWS_WITH(file.tensor("h"),
                    path + ": tensor 'h' has dtype F16; a Tensor holds F32 or F64");
  CHECK_THROWS_WITH(file.tensor("i"),
                    path + ": tensor 'i' has dtype I64; a Tensor holds F32 or F64");
  CHECK_THROWS_WITH(file.indices("x"), path + ": tensor 'x' has dtype F32; Indices hold I64");
  CHECK_THROWS_WITH(file.tensor("y"), path + ": has no tensor 'y'");
  CHECK_THROWS_AS(file.tensor("y"), FileError);
}

TEST_CASE("safetensors: a path that is not a file") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(load_safetensors(folder / "none"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(load_safetensors(folder / "."), ContainsSubstring("not a regular file"));
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(load_safetensors(pipe), ContainsSubstring("not a regular file"));
}

TEST_CASE("safetensors: a failed write leaves the old file and nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  TensorFile good;
  good.tensors["x"] = tensor({1});
  save_safetensors(path, good);
  const std::string before = read_bytes(path);

  const auto refused = [&](const TensorFile& file, const std::string& fragment) {
    CHECK_THROWS_WITH(save_safetensors(path, file), ContainsSubstring(fragment));
    CHECK_THROWS_AS(save_safetensors(path, file), ValueError);
    CHECK(read_bytes(path) == before);
    CHECK(folder.count() == 1);
  };
  TensorFile tied;
  tied.tensors["lm_head"] = tied.tensors["wte"] = tensor({1, 2});
  refused(tied, "'lm_head' and 'wte' are the same value");
  TensorFile twice;
  twice.tensors["x"] = tensor({1});
  twice.indices["x"] = Indices({1});
  refused(twice, "'x' names a Tensor and Indices");
  TensorFile undefined;
  undefined.tensors["x"] = Tensor();
  refused(undefined, "'x' is undefined");
  TensorFile reserved;
  reserved.tensors["__metadata__"] = tensor({1});
  refused(reserved, "__metadata__");
  TensorFile invalid;
  invalid.metadata["x"] = "\xFF";
  refused(invalid, "not UTF-8");

  CHECK_THROWS_AS(save_safetensors(folder / "no/such/x.safetensors", good), FileError);
  CHECK_THROWS_WITH(save_safetensors(folder / "no/such/x.safetensors", good),
                    ContainsSubstring("no/such/x.safetensors: cannot be written: No such file"));
  // A folder has the name: the complete file cannot replace it, and is removed.
  std::filesystem::create_directory(folder / "taken");
  CHECK_THROWS_WITH(save_safetensors(folder / "taken", good), EndsWith(": not a regular file"));
  CHECK(folder.count() == 2);
}

TEST_CASE("safetensors: a file cut anywhere, or with bytes changed, is refused or read, no more") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  save_safetensors(path, mixed_file());
  const std::string whole = read_bytes(path);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::filesystem::remove(path);  // some file systems wait for the disk when bytes are replaced
    write_bytes(path, whole.substr(0, n));
    CHECK_THROWS_AS(load_safetensors(path), FileError);
  }

  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof(length));
  std::size_t read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    for (std::size_t change = 0; change <= below(3); ++change) {
      const std::size_t at = below(8 + length);
      const std::string_view likely = "0123456789-.eE{}[]\":, F6IBUnull\xC3\\";
      const char byte = below(2) == 0 ? likely[below(likely.size())] : static_cast<char>(random());
      switch (below(4)) {
        case 0:
          bytes.insert(at, 1, byte);
          break;
        case 1:
          bytes.erase(at, 1);
          break;
        default:
          bytes[at] = byte;
      }
    }
    std::filesystem::remove(path);
    write_bytes(path, bytes);
    try {
      const TensorFile content = load_safetensors(path);
      std::size_t total = 0;
      for (const auto& [name, x] : content.tensors)
        total += x.numel() * (x.dtype() == DType::float32 ? 4 : 8);
      for (const auto& [name, ids] : content.indices)
        total += ids.numel() * 8;
      CHECK(total == bytes.size() - 8 - length);
      ++read;
    } catch (const FileError&) {
    }
  }
  CHECK(read > 0);
  CHECK(read < 20000);
}
