// Rows of the test table: losses.

#include <algorithm>
#include <cmath>

#include "autograd/ops/op_table.hpp"
#include "helpers/element.hpp"

namespace xgrad::testing {
namespace {

using Reference = std::function<Tensor(const Inputs&)>;
using Ids = std::vector<std::int64_t>;

// ---- references, by plain loops ----

// Where x (V) or (N, V, d1, ...) has class c of target r.
struct Classes {
  std::size_t count, targets, inner = 1;
  explicit Classes(const Shape& x) : count(x[x.size() == 1 ? 0 : 1]), targets(1) {
    for (std::size_t d = 0; d < x.size(); ++d) {
      targets *= x.size() == 1 || d == 1 ? 1 : x[d];
      inner *= d > 1 ? x[d] : 1;
    }
  }
  std::size_t at(std::size_t r, std::size_t c) const {
    return (r / inner * count + c) * inner + r % inner;
  }
};

std::vector<double> log_probabilities(const double* x, const Classes& classes, std::size_t r) {
  double max = -inf, sum = 0;
  for (std::size_t c = 0; c < classes.count; ++c)
    max = std::max(max, x[classes.at(r, c)]);
  for (std::size_t c = 0; c < classes.count; ++c)
    sum += std::exp(x[classes.at(r, c)] - max);
  std::vector<double> result;
  for (std::size_t c = 0; c < classes.count; ++c)
    result.push_back(x[classes.at(r, c)] - max - std::log(sum));
  return result;
}

Tensor reduced(const std::vector<double>& losses, Reduction reduction, double divisor,
               const Shape& shape) {
  if (reduction == Reduction::none)
    return sample_from(shape, [&](std::size_t i) { return losses[i]; });
  double sum = 0;
  for (const double loss : losses)
    sum += loss;
  return scalar(reduction == Reduction::mean ? sum / divisor : sum, DType::float64);
}

Shape target_shape(const Shape& x) {
  Shape shape;
  for (std::size_t d = 0; d < x.size(); ++d)
    if (d != (x.size() == 1 ? 0 : 1))
      shape.push_back(x[d]);
  return shape;
}

double weight_of(const Tensor& weight, std::size_t c) {
  return weight.defined() ? element<double>(to(weight, DType::float64), c) : 1;
}

Reference ids_reference(const Ids& ids, const CrossEntropyOptions& o, bool logits) {
  return [ids, o, logits](const Inputs& in) {
    const Classes classes(in[0].shape());
    std::vector<double> losses(classes.targets);
    double divisor = 0;
    for (std::size_t r = 0; r < classes.targets; ++r) {
      if (ids[r] == o.ignore_index)
        continue;
      const auto t = static_cast<std::size_t>(ids[r]);
      std::vector<double> log_p;
      if (logits)
        log_p = log_probabilities(in[0].data<double>(), classes, r);
      else
        for (std::size_t c = 0; c < classes.count; ++c)
          log_p.push_back(in[0].data<double>()[classes.at(r, c)]);
      losses[r] = -(1 - o.label_smoothing) * weight_of(o.weight, t) * log_p[t];
      for (std::size_t c = 0; o.label_smoothing > 0 && c < classes.count; ++c)
        losses[r] -= o.label_smoothing / static_cast<double>(classes.count) *
                     weight_of(o.weight, c) * log_p[c];
      divisor += weight_of(o.weight, t);
    }
    return reduced(losses, o.reduction, divisor, target_shape(in[0].shape()));
  };
}

Tensor probabilities_reference(const Inputs& in, const CrossEntropyOptions& o) {
  const Classes classes(in[0].shape());
  std::vector<double> losses(classes.targets);
  for (std::size_t r = 0; r < classes.targets; ++r) {
    const auto log_p = log_probabilities(in[0].data<double>(), classes, r);
    for (std::size_t c = 0; c < classes.count; ++c)
      losses[r] -= weight_of(o.weight, c) * log_p[c] *
                   (in[1].data<double>()[classes.at(r, c)] * (1 - o.label_smoothing) +
                    o.label_smoothing / static_cast<double>(classes.count));
  }
  return reduced(losses, o.reduction, static_cast<double>(classes.targets),
                 target_shape(in[0].shape()));
}

// ---- samples ----

const Reduction reductions[] = {Reduction::none, Reduction::mean, Reduction::sum};
const char* const reduced_by[] = {", none", ", mean", ", sum"};

Indices indices(const Ids& ids, const Shape& shape) {
  auto a = empty_array<std::int64_t>(shape);
  std::copy(ids.begin(), ids.end(), a.data());
  return Indices(std::move(a));
}

// A mean over nothing is NaN, which has no finite differences: its gradient is tested in
// softmax_and_losses_test.cpp.
bool has_mean(const Ids& ids, std::int64_t ignored) {
  return ids.empty() ||
         std::any_of(ids.begin(), ids.end(), [&](std::int64_t id) { return id != ignored; });
}

// The same options for inputs of x's dtype.
template <class Options>
Options converted(Options o, const Tensor& x) {
  if (o.weight.defined())
    o.weight = to(o.weight, x.dtype());
  return o;
}

Ids every_third_class(std::size_t targets, std::size_t classes) {
  Ids ids;
  for (std::size_t r = 0; r < targets; ++r)
    ids.push_back(static_cast<std::int64_t>(3 * r % classes));
  return ids;
}

void add_ids(Row& row, const std::string& name, const Shape& shape, const Ids& ids,
             CrossEntropyOptions o = {}) {
  const Indices target = indices(ids, target_shape(shape));
  for (const Reduction reduction : reductions) {
    o.reduction = reduction;
    row.samples.push_back(
        {name + reduced_by[static_cast<std::size_t>(reduction)],
         {sample_randn(shape, 1)},
         [=](const Inputs& in) { return cross_entropy(in[0], target, converted(o, in[0])); },
         ids_reference(ids, o, true),
         reduction != Reduction::mean || has_mean(ids, o.ignore_index)});
  }
}

void add_probabilities(Row& row, const std::string& name, const Shape& shape,
                       CrossEntropyOptions o = {}) {
  for (const Reduction reduction : reductions) {
    o.reduction = reduction;
    row.samples.push_back(
        {"probabilities: " + name + reduced_by[static_cast<std::size_t>(reduction)],
         {sample_randn(shape, 1), sample_uniform(shape, 0, 1, 2)},
         [=](const Inputs& in) { return cross_entropy(in[0], in[1], converted(o, in[0])); },
         [=](const Inputs& in) { return probabilities_reference(in, o); }});
  }
}

void add_bad_ids(Row& row) {
  const Tensor x = zeros({2, 3}), images = zeros({2, 3, 4, 5}), w = ones({3}).requires_grad_();
  const bool smooth = row.op == "cross_entropy";
  const auto call = [smooth](const Tensor& logits, const Indices& target, const Tensor& weight = {},
                             std::int64_t ignored = -100) {
    return smooth ? cross_entropy(logits, target, {.weight = weight, .ignore_index = ignored})
                  : nll_loss(logits, target, {.weight = weight, .ignore_index = ignored});
  };
  const auto add = [&](const std::string& name, const std::function<void()>& f, Bad::Kind kind,
                       std::vector<std::string> fragments) {
    fragments.push_back(row.op);
    row.bad.push_back({name, f, kind, fragments});
  };
  add("id too large", [=] { call(x, {0, 3}); }, Bad::value, {"target 3", "(1,)", "3 classes"});
  add("negative id", [=] { call(x, {-1, 0}); }, Bad::value, {"target -1", "(0,)", "3 classes"});
  add("id that another ignore_index does not cover",
      [=] {
        call(x, {-100, 0}, {}, -1);
      },
      Bad::value, {"target -100", "ignore_index -1"});
  add("id in an image",
      [=] {
        Ids ids(40);
        ids[27] = 7;
        call(images, indices(ids, {2, 4, 5}));
      },
      Bad::value, {"target 7", "(1, 1, 2)", "3 classes"});
  add("too few targets", [=] { call(x, {0}); }, Bad::shape, {"(2, 3)", "(2,)", "(1,)"});
  add("targets of another rank",
      [=] {
        call(images, {{0, 1}, {1, 2}});
      },
      Bad::shape, {"(2, 3, 4, 5)", "(2, 4, 5)", "(2, 2)"});
  add("0-d", [=] { call(zeros({}), indices({0}, {})); }, Bad::shape, {"0-d"});
  add("weight's shape",
      [=] {
        call(x, {0, 1}, ones({2}));
      },
      Bad::shape, {"weight", "(2,)", "3 classes"});
  add("weight's dtype",
      [=] {
        call(x, {0, 1}, ones({3}, DType::float64));
      },
      Bad::dtype, {"weight", "float32", "float64"});
  add("weight that requires a gradient",
      [=] {
        call(x, {0, 1}, w);
      },
      Bad::graph, {"weight", "detach()"});
}

Row cross_entropy_row() {
  Row row{"cross_entropy", {}, {}};
  const Tensor weight = sample_uniform({5}, 0.5, 2, 3);
  add_ids(row, "rows", {4, 5}, {0, 4, 2, 4});
  add_ids(row, "one row", {5}, {3});
  add_ids(row, "images", {2, 5, 3, 2}, every_third_class(12, 5));
  add_ids(row, "sequences", {2, 5, 3}, every_third_class(6, 5));
  add_ids(row, "weight", {4, 5}, {0, 4, 2, 4}, {.weight = weight});
  add_ids(row, "ignored", {4, 5}, {0, -100, 2, -100});
  add_ids(row, "another ignore_index", {4, 5}, {0, 3, 2, 3}, {.ignore_index = 3});
  add_ids(row, "all ignored", {2, 5}, {-100, -100});
  add_ids(row, "all ignored and smoothed", {2, 5}, {-100, -100}, {.label_smoothing = 0.1});
  add_ids(row, "smoothed", {4, 5}, {0, 4, 2, 4}, {.label_smoothing = 0.3});
  add_ids(row, "smoothed completely", {4, 5}, {0, 4, 2, 4}, {.label_smoothing = 1});
  add_ids(row, "everything", {4, 5}, {0, -100, 2, 4}, {.weight = weight, .label_smoothing = 0.3});
  add_ids(row, "everything, in sequences", {2, 5, 2}, {0, -100, 2, 4},
          {.weight = weight, .label_smoothing = 0.3});
  add_ids(row, "one class", {3, 1}, {0, 0, 0});
  add_ids(row, "no rows", {0, 5}, {});
  add_ids(row, "a register and some", {3, 21}, {20, 0, 16});
  add_ids(row, "many rows", {300, 65}, every_third_class(300, 65), {.label_smoothing = 0.1});
  add_probabilities(row, "rows", {4, 5});
  add_probabilities(row, "one row", {5});
  add_probabilities(row, "images", {2, 5, 3, 2});
  add_probabilities(row, "weight", {4, 5}, {.weight = weight});
  add_probabilities(row, "smoothed", {4, 5}, {.label_smoothing = 0.3});
  add_probabilities(row, "everything", {4, 5}, {.weight = weight, .label_smoothing = 0.3});
  add_probabilities(row, "no rows", {0, 5});
  add_probabilities(row, "a register and some", {3, 21});
  add_probabilities(row, "many rows", {300, 65});

  add_bad_ids(row);
  const Tensor x = zeros({2, 3});
  row.bad.insert(row.bad.end(), {{"smoothing above 1",
                                  [x] {
                                    cross_entropy(x, {0, 1}, {.label_smoothing = 1.5});
                                  },
                                  Bad::value,
                                  {"cross_entropy", "label_smoothing 1.5"}},
                                 {"negative smoothing",
                                  [x] { cross_entropy(x, x, {.label_smoothing = -0.5}); },
                                  Bad::value,
                                  {"cross_entropy", "label_smoothing -0.5"}},
                                 {"probabilities of another shape",
                                  [x] {
                                    cross_entropy(x, zeros({3, 2}));
                                  },
                                  Bad::shape,
                                  {"cross_entropy", "(2, 3)", "(3, 2)"}},
                                 {"probabilities of another dtype",
                                  [x] {
                                    cross_entropy(x, zeros({2, 3}, DType::float64));
                                  },
                                  Bad::dtype,
                                  {"cross_entropy", "float32", "float64"}},
                                 {"probabilities and ignore_index",
                                  [x] { cross_entropy(x, x, {.ignore_index = 1}); },
                                  Bad::value,
                                  {"cross_entropy", "ignore_index 1"}}});
  return row;
}

Row nll_loss_row() {
  Row row{"nll_loss", {}, {}};
  const auto add = [&](const std::string& name, const Shape& shape, const Ids& ids,
                       NllLossOptions o = {}) {
    const Indices target = indices(ids, target_shape(shape));
    for (const Reduction reduction : reductions) {
      o.reduction = reduction;
      row.samples.push_back(
          {name + reduced_by[static_cast<std::size_t>(reduction)],
           {sample_randn(shape, 1)},
           [=](const Inputs& in) { return nll_loss(in[0], target, converted(o, in[0])); },
           ids_reference(
               ids, {.weight = o.weight, .ignore_index = o.ignore_index, .reduction = reduction},
               false),
           reduction != Reduction::mean || has_mean(ids, o.ignore_index)});
    }
  };
  const Tensor weight = sample_uniform({5}, 0.5, 2, 3);
  add("rows", {4, 5}, {0, 4, 2, 4});
  add("one row", {5}, {3});
  add("images", {2, 5, 3, 2}, every_third_class(12, 5));
  add("weight", {4, 5}, {0, 4, 2, 4}, {.weight = weight});
  add("ignored", {4, 5}, {0, -100, 2, -100});
  add("weight, ignored, in sequences", {2, 5, 2}, {0, 3, 2, 3},
      {.weight = weight, .ignore_index = 3});
  add("all ignored", {2, 5}, {-100, -100});
  add("no rows", {0, 5}, {});
  add_bad_ids(row);
  return row;
}

Row mse_loss_row() {
  Row row{"mse_loss", {}, {}};
  const auto add = [&](const std::string& name, const Shape& shape) {
    for (const Reduction reduction : reductions)
      row.samples.push_back({name + reduced_by[static_cast<std::size_t>(reduction)],
                             {sample_randn(shape, 1), sample_randn(shape, 2)},
                             [=](const Inputs& in) { return mse_loss(in[0], in[1], reduction); },
                             [=](const Inputs& in) {
                               std::vector<double> losses(in[0].numel());
                               for (std::size_t i = 0; i < losses.size(); ++i) {
                                 const double d = in[0].data<double>()[i] - in[1].data<double>()[i];
                                 losses[i] = d * d;
                               }
                               return reduced(losses, reduction, static_cast<double>(losses.size()),
                                              in[0].shape());
                             }});
  };
  add("matrix", {3, 5});
  add("0-d", {});
  add("no elements", {0, 5});
  add("a register and some", {21});
  add("many", {70, 500});
  row.bad = {{"shapes that would broadcast",
              [] {
                mse_loss(zeros({4, 1}), zeros({4}));
              },
              Bad::shape,
              {"mse_loss", "(4, 1)", "(4,)", "expand"}},
             {"dtypes",
              [] { mse_loss(zeros({4}), zeros({4}, DType::float64)); },
              Bad::dtype,
              {"mse_loss", "float32", "float64"}}};
  return row;
}

}  // namespace

std::vector<Row> loss_rows() {
  std::vector<Row> rows = pointwise_loss_rows();
  for (const Row& row : {cross_entropy_row(), nll_loss_row(), mse_loss_row()})
    rows.push_back(row);
  return rows;
}

}  // namespace xgrad::testing
