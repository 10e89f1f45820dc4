// Runs the rows of op_table.hpp.  One op alone: xgrad_tests "elementwise ops" -c tanh

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/autograd/trace.hpp>

#include "autograd/ops/catalogue.hpp"
#include "autograd/ops/op_table.hpp"
#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/tensors.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

// Samples with more elements are there for threads: finite differences would take too long.
constexpr std::size_t most_checked = 2000;
// Jacobians with more elements are checked by products with random vectors.
constexpr std::size_t most_in_full = 40'000;

// Empty if |a - b| <= tolerance * (largest magnitude of b) everywhere, else what is wrong.  NaN
// equals NaN, and an infinity itself.
std::string difference(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.shape() != b.shape())
    return "shape " + to_string(a.shape()) + " instead of " + to_string(b.shape());
  const std::vector<double> xs = numbers(a), ys = numbers(b);
  const double largest = detail::scale_of(ys);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double x = xs[i], y = ys[i];
    if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance * largest)
      continue;
    std::ostringstream text;
    text.precision(17);
    text << "element " << i << " is " << x << " instead of " << y;
    return text.str();
  }
  return {};
}

// The same inputs in a dtype of choice, as leaves; those not chosen as constants.
Inputs leaves(const Inputs& inputs, DType dtype, const std::set<std::size_t>& chosen) {
  Inputs result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      result.emplace_back();
      continue;
    }
    result.push_back(clone(to(inputs[i], dtype)));
    result.back().requires_grad_(chosen.contains(i));
  }
  return result;
}

Inputs constants(const Inputs& inputs, DType dtype) { return leaves(inputs, dtype, {}); }

std::set<std::size_t> defined_inputs(const Inputs& inputs) {
  std::set<std::size_t> all;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined())
      all.insert(i);
  return all;
}

// The gradients of a sample that is computed `uses` times of the same inputs, for a fixed
// cotangent; undefined for inputs that get none.
std::vector<Tensor> gradients(const Sample& sample, DType dtype,
                              const std::set<std::size_t>& chosen, bool create_graph,
                              std::size_t uses = 1) {
  const Inputs in = leaves(sample.inputs, dtype, chosen);
  Inputs wanted;
  for (const std::size_t i : chosen)
    wanted.push_back(in[i]);
  std::vector<Tensor> ys;
  for (std::size_t i = 0; i < uses; ++i)
    ys.push_back(sample.f(in));
  if (!ys[0].requires_grad())
    return std::vector<Tensor>(wanted.size());
  const Tensor v = to(sample_randn(ys[0].shape(), 77), ys[0].dtype());
  return grad(ys, wanted,
              {.grad_outputs = std::vector<Tensor>(uses, v),
               .create_graph = create_graph,
               .allow_unused = true});
}

// The same elements as a window into a larger buffer, at an odd place.
Tensor moved(const Tensor& x) {
  return cat({zeros({1}, x.dtype()), flatten(x), zeros({1}, x.dtype())})
      .narrow(0, 1, x.numel())
      .reshape(x.shape());
}

void check_values(const Sample& sample) {
  const Inputs in64 = constants(sample.inputs, DType::float64);
  const Tensor y64 = sample.f(in64);
  REQUIRE(y64.dtype() == DType::float64);
  CHECK(difference(y64, sample.reference(in64), 1e-12) == "");
  for (std::size_t i = 0; i < in64.size(); ++i)
    CHECK(same_bits(in64[i], sample.inputs[i]));  // the op has not changed its inputs

  // The reference sees the inputs that the op sees: those that float32 can hold.
  const Inputs in32 = constants(sample.inputs, DType::float32);
  const Tensor y32 = sample.f(in32);
  REQUIRE(y32.dtype() == DType::float32);
  CHECK(difference(y32, sample.reference(constants(in32, DType::float64)), sample.tolerance32) ==
        "");
}

// Tools call a forward again: it must depend on its inputs alone.
void check_forward_again(const Sample& sample) {
  const Inputs in = constants(sample.inputs, DType::float64);
  const Trace trace;
  sample.f(in);
  for (const Trace::Event& e : trace.events()) {
    INFO("forward of " << e.op << " again");
    CHECK(same_bits(e.forward(e.inputs), e.output));
  }
}

void check_threads(const Sample& sample, const std::set<std::size_t>& chosen) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Inputs in = constants(sample.inputs, dtype);
    Tensor y;
    std::vector<Tensor> ordinary;
    {
      const Threads one(1);
      y = sample.f(in);
      ordinary = gradients(sample, dtype, chosen, false);
    }
    const Threads several(3);
    CHECK(same_bits(sample.f(in), y));
    const auto again = gradients(sample, dtype, chosen, false);
    for (std::size_t i = 0; i < again.size(); ++i)
      CHECK(same_bits(again[i], ordinary[i]));
  }
}

