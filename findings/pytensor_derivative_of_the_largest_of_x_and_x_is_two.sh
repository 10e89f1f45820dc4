#!/bin/sh
# Package: pytensor 3.0.7 (CPython 3.11, x86-64 Linux).
#
# One would expect that the largest of x and x, which is x, has derivative 1, as pt.maximum(x, x) has in the same library and max has in
# PyTorch and JAX, which share a gradient among equal elements.
# pt.max and pt.min give each of the equal elements the whole gradient: the derivative is 2, or n if n elements are equal, without a
# warning.  So is that of linalg.norm by infinity, which is a max.  The documentation of max speaks only of its values; a comment in the
# source says that the derivative is not a strict one where elements are equal, but here the function has one.
#
# A user meets it who pools or takes a loss's worst case over copies, padded or tied values, or rounded ones.
#
# Output on 2026-11-30:
#   max of 3 equal numbers 2.0: 2.0, derivative 3.0
#   min of 3 equal numbers 2.0: 2.0, derivative 3.0
#   norm by infinity of 3 equal numbers 2.0: 2.0, derivative 3.0
#   maximum(maximum(x, x), x) at 2.0: 2.0, derivative 1.0
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pytensor==3.0.7 numpy==2.4.6 scipy==1.17.1 numba==0.65.1
PYTENSOR_FLAGS="base_compiledir=$work/compiled,mode=FAST_COMPILE" "$work/venv/bin/python" - <<'PY'
import pytensor
import pytensor.tensor as pt

x = pt.dscalar("x")
copies = pt.stack([x, x, x])
for name, y, expected in (
    ("max of 3 equal numbers 2.0", pt.max(copies), 3),
    ("min of 3 equal numbers 2.0", pt.min(copies), 3),
    ("norm by infinity of 3 equal numbers 2.0", pt.linalg.norm(copies, ord=float("inf")), 3),
    ("maximum(maximum(x, x), x) at 2.0", pt.maximum(pt.maximum(x, x), x), 1),
):
    value, derivative = (float(v) for v in pytensor.function([x], [y, pytensor.grad(y, x)])(2.0))
    print(f"{name}: {value}, derivative {derivative}")
    assert value == 2 and derivative == expected
PY
