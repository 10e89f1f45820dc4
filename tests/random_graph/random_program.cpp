// Draws random programs.

#include "random_graph/random_graph.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace xgrad::testing {
namespace {

constexpr std::size_t most_elements = 48;
constexpr double largest_value = 4, gap = 1e-3;

bool broadcast_together(const Shape& a, const Shape& b, std::size_t skip_last = 0) {
  for (std::size_t d = 1 + skip_last; d <= std::min(a.size(), b.size()); ++d) {
    const std::size_t m = a[a.size() - d], n = b[b.size() - d];
    if (m != n && m != 1 && n != 1)
      return false;
  }
  return true;
}

// Draws steps one after the other, and redraws those that do not fit.
class Maker {
 public:
  Maker(Random& random, const ProgramOptions& options) : random_(random), options_(options) {}

  Program make() {
    add_inputs();
    const std::size_t steps = 1 + random_.below(options_.most_steps);
    while (program_.steps.size() < steps)
      if (auto step = draw(); step && acceptable(*step))
        push(std::move(*step));
    std::vector<bool> leads = differentiable(program_);
    if (std::find(leads.begin() + static_cast<std::ptrdiff_t>(program_.inputs.size()), leads.end(),
                  true) == leads.end())
      push({.op = Op::tanh, .in = {0}});
    add_roots(differentiable(program_));
    return std::move(program_);
  }

 private:
  void add_inputs() {
    Shape base;
    for (int d = 0; d < 3; ++d)
      base.push_back(1 + random_.below(3));
    const std::size_t n = 1 + random_.below(4);
    for (std::size_t i = 0; i < n; ++i) {
      Input input{{base.begin() + static_cast<std::ptrdiff_t>(random_.below(4)), base.end()},
                  {},
                  i == 0 || random_.chance(0.85)};
      for (std::size_t& size : input.shape)
        if (random_.chance(0.25))
          size = 1;
      for (Size k = 0; k < numel(input.shape); ++k)
        input.values.push_back(random_.uniform(-1.5, 1.5));
      planes_.push_back({input.shape, input.values});
      program_.inputs.push_back(std::move(input));
    }
  }

  void push(Step step) {
    planes_.push_back(reference_step(step, planes_));
    step.shape = planes_.back().shape;
    program_.steps.push_back(std::move(step));
  }

  void add_roots(const std::vector<bool>& leads) {
    std::vector<std::size_t> inside, all;
    for (std::size_t at = 0; at < leads.size(); ++at)
      if (leads[at]) {
        all.push_back(at);
        if (at >= program_.inputs.size())
          inside.push_back(at);
      }
    add_root(random_.chance(0.7) ? inside.back() : inside[random_.below(inside.size())]);
    for (std::size_t more = random_.below(3); more > 0; --more)
      add_root(all[random_.below(all.size())]);
  }

  void add_root(std::size_t at) {
    Root root{at, {}};
    for (Size k = 0; k < numel(program_.shape(at)); ++k)
      root.cotangent.push_back(random_.uniform(-1, 1));
    program_.roots.push_back(std::move(root));
  }

  // ---- one step

  std::size_t pick() {
    const std::size_t n = planes_.size(), recent = std::min<std::size_t>(n, 5);
    return random_.chance(0.6) ? n - 1 - random_.below(recent) : random_.below(n);
  }
  template <class F>
  std::optional<std::size_t> pick_where(const F& fits) {
    std::vector<std::size_t> fitting;
    for (std::size_t at = 0; at < planes_.size(); ++at)
      if (fits(planes_[at].shape))
        fitting.push_back(at);
    if (fitting.empty())
      return {};
    return fitting[random_.below(fitting.size())];
  }
  // The dimension, counted from either end.
  std::int64_t dim(std::size_t rank) {
    const auto d = static_cast<std::int64_t>(random_.below(rank));
    return random_.chance(0.5) ? d : d - static_cast<std::int64_t>(rank);
  }
  std::vector<bool> mask(std::size_t n) {
    std::vector<bool> m(n);
    for (std::size_t i = 0; i < n; ++i)
      m[i] = random_.chance(0.5);
    return m;
  }
  std::vector<std::int64_t> some_dims(std::size_t rank) {
    std::vector<std::int64_t> dims;
    for (std::size_t d = 0; d < rank; ++d)
      if (random_.chance(0.5))
        dims.push_back(static_cast<std::int64_t>(d) -
                       (random_.chance(0.5) ? static_cast<std::int64_t>(rank) : 0));
    return dims;
  }
  std::vector<std::int64_t> permutation(std::size_t n) {
    std::vector<std::int64_t> p(n);
    std::iota(p.begin(), p.end(), 0);
    for (std::size_t i = n; i > 1; --i)
      std::swap(p[i - 1], p[random_.below(i)]);
    return p;
  }

