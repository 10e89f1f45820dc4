#!/bin/sh
# Packages: libadolc-dev and libadolc2 2.7.2-6, with g++ 12 (Debian 12, x86-64 Linux).
#
# One would expect that a function of an adouble has the value of the same function of a double, and that tanh(x) is x for a small x.
# sinh and tanh of an adouble take differences of exp(x) and exp(-x).  Below 1e-16 nothing is left of them and the value is 0; at 1e-9
# seven digits are right, at 1e-13 three.  The derivatives are right, and so are asinh and atanh, so atanh(tanh(x)) is 0 and has slope 1.
#
# A user meets it whose network has tanh layers and small inputs, and who divides the result by their norm: it is wrong or 0.
#
# Output on 2026-11-30:
#   x = 1e-05: tanh 1e-05 (double 1e-05), sinh 1e-05, atanh 1e-05, atanh of tanh 1e-05 with slope 1
#   x = 1e-09: tanh 9.999999727e-10 (double 1e-09), sinh 1.000000027e-09, atanh 1e-09, atanh of tanh 9.999999727e-10 with slope 1
#   x = 1e-13: tanh 9.997558337e-14 (double 1e-13), sinh 1.000866057e-13, atanh 1e-13, atanh of tanh 9.997558337e-14 with slope 1
#   x = 1e-17: tanh 0 (double 1e-17), sinh 0, atanh 1e-17, atanh of tanh 0 with slope 1
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && for package in libadolc-dev=2.7.2-6 libadolc2=2.7.2-6; do
  apt-get -o APT::Sandbox::User=root download -q $package >/dev/null
done && for file in *.deb; do dpkg-deb -x "$file" .; done)
cat >"$work/small.cpp" <<'CPP'
#include <adolc/adolc.h>
#include <cmath>
#include <iostream>

int main() {
  double values[4] = {0, 0, 0, 0};
  std::cout.precision(10);
  for (double start : {1e-5, 1e-9, 1e-13, 1e-17}) {
    trace_on(1);
    adouble x;
    x <<= start;
    adouble results[4] = {tanh(x), sinh(x), atanh(x), atanh(tanh(x))};
    for (int i = 0; i < 4; i++) results[i] >>= values[i];
    trace_off();
    double slopes[4][1], *rows[4] = {slopes[0], slopes[1], slopes[2], slopes[3]};
    jacobian(1, 4, 1, &start, rows);
    std::cout << "x = " << start << ": tanh " << values[0] << " (double " << std::tanh(start) << "), sinh " << values[1] << ", atanh "
              << values[2] << ", atanh of tanh " << values[3] << " with slope " << slopes[3][0] << '\n';
  }
  return values[0] == 0 && values[1] == 0 && values[2] == 1e-17 && values[3] == 0 ? 0 : 1;
}
CPP
lib=$(echo "$work"/usr/lib/*/libadolc.so.2)
g++ -std=c++17 -I "$work/usr/include" "$work/small.cpp" "$lib" -Wl,-rpath,"$(dirname "$lib")" -o "$work/small"
"$work/small"
