// Runs the table of samples (golden/table.py) through everything that an op must satisfy: PyTorch's
// values and gradients to second order, in float64 and float32; differences; the same numbers in
// every mode, on any number of threads, and for views; bad calls throw the errors they name.  One
// op alone: xgrad_core_tests "samples of elementwise ops" -c tanh

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/autograd/trace.hpp>

#include "autograd/ops/catalogue.hpp"
#include "golden/samples.hpp"
#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"
#include "helpers/threads.hpp"
#include "optim/optimizers.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

// Larger samples test threads: finite differences would take too long.
constexpr std::size_t most_checked = 2000;
// Larger Jacobians are checked by products with random vectors.
constexpr std::size_t most_in_full = 40'000;

// Empty if |a - b| <= tolerance * (largest magnitude of b) everywhere, else the difference.  NaN
// equals NaN, and an infinity equals itself.
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

// The inputs in a dtype, as leaves if chosen, else as constants.
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

// The gradients of a sample that is computed `uses` times from the same inputs, for a fixed
// cotangent; undefined for inputs without one.
std::vector<Tensor> gradients(const OpSample& sample, DType dtype,
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
  const Tensor v = to(normal(ys[0].shape(), 77), ys[0].dtype());
  return grad(ys, wanted,
              {.grad_outputs = std::vector<Tensor>(uses, v),
               .create_graph = create_graph,
               .allow_unused = true});
}

// The same elements as a view into a larger buffer, at an unaligned place.
Tensor moved(const Tensor& x) {
  return cat({zeros({1}, x.dtype()), flatten(x), zeros({1}, x.dtype())})
      .narrow(0, 1, x.numel())
      .reshape(x.shape());
}

void check_pytorch(const OpCall& call) {
  for (const DType dtype : {DType::float64, DType::float32})
    for (const auto& [number, error] : deviations(call, dtype)) {
      INFO(number << " in " << to_string(dtype));
      CHECK(error <= (dtype == DType::float64 ? 1e-12 : call.tolerance32));
    }
}

void check_inputs_unchanged(const OpSample& sample) {
  const Inputs in = constants(sample.inputs, DType::float64);
  sample.f(in);
  for (std::size_t i = 0; i < in.size(); ++i)
    CHECK(same_bits(in[i], sample.inputs[i]));
}

// Observers call a forward again, in the other dtype too: it must depend on its inputs alone.  Only
// `to` and `dropout` have a dtype of their own.
void check_forward_again(const OpSample& sample) {
  const bool at_a_step = sample.name.ends_with("tenths");  // rounding decides on its side
  for (const DType dtype : {DType::float64, DType::float32}) {
    std::vector<Trace::Event> events;
    {
      const Trace trace;
      sample.f(constants(sample.inputs, dtype));
      events = trace.events();
    }
    for (const Trace::Event& e : events) {
      INFO("forward of " << e.op << " again");
      CHECK(same_bits(e.forward(e.inputs), e.output));
      if (dtype == DType::float32 && e.op != "to" && e.op != "dropout" && !at_a_step) {
        Inputs wide;
        for (const Tensor& x : e.inputs)
          wide.push_back(x.defined() ? to(x, DType::float64) : x);
        const Tensor again = e.forward(wide);
        CHECK(again.dtype() == DType::float64);
        CHECK(difference(to(again, dtype), e.output, 10 * sample.tolerance32) == "");
      }
    }
  }
}

void check_threads(const OpSample& sample, const std::set<std::size_t>& chosen) {
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

// Inputs and gradients may be views at any offset, and inputs may change after the forward.
void check_windows(const OpSample& sample, const std::set<std::size_t>& chosen) {
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
    const Tensor v = moved(to(normal(y.shape(), 77), y.dtype()));
    const auto found = grad({y}, wanted, {.grad_outputs = {v}, .allow_unused = true});
    const auto expected = gradients(sample, dtype, chosen, false);
    for (std::size_t k = 0; k < found.size(); ++k)
      CHECK(same_bits(found[k], expected[k]));
  }
}

