// Random programs (random_graph.hpp), and properties that each must have (properties.cpp).
//
// A failure prints the seed and its smallest failing program.  xgrad_core_tests "[.soak]" tries
// tens of thousands more: XGRAD_SOAK_DAGS programs of each property, from seed XGRAD_SOAK_SEED on.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>

#include "helpers/catch.hpp"
#include "random_graph/properties.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

// The failure of this seed's program, if there is one, with its smallest failing version.
std::string complaint(const Property& property, std::uint64_t seed) {
  ProgramOptions options{.constants = property.constants};
  const std::size_t most = options.most_steps;
  for (options.most_steps = 1; options.most_steps <= most; ++options.most_steps) {
    const Program program = random_program(seed, options);
    const std::string violation = attempt(property, Random(seed + 1), program).violation;
    if (!violation.empty())
      return std::string(property.name) + ", seed " + std::to_string(seed) + ", most_steps " +
             std::to_string(options.most_steps) + ": " + violation + "\n" + to_string(program);
  }
  return std::string(property.name) + ", seed " + std::to_string(seed) + ": failed once";
}

struct Tally {
  std::size_t programs = 0, steps = 0, nodes = 0;
  double worst_error = 0;
  std::uint64_t worst_seed = 0;
  std::string complaint;
};

Tally attack(const Property& property, std::uint64_t first_seed, std::size_t n) {
  Tally tally;
  for (std::uint64_t seed = first_seed; seed < first_seed + n; ++seed) {
    const Program program = random_program(seed, {.constants = property.constants});
    const Outcome outcome = attempt(property, Random(seed + 1), program);
    if (!outcome.violation.empty()) {
      tally.complaint = complaint(property, seed);
      return tally;
    }
    ++tally.programs;
    tally.steps += program.steps.size();
    tally.nodes += outcome.nodes;
    if (outcome.worst_error > tally.worst_error) {
      tally.worst_error = outcome.worst_error;
      tally.worst_seed = seed;
    }
  }
  return tally;
}

void attack_with(const char* name) {
  const auto property = std::ranges::find_if(
      properties(), [name](const Property& p) { return std::string_view(p.name) == name; });
  REQUIRE(property != properties().end());
  const Tally tally = attack(*property, 1, 300);
  CHECK(tally.complaint == "");
  CHECK(tally.programs == 300);
  CHECK(tally.nodes > 300);
}

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("random graphs: gradients", "[engine][random-graph]") { attack_with("gradients"); }
TEST_CASE("random graphs: updates between forward and backward", "[engine][random-graph]") {
  attack_with("updates between forward and backward");
}
TEST_CASE("random graphs: retain_graph and repeated backward", "[engine][random-graph]") {
  attack_with("retain_graph and repeated backward");
}
TEST_CASE("random graphs: NoGrad and detach", "[engine][random-graph]") {
  attack_with("NoGrad and detach");
}
TEST_CASE("random graphs: exceptions from a backward", "[engine][random-graph]") {
  attack_with("exceptions from a backward");
}
TEST_CASE("random graphs: several roots, unused inputs", "[engine][random-graph]") {
  attack_with("several roots, unused inputs");
}
TEST_CASE("random graphs: second order", "[engine][random-graph]") { attack_with("second order"); }
TEST_CASE("random graphs: threads", "[engine][random-graph]") { attack_with("threads"); }
TEST_CASE("random graphs: hooks", "[engine][random-graph]") { attack_with("hooks"); }

