// Memory and time of reading grow at most in proportion to the input, whatever it contains.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/lm/byte_pairs.hpp>
#include <xgrad/lm/pre_tokenizer.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/lm/tokenizer.hpp>
#include <xgrad/nn/layers.hpp>

#include <xgrad/lm/program/runs/runs.hpp>
#include "helpers/allocations.hpp"
#include "helpers/catch.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

namespace {

/// This many texts, each made from a number, with a separator.
template <class F>
std::string repeated(std::size_t n, const char* between, const F& text) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i)
    all += (i > 0 ? between : "") + std::string(text(i));
  return all;
}

std::string tensors(std::size_t n, const std::string& dtype) {
  return file_of("{" +
                 repeated(n, ",",
                          [&](std::size_t i) {
                            return fmt::format(
                                R"("{}":{{"dtype":"{}","shape":[0],"data_offsets":[0,0]}})", i,
                                dtype);
                          }) +
                 "}");
}

std::string tensor_with(const std::string& more) {
  return file_of(R"({"x":{"dtype":"F32","data_offsets":[0,4])" + more + "}}", "1234");
}

/// Bytes, pairs of letters, and three letters: the shortest file with this many tokens.
std::string vocabulary(std::size_t n) {
  std::string tokens = repeated(256, ",", [](std::size_t i) {
    const std::string byte = lm::written_token(std::string(1, static_cast<char>(i)));
    return fmt::format(R"("{}":{})", i == '"' || i == '\\' ? "\\" + byte : byte, i);
  });
  std::string merges;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string abc = {static_cast<char>('a' + i / 676 % 26),
                             static_cast<char>('a' + i / 26 % 26), static_cast<char>('a' + i % 26)};
    const std::string left = i < 676 ? abc.substr(1, 1) : abc.substr(0, 2);
    tokens += fmt::format(R"(,"{}{}":{})", left, abc[2], 256 + i);
    merges += fmt::format(R"({}"{} {}")", i > 0 ? "," : "", left, abc[2]);
  }
  return R"({"model":{"type":"BPE","vocab":{)" + tokens + R"(},"merges":[)" + merges +
         R"(]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}})";
}

std::string marks(std::size_t n) {
  return "a" + repeated(n, "", [](std::size_t i) { return i % 2 == 0 ? "\u0301" : "\u0323"; });
}

void read_tensors(const std::string& path) { io::load_safetensors(path); }
void read_json(const std::string& path) { lm::read_json_file(path); }
void read_metrics(const std::string& path) { runs::read_metrics(path); }
void read_vocabulary(const std::string& path) { lm::read_tokenizer(path); }
void read_characters(const std::string& path) { lm::read_text(path); }
void read_normal(const std::string& path) { lm::nfc(read_bytes(path)); }

struct Reader {
  const char* name;
  std::size_t n;
  std::string (*input)(std::size_t n);
  void (*read)(const std::string& path);
};

const std::vector<Reader> readers = {
    {"many tensors", 2000, [](std::size_t n) { return tensors(n, "F32"); }, read_tensors},
    {"tensors of unknown dtypes", 2000, [](std::size_t n) { return tensors(n, "F4"); },
     read_tensors},
    {"tensors that a model does not have", 2000, [](std::size_t n) { return tensors(n, "F4"); },
     [](const std::string& path) {
       nn::Linear model(1, 1);
       io::load(model, path);
     }},
    {"a shape of ones", 40'000,
     [](std::size_t n) {
       return tensor_with(R"(,"shape":[)" + repeated(n, ",", [](std::size_t) { return "1"; }) +
                          "]");
     },
     read_tensors},
    {"unknown keys", 8000,
     [](std::size_t n) {
       return tensor_with(
           repeated(n, "", [](std::size_t i) { return fmt::format(",\"{}\":0", i); }));
     },
     read_tensors},
    {"prefixes", 8000,
     [](std::size_t n) {
       const std::string name = repeated(n, "", [](std::size_t) { return "module."; });
       return file_of("{\"" + name + R"(x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                      "1234");
     },
     [](const std::string& path) { io::SafetensorsFile(path).take_off({"module."}); }},
    {"JSON: zeros", 40'000,
     [](std::size_t n) { return "[" + repeated(n, ",", [](std::size_t) { return "0"; }) + "]"; },
     read_json},
    {"JSON: texts", 20'000,
     [](std::size_t n) {
       return "[" + repeated(n, ",", [](std::size_t) { return "\"a\""; }) + "]";
     },
     read_json},
    {"JSON: objects", 10'000,
     [](std::size_t n) {
       return "[" + repeated(n, ",", [](std::size_t) { return "{\"\":\"\"}"; }) + "]";
     },
     read_json},
    {"JSON: keys", 10'000,
     [](std::size_t n) {
       return "{" + repeated(n, ",", [](std::size_t i) { return fmt::format("\"{:x}\":0", i); }) +
              "}";
     },
     read_json},
    {"tokenizer.json", 1700, vocabulary, read_vocabulary},
    {"rows", 2000,
     [](std::size_t n) {
       return repeated(n, "\n",
                       [](std::size_t i) { return fmt::format(R"({{"step":{},"loss":1}})", i); });
     },
     read_metrics},
    {"a row of NaN", 10'000,
     [](std::size_t n) {
       return R"({"step":0,"loss":1,"x":[)" + repeated(n, ",", [](std::size_t) { return "NaN"; }) +
              "]}";
     },
     read_metrics},
    {"a text", 50'000,
     [](std::size_t n) { return repeated(n, "\r\n", [](std::size_t) { return "\u00E9"; }); },
     read_characters},
    {"combining marks", 20'000, marks, read_normal},
};

double seconds_of_thread() {
  std::timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct Cost {
  double seconds;
  std::size_t input, held, message;
};

Cost cost_of(const Reader& reader, std::size_t n) {
  const TemporaryFolder folder;
  const std::string bytes = reader.input(n), path = folder / "x";
  write_bytes(path, bytes);
  Cost cost{1e9, bytes.size(), 0, 0};
  for (int i = 0; i < 3; ++i) {
    const double begin = seconds_of_thread();
    const PeakMemory peak;
    try {
      reader.read(path);
    } catch (const Error& error) {
      cost.message = std::string_view(error.what()).size();
    }
    cost.held = peak.bytes();
    cost.seconds = std::min(cost.seconds, seconds_of_thread() - begin);
  }
  return cost;
}

// Quadratic time would take 64 times as long.
bool slow(const Cost& small_cost, const Cost& large) {
  return large.seconds > 20 * std::max(small_cost.seconds, 1e-3);
}

}  // namespace

TEST_CASE("reading takes memory and time in proportion to the input", "[costs]") {
  for (const Reader& reader : readers) {
    DYNAMIC_SECTION(reader.name) {
      Cost small_cost = cost_of(reader, reader.n), large = cost_of(reader, 8 * reader.n);
      for (int i = 0; i < 3 && slow(small_cost, large);
           ++i) {  // other programs may slow one of them
        small_cost = cost_of(reader, reader.n);
        large = cost_of(reader, 8 * reader.n);
      }
      CAPTURE(small_cost.seconds, large.seconds, large.input, large.held, large.message);
      CHECK(large.held <= 20 * large.input + 120'000);
      CHECK_FALSE(slow(small_cost, large));
      CHECK(large.message <= 30'000);
    }
  }
}
