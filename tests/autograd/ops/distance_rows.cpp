// Rows of the test table: norm, and what is made of norms.

#include <cmath>

#include "autograd/ops/reduce_samples.hpp"
#include "helpers/positions.hpp"

namespace xgrad::testing {
namespace {

double length(const Numbers& v, double p) {
  double s = 0, most = 0;
  for (const double x : v) {
    s += p == 0 ? x != 0 : std::pow(std::abs(x), p);
    most = std::max(most, std::abs(x));
  }
  return std::isinf(p) ? most : p == 0 ? s : std::pow(s, 1 / p);
}

Row norm_row() {
  Row row{"norm", {}, {}};
  const Reduce f = [](const Tensor& x, const Dims& dims, bool keep) {
    return norm(x, 3, dims, keep);
  };
  add_ways(
      row, "p 3, ", f, [](const Numbers& v) { return length(v, 3); }, not_small);
  row.samples.push_back(reduction(
      "by default 2", not_small({3, 5}), {}, false,
      [](const Tensor& x, const Dims&, bool) { return norm(x); },
      [](const Numbers& v) { return length(v, 2); }));
  return row;
}

// Element by element, from the line along dim that it is in.
Tensor along_dim(const Tensor& x, std::size_t dim,
                 const std::function<double(double, const Numbers&)>& f) {
  return sample_from(x.shape(), [&](std::size_t flat_place) {
    Position at = position(flat_place, x.shape());
    Numbers line;
    for (at[dim] = 0; std::cmp_less(at[dim], x.shape()[dim]); ++at[dim])
      line.push_back(x.data<double>()[flat(at, x.shape())]);
    return f(x.data<double>()[flat_place], line);
  });
}

Row normalize_row() {
  Row row{"normalize", {}, {}};
  const auto add = [&row](const std::string& name, const Tensor& x, double p, std::int64_t dim,
                          std::size_t d, double eps) {
    row.samples.push_back({name,
                           {x},
                           [=](const Inputs& in) {
                             return normalize(in[0], {p, dim, eps});
                           },
                           [=](const Inputs& in) {
                             return along_dim(in[0], d, [=](double v, const Numbers& line) {
                               return v / std::max(length(line, p), eps);
                             });
                           }});
  };
  add("rows", sample_randn({3, 4}, 1), 2, 1, 1, 1e-12);
  add("columns, p 3", sample_randn({4, 2, 3}, 2), 3, -3, 0, 1e-12);
  add("shorter than eps", 1e-3 * sample_randn({3, 4}, 3), 2, -1, 1, 0.5);
  add("zeros", zeros({2, 3}, DType::float64), 2, 1, 1, 0.5);
  add("no elements", zeros({0, 3}, DType::float64), 2, 1, 1, 1e-12);
  row.bad = {{"no such dimension",
              [] { normalize(zeros(3)); },
              Bad::value,
              {"dimension 1", "out of range"}}};
  return row;
}

Row cosine_similarity_row() {
  Row row{"cosine_similarity", {}, {}};
  const auto add = [&row](const std::string& name, const Tensor& a, const Tensor& b, double eps) {
    row.samples.push_back(
        {name,
         {a, b},
         [eps](const Inputs& in) { return cosine_similarity(in[0], in[1], -1, eps); },
         [eps](const Inputs& in) {
           const std::size_t n = in[0].size(-1);
           Shape shape = in[0].shape();
           shape.resize(shape.size() - 1);
           return sample_from(shape, [&](std::size_t r) {
             const double *const x = in[0].data<double>() + r * n, *const y =
                                                                       in[1].data<double>() +
                                                                       (in[1].dim() == 1 ? 0
                                                                                         : r * n);
             double s = 0;
             for (std::size_t i = 0; i < n; ++i)
               s += x[i] * y[i];
             return s / std::max(length({x, x + n}, 2), eps) / std::max(length({y, y + n}, 2), eps);
           });
         }});
  };
  add("rows", sample_randn({3, 4}, 1), sample_randn({3, 4}, 2), 1e-8);
  add("vectors", sample_randn({5}, 1), sample_randn({5}, 2), 1e-8);
  add("broadcast", sample_randn({2, 3, 4}, 1), sample_randn({4}, 2), 1e-8);
  add("shorter than eps", 1e-3 * sample_randn({3, 4}, 3), sample_randn({3, 4}, 4), 0.5);
  row.bad = {{"shapes",
              [] {
                cosine_similarity(zeros({2, 3}), zeros({2, 4}));
              },
              Bad::shape,
              {"cosine_similarity", "(2, 3)", "(2, 4)"}}};
  return row;
}

}  // namespace

std::vector<Row> distance_rows() { return {norm_row(), normalize_row(), cosine_similarity_row()}; }

}  // namespace xgrad::testing