// The ordinary backward, the one under create_graph, the one for a single input and the one for all
// others must agree, and the gradients of two uses add up.
void check_modes(const OpSample& sample, const std::set<std::size_t>& chosen) {
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
      std::set<std::size_t> others = chosen;
      others.erase(i);
      const auto without = gradients(sample, dtype, others, false);
      for (std::size_t at = 0; at < without.size(); ++at)
        if (const Tensor& all = ordinary[at < k ? at : at + 1]; all.defined())
          CHECK(difference(without[at], all, tolerance) == "");
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

// A fused op and its composition must agree; in float32 they round in other places.
void check_decomposed(const OpSample& sample, const std::set<std::size_t>& chosen) {
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

// Counts NaN and infinity as the same.
std::string no_number(std::string signs) {
  std::ranges::replace_if(signs, [](char c) { return c == '+' || c == '-'; }, 'n');
  return signs;
}

// NaN and infinity are put in each place of each input and of the gradient in turn (in 20 places of
// a larger one).  Fused or composed, with create_graph or without, an op gives NaN, infinity and
// numbers in the same places.
// Exception: for an infinite gradient of gelu NaN and infinity count as the same under Decompose,
// because its composition may subtract infinities.
void check_special_values(const OpSample& sample, const std::set<std::size_t>& chosen) {
  Inputs all = sample.inputs;
  all.push_back(normal(sample.f(sample.inputs).shape(), 9));
  if (std::ranges::any_of(
          all, [](const Tensor& x) { return std::cmp_greater(x.numel(), most_checked); }))
    return;
  const auto forms = [&](const Inputs& at, DType dtype) {
    std::vector<std::string> said;
    for (const bool decomposed : {false, true})
      for (const bool create_graph : {false, true}) {
        std::optional<Decompose> by_ordinary_ops;
        if (decomposed)
          by_ordinary_ops.emplace();
        try {
          const Inputs in = leaves(Inputs(at.begin(), at.end() - 1), dtype, chosen);
          const Tensor z = sample.f(in);
          if (!z.requires_grad())
            return said;
          auto found = grad({z}, in,
                            {.grad_outputs = {to(at.back(), z.dtype())},
                             .create_graph = create_graph,
                             .allow_unused = true});
          found.push_back(z);
          said.push_back(signs_of(found));
        } catch (const ValueError&) {
          said.push_back("refused");
        }
      }
    return said;
  };
  const int places = XGRAD_SANITIZER ? 4 : 20;  // (sanitizers check memory alone)
  for (const DType dtype : {DType::float64, DType::float32})
    for (const double v : {not_a_number, inf, -inf})
      for (std::size_t i = 0; i < all.size(); ++i)
        for (Size k = 0; k < all[i].numel(); k += 1 + all[i].numel() / places) {
          Inputs at = all;
          at[i] = clone(all[i]);
          set_element(at[i], k, v);
          INFO(v << " at " << k << " of " << (i < sample.inputs.size() ? "input " : "gradient ")
                 << i);
          const auto said = forms(at, dtype);
          for (std::size_t form = 0; form < said.size(); ++form) {
            const bool by_ops =
                i == sample.inputs.size() && std::isinf(v) && form >= 2 && sample.op == "gelu";
            CHECK((by_ops ? no_number(said[form]) : said[form]) ==
                  (by_ops ? no_number(said[0]) : said[0]));
          }
        }
}

void check_derivatives(const OpSample& sample, const std::set<std::size_t>& chosen) {
  const Inputs in = leaves(sample.inputs, DType::float64, chosen);
  std::size_t elements = 0;
  for (const std::size_t i : chosen)
    elements += in[i].numel();
  if (elements > most_checked)
    return;
  // (Sanitizers check memory alone, which is the same.)
  const bool fast = XGRAD_SANITIZER || elements * sample.f(in).numel() > most_in_full;
  const auto first = gradcheck(sample.f, in, {.fast_mode = fast}),
             second = gradgradcheck(sample.f, in, {.fast_mode = fast});
  CHECK((first.ok ? "" : first.message) == "");
  CHECK((second.ok ? "" : second.message) == "");
}

// The sample's inputs with a size replaced by 0: at one place, at that place from the end of every
// input, or wherever the size occurs.
std::vector<Inputs> with_zero_sizes(const Inputs& inputs) {
  std::map<std::string, Inputs> all;  // by shown_sizes
  const auto add = [&](const auto& becomes_zero) {
    std::string shown_sizes;
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
      shown_sizes += to_string(shape);
    }
    all.emplace(shown_sizes, made);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (Size d = 0; inputs[i].defined() && d < inputs[i].dim(); ++d) {
      const std::size_t place = inputs[i].dim() - d, size = inputs[i].size(d);
      add([&](std::size_t j, std::size_t p, std::size_t) { return i == j && p == place; });
      add([&](std::size_t, std::size_t p, std::size_t) { return p == place; });
      add([&](std::size_t, std::size_t, std::size_t n) { return n == size; });
    }
  std::vector<Inputs> list;
  for (auto& [shown_sizes, made] : all)
    list.push_back(std::move(made));
  return list;
}

// An op may reject a size of 0; if it does not, all modes agree, whatever the memory contained.
void check_zero_sizes(const OpSample& original, const std::set<std::size_t>& chosen) {
  for (const Inputs& inputs : with_zero_sizes(original.inputs)) {
    OpSample sample = original;
    sample.inputs = inputs;
    std::string shown_sizes;
    for (const Tensor& x : inputs)
      shown_sizes += x.defined() ? to_string(x.shape()) : " none";
    INFO("sizes " << shown_sizes);
    Tensor y;
    try {
      y = sample.f(constants(inputs, DType::float64));
    } catch (const Error&) {
      continue;
    }
    CHECK(difference(sample.f(constants(inputs, DType::float32)), y, sample.tolerance32) == "");
    if (!sample.differences)
      continue;
    check_modes(sample, chosen);
    check_decomposed(sample, chosen);
    check_threads(sample, chosen);
    if (std::cmp_less_equal(y.numel(), most_checked) && all(isfinite(y)))
      check_derivatives(sample, chosen);
  }
}

void check_bad(const BadCall& bad) {
  const auto message = [&] {
    switch (bad.error) {
      case BadCall::ShapeError:
        return message_of<ShapeError>(bad.call);
      case BadCall::DTypeError:
        return message_of<DTypeError>(bad.call);
      case BadCall::ValueError:
        return message_of<ValueError>(bad.call);
      case BadCall::GraphError:
        return message_of<GraphError>(bad.call);
    }
    return std::string();
  }();
  CHECK(message != nothing_thrown);
  check_contains(message, bad.fragments);
}

std::string op_of(const std::string& name) { return name.substr(0, name.find('/')); }

void check_properties(const OpSample& sample) {
  std::set<std::size_t> chosen;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i)
    chosen.insert(i);
  check_inputs_unchanged(sample);
  if (sample.gradients) {
    check_threads(sample, chosen);
    check_windows(sample, chosen);
  }
  check_zero_sizes(sample, chosen);
  if (XGRAD_SANITIZER)  // (sanitizers check memory alone)
    return;
  check_forward_again(sample);
  if (sample.differences)
    check_derivatives(sample, chosen);
  if (sample.gradients) {
    check_modes(sample, chosen);
    check_decomposed(sample, chosen);
    check_special_values(sample, chosen);
  }
}

void run(const std::string& name) {
  const OpGroup& group =
      *std::ranges::find_if(op_groups(), [&](const OpGroup& g) { return g.name == name; });
  std::vector<std::string> ops;  // a section with a repeated name would run once
  for (const OpCall& call : group.calls)
    if (const std::string op = op_of(call.name); std::ranges::find(ops, op) == ops.end())
      ops.push_back(op);
  // The op of a bad call is the first word of its first fragment, as in most messages.
  const auto bad_of = [&](const BadCall& bad) {
    const auto at = std::ranges::find_if(bad.fragments.front(), [](char c) {
      return c != '_' && std::isalnum(static_cast<unsigned char>(c)) == 0;
    });
    const std::string op(bad.fragments.front().begin(), at);
    return std::ranges::find(ops, op) == ops.end() ? "other bad calls" : op;
  };
  ops.emplace_back("other bad calls");
  for (const std::string& op : ops)
    DYNAMIC_SECTION(op) {
      for (const BadCall& bad : group.bad_calls)
        if (bad_of(bad) == op)
          DYNAMIC_SECTION("bad: " << bad.text) { check_bad(bad); }
      for (const OpCall& call : group.calls)
        if (op_of(call.name) == op)
          DYNAMIC_SECTION(call.name) { check_pytorch(call); }
      for (const OpSample& sample : op_samples(group))
        if (sample.op == op)
          DYNAMIC_SECTION("properties of " << sample.op << "/" << sample.name) {
            check_properties(sample);
          }
    }
}

}  // namespace

