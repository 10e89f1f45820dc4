#!/bin/sh
# Package: libeigen3-dev 3.4.0-4, with g++ 12 (Debian 12, x86-64 Linux).
#
# One would expect that the derivative of x = A^-1 b by b does not depend on b, and that all solvers agree on it.
# With AutoDiffScalar, Eigen's own number that carries derivatives, the triangular solve of one vector leaves out each step whose right
# side is equal to zero, and looks only at the value.  So where b[0] is exactly 0 and has a derivative, x[0] is not divided by A[0, 0]: its
# derivative is that of b[0], as if A were the identity.  llt and partialPivLu, which end in that solve, are wrong; ldlt is right, llt
# is right if the same b is a matrix of one column, and everything is for b[0] = 1e-9.  The module's documentation says nothing of it.
# Matrices of a small size known to the compiler take another path.
#
# A user meets it who differentiates through a solver in a layer or a Gauss-Newton step: a residual is exactly zero at the start.
#
# Output on 2026-11-30:
#   b[0] = 0: dx[0] / db[0] = ldlt 0.25, llt 1, llt of a matrix 0.25, partialPivLu 1
#   b[0] = 1e-09: dx[0] / db[0] = ldlt 0.25, llt 0.25, llt of a matrix 0.25, partialPivLu 0.25
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get -o APT::Sandbox::User=root download -q libeigen3-dev=3.4.0-4 >/dev/null && dpkg-deb -x ./*.deb .)
cat >"$work/solve.cpp" <<'CPP'
#include <Eigen/Dense>
#include <iostream>
#include <unsupported/Eigen/AutoDiff>

using Number = Eigen::AutoDiffScalar<Eigen::Matrix<double, 1, 1>>;
using Matrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic>;
using Vector = Eigen::Matrix<Number, Eigen::Dynamic, 1>;

int main() {
  Matrix a(2, 2);
  a << Number(4), Number(0), Number(0), Number(9);
  for (int i = 0; i < 4; i++) a(i).derivatives().setZero();
  bool same = true;
  for (double value : {0.0, 1e-9}) {
    Vector b(2);
    b << Number(value, 1, 0), Number(5);
    b(1).derivatives().setZero();
    const Vector by_ldlt = a.ldlt().solve(b), by_llt = a.llt().solve(b), by_lu = a.partialPivLu().solve(b);
    const Matrix column = b, by_column = a.llt().solve(column);
    const double ldlt = by_ldlt(0).derivatives()(0), llt = by_llt(0).derivatives()(0);
    const double matrix = by_column(0).derivatives()(0), lu = by_lu(0).derivatives()(0);
    std::cout << "b[0] = " << value << ": dx[0] / db[0] = ldlt " << ldlt << ", llt " << llt << ", llt of a matrix " << matrix
              << ", partialPivLu " << lu << '\n';
    const double got = value == 0 ? 1 : 0.25;
    same = same && ldlt == 0.25 && matrix == 0.25 && llt == got && lu == got;
  }
  return same ? 0 : 1;
}
CPP
g++ -std=c++17 -w -I "$work/usr/include/eigen3" "$work/solve.cpp" -o "$work/solve"
"$work/solve"
