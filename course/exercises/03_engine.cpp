// Stage 3: backward() for a graph of numbers.
//
//   struct Number {
//     double value;
//     double grad;                                       // d output / d this, for you to fill
//     std::vector<std::pair<Number*, double>> inputs;    // each with d this / d input
//   };

#include "exercise.hpp"

using namespace exercise;

// The numbers in the order in which they were computed: inputs come before what uses them.  The
// last one is the output.  All grad are 0 when this is called.
void my_backward(const std::vector<Number*>& numbers) {
  numbers.back()->grad = todo<double>();
}
