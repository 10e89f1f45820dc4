// Rows of the test table: softmax, norms, dropout.

#include <cmath>
#include <limits>
#include <xgrad/autograd/random.hpp>

#include "autograd/ops/op_table.hpp"

namespace xgrad::testing {
namespace {

using Reference = std::function<Tensor(const Inputs&)>;

// ---- references, by plain loops ----

// Applies f(row) -> row to every line of x along dim.
Tensor along(const Tensor& x, std::size_t dim,
             const std::function<std::vector<double>(const std::vector<double>&)>& f) {
  std::size_t n = 1, inner = 1;
  for (std::size_t d = 0; d < x.shape().size(); ++d) {
    n = d == dim ? x.shape()[d] : n;
    inner *= d > dim ? static_cast<std::size_t>(x.shape()[d]) : 1;
  }
  std::vector<double> y(x.numel());
  for (Size first = 0; first < x.numel(); ++first) {
    if (first / inner % n != 0)
      continue;
    std::vector<double> line;
    for (std::size_t i = 0; i < n; ++i)
      line.push_back(x.data<double>()[first + i * inner]);
    const std::vector<double> result = f(line);
    for (std::size_t i = 0; i < n; ++i)
      y[first + i * inner] = result[i];
  }
  return sample_from(x.shape(), [&](std::size_t i) { return y[i]; });
}

Reference softmax_reference(std::size_t dim, bool log) {
  return [dim, log](const Inputs& in) {
    return along(in[0], dim, [log](const std::vector<double>& x) {
      double max = -inf, sum = 0;
      for (const double v : x)
        max = std::max(max, v);
      const double shift = max == -inf && !log ? 0 : max;
      for (const double v : x)
        sum += std::exp(v - shift);
      std::vector<double> y;
      for (const double v : x)
        y.push_back(log ? v - max - std::log(sum) : sum == 0 ? 0 : std::exp(v - shift) / sum);
      return y;
    });
  };
}

// x (rows, n) normalised, then times weight plus bias where these are defined.
Reference norm_reference(std::size_t n, double eps, bool centred) {
  return [=](const Inputs& in) {
    std::vector<double> y(in[0].numel());
    for (std::size_t first = 0; first < y.size(); first += n) {
      const double* const x = in[0].data<double>() + first;
      double mean = 0, squares = 0;
      for (std::size_t i = 0; centred && i < n; ++i)
        mean += x[i] / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i)
        squares += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) {
        y[first + i] = (x[i] - mean) / std::sqrt(squares + eps);
        if (in[1].defined())
          y[first + i] *= in[1].data<double>()[i];
        if (in.size() > 2 && in[2].defined())
          y[first + i] += in[2].data<double>()[i];
      }
    }
    return sample_from(in[0].shape(), [&](std::size_t i) { return y[i]; });
  };
}

// ---- samples ----

