#pragma once
// What the rows of reductions are made of: the reference, the ways to reduce, and bad inputs.

#include "autograd/ops/op_table.hpp"

namespace xgrad::testing {

using Numbers = std::vector<double>;
using Fold = std::function<double(const Numbers&)>;
using Reduce = std::function<Tensor(const Tensor& x, const Dims& dims, bool keepdim)>;
using Draw = std::function<Tensor(const Dims&)>;

/// The reference: every element of the output from the list of those that it is made of.
Tensor folded(const Tensor& x, const Dims& dims, bool keepdim, const Fold& fold);

/// Sizes of x, and the dimensions to reduce.
struct Way {
  std::string name;
  Dims sizes, dims;
  bool keepdim = false;
};
extern const std::vector<Way> ways_to_reduce;

Tensor normal(const Dims& sizes);
Tensor not_small(const Dims& sizes);  ///< magnitudes from 0.5 to 1.5, of both signs

Sample reduction(const std::string& name, const Tensor& x, const Dims& dims, bool keepdim,
                 const Reduce& f, const Fold& fold, bool differentiable = true);

/// Adds a sample for each way, or for those of one dimension.
enum class Reduces { any, one };
void add_ways(Row& row, const std::string& prefix, const Reduce& f, const Fold& fold,
              const Draw& draw = normal, Reduces dims = Reduces::any);
/// Adds samples of the form that takes no dimensions.
void add_total(Row& row, Tensor (*f)(const Tensor&), const Fold& fold, const Draw& draw = normal);
void add_bad_dims(Row& row, const Reduce& f, Reduces dims = Reduces::any);
/// Adds a dimension of size 0, for reductions that need an element.
void add_bad_empty(Row& row, const Reduce& f);

// extremum_rows.cpp
Row max_row();
Row min_row();
Row amax_row();
Row amin_row();
Row logsumexp_row();
Row vector_norm_row();
Row matrix_norm_row();

/// distance_rows.cpp; part of reduce_rows().
std::vector<Row> distance_rows();

}  // namespace xgrad::testing
