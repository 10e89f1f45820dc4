#pragma once
// The properties that every random program must have (random_graph.hpp).

#include <string>
#include <vector>

#include "random_graph/random_graph.hpp"

namespace xgrad::testing {

struct Attack;

struct Property {
  const char* name;
  void (*holds)(Attack&);  ///< throws if it does not hold
  double constants;        ///< share of steps without a gradient
};
const std::vector<Property>& properties();

struct Outcome {
  std::string violation;   ///< empty if the property holds
  double worst_error = 0;  ///< of compared values, relative to the largest magnitude, or to 1
  std::size_t nodes = 0;   ///< of the graphs that were made
};
/// Tests a property, and that all nodes and values of all graphs are freed afterwards.
Outcome attempt(const Property& property, const Random& random, const Program& program);

}  // namespace xgrad::testing