Row softmax_row(const std::string& op, bool log) {
  Row row{op, {}, {}};
  const auto f = [log](const Tensor& x, std::int64_t dim) {
    return log ? log_softmax(x, dim) : softmax(x, dim);
  };
  const auto add = [&](const std::string& name, const Tensor& x, std::int64_t dim,
                       bool differentiable = true) {
    const auto rank = static_cast<std::int64_t>(std::max<std::size_t>(x.dim(), 1));
    const auto from_front = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
    row.samples.push_back({name,
                           {x},
                           [f, dim](const Inputs& in) { return f(in[0], dim); },
                           softmax_reference(from_front, log),
                           differentiable});
  };
  add("last dim", sample_randn({3, 5}, 1), -1);
  add("first dim", sample_randn({3, 5}, 2), 0);
  add("middle dim", sample_randn({2, 4, 3}, 3), 1);
  add("middle dim from the end", sample_randn({2, 4, 3}, 4), -2);
  add("1-d", sample_randn({7}, 5), 0);
  add("0-d", sample_randn({}, 6), 0);
  add("0-d from the end", sample_randn({}, 7), -1);
  add("size 1", sample_randn({3, 1, 2}, 8), 1);
  add("one element", sample_randn({1, 1}, 9), -1);
  add("no elements along dim", sample_randn({3, 0}, 10), 1);
  add("no rows", sample_randn({0, 3}, 11), 1);
  add("no columns", sample_randn({3, 0}, 12), 0);
  add("rows of a register and some", sample_randn({3, 37}, 13), -1);
  add("rows that fill registers", sample_randn({2, 32}, 14), -1);
  add("columns of a register and some", sample_randn({2, 3, 37}, 15), 1);
  add("columns that fill registers", sample_randn({2, 3, 16}, 16), 1);
  add("long rows", sample_randn({9, 2500}, 17), -1);
  add("long columns", sample_randn({200, 70}, 18), 0);
  add("many rows", sample_randn({500, 65}, 19), -1);
  add("many columns", sample_randn({40, 9, 70}, 20), 1);
  const Tensor x = sample_randn({3, 6}, 21);
  add("large values",
      sample_from(x.shape(), [&](std::size_t i) { return 1e4 * x.data<double>()[i]; }), 1, false);
  // Masked inside f: -inf itself has no finite differences.  Nor has log softmax where it is -inf.
  const auto add_masked = [&](const std::string& name, const Shape& shape, std::size_t dim,
                              const std::function<bool(std::size_t)>& hidden) {
    const Tensor zero_or_one =
        sample_from(shape, [&](std::size_t i) { return hidden(i) ? 1.0 : 0.0; });
    const Reference reference = softmax_reference(dim, log);
    row.samples.push_back(
        {name,
         {sample_randn(shape, 30)},
         [=](const Inputs& in) {
           return f(masked_fill(in[0], zero_or_one != 0, -inf), static_cast<std::int64_t>(dim));
         },
         [=](const Inputs& in) {
           return reference({sample_from(shape, [&](std::size_t i) {
             return zero_or_one.data<double>()[i] != 0 ? -inf : in[0].data<double>()[i];
           })});
         },
         !log});
  };
  const auto third = [](std::size_t i) { return i % 3 == 0; };
  add_masked("partly masked", {4, 19}, 1, third);
  add_masked("partly masked columns", {4, 19}, 0, third);
  add_masked("rows masked completely", {5, 19}, 1,
             [&](std::size_t i) { return third(i) || third(i / 19); });
  add_masked("short rows masked completely", {5, 3}, 1,
             [&](std::size_t i) { return third(i / 3); });
  add_masked("columns masked completely", {4, 20}, 0, [&](std::size_t i) { return third(i % 20); });
  add_masked("all masked", {2, 3}, 1, [](std::size_t) { return true; });
  add("infinity", sample_from({3, 4}, [](std::size_t i) { return i == 5 ? inf : 1.0; }), 1, false);
  add("not a number",
      sample_from({3, 4}, [](std::size_t i) { return i == 5  ? not_a_number
                                                     : i > 7 ? -inf
                                                             : 1.0; }),
      1, false);
  add("not a number among -inf",
      sample_from({2, 20}, [](std::size_t i) { return i == 5 ? not_a_number : -inf; }), 1, false);
  row.bad = {{"dim too large",
              [f] {
                f(zeros({2, 3}), 2);
              },
              Bad::value,
              {op, "2"}},
             {"dim too small",
              [f] {
                f(zeros({2, 3}), -3);
              },
              Bad::value,
              {op, "-3"}},
             {"dim of a 0-d", [f] { f(zeros({}), 1); }, Bad::value, {op, "1"}}};
  return row;
}

Row layer_norm_row() {
  Row row{"layer_norm", {}, {}};
  const auto add = [&](const std::string& name, const Shape& shape, const Dims& normalized,
                       bool weight, bool bias, double eps = 1e-5) {
    const std::size_t n = numel(to_shape(normalized, "test"));
    row.samples.push_back(
        {name,
         {sample_randn(shape, 1), weight ? sample_uniform(normalized, 0.5, 2, 2) : Tensor(),
          bias ? sample_randn(normalized, 3) : Tensor()},
         [normalized, eps](const Inputs& in) {
           return layer_norm(in[0], normalized, in[1], in[2], eps);
         },
         norm_reference(n, eps, true)});
  };
  add("weight and bias", {4, 6}, 6, true, true);
  add("weight alone", {4, 6}, 6, true, false);
  add("bias alone", {4, 6}, 6, false, true);
  add("neither", {4, 6}, 6, false, false);
  add("over two dims", {2, 3, 4}, {3, 4}, true, true);
  add("over all dims", {3, 4}, {3, 4}, true, true);
  add("1-d", {5}, 5, true, true);
  add("size 1", {3, 1}, 1, true, true);
  add("eps", {3, 5}, 5, true, true, 0.5);
  add("no rows", {0, 5}, 5, true, true);
  add("no elements", {3, 0}, 0, true, true);
  add("a register and some", {3, 21}, 21, true, true);
  add("full registers", {3, 32}, 32, true, true);
  add("many rows", {300, 64}, 64, true, true);
  add("many short rows", {1000, 3}, 3, true, true);
  add("long rows", {20, 1500}, 1500, true, true);
  row.samples.push_back({"far from 0",
                         {sample_uniform({4, 100}, 1000, 1001, 4), Tensor(), Tensor()},
                         [](const Inputs& in) { return layer_norm(in[0], 100); },
                         norm_reference(100, 1e-5, true),
                         false,
                         1e-3});
  const Tensor x = zeros({2, 3, 4});
  row.bad = {
      {"empty shape", [x] { layer_norm(x, {}); }, Bad::shape, {"layer_norm", "empty"}},
      {"other shape", [x] { layer_norm(x, 3); }, Bad::shape, {"layer_norm", "(2, 3, 4)", "(3,)"}},
      {"too many dims",
       [x] {
         layer_norm(x, {1, 2, 3, 4});
       },
       Bad::shape,
       {"layer_norm", "(2, 3, 4)", "(1, 2, 3, 4)"}},
      {"weight's shape",
       [x] { layer_norm(x, 4, ones({3})); },
       Bad::shape,
       {"layer_norm", "weight", "(3,)", "(4,)"}},
      {"bias's shape",
       [x] {
         layer_norm(x, {3, 4}, {}, ones({4}));
       },
       Bad::shape,
       {"layer_norm", "bias", "(4,)", "(3, 4)"}},
      {"weight's dtype",
       [x] { layer_norm(x, 4, ones({4}, DType::float64)); },
       Bad::dtype,
       {"layer_norm", "float32", "weight", "float64"}}};
  return row;
}