// Inputs and gradients may be windows that begin anywhere, and inputs may change after the forward.
void check_windows(const Sample& sample, const std::set<std::size_t>& chosen) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Inputs in = constants(sample.inputs, dtype), wanted;
    for (const std::size_t i : chosen) {
      in[i] = moved(in[i]);
      in[i].requires_grad_();
      wanted.push_back(in[i]);
    }
    const Tensor y = sample.f(in);
    CHECK(same_bits(y, sample.f(constants(sample.inputs, dtype))));
    if (!y.requires_grad())
      continue;
    for (Tensor& x : wanted)
      dispatch(dtype, [&]<class T>() {
        T* const data = detail::writable_data<T>(x);
        std::fill_n(data, x.numel(), T(1e6));
      });
    const Tensor v = moved(to(sample_randn(y.shape(), 77), dtype));
    const auto found = grad({y}, wanted, {.grad_outputs = {v}, .allow_unused = true});
    const auto expected = gradients(sample, dtype, chosen, false);
    for (std::size_t k = 0; k < found.size(); ++k)
      CHECK(same_bits(found[k], expected[k]));
  }
}

// The ordinary backward, the one under create_graph, and the one where only one input wants a
// gradient must agree, and the gradients of two uses add up.
void check_readings(const Sample& sample, const std::set<std::size_t>& chosen) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double tolerance = dtype == DType::float32 ? 1e-5 : 1e-12;
    const auto ordinary = gradients(sample, dtype, chosen, false);
    const auto graph = gradients(sample, dtype, chosen, true);
    const auto twice = gradients(sample, dtype, chosen, false, 2);
    std::size_t k = 0;
    for (const std::size_t i : chosen) {
      INFO("gradient of input " << i << " in " << to_string(dtype));
      REQUIRE(ordinary[k].defined() == graph[k].defined());
      const auto alone = gradients(sample, dtype, {i}, false);
      REQUIRE(alone[0].defined() == ordinary[k].defined());
      if (ordinary[k].defined()) {
        CHECK(difference(ordinary[k], graph[k], tolerance) == "");
        CHECK(difference(alone[0], ordinary[k], tolerance) == "");
        CHECK(difference(twice[k], 2 * ordinary[k], tolerance) == "");
      }
      ++k;
    }
  }
}

// A fused op and the ops that it fuses must agree; in float32 they round in other places.
void check_decomposed(const Sample& sample, const std::set<std::size_t>& chosen) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    INFO("decomposed, in " << to_string(dtype));
    const double tolerance = dtype == DType::float32 ? 10 * sample.tolerance32 : 1e-12;
    const auto run = [&] {
      auto all = gradients(sample, dtype, chosen, false);
      all.push_back(sample.f(constants(sample.inputs, dtype)));
      return all;
    };
    const auto fused = run();
    const Decompose by_ordinary_ops;
    const auto composed = run();
    for (std::size_t i = 0; i < fused.size(); ++i)
      if (fused[i].defined())
        CHECK(difference(composed[i], fused[i], tolerance) == "");
  }
}

void check_derivatives(const Sample& sample, const std::set<std::size_t>& chosen) {
  const Inputs in = leaves(sample.inputs, DType::float64, chosen);
  std::size_t elements = 0;
  for (const std::size_t i : chosen)
    elements += in[i].numel();
  if (elements > most_checked)
    return;
  // (Sanitizers watch the memory, which is the same.)
  const bool fast = XGRAD_SANITIZER || elements * sample.f(in).numel() > most_in_full;
  const auto first = gradcheck(sample.f, in, {.fast_mode = fast}),
             second = gradgradcheck(sample.f, in, {.fast_mode = fast});
  CHECK((first.ok ? "" : first.message) == "");
  CHECK((second.ok ? "" : second.message) == "");
}

