// Written files do not depend on the user's locale.

#include <clocale>
#include <locale>
#include <sstream>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/viz/chart.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

namespace {

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\1"; }
};

/// The C++ locale, and the C locale if the system has it, as long as this lives.
class German {
 public:
  German() : cpp_(std::locale::global(std::locale(std::locale::classic(), new Comma))) {
    std::setlocale(LC_ALL, "de_DE.UTF-8");
  }
  German(const German&) = delete;
  German& operator=(const German&) = delete;
  ~German() {
    std::locale::global(cpp_);
    std::setlocale(LC_ALL, "C");
  }

 private:
  std::locale cpp_;
};

std::string everything() {
  const TemporaryFolder folder;
  const Tensor x = tensor({1234567.25, 0.001, -1e30}, DType::float64);
  io::TensorFile file;
  file.tensors["x"] = x;
  file.metadata["numbers"] = io::format_json(io::JsonArray{1234567.25, std::uint64_t{1234567}});
  io::save_safetensors(folder / "x", file);
  std::ostringstream out;
  out << x << nn::summary(nn::Linear(1234, 12));
  return read_bytes(folder / "x") + out.str() +
         viz::line_chart({{"a", {0, 1234567}, {0.25, 1e6}}}) +
         std::to_string(io::parse_json("[1.5]").as<io::JsonArray>()->front().number().value());
}

}  // namespace

TEST_CASE("locale: files, pictures, JSON and output are the same") {
  const std::string reference = everything();
  CHECK(reference.find("1234567.25") != std::string::npos);
  const German locale;
  std::ostringstream out;
  out << 1234.5;
  CHECK(out.str() == "1.2.3.4,5");
  CHECK(everything() == reference);
}
