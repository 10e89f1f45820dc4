// Every op against PyTorch: outputs, first gradients by both readings of the formulas, and second
// gradients, in float64 and in float32.  How many cases there are, and how far they are off:
// xgrad_tests "[.golden-summary]"

#include <iomanip>
#include <iostream>
#include <set>
#include <sstream>
#include <utility>

#include "autograd/ops/catalogue.hpp"
#include "golden/ops.hpp"
#include "helpers/catch.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"
#include "optim/optimizers.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

double golden_tolerance(DType dtype) { return dtype == DType::float64 ? 1e-12 : 1e-5; }

using AddCalls = void(GoldenCalls&);

std::map<std::string, GoldenCall> calls_of(std::initializer_list<AddCalls*> groups) {
  GoldenCalls calls;
  for (AddCalls* add : groups)
    add(calls);
  return calls.by_name();
}

std::map<std::string, GoldenCall> all_calls() {
  return calls_of({add_elementwise_calls, add_reduce_calls, add_shape_calls});
}

std::string op_of(const std::string& name) { return name.substr(0, name.find('/')); }

void check(AddCalls* group) {
  for (const auto& [name, call] : calls_of({group}))
    DYNAMIC_SECTION(name) {
      REQUIRE(golden_cases().contains(name));
      for (const DType dtype : {DType::float64, DType::float32})
        for (const auto& [what, error] : deviations(golden_cases().at(name), call, dtype)) {
          INFO(what << " in " << to_string(dtype));
          CHECK(error <= golden_tolerance(dtype));
        }
    }
}

}  // namespace

TEST_CASE("golden values of elementwise ops", "[golden][ops]") { check(add_elementwise_calls); }
TEST_CASE("golden values of reductions", "[golden][ops]") { check(add_reduce_calls); }
TEST_CASE("golden values of shape and matrix ops", "[golden][ops]") { check(add_shape_calls); }

TEST_CASE("every op has golden values, and every golden value a call", "[golden][ops]") {
  std::set<std::string> ops;
  const auto calls = all_calls();
  for (const auto& [name, golden] : golden_cases()) {
    INFO(name);
    CHECK(calls.contains(name));
    // Zero-size or not, a case has a result, and whatever is differentiated has its gradients.
    CHECK(golden.count("out") + golden.integers("index").size() > 0);
    CHECK(golden.count("g") == (golden.has("grad") ? golden.count("out") : 0));
    CHECK(golden.count("grad") == (golden.has("g") ? golden.count("in") : 0));
    CHECK(golden.count("v") == (golden.has("v") ? golden.count("in") : 0));
    if (golden.has("v"))
      ops.insert(op_of(name));
  }
  for (const auto& [name, call] : calls) {
    INFO(name << " is not in the file");
    CHECK(golden_cases().contains(name));
  }
  const std::set<std::string> names = declared_ops();
  CHECK(names.size() >= 80);
  for (const std::string& op : names) {
    INFO(op << " has no golden case with second gradients");
    CHECK(ops.contains(op));
  }
}

TEST_CASE("every op and optimizer stands in a row of docs/pytorch_ops.md or docs/pytorch.md",
          "[ops][docs]") {
  std::istringstream page(read_bytes(source_dir + "/docs/pytorch_ops.md") +
                          read_bytes(source_dir + "/docs/pytorch.md"));
  std::set<std::string> code;  // the words between backticks of all rows
  for (std::string line; std::getline(page, line);) {
    bool within = false;
    std::string word;
    for (const char c : line.starts_with("|") ? line : "") {
      if (within && (std::isalnum(static_cast<unsigned char>(c)) || c == '_')) {
        word += c;
        continue;
      }
      code.insert(std::exchange(word, ""));
      within ^= c == '`';
    }
  }
  std::set<std::string> names = declared_optimizers();
  names.merge(declared_ops());
  for (const std::string& name : names) {
    INFO(name << " stands in no row of docs/pytorch_ops.md or docs/pytorch.md");
    CHECK(code.contains(name));
  }
}

TEST_CASE("golden values: cases by op and largest errors", "[.golden-summary]") {
  struct Line {
    std::size_t cases = 0, seconds = 0;
    std::map<DType, double> largest;
    std::map<DType, std::string> where;
    void add(const Line& other) {
      cases += other.cases;
      seconds += other.seconds;
      for (const auto& [dtype, error] : other.largest)
        add(dtype, error, other.where.at(dtype));
    }
    void add(DType dtype, double error, const std::string& at) {
      if (where.contains(dtype) && error <= largest[dtype])
        return;
      largest[dtype] = error;
      where[dtype] = at;
    }
  };
  std::map<std::string, Line> lines;
  for (const auto& [name, call] : all_calls()) {
    const GoldenCase& golden = golden_cases().at(name);
    Line& line = lines[op_of(name)];
    ++line.cases;
    line.seconds += golden.has("v") ? 1 : 0;
    for (const DType dtype : {DType::float64, DType::float32})
      for (const auto& [what, error] : deviations(golden, call, dtype))
        line.add(dtype, error, name.substr(name.find('/') + 1) + ": " + what);
  }
  Line total;
  const auto print = [](const std::string& op, const Line& line) {
    std::cout << std::left << std::setw(30) << op << std::right << std::setw(6) << line.cases
              << std::setw(8) << line.seconds << std::scientific << std::setprecision(1);
    for (const DType dtype : {DType::float64, DType::float32})
      std::cout << std::setw(10) << line.largest.at(dtype);
    std::cout << "  " << line.where.at(DType::float32) << '\n';
  };
  std::cout << "op                             cases  second   float64   float32  of float32\n";
  for (const auto& [op, line] : lines) {
    print(op, line);
    Line named = line;
    for (auto& [dtype, where] : named.where)
      where.insert(0, op + "/");
    total.add(named);
  }
  print(std::to_string(lines.size()) + " ops", total);
  for (const auto& [dtype, error] : total.largest)
    CHECK(error <= golden_tolerance(dtype));
}
