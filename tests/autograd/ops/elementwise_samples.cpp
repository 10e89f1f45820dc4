#include "autograd/ops/elementwise_samples.hpp"

#include <algorithm>
#include <cmath>

#include "helpers/positions.hpp"

namespace xgrad::testing {

Call everywhere(const Formula& formula) {
  return [formula](const Inputs& in) {
    Shape out;
    for (const Tensor& x : in)
      out = common_shape(out, x.shape());
    return sample_from(out, [&](std::size_t i) {
      const Position p = position(i, out);
      Numbers at;
      for (const Tensor& x : in)
        at.push_back(x.data<double>()[broadcast_from(p, x.shape())]);
      return formula(at);
    });
  };
}

Call everywhere(double (*formula)(double, double)) {
  return everywhere([formula](const Numbers& at) { return formula(at[0], at[1]); });
}

Tensor values(const Numbers& numbers) {
  return sample_from(Shape{numbers.size()}, [&](std::size_t i) { return numbers[i]; });
}

Tensor draw(const Dims& sizes, const Range& range, std::uint64_t seed) {
  const Tensor x = sample_uniform(sizes, range.low, range.high, seed);
  return sample_from(x.shape(), [&](std::size_t i) {
    double v = x.data<double>()[i];
    for (const double kink : range.kinks)
      if (std::abs(v - kink) < range.gap)
        v = kink + (v < kink ? -range.gap : range.gap);
    return v;
  });
}

void add_unary(Row& row, const std::string& name, const Call& f, const Formula& formula,
               const Range& range, const Numbers& special) {
  const Call reference = everywhere(formula);
  std::uint64_t seed = 1;
  for (const auto& [shape, sizes] :
       std::vector<std::pair<std::string, Dims>>{{"0-d", {}},
                                                 {"one element", {1, 1}},
                                                 {"vector", {37}},
                                                 {"3-d", {2, 3, 5}},
                                                 {"zero-size", {2, 0, 3}}})
    row.samples.push_back({name + shape, {draw(sizes, range, seed++)}, f, reference});
  if (!special.empty())
    row.samples.push_back({name + "special values", {values(special)}, f, reference, false});
}

const std::vector<std::tuple<std::string, Dims, Dims>> pairs = {
    {"same shape", {3, 7}, {3, 7}},     {"0-d both", {}, {}},
    {"0-d left", {}, {2, 3}},           {"0-d right", {2, 3}, {}},
    {"one element", {1}, {2, 3}},       {"row vector", {4, 5}, {5}},
    {"long row vector", {3, 37}, {37}}, {"row vector left", {5}, {4, 5}},
    {"column vector", {4, 5}, {4, 1}},  {"column vector left", {4, 1}, {4, 19}},
    {"both ways", {3, 1, 4}, {2, 1}},   {"outer", {3, 1}, {1, 4}},
    {"middle", {2, 3, 4}, {2, 1, 4}},   {"outermost", {2, 3, 4}, {2, 1, 1}},
    {"zero-size", {0, 3}, {1, 3}},      {"zero-size by broadcasting", {3, 1}, {3, 0}},
};

void add_binary(Row& row, const std::string& name, Binary f, double (*formula)(double, double),
                const Range& left, const Range& right) {
  std::uint64_t seed = 100;
  for (const auto& [shape, a, b] : pairs) {
    row.samples.push_back({name + shape,
                           {draw(a, left, seed), draw(b, right, seed + 1)},
                           [f](const Inputs& in) { return f(in[0], in[1]); },
                           everywhere(formula)});
    seed += 2;
  }
}

void add_bad_binary(Row& row, Binary f) {
  row.bad.push_back({"shapes",
                     [f] {
                       f(zeros({2, 3}), zeros({4}));
                     },
                     Bad::shape,
                     {row.op + ":", "(2, 3)", "(4,)", "broadcast", "-1"}});
  row.bad.push_back({"inner shapes",
                     [f] {
                       f(zeros({5, 2, 3}), zeros({4, 3}));
                     },
                     Bad::shape,
                     {row.op + ":", "(5, 2, 3)", "(4, 3)", "-2"}});
  row.bad.push_back({"dtypes",
                     [f] { f(zeros({2}), zeros({2}, DType::float64)); },
                     Bad::dtype,
                     {row.op + ":", "float32", "float64", "to("}});
  row.bad.push_back({"undefined on the right",
                     [f] { f(zeros({2}), Tensor()); },
                     Bad::value,
                     {row.op + ":", "operand 2 of 2", "undefined"}});
  row.bad.push_back({"undefined on the left",
                     [f] { f(Tensor(), zeros({2})); },
                     Bad::value,
                     {row.op + ":", "operand 1 of 2", "undefined"}});
}

Row unary_row(const std::string& op, Unary f, double (*formula)(double), const Range& range,
              const Numbers& special) {
  Row row{op, {}, {}};
  add_unary(
      row, "", [f](const Inputs& in) { return f(in[0]); },
      [formula](const Numbers& at) { return formula(at[0]); }, range, special);
  row.bad.push_back(
      {"undefined", [f] { f(Tensor()); }, Bad::value, {op + ":", "operand 1 of 1", "undefined"}});
  return row;
}

}  // namespace xgrad::testing