TEST_CASE("random graphs: every op, broadcast, kind of constant and shape occurs",
          "[random-graph]") {
  std::map<Op, std::size_t> ops;
  std::map<Flow, std::size_t> flows;
  std::size_t broadcasts = 0, shared = 0, unused = 0, several_roots = 0, scalars = 0,
              leaf_roots = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Program p = random_program(seed, {.constants = 0.1});
    CHECK(to_string(p) == to_string(random_program(seed, {.constants = 0.1})));
    std::vector<std::size_t> uses(p.registers());
    for (const Step& step : p.steps) {
      ++ops[step.op];
      ++flows[step.flow];
      for (const std::size_t at : step.in)
        ++uses[at];
      broadcasts +=
          step.op >= Op::add && step.op < Op::sum && p.shape(step.in[0]) != p.shape(step.in[1]);
      scalars += step.shape.empty();
    }
    for (const Root& root : p.roots) {
      ++uses[root.at];
      leaf_roots += root.at < p.inputs.size();
    }
    several_roots += p.roots.size() > 1;
    shared +=
        static_cast<std::size_t>(std::ranges::count_if(uses, [](std::size_t n) { return n > 1; }));
    unused += static_cast<std::size_t>(std::ranges::count(uses, 0u));
  }
  for (std::size_t op = 0; op < static_cast<std::size_t>(Op::count); ++op) {
    INFO(to_string(static_cast<Op>(op)));
    CHECK(ops[static_cast<Op>(op)] >= 3);
  }
  CHECK(flows[Flow::detached] > 100);
  CHECK(flows[Flow::no_grad] > 100);
  CHECK(broadcasts > 100);
  CHECK(shared > 300);
  CHECK(unused > 300);
  CHECK(several_roots > 100);
  CHECK(leaf_roots > 20);
  CHECK(scalars > 50);
}

TEST_CASE("random graphs: the reference against central differences", "[random-graph]") {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Program p = random_program(seed);
    const auto objective = [&] {
      const auto planes = reference_values(p);
      double sum = 0;
      for (const Root& root : p.roots)
        for (std::size_t i = 0; i < root.cotangent.size(); ++i)
          sum += root.cotangent[i] * planes[root.at].values[i];
      return sum;
    };
    const std::size_t input = seed % p.inputs.size();
    const Doubles gradient = reference_gradient(p, input);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double& x = p.inputs[input].values[i];
      const double before = x, eps = 1e-5;
      x = before + eps;
      const double above = objective();
      x = before - eps;
      const double below = objective();
      x = before;
      const double numeric = (above - below) / (2 * eps);
      worst = std::max(worst, std::abs(gradient[i] - numeric) / std::max(1.0, std::abs(numeric)));
    }
    // second derivatives, as differences of the first ones
    std::vector<Doubles> direction;
    for (const Input& in : p.inputs)
      direction.push_back(Doubles(in.values.size(), 0.7));
    const Doubles second = reference_second(p, input, direction);
    const auto shifted = [&](double by) {
      Program q = p;
      for (std::size_t k = 0; k < q.inputs.size(); ++k)
        for (std::size_t i = 0; i < direction[k].size(); ++i)
          q.inputs[k].values[i] += by * direction[k][i];
      return reference_gradient(q, input);
    };
    const Doubles above = shifted(1e-5), below = shifted(-1e-5);
    for (std::size_t i = 0; i < second.size(); ++i) {
      const double numeric = (above[i] - below[i]) / 2e-5;
      worst = std::max(worst, std::abs(second[i] - numeric) / std::max(1.0, std::abs(numeric)));
    }
  }
  CHECK(worst < 1e-6);
}

TEST_CASE("random graphs: soak", "[.soak]") {
  const std::size_t each = from_environment("XGRAD_SOAK_DAGS", 10000);
  const std::uint64_t first = from_environment("XGRAD_SOAK_SEED", 1'000'000);
  std::cout << "property                                programs     steps       nodes  worst "
               "error  seed\n";
  Tally all;
  for (const Property& property : properties()) {
    const Tally tally = attack(property, first, each);
    CHECK(tally.complaint == "");
    std::cout << std::left << std::setw(38) << property.name << std::right << std::setw(10)
              << tally.programs << std::setw(10) << tally.steps << std::setw(12) << tally.nodes
              << std::scientific << std::setprecision(1) << std::setw(13) << tally.worst_error
              << "  " << tally.worst_seed << std::endl;
    all.programs += tally.programs;
    all.steps += tally.steps;
    all.nodes += tally.nodes;
    all.worst_error = std::max(all.worst_error, tally.worst_error);
  }
  std::cout << std::left << std::setw(38) << "all" << std::right << std::setw(10) << all.programs
            << std::setw(10) << all.steps << std::setw(12) << all.nodes << std::setw(13)
            << all.worst_error << '\n';
  CHECK(all.programs == each * properties().size());
}
