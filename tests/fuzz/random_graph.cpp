// Random programs for the engine (tests/random_graph): the bytes serve as random numbers; the first
// chooses the property that must hold.

#include "random_graph/properties.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

using namespace xgrad::testing;

void run(std::string_view bytes) {
  Random random(bytes);
  const Property& property = properties()[random.below(properties().size())];
  const Program program = random_program(random, {.constants = property.constants});
  const std::string violation = attempt(property, random, program).violation;
  if (!violation.empty())
    throw std::logic_error(std::string(property.name) + ": " + violation + "\n" +
                           to_string(program));
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  Random random(1);
  for (std::size_t i = 0; i < 4 * properties().size(); ++i) {
    std::string seed(1, static_cast<char>(i));
    for (std::size_t k = 0; k < 40 * (i + 1); ++k)
      seed += static_cast<char>(random.below(256));
    all.push_back(seed);
  }
  return all;
}

}  // namespace

const Target random_graph{"random_graph", run, seeds};

}  // namespace fuzz
