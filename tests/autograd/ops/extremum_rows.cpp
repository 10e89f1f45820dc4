// Rows of the test table: extrema, logsumexp and norms.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops/reduce_samples.hpp"

namespace xgrad::testing {
namespace {

// ---- extrema

double largest(const Numbers& v) {
  double m = -inf;
  for (const double x : v)
    m = x > m || std::isnan(x) ? x : m;
  return m;
}
double smallest(const Numbers& v) {
  double m = inf;
  for (const double x : v)
    m = x < m || std::isnan(x) ? x : m;
  return m;
}

const Values special = {{1, not_a_number, 2}, {inf, -inf, 0}, {-inf, -inf, -inf}, {3, 3, 1}};

Row among_all_row(const std::string& op, Tensor (*f)(const Tensor&, const Dims&, bool), Fold fold) {
  Row row{op, {}, {}};
  add_ways(row, "", f, fold);
  row.samples.push_back(
      reduction("special", tensor(special, DType::float64), {1}, false, f, fold, false));
  row.samples.push_back(
      reduction("special columns", tensor(special, DType::float64), {0}, false, f, fold, false));
  add_bad_dims(row, f);
  add_bad_empty(row, f);
  return row;
}

Row extremum_row(const std::string& op, Tensor (*f_total)(const Tensor&),
                 Extremum (*f)(const Tensor&, std::int64_t, bool), Fold fold) {
  Row row{op, {}, {}};
  const Reduce values = [f](const Tensor& x, const Dims& dims, bool keep) {
    return f(x, dims.at(0), keep).values;
  };
  // The values again, as x at the indices that the op returned.
  const Reduce at_indices = [f](const Tensor& x, const Dims& dims, bool) {
    return gather(x, dims.at(0), f(x, dims.at(0), true).indices);
  };
  add_ways(row, "", values, fold, normal, Reduces::one);
  for (const Way& way : ways_to_reduce)
    if (way.dims.size() == 1)
      row.samples.push_back(reduction("at indices, " + way.name, normal(way.sizes), way.dims, true,
                                      at_indices, fold));
  add_total(row, f_total, fold);
  row.samples.push_back(
      reduction("special", tensor(special, DType::float64), {1}, false, values, fold, false));
  add_bad_dims(row, values, Reduces::one);
  add_bad_empty(row, values);
  row.bad.push_back(
      {"total of nothing", [f_total] { f_total(zeros({0})); }, Bad::shape, {op, "(0,)"}});
  return row;
}

}  // namespace

Row max_row() { return extremum_row("max", max, max, largest); }
Row min_row() { return extremum_row("min", min, min, smallest); }
Row amax_row() { return among_all_row("amax", amax, largest); }
Row amin_row() { return among_all_row("amin", amin, smallest); }

// ---- logsumexp and norms

Row logsumexp_row() {
  Row row{"logsumexp", {}, {}};
  const Fold fold = [](const Numbers& v) {
    const double m = v.empty() ? 0 : *std::max_element(v.begin(), v.end());
    const double shift = std::isfinite(m) ? m : 0;
    double s = 0;
    for (const double x : v)
      s += std::exp(x - shift);
    return std::log(s) + shift;
  };
  const Reduce f = [](const Tensor& x, const Dims& dims, bool keep) {
    return logsumexp(x, dims, keep);
  };
  add_ways(row, "", f, fold);
  row.samples.push_back(reduction("large", tensor({{1000, 1001}, {-1000, -1002}}, DType::float64),
                                  {1}, false, f, fold, false));
  row.samples.push_back(reduction(
      "infinities", tensor({{-inf, -inf}, {1, inf}, {-inf, 2}, {not_a_number, 1}}, DType::float64),
      {1}, false, f, fold, false));
  row.samples.push_back(
      reduction("of nothing", zeros({2, 0}, DType::float64), {1}, false, f, fold, false));
  add_bad_dims(row, f);
  return row;
}

Row vector_norm_row() {
  Row row{"vector_norm", {}, {}};
  for (const double ord : {2.0, 1.0, 3.0, 0.5, 1.5, -1.0, inf, -inf, 0.0}) {
    const Fold fold = [ord](const Numbers& v) {
      double s = 0;
      Numbers magnitudes;
      for (const double x : v) {
        magnitudes.push_back(std::abs(x));
        s += ord == 0 ? x != 0 : std::pow(std::abs(x), ord);
      }
      if (std::isinf(ord))
        return ord > 0 ? largest(magnitudes) : smallest(magnitudes);
      return ord == 0 ? s : std::pow(s, 1 / ord);
    };
    const Reduce f = [ord](const Tensor& x, const Dims& dims, bool keep) {
      return vector_norm(x, ord, dims, keep);
    };
    const std::string prefix = "ord " + std::to_string(ord) + ", ";
    const std::size_t first = row.samples.size();
    add_ways(row, prefix, f, fold, not_small);
    for (std::size_t i = first; i < row.samples.size(); ++i) {
      row.samples[i].differentiable = ord != 0;  // the number of non-zeros is constant
      row.samples[i].tolerance32 = ord == 0.5 ? 1e-4 : 1e-5;
    }
    row.samples.push_back(reduction(
        prefix + "total", not_small({3, 5}), {}, false,
        [ord](const Tensor& x, const Dims&, bool) { return vector_norm(x, ord); }, fold, ord != 0));
    row.samples.push_back(reduction(prefix + "zeros",
                                    tensor({{0, 0}, {0, -3}, {4, 3}}, DType::float64), {1}, false,
                                    f, fold, false));
    if (ord >= 0 && ord != inf)
      row.samples.push_back(reduction(prefix + "of nothing", zeros({2, 0}, DType::float64), {1},
                                      false, f, fold, false));
  }
  row.samples.push_back(reduction(
      "by default 2", not_small({4}), {}, false,
      [](const Tensor& x, const Dims&, bool) { return vector_norm(x); },
      [](const Numbers& v) {
        double s = 0;
        for (const double x : v)
          s += x * x;
        return std::sqrt(s);
      }));
  const auto norm = [](double ord) {
    return [ord](const Tensor& x, const Dims& dims, bool keep) {
      return vector_norm(x, ord, dims, keep);
    };
  };
  add_bad_dims(row, norm(2));
  add_bad_empty(row, norm(inf));
  add_bad_empty(row, norm(-1));
  row.bad.push_back({"ord is NaN",
                     [] { vector_norm(zeros({2}), not_a_number); },
                     Bad::value,
                     {"vector_norm", "NaN"}});
  return row;
}

Row matrix_norm_row() {
  Row row{"matrix_norm", {}, {}};
  struct Case {
    std::string name;
    Dims sizes, dims;
    bool keepdim = false;
  };
  for (const Case& c : std::vector<Case>{{"square", {3, 3}, {-2, -1}},
                                         {"transposed", {2, 4}, {1, 0}},
                                         {"one column, kept", {3, 1}, {0, 1}, true},
                                         {"batch", {2, 3, 2, 2}, {-2, -1}},
                                         {"batch between, kept", {3, 2, 4}, {0, -1}, true},
                                         {"no matrices", {0, 2, 3}, {1, 2}},
                                         {"no rows", {2, 0, 3}, {1, 2}}})
    row.samples.push_back({c.name,
                           {sample_randn(c.sizes, 8)},
                           [c](const Inputs& in) { return matrix_norm(in[0], c.dims, c.keepdim); },
                           [c](const Inputs& in) {
                             const Fold length = [](const Numbers& v) {
                               return std::sqrt(
                                   std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
                             };
                             return folded(in[0], c.dims, c.keepdim, length);
                           },
                           c.name != "no rows"});
  const auto bad = [&row](const std::string& name, const Dims& sizes, const Dims& dims,
                          Bad::Kind kind, const std::vector<std::string>& fragments) {
    row.bad.push_back({name, [=] { matrix_norm(zeros(sizes), dims); }, kind, fragments});
  };
  bad("one dim", {2, 3}, {1}, Bad::value, {"matrix_norm:", "1 dim", "two"});
  bad("three dims", {2, 3, 4}, {0, 1, 2}, Bad::value, {"matrix_norm:", "3 dims", "two"});
  bad("the same dim twice", {2, 3}, {1, -1}, Bad::value, {"matrix_norm:", "twice", "(1, -1)"});
  bad("dimension out of range", {2, 3}, {0, 2}, Bad::value, {"matrix_norm:", "out of range"});
  bad("no matrix", {3}, {-2, -1}, Bad::value, {"matrix_norm:", "dimension -2", "1-d"});
  row.bad.push_back({"undefined", [] { matrix_norm(Tensor()); }, Bad::value, {"undefined"}});
  return row;
}

}  // namespace xgrad::testing
