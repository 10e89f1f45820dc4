#!/bin/sh
# Package: libxtensor-dev 0.24.3-1, with g++ 12 (Debian 12, x86-64 Linux); seen with release 0.27.1, too.
#
# One would expect that xt::average with equal weights is xt::mean, and that the median of 1 and 2 is 1.5, as in NumPy.
# xt::mean and xt::average without weights divide integers as doubles.  With weights that are integers, too, average divides two sums
# of integers, and median without an axis halves a sum of two: both drop what is behind the point.
#
# A user meets it who weights the hits of batches (0 or 1) by their sizes, or takes the median length of texts.
#
# Output on 2026-11-30:
#   mean({1, 2}) 1.5, average({1, 2}) 1.5, average({1, 2}, weights {1, 1}) 1, median({1, 2}) 1
#   average({0, 1, 1}, weights {32, 32, 8}) 0
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && for package in libxtensor-dev=0.24.3-1 xtl-dev=0.7.2-2.1; do
  apt-get -o APT::Sandbox::User=root download -q $package >/dev/null
done && for file in *.deb; do dpkg-deb -x "$file" .; done)
cat >"$work/average.cpp" <<'CPP'
#include <iostream>
#include <xtensor/xarray.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xsort.hpp>

int main() {
  xt::xarray<int> x = {1, 2}, one = {1, 1}, hits = {0, 1, 1}, sizes = {32, 32, 8};
  const double mean = xt::mean(x)(), plain = xt::average(x)(), weighted = xt::average(x, one)(), median = xt::median(x);
  std::cout << "mean({1, 2}) " << mean << ", average({1, 2}) " << plain << ", average({1, 2}, weights {1, 1}) " << weighted
            << ", median({1, 2}) " << median << '\n';
  const double accuracy = xt::average(hits, sizes)();
  std::cout << "average({0, 1, 1}, weights {32, 32, 8}) " << accuracy << '\n';
  return mean == 1.5 && plain == 1.5 && weighted == 1 && median == 1 && accuracy == 0 ? 0 : 1;
}
CPP
g++ -std=c++17 -I "$work/usr/include" "$work/average.cpp" -o "$work/average"
"$work/average"
