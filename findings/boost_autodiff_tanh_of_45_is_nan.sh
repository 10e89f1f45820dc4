#!/bin/sh
# Package: libboost1.81-dev 1.81.0-5+deb12u1, with g++ 12 (Debian 12, x86-64 Linux); 1.74 does the same.
#
# One would expect that the tanh of Boost.Math's autodiff has the value of std::tanh, as its exp, sin and erf have theirs.
# It is made of exp(2 x): the number less one over the number plus one.  For a float, exp(90) is infinite, and from 45 on both the value
# and the derivative are NaN, infinity over infinity, while -45 gives -1.  A double follows at 355.  Near 0 the difference is
# taken of two numbers near 1: of 3e-8 the tanh is 6e-8, and of 1e-8 it is 0, both with derivative 1.  The
# documentation lists tanh without a range.
#
# A user meets it whose activation or soft cap of logits is differentiated by it: one saturated unit makes the whole loss NaN, but only on
# its positive side.
#
# Output on 2026-12-01:
#   float 44: 1, derivative 0 (std::tanh 1)
#   float 45: nan, derivative nan (std::tanh 1)
#   float -45: -1, derivative 3.3e-39 (std::tanh -1)
#   float 3e-08: 6e-08, derivative 1 (std::tanh 3e-08)
#   float 1e-08: 0, derivative 1 (std::tanh 1e-08)
#   double 354: 1, derivative 0 (std::tanh 1)
#   double 356: nan, derivative nan (std::tanh 1)
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get -o APT::Sandbox::User=root download -q libboost1.81-dev=1.81.0-5+deb12u1 >/dev/null && dpkg-deb -x ./*.deb .)
cat >"$work/tanh.cpp" <<'CPP'
#include <boost/math/differentiation/autodiff.hpp>
#include <cmath>
#include <cstdio>

struct Result {
  double value, derivative;
};

template <typename T>
Result of(const char *type, T x) {
  const auto y = tanh(boost::math::differentiation::make_fvar<T, 1>(x));
  const Result r{static_cast<double>(y.derivative(0)), static_cast<double>(y.derivative(1))};
  std::printf("%s %g: ", type, static_cast<double>(x));
  if (std::isnan(r.value) && std::isnan(r.derivative))
    std::printf("nan, derivative nan");
  else
    std::printf("%.2g, derivative %.2g", r.value, r.derivative);
  std::printf(" (std::tanh %.2g)\n", static_cast<double>(std::tanh(x)));
  return r;
}

int main() {
  const Result below = of("float", 44.0F), above = of("float", 45.0F), negative = of("float", -45.0F);
  const Result doubled = of("float", 3e-8F), lost = of("float", 1e-8F);
  const Result fine = of("double", 354.0), large = of("double", 356.0);
  const bool same = below.value == 1 && std::isnan(above.value) && std::isnan(above.derivative) && negative.value == -1 &&
                    doubled.value > 5e-8 && lost.value == 0 && lost.derivative == 1 && fine.value == 1 && std::isnan(large.value);
  return same ? 0 : 1;
}
CPP
g++ -std=c++17 -O1 -I "$work/usr/include" "$work/tanh.cpp" -o "$work/tanh"
"$work/tanh"