  std::optional<Step> draw() {
    Step step{.op = static_cast<Op>(random_.below(static_cast<std::size_t>(Op::count))),
              .in = {pick()}};
    if (random_.chance(options_.constants))
      step.flow = random_.chance(0.5) ? Flow::detached : Flow::no_grad;
    const Shape& x = planes_[step.in[0]].shape;
    const bool drawn = step.op < Op::add       ? draw_unary(step, x)
                       : step.op < Op::sum     ? draw_binary(step, x)
                       : step.op < Op::reshape ? draw_along(step, x)
                       : step.op < Op::matmul  ? draw_move(step, x)
                                               : draw_product(step, x);
    return drawn ? std::optional(std::move(step)) : std::nullopt;
  }

  bool draw_unary(Step& step, const Shape& x) {
    step.factor = random_.uniform(0.4, 1.6);
    if (step.op == Op::masked_fill)
      step.mask = mask(numel(x));
    return true;
  }

  bool draw_binary(Step& step, const Shape& x) {
    const auto other = pick_where([&](const Shape& s) { return broadcast_together(x, s); });
    if (!other)
      return false;
    step.in.push_back(*other);
    if (random_.chance(0.5))
      std::swap(step.in[0], step.in[1]);
    if (step.op == Op::where)
      step.mask = mask(numel(broadcast_shapes(x, planes_[*other].shape, "where")));
    return true;
  }

  bool draw_along(Step& step, const Shape& x) {
    const bool reduces = step.op < Op::prod;
    if (reduces) {
      step.numbers = some_dims(x.size());
    } else {
      if (x.empty())
        return false;
      step.numbers = {step.op == Op::layer_norm ? -1 : dim(x.size())};
    }
    step.keepdim = !step.numbers.empty() && random_.chance(0.5);
    return true;
  }

  bool draw_move(Step& step, const Shape& x) {
    if (step.op != Op::reshape && step.op != Op::expand && step.op != Op::stack && x.empty())
      return false;
    const std::size_t rank = x.size();
    const std::int64_t d = rank == 0 ? 0 : dim(rank);
    const std::size_t n = rank == 0 ? 1 : x[normalize_dim(d, rank, "draw")];
    switch (step.op) {
      case Op::reshape:
        step.numbers = another_shape(numel(x));
        return true;
      case Op::permute:
        step.numbers = permutation(rank);
        return true;
      case Op::flip:
        step.numbers = some_dims(rank);
        return true;
      case Op::expand:
        for (const std::size_t size : x)
          step.numbers.push_back(
              static_cast<std::int64_t>(size == 1 ? 1 + random_.below(3) : size));
        if (random_.chance(0.5) && rank < 4)
          step.numbers.insert(step.numbers.begin(),
                              static_cast<std::int64_t>(1 + random_.below(2)));
        return true;
      case Op::slice: {
        const std::size_t start = random_.below(n), stride = 1 + random_.below(2);
        const std::size_t length = 1 + random_.below((n - start - 1) / stride + 1);
        step.numbers = {d, static_cast<std::int64_t>(start), static_cast<std::int64_t>(length),
                        static_cast<std::int64_t>(stride)};
        return true;
      }
      case Op::select:
        step.numbers = {d, static_cast<std::int64_t>(random_.below(n))};
        return true;
      case Op::index_select:
        step.numbers = {d};
        for (std::size_t k = 1 + random_.below(4); k > 0; --k)
          step.numbers.push_back(static_cast<std::int64_t>(random_.below(n)));
        return true;
      case Op::tril:
        return rank >= 2;
      case Op::split:
        step.numbers = {d, static_cast<std::int64_t>(n / 2)};
        return n % 2 == 0;
      case Op::cat:
      case Op::stack:
        return draw_join(step, x, d);
      default:
        return false;
    }
  }

