#!/bin/sh
# Packages: libadolc-dev and libadolc2 2.7.2-6, with g++ 12 (Debian 12, x86-64 Linux).
#
# One would expect that pow(x, 1) has derivative 1 everywhere, that pow(x, 4) has second derivative 0 at zero, as x*x*x*x has, and that
# the forward and the reverse mode of one tape agree.
# In the reverse mode they do not at x = 0: gradient() says 0 for the first power, where the forward mode says 1, and hessian() says
# 2 for the fourth and the fifth power, where the forward mode's second coefficient is 0.  There is no message.  The manual says that
# a derivative may be set to infinity, zero or NaN where a slope is infinite, but the slopes of whole powers are not.
#
# A user meets it whose model has an exponent as a parameter, or a polynomial written with pow, and whose weights begin at zero: the
# first power's weight never moves.
#
# Output on 2026-11-30:
#   pow(x, 1) at 0: forward 1, reverse 0; second derivative: forward 0, reverse 0
#   pow(x, 2) at 0: forward 0, reverse 0; second derivative: forward 2, reverse 2
#   pow(x, 3) at 0: forward 0, reverse 0; second derivative: forward 0, reverse 0
#   pow(x, 4) at 0: forward 0, reverse 0; second derivative: forward 0, reverse 2
#   pow(x, 5) at 0: forward 0, reverse 0; second derivative: forward 0, reverse 2
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && for package in libadolc-dev=2.7.2-6 libadolc2=2.7.2-6; do
  apt-get -o APT::Sandbox::User=root download -q $package >/dev/null
done && for file in *.deb; do dpkg-deb -x "$file" .; done)
cat >"$work/power.cpp" <<'CPP'
#include <adolc/adolc.h>
#include <iostream>

int main() {
  bool same = true;
  for (int power = 1; power <= 5; power++) {
    double zero = 0, value = 0;
    trace_on(1);
    adouble x;
    x <<= zero;
    adouble y = pow(x, double(power));
    y >>= value;
    trace_off();
    double first = 0, second = 0, *rows[1] = {&second};
    gradient(1, 1, &zero, &first);
    hessian(1, 1, &zero, rows);
    double direction[2] = {1, 0}, series[2] = {0, 0}, *in[1] = {direction}, *out[1] = {series};
    hos_forward(1, 1, 1, 2, 0, &zero, in, &value, out);
    std::cout << "pow(x, " << power << ") at 0: forward " << series[0] << ", reverse " << first << "; second derivative: forward "
              << 2 * series[1] << ", reverse " << second << '\n';
    same = same && series[0] == (power == 1) && first == 0;
    same = same && 2 * series[1] == 2 * (power == 2) && second == 2 * (power != 1 && power != 3);
  }
  return same ? 0 : 1;
}
CPP
lib=$(echo "$work"/usr/lib/*/libadolc.so.2)
g++ -std=c++17 -I "$work/usr/include" "$work/power.cpp" "$lib" -Wl,-rpath,"$(dirname "$lib")" -o "$work/power"
"$work/power"
