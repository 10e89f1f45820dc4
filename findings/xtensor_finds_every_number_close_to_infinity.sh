#!/bin/sh
# Package: libxtensor-dev 0.24.3-1, with g++ 12 (Debian 12, x86-64 Linux); seen with release 0.27.1, too.
#
# One would expect that no finite number is close to an infinite one, as in NumPy's and PyTorch's isclose and allclose.
# xt::isclose treats two infinities and two NaN separately, and compares all else as |a - b| <= atol or <= rtol * max(|a|, |b|).  If one of
# them is infinite, both sides are: the answer is true, also for opposite signs, for any rtol above 0.
#
# A user meets it whose test compares results with a reference by xt::allclose: a loss or a gradient that overflowed passes it.
#
# Output on 2026-11-30:
#   isclose({1, -1, 1e300, 1}, {inf, inf, inf, 2}): { true,  true,  true, false}
#   allclose(1, inf, rtol = 1e-300, atol = 0): true
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && for package in libxtensor-dev=0.24.3-1 xtl-dev=0.7.2-2.1; do
  apt-get -o APT::Sandbox::User=root download -q $package >/dev/null
done && for file in *.deb; do dpkg-deb -x "$file" .; done)
cat >"$work/close.cpp" <<'CPP'
#include <cmath>
#include <iostream>
#include <xtensor/xarray.hpp>
#include <xtensor/xio.hpp>
#include <xtensor/xmath.hpp>

int main() {
  const double inf = INFINITY;
  const xt::xarray<double> a = {1, -1, 1e300, 1}, b = {inf, inf, inf, 2};
  const xt::xarray<bool> close = xt::isclose(a, b);
  std::cout << "isclose({1, -1, 1e300, 1}, {inf, inf, inf, 2}): " << close << '\n';
  const bool all = xt::allclose(xt::xarray<double>{1}, xt::xarray<double>{inf}, 1e-300, 0.0);
  std::cout << "allclose(1, inf, rtol = 1e-300, atol = 0): " << (all ? "true" : "false") << '\n';
  return close(0) && close(1) && close(2) && !close(3) && all ? 0 : 1;
}
CPP
g++ -std=c++17 -I "$work/usr/include" "$work/close.cpp" -o "$work/close"
"$work/close"
