#!/bin/sh
# Package: tinygrad 0.14.0 (CPython 3.11, Linux; its own interpreter as the device).
#
# One would expect IEEE's answers: NaN from NaN * 0 and inf * 0, from 0 / 0 and inf / inf, and from inf - inf.
# Before anything runs, tinygrad rewrites x * 0 to 0, x / x to 1 and x - x to 0, even for a tensor that already holds these values.  The
# same product with a tensor of zeros is NaN, so the answer depends on where the zero comes from.
#
# A user meets it who masks with a factor of 0, or looks for NaN with x - x: a NaN that should stop a training is gone.
#
# Output on 2026-11-29:
#   x * 0: [0.0, 0.0, 0.0]
#   x * tensor of zeros: [nan, nan, 0.0]
#   x / x: [1.0, 1.0, 1.0]
#   x - x: [0.0, 0.0, 0.0]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tinygrad==0.14.0
DEV=PYTHON "$work/venv/bin/python" - <<'PY'
from tinygrad import Tensor

x = Tensor([float("nan"), float("inf"), 0.0]).realize()
zeros = Tensor([0.0, 0.0, 0.0]).realize()
times, product, ratio, difference = (x * 0).tolist(), (x * zeros).tolist(), (x / x).tolist(), (x - x).tolist()
print(f"x * 0: {times}\nx * tensor of zeros: {product}\nx / x: {ratio}\nx - x: {difference}")
assert times == difference == [0, 0, 0] and ratio == [1, 1, 1] and product[0] != product[0] and product[1] != product[1]
PY