TEST_CASE("samples of elementwise ops", "[ops]") { run("elementwise"); }
TEST_CASE("samples of reductions and matrix products", "[ops]") { run("reduce"); }
TEST_CASE("samples of shape and index ops", "[ops]") { run("shape"); }
TEST_CASE("samples of network ops", "[ops]") { run("network"); }

TEST_CASE("samples without numbers of PyTorch", "[ops]") {
  const auto check = [](const char* name, const std::vector<Dims>& sizes,
                        const std::function<Tensor(const Inputs&)>& f, bool differences = true) {
    OpSample sample{.op = name, .name = {}, .inputs = {}, .f = f, .differences = differences};
    for (const Dims& shape : sizes)
      sample.inputs.push_back(normal(shape, sample.inputs.size() + 1));
    DYNAMIC_SECTION(name) { check_properties(sample); }
  };
  check("layer_norm, one parameter for both", {{2, 4}, {4}},
        [](const Inputs& x) { return layer_norm(x[0], {4}, x[1], x[1]); });
  const std::vector<Dims> few(3, Dims{3, 2}), many(3, Dims{40, 2});
  check("attention, first keys", few, [](const Inputs& x) {
    return scaled_dot_product_attention(x[0], x[1], x[2],
                                        {.is_causal = true, .first_key = Indices{1, 1, 2}});
  });
  check("attention, softcap, more than a block", many, [](const Inputs& x) {
    return scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true, .softcap = 2});
  });
  check("causal_self_attention, first keys after a block", {{1, 70, 6}},
        [](const Inputs& x) { return causal_self_attention(x[0], 1, 0, arange_indices(-30, 40)); });
  for (const Reduction r : {Reduction::mean, Reduction::sum, Reduction::none}) {
    const auto options = [r](const Inputs& x) {
      return CrossEntropyOptions{.weight = tensor({0.5, 2, 1}, x[0].dtype()), .reduction = r};
    };
    const std::string by = ", reduction " + std::to_string(static_cast<int>(r));
    check(("cross_entropy, probabilities and logits the same" + by).c_str(), {{3, 3}},
          [=](const Inputs& x) { return cross_entropy(x[0], x[0], options(x)); });
    for (const std::int64_t last : {1, -100})
      check(("cross_entropy, weight, ignored, " + std::to_string(last) + by).c_str(), {{2, 3}},
            [=](const Inputs& x) { return cross_entropy(x[0], Indices{-100, last}, options(x)); },
            last == 1 || r != Reduction::mean);
  }
}