  bool draw_join(Step& step, const Shape& x, std::int64_t d) {
    const auto fits = [&](const Shape& s) {
      if (step.op == Op::stack || s.size() != x.size())
        return s == x;
      for (std::size_t k = 0; k < s.size(); ++k)
        if (s[k] != x[k] && k != normalize_dim(d, x.size(), "draw"))
          return false;
      return true;
    };
    step.numbers = {step.op == Op::stack ? dim(x.size() + 1) : d};
    for (std::size_t more = 1 + random_.below(2); more > 0; --more)
      step.in.push_back(pick_where(fits).value_or(step.in[0]));
    return x.size() < 4 || step.op == Op::cat;
  }

  bool draw_product(Step& step, const Shape& x) {
    const bool is_linear = step.op == Op::linear;
    const auto other = pick_where([&](const Shape& s) {
      if (is_linear)
        return s.size() == 2 && x.size() >= 2 && s[1] == x.back();
      return s.size() >= 2 && x.size() >= 2 && x.back() == s[s.size() - 2] &&
             broadcast_together(x, s, 2);
    });
    if (!other)
      return false;
    step.in.push_back(*other);
    if (!is_linear)
      return true;
    const std::size_t out = planes_[*other].shape[0];
    const auto bias = pick_where([&](const Shape& s) { return s == Shape{out}; });
    if (bias)
      step.in.push_back(*bias);
    return bias.has_value();
  }

  std::vector<std::int64_t> another_shape(std::size_t n) {
    std::vector<std::int64_t> sizes;
    for (std::size_t divisor = 1; n > 1 && sizes.size() < 2; n /= divisor) {
      do
        divisor = 1 + random_.below(n);
      while (n % divisor != 0);
      sizes.push_back(static_cast<std::int64_t>(divisor));
    }
    if (n > 1 || random_.chance(0.3))
      sizes.push_back(static_cast<std::int64_t>(n));
    return sizes;
  }

  // ---- whether a step may be taken

  bool acceptable(const Step& step) const {
    if (!away_from_kinks(step))
      return false;
    const Plane y = reference_step(step, planes_);
    return std::cmp_less_equal(numel(y.shape), most_elements) &&
           std::all_of(y.values.begin(), y.values.end(),
                       [](double v) { return std::abs(v) <= largest_value; });
  }

  bool away_from_kinks(const Step& step) const {
    const Plane& x = planes_[step.in[0]];
    const auto all_of_x = [&](const auto& f) {
      return std::all_of(x.values.begin(), x.values.end(), f);
    };
    switch (step.op) {
      case Op::relu:
      case Op::abs:
        return all_of_x([](double v) { return std::abs(v) > gap; });
      case Op::clamp:
        return all_of_x([&](double v) { return std::abs(std::abs(v) - step.factor) > gap; });
      case Op::maximum:
      case Op::minimum: {
        const Plane difference = reference_step({.op = Op::sub, .in = step.in}, planes_);
        return std::all_of(difference.values.begin(), difference.values.end(),
                           [](double v) { return std::abs(v) > gap; });
      }
      case Op::amax: {  // no two values are close, in a group or not
        Doubles sorted = x.values;
        std::sort(sorted.begin(), sorted.end());
        for (std::size_t i = 1; i < sorted.size(); ++i)
          if (sorted[i] - sorted[i - 1] <= gap)
            return false;
        return true;
      }
      case Op::vector_norm: {
        const Plane y = reference_step(step, planes_);
        return std::all_of(y.values.begin(), y.values.end(), [](double v) { return v > 0.1; });
      }
      case Op::prod:
        return all_of_x([](double v) { return std::abs(v) > 0.1; });
      default:  // var of one element is NaN, which acceptable() rejects
        return true;
    }
  }

  Random& random_;
  const ProgramOptions& options_;
  Program program_;
  std::vector<Plane> planes_;
};

}  // namespace

Program random_program(Random& random, const ProgramOptions& options) {
  return Maker(random, options).make();
}

Program random_program(std::uint64_t seed, const ProgramOptions& options) {
  Random random(seed);
  return random_program(random, options);
}

}  // namespace xgrad::testing
