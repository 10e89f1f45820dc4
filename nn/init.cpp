#include "init.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include "../autograd/fail.hpp"

namespace xgrad::nn::init {

namespace {

struct Fans {
  double in, out;
};
Fans fans(const Tensor& x, const char* name) {
  const Shape& shape = x.shape();
  check<ShapeError>(shape.size() >= 2, "{}: shape {} has fewer than two dimensions, so no fan",
                    name, to_string(shape));
  double rest = 1;
  for (std::size_t d = 2; d < shape.size(); ++d)
    rest *= static_cast<double>(shape[d]);
  return {static_cast<double>(shape[1]) * rest, static_cast<double>(shape[0]) * rest};
}

double kaiming_std(const Tensor& x, const KaimingOptions& options, const char* name) {
  const Fans f = fans(x, name);
  return calculate_gain(options.nonlinearity, options.a) /
         std::sqrt(options.mode == Fan::in ? f.in : f.out);
}
double xavier_std(const Tensor& x, double gain, const char* name) {
  const Fans f = fans(x, name);
  return gain * std::sqrt(2 / (f.in + f.out));
}

}  // namespace

static thread_local constinit bool skips = false;
SkipInit::SkipInit() : before_(std::exchange(skips, true)) {}
SkipInit::~SkipInit() { skips = before_; }

// Calls f with a std::span of new elements, which replace x's.
template <class F>
static Tensor filled(Tensor x, const F& f) {
  if (skips)
    return x;
  dispatch(x.dtype(), [&]<class T>() {
    auto a = empty_array<T>(x.shape());
    f(std::span<T>(a.data(), a.size()));
    x.set_value(xgrad::detail::make_pooled<Value>(std::move(a)));
  });
  return x;
}

Tensor constant_(Tensor x, double value) {
  x.fill_(value);
  return x;
}
Tensor zeros_(Tensor x) { return constant_(std::move(x), 0); }
Tensor ones_(Tensor x) { return constant_(std::move(x), 1); }

Tensor uniform_(Tensor x, double low, double high, Generator& generator) {
  check<ValueError>(low <= high && std::isfinite(low) && std::isfinite(high),
                    "uniform_: [{}, {}) is not a range", low, high);
  return filled(std::move(x), [&](auto a) { fill_uniform(a, low, high, generator); });
}

Tensor normal_(Tensor x, double mean, double std, Generator& generator) {
  check<ValueError>(std >= 0, "normal_: std is {}; it must not be negative", std);
  return filled(std::move(x), [&](auto a) { fill_normal(a, mean, std, generator); });
}

Tensor trunc_normal_(Tensor x, double mean, double std, double a, double b, Generator& generator) {
  return filled(std::move(x),
                [&](auto values) { fill_trunc_normal(values, mean, std, a, b, generator); });
}

Tensor xavier_uniform_(Tensor x, double gain, Generator& generator) {
  const double bound = std::sqrt(3.0) * xavier_std(x, gain, "xavier_uniform_");
  return x.numel() == 0 ? x : uniform_(std::move(x), -bound, bound, generator);
}

Tensor xavier_normal_(Tensor x, double gain, Generator& generator) {
  const double std = xavier_std(x, gain, "xavier_normal_");
  return x.numel() == 0 ? x : normal_(std::move(x), 0, std, generator);
}

double calculate_gain(Nonlinearity nonlinearity, double param) {
  const double gains[] = {
      1, 1, 5.0 / 3, std::sqrt(2.0), 3.0 / 4, std::sqrt(2 / (1 + param * param))};
  return gains[static_cast<std::size_t>(nonlinearity)];
}

Tensor kaiming_uniform_(Tensor x, const KaimingOptions& options, Generator& generator) {
  const double bound = std::sqrt(3.0) * kaiming_std(x, options, "kaiming_uniform_");
  return x.numel() == 0 ? x : uniform_(std::move(x), -bound, bound, generator);
}

Tensor kaiming_normal_(Tensor x, const KaimingOptions& options, Generator& generator) {
  const double std = kaiming_std(x, options, "kaiming_normal_");
  return x.numel() == 0 ? x : normal_(std::move(x), 0, std, generator);
}

}  // namespace xgrad::nn::init
