// Stage 1: the slope of f(x) = x³ - 2x.
//
//   slope(x) = d f / d x: by how much f changes per unit when x is moved a little.

#include "exercise.hpp"

using namespace exercise;

double slope(double x) {
  (void)x;  // take this line out
  return todo<double>();
}
