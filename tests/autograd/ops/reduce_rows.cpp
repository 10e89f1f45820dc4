// Rows of the test table: reductions.  Extrema and norms: extremum_rows.cpp.

#include <cmath>
#include <numeric>

#include "autograd/ops/reduce_samples.hpp"

namespace xgrad::testing {
namespace {

// ---- sums

double total(const Numbers& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double average(const Numbers& v) { return total(v) / static_cast<double>(v.size()); }

Row sum_row() {
  Row row{"sum", {}, {}};
  const Reduce f = [](const Tensor& x, const Dims& dims, bool keep) { return sum(x, dims, keep); };
  add_ways(row, "", f, total);
  add_total(row, sum, total);
  row.samples.push_back(
      reduction("of nothing", zeros({2, 0}, DType::float64), {1}, false, f, total));
  row.samples.push_back(
      reduction("of nothing, apart", zeros({2, 3, 0}, DType::float64), {0, 2}, false, f, total));
  row.samples.push_back(
      reduction("infinities", tensor({{inf, 1}, {inf, -inf}, {not_a_number, 1}}, DType::float64),
                {1}, false, f, total, false));
  add_bad_dims(row, f);
  return row;
}

Row mean_row() {
  Row row{"mean", {}, {}};
  const Reduce f = [](const Tensor& x, const Dims& dims, bool keep) { return mean(x, dims, keep); };
  add_ways(row, "", f, average);
  add_total(row, mean, average);
  row.samples.push_back(
      reduction("of nothing", zeros({2, 0}, DType::float64), {1}, false, f, average, false));
  add_bad_dims(row, f);
  return row;
}

double squared_deviations(const Numbers& v) {
  const double m = average(v);
  double s = 0;
  for (const double x : v)
    s += (x - m) * (x - m);
  return s;
}

using Spread = Tensor (*)(const Tensor&, const Dims&, double, bool);

Row spread_row(const std::string& op, Spread f, double (*finish)(double)) {
  Row row{op, {}, {}};
  for (const double correction : {0.0, 1.0, -1.5, 2.0}) {
    const Reduce reduce = [=](const Tensor& x, const Dims& dims, bool keep) {
      return f(x, dims, correction, keep);
    };
    const Fold fold = [=](const Numbers& v) {
      return finish(squared_deviations(v) /
                    std::max(0.0, static_cast<double>(v.size()) - correction));
    };
    const std::string prefix = "correction " + std::to_string(correction) + ", ";
    for (const Way& way : ways_to_reduce) {
      // Of no more elements than the correction it is NaN or infinite; of one, a square root has a
      // kink.
      const Tensor x = normal(way.sizes);
      const std::size_t rows = f(x, way.dims, 0, false).numel();
      const bool few = x.numel() > 0 && static_cast<double>(x.numel()) <=
                                            static_cast<double>(rows) * std::max(1.0, correction);
      row.samples.push_back(
          reduction(prefix + way.name, x, way.dims, way.keepdim, reduce, fold, !few));
    }
    const Reduce all = [=](const Tensor& x, const Dims&, bool) {
      return f(x, {}, correction, false);
    };
    row.samples.push_back(reduction(prefix + "total", normal({3, 5}), {}, false, all, fold));
    row.samples.push_back(reduction(prefix + "of nothing", zeros({2, 0}, DType::float64), {1},
                                    false, reduce, fold, false));
    row.samples.push_back(reduction(prefix + "far from zero",
                                    sample_uniform({4, 50}, 1000, 1001, 4), {1}, false, reduce,
                                    fold, false));
  }
  // PyTorch's unbiased
  for (const bool unbiased : {true, false})
    row.samples.push_back(reduction(
        unbiased ? "unbiased" : "biased", normal({3, 5}), {1}, false,
        [=](const Tensor& x, const Dims& dims, bool keep) { return f(x, dims, unbiased, keep); },
        [=](const Numbers& v) { return finish(squared_deviations(v) / (unbiased ? 4 : 5)); }));
  add_bad_dims(row,
               [f](const Tensor& x, const Dims& dims, bool keep) { return f(x, dims, 1, keep); });
  return row;
}

Row prod_row() {
  Row row{"prod", {}, {}};
  const Fold fold = [](const Numbers& v) {
    return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
  };
  const Reduce f = [](const Tensor& x, const Dims& dims, bool keep) {
    return prod(x, dims.at(0), keep);
  };
  // factors near 1: the product of thousands must neither vanish nor overflow
  const Draw near_one = [](const Dims& sizes) { return sample_uniform(sizes, 0.98, 1.02, 6); };
  add_ways(row, "", f, fold, near_one, Reduces::one);
  row.samples.push_back(reduction("of both signs", not_small({4, 7}), {1}, false, f, fold));
  add_total(row, prod, fold, near_one);
  const Tensor zeros_inside =
      tensor({{0, 2, 3, 4}, {5, 0, 0, 2}, {1, 2, 3, -4}, {0, 0, 0, 0}}, DType::float64);
  row.samples.push_back(reduction("zeros in rows", zeros_inside, {1}, false, f, fold));
  row.samples.push_back(reduction("zeros in columns", zeros_inside, {0}, true, f, fold));
  for (const Values& v : {Values{2, 0, 3, 4, -1}, Values{0, 2, 0}, Values{0}, Values{3, 2, 0}})
    row.samples.push_back(reduction(
        "zeros in all", tensor(v, DType::float64), {}, false,
        [](const Tensor& x, const Dims&, bool) { return prod(x); }, fold));
  row.samples.push_back(
      reduction("of nothing", zeros({2, 0}, DType::float64), {1}, false, f, fold));
  add_bad_dims(row, f, Reduces::one);
  return row;
}

Row sum_to_row() {
  Row row{"sum_to", {}, {}};
  struct Case {
    std::string name;
    Dims sizes;
    Shape shape;
    Dims dims;  // those that are summed
  };
  std::vector<Case> cases = {
      {"the same shape", {2, 3}, {2, 3}, {}},
      {"a leading dimension", {4, 3}, {3}, {0}},
      {"a size of 1", {4, 3}, {4, 1}, {1}},
      {"both", {2, 3, 4}, {3, 1}, {0, 2}},
      {"to 0-d", {2, 3}, {}, {0, 1}},
      {"0-d", {}, {}, {}},
      {"a leading size of 1", {1, 3}, {3}, {}},
      {"from nothing", {0, 3}, {3}, {0}},
      {"of nothing", {0, 3}, {0, 1}, {1}},
      {"rows, large", {600, 100}, {100}, {0}},
      {"columns, large", {600, 100}, {600, 1}, {1}},
      {"all, large", {600, 100}, {}, {0, 1}},
  };
  Shape many(70, 1);
  many[0] = 2, many[66] = 3, many[69] = 4;
  Shape kept(66, 1);
  kept[65] = 4;  // dimensions 0 and 66 are summed
  cases.push_back({"70 dimensions", many, kept, {0, 1, 2, 3, 66}});
  for (const Case& c : cases)
    row.samples.push_back(
        {c.name,
         {normal(c.sizes)},
         [c](const Inputs& in) { return sum_to(in[0], c.shape); },
         [c](const Inputs& in) {
           const Tensor y = c.dims.empty() ? in[0] : folded(in[0], c.dims, false, total);
           return sample_from(c.shape, [&](std::size_t i) { return y.data<double>()[i]; });
         }});
  row.bad = {{"does not broadcast",
              [] {
                sum_to(zeros({2, 3}), {2});
              },
              Bad::shape,
              {"sum_to", "(2, 3)", "(2,)"}},
             {"larger than x",
              [] {
                sum_to(zeros({1, 3}), {2, 3});
              },
              Bad::shape,
              {"sum_to", "(2, 3)", "(1, 3)"}},
             {"more dimensions than x",
              [] {
                sum_to(zeros({3}), {1, 3});
              },
              Bad::shape,
              {"sum_to", "(1, 3)", "(3,)"}},
             {"undefined", [] { sum_to(Tensor(), {1}); }, Bad::value, {"undefined"}}};
  return row;
}

}  // namespace

std::vector<Row> reduce_rows() {
  std::vector<Row> rows = {sum_row(),
                           mean_row(),
                           spread_row("var", var, [](double v) { return v; }),
                           spread_row("std", xgrad::std, [](double v) { return std::sqrt(v); }),
                           prod_row(),
                           sum_to_row(),
                           max_row(),
                           min_row(),
                           amax_row(),
                           amin_row(),
                           logsumexp_row(),
                           vector_norm_row(),
                           matrix_norm_row()};
  for (Row& row : distance_rows())
    rows.push_back(std::move(row));
  return rows;
}

}  // namespace xgrad::testing