Row rms_norm_row() {
  Row row{"rms_norm", {}, {}};
  const auto add = [&](const std::string& name, const Shape& shape, const Dims& normalized,
                       bool weight, double eps = 1e-5) {
    const std::size_t n = numel(to_shape(normalized, "test"));
    row.samples.push_back(
        {name,
         {sample_randn(shape, 1), weight ? sample_uniform(normalized, 0.5, 2, 2) : Tensor()},
         [normalized, eps](const Inputs& in) { return rms_norm(in[0], normalized, in[1], eps); },
         norm_reference(n, eps, false)});
  };
  add("weight", {4, 6}, 6, true);
  add("no weight", {4, 6}, 6, false);
  add("over two dims", {2, 3, 4}, {3, 4}, true);
  add("1-d", {5}, 5, true);
  add("size 1", {3, 1}, 1, true, 0.5);  // with a small eps the gradient is what cancels
  add("eps", {3, 5}, 5, true, 0.5);
  add("no rows", {0, 5}, 5, true);
  add("no elements", {3, 0}, 0, true);
  add("a register and some", {3, 21}, 21, true);
  add("many rows", {300, 64}, 64, true);
  // Scaled by the root of the dtype's epsilon, x / sqrt(mean(x^2) + 1) remains.
  row.samples.push_back({"default eps",
                         {sample_uniform({2, 4}, 1, 2, 3)},
                         [](const Inputs& in) {
                           const double epsilon =
                               in[0].dtype() == DType::float64
                                   ? std::numeric_limits<double>::epsilon()
                                   : double{std::numeric_limits<float>::epsilon()};
                           return rms_norm(in[0] * std::sqrt(epsilon), 4);
                         },
                         [](const Inputs& in) {
                           return norm_reference(4, 1, false)({in[0], Tensor()});
                         }});
  const Tensor x = zeros({2, 3, 4});
  row.bad = {
      {"empty shape", [x] { rms_norm(x, {}); }, Bad::shape, {"rms_norm", "empty"}},
      {"other shape", [x] { rms_norm(x, 3); }, Bad::shape, {"rms_norm", "(2, 3, 4)", "(3,)"}},
      {"weight's shape",
       [x] { rms_norm(x, 4, ones({1})); },
       Bad::shape,
       {"rms_norm", "weight", "(1,)", "(4,)"}},
      {"weight's dtype",
       [x] { rms_norm(x, 4, ones({4}, DType::float64)); },
       Bad::dtype,
       {"rms_norm", "float32", "weight", "float64"}}};
  return row;
}

Row dropout_row() {
  Row row{"dropout", {}, {}};
  const auto add = [&](const std::string& name, const Shape& shape, double p, bool training) {
    row.samples.push_back({name,
                           {sample_randn(shape, 1)},
                           [=](const Inputs& in) {
                             Generator generator(5);  // every call drops the same
                             return dropout(in[0], p, training, generator);
                           },
                           [=](const Inputs& in) {
                             Generator generator(5);
                             return sample_from(in[0].shape(), [&](std::size_t i) {
                               const double v = in[0].data<double>()[i];
                               if (!training || p == 0)
                                 return v;
                               return p < 1 && generator.uniform_double() < 1 - p ? v / (1 - p) : 0;
                             });
                           }});
  };
  add("a half", {5, 7}, 0.5, true);
  add("a little", {5, 7}, 0.1, true);
  add("nothing", {5, 7}, 0, true);
  add("all", {5, 7}, 1, true);
  add("not in training", {5, 7}, 0.5, false);
  add("0-d", {}, 0.5, true);
  add("no elements", {0, 3}, 0.5, true);
  add("many", {70, 300}, 0.3, true);
  row.samples.push_back({"the default generator",
                         {sample_randn({40}, 2)},
                         [](const Inputs& in) {
                           manual_seed(6);
                           return dropout(in[0], 0.5);
                         },
                         [](const Inputs& in) {
                           Generator generator(6);
                           return sample_from(in[0].shape(), [&](std::size_t i) {
                             return generator.uniform_double() < 0.5 ? 2 * in[0].data<double>()[i]
                                                                     : 0;
                           });
                         }});
  for (const double p : {-0.1, 1.5, not_a_number})
    for (const bool training : {true, false})
      row.bad.push_back({"p " + std::to_string(p) + (training ? "" : ", not in training"),
                         [p, training] { dropout(ones({3}), p, training); },
                         Bad::value,
                         {"dropout", "p ", "between 0 and 1"}});
  return row;
}

}  // namespace

std::vector<Row> softmax_rows() {
  return {softmax_row("softmax", false), softmax_row("log_softmax", true), layer_norm_row(),
          rms_norm_row(), dropout_row()};
}

}  // namespace xgrad::testing