// The sample's inputs with a size as 0: at one place, at that place from the end of every input, or
// wherever the size stands.
std::vector<Inputs> with_zero_sizes(const Inputs& inputs) {
  std::map<std::string, Inputs> all;  // by shapes
  const auto add = [&](const auto& becomes_zero) {
    std::string shapes;
    Inputs made;
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      made.push_back(inputs[j]);
      if (!inputs[j].defined())
        continue;
      Shape shape = inputs[j].shape();
      for (std::size_t e = 0; e < shape.size(); ++e)
        if (becomes_zero(j, shape.size() - e, shape.begin()[e]))
          shape[e] = 0;
      if (shape != inputs[j].shape())
        made.back() = zeros(shape, DType::float64);
      shapes += to_string(shape);
    }
    all.emplace(shapes, made);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (Size d = 0; inputs[i].defined() && d < inputs[i].dim(); ++d) {
      const std::size_t place = inputs[i].dim() - d, size = inputs[i].size(d);
      add([&](std::size_t j, std::size_t p, std::size_t) { return i == j && p == place; });
      add([&](std::size_t, std::size_t p, std::size_t) { return p == place; });
      add([&](std::size_t, std::size_t, std::size_t n) { return n == size; });
    }
  std::vector<Inputs> list;
  for (auto& [shapes, made] : all)
    list.push_back(std::move(made));
  return list;
}

// An op may refuse a size of 0; if it does not, all modes agree, whatever was in the memory.
void check_zero_sizes(const Sample& original, const std::set<std::size_t>& chosen) {
  for (const Inputs& inputs : with_zero_sizes(original.inputs)) {
    Sample sample = original;
    sample.inputs = inputs;
    std::string shapes;
    for (const Tensor& x : inputs)
      shapes += x.defined() ? to_string(x.shape()) : " none";
    INFO("sizes " << shapes);
    Tensor y;
    try {
      y = sample.f(constants(inputs, DType::float64));
    } catch (const Error&) {
      continue;
    } catch (const std::out_of_range&) {  // a part of unbind() that is not there
      continue;
    }
    CHECK(difference(sample.f(constants(inputs, DType::float32)), y, sample.tolerance32) == "");
    if (!sample.differentiable)
      continue;
    check_readings(sample, chosen);
    check_decomposed(sample, chosen);
    check_threads(sample, chosen);
    if (std::cmp_less_equal(y.numel(), most_checked) && all(isfinite(y)))
      check_derivatives(sample, chosen);
  }
}

void check_bad(const Bad& bad) {
  const auto message = [&] {
    switch (bad.kind) {
      case Bad::shape:
        return message_of<ShapeError>(bad.call);
      case Bad::dtype:
        return message_of<DTypeError>(bad.call);
      case Bad::value:
        return message_of<ValueError>(bad.call);
      case Bad::graph:
        return message_of<GraphError>(bad.call);
    }
    return std::string();
  }();
  CHECK(message != nothing_thrown);
  check_contains(message, bad.fragments);
}

using Rows = std::vector<Row>();

const std::vector<Row>& table(Rows* rows) {
  static std::map<Rows*, std::vector<Row>> made;  // a test case starts again for every section
  const auto at = made.find(rows);
  return at != made.end() ? at->second : made.emplace(rows, rows()).first->second;
}

void run(Rows* rows) {
  for (const Row& row : table(rows))
    DYNAMIC_SECTION(row.op) {
      for (const Sample& sample : row.samples)
        DYNAMIC_SECTION(sample.name) {
          const auto chosen = defined_inputs(sample.inputs);
          check_values(sample);
          check_forward_again(sample);
          if (sample.differentiable) {
            check_derivatives(sample, chosen);
            check_readings(sample, chosen);
            check_decomposed(sample, chosen);
            check_threads(sample, chosen);
            check_windows(sample, chosen);
          }
          check_zero_sizes(sample, chosen);
        }
      for (const Bad& bad : row.bad)
        DYNAMIC_SECTION("bad: " << bad.name) { check_bad(bad); }
    }
}

}  // namespace

TEST_CASE("elementwise ops", "[ops]") { run(elementwise_rows); }
TEST_CASE("reduction ops", "[ops]") { run(reduce_rows); }
TEST_CASE("matrix product ops", "[ops]") { run(matmul_rows); }
TEST_CASE("shape ops", "[ops]") { run(shape_rows); }
TEST_CASE("indexing ops", "[ops]") { run(index_rows); }

TEST_CASE("every op of the catalogue is in the table", "[ops]") {
  const std::set<std::string> names = declared_ops();
  CHECK(names.size() >= 80);  // or ops.hpp looks different from what is expected here
  CHECK(names.contains("add"));
  CHECK(names.contains("causal_self_attention"));

  std::set<std::string> with_row;
  for (Rows* rows : {elementwise_rows, reduce_rows, matmul_rows, shape_rows, index_rows})
    for (const Row& row : table(rows)) {
      INFO(row.op);
      CHECK(!row.samples.empty());
      CHECK(names.contains(row.op));
      with_row.insert(row.op);
    }
  for (const std::string& name : names) {
    INFO(name << " has no row");
    CHECK(with_row.contains(name));
  }
}
