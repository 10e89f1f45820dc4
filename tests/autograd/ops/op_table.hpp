#pragma once
// The test table of ops: one row per op declared in ops.hpp.  A row's samples are run by
// op_table_test.cpp through everything an op must satisfy: its values equal the reference in
// float64 and float32, gradcheck, gradgradcheck, and the gradients of the ordinary backward equal
// those under create_graph.  Its bad inputs must throw the errors they name.

#include <functional>
#include <string>
#include <vector>
#include <xgrad/autograd/ops.hpp>

#include "helpers/tensors.hpp"

namespace xgrad::testing {

using Inputs = std::vector<Tensor>;

/// One use of an op.  Inputs are float64 constants; the runner converts them.  A sample of more
/// than 2,000 elements, made for several threads, is not checked by finite differences.
struct Sample {
  std::string name;                        ///< "negative dims", "0-d", "zero-size", ...
  Inputs inputs;                           ///< away from kinks: gradients are checked numerically
  std::function<Tensor(const Inputs&)> f;  ///< calls the op
  std::function<Tensor(const Inputs&)>
      reference;               ///< the same by plain loops, independent of the op; float64
  bool differentiable = true;  ///< false: values only (a sample on a kink, or of no derivative)
  double tolerance32 = 1e-5;   ///< of float32 values, relative to the largest magnitude
};

/// A call that must throw an xgrad::Error of this kind whose message contains every fragment.
struct Bad {
  std::string name;
  std::function<void()> call;
  enum Kind { shape, dtype, value, graph } kind;
  std::vector<std::string> fragments;
};

struct Row {
  std::string op;  ///< as declared in ops.hpp
  std::vector<Sample> samples;
  std::vector<Bad> bad;
};

// One function per file of rows.
std::vector<Row> elementwise_rows();
std::vector<Row> reduce_rows();
std::vector<Row> matmul_rows();
std::vector<Row> shape_rows();
std::vector<Row> index_rows();

/// Standard normal float64 values from a seed: samples are the same in every run.
Tensor sample_randn(const Dims& sizes, std::uint64_t seed);
/// Uniform in [low, high).
Tensor sample_uniform(const Dims& sizes, double low, double high, std::uint64_t seed);
/// A float64 Tensor of this shape whose element at flat position i is f(i).
Tensor sample_from(const Shape& shape, const std::function<double(std::size_t)>& f);

}  // namespace xgrad::testing