TEST_CASE("every op has a sample with second gradients, and every number a sample", "[ops]") {
  std::set<std::string> with_second, with_differences, names;
  for (const OpGroup& group : op_groups()) {
    CHECK(group.calls.size() >= 50);
    CHECK(group.bad_calls.size() >= 10);
    for (const OpCall& call : group.calls) {
      CHECK(names.insert(call.name).second);
      INFO(call.name << " has no numbers: run tests/golden/ops.py");
      REQUIRE(sample_numbers().contains(call.name));
      const SampleNumbers& numbers = sample_numbers().at(call.name);
      CHECK(numbers.count("out") + numbers.integers("index").size() > 0);
      if (numbers.has("v"))
        with_second.insert(op_of(call.name));
    }
    for (const OpSample& sample : op_samples(group)) {
      Size elements = 0;
      for (const Tensor& x : sample.inputs)
        elements += x.numel();
      if (sample.differences && elements > 0 && std::cmp_less_equal(elements, most_checked))
        with_differences.insert(sample.op);
    }
  }
  for (const auto& [name, numbers] : sample_numbers()) {
    INFO(name << " is not in the tables: run tests/golden/ops.py");
    CHECK(names.contains(name));
  }
  const std::set<std::string> ops = declared_ops();
  CHECK(ops.size() >= 80);  // or the parser does not understand ops.hpp
  for (const std::string& op : ops) {
    INFO(op << " has no sample with second gradients");
    CHECK(with_second.contains(op));
    INFO(op << " has no sample that differences check");
    CHECK(with_differences.contains(op));
  }
}

TEST_CASE("every op and optimizer stands in a row of docs/pytorch_ops.md or docs/pytorch.md",
          "[ops][docs][optim]") {
  std::istringstream page(read_bytes(source_dir + "/docs/pytorch_ops.md") +
                          read_bytes(source_dir + "/docs/pytorch.md"));
  std::set<std::string> code;  // the words between backticks in all rows
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
