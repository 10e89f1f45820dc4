#!/bin/sh
# Package: paddlepaddle 3.3.1 (CPython 3.11, x86-64 Linux).
#
# One would expect that the product of 0, 2 and 3 has slope 6 in the first of them, as in PyTorch and JAX, and as the same product has
# in Paddle if it is written with * or taken as the last of cumprod.
# paddle.prod divides the product by each factor.  At 0 that is 0 / 0, and the slope is NaN without a warning, though the value is right;
# with two zeros, where every slope is 0, both are NaN.  In float32 factors of 1e-30, 1e-20 and 1, whose product is too small
# for the format, have slope 0 everywhere instead of 1e-20 and 1e-30.  The documentation names no such limit.
#
# A user meets it who multiplies probabilities, gates or masks: one that is exactly 0 makes all weights NaN in the next step.
#
# Output on 2026-12-01:
#   prod of [0.0, 2.0, 3.0]: slopes [nan, 0.0, 0.0], by * [6.0, 0.0, 0.0], by cumprod [6.0, 0.0, 0.0]
#   prod of [0.0, 0.0, 3.0]: slopes [nan, nan, 0.0], by * [0.0, 0.0, 0.0], by cumprod [0.0, 0.0, 0.0]
#   prod of [1.0, 2.0, 3.0]: slopes [6.0, 3.0, 2.0], by * [6.0, 3.0, 2.0], by cumprod [6.0, 3.0, 2.0]
#   float32 1e-30, 1e-20, 1: slopes [0.0, 0.0, 0.0], by * [1e-20, 1e-30, 0.0]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q paddlepaddle==3.3.1 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import math

import paddle

paddle.set_device("cpu")


def slopes(function, factors, dtype="float64"):
    x = paddle.to_tensor(factors, dtype=dtype, stop_gradient=False)
    function(x).backward()
    return [float(f"{v:.3g}") for v in x.grad.tolist()]


def by_hand(x):
    return x[0] * x[1] * x[2]


def by_cumprod(x):
    return paddle.cumprod(x, 0)[-1]


for factors, zeros in (([0.0, 2.0, 3.0], 1), ([0.0, 0.0, 3.0], 2), ([1.0, 2.0, 3.0], 0)):
    prod, hand, cumulated = (slopes(f, factors) for f in (paddle.prod, by_hand, by_cumprod))
    print(f"prod of {factors}: slopes {prod}, by * {hand}, by cumprod {cumulated}")
    assert hand == cumulated and [math.isnan(v) for v in prod] == [i < zeros for i in range(3)]
    assert zeros or prod == hand
small, hand = slopes(paddle.prod, [1e-30, 1e-20, 1.0], "float32"), slopes(by_hand, [1e-30, 1e-20, 1.0], "float32")
print(f"float32 1e-30, 1e-20, 1: slopes {small}, by * {hand}")
assert small == [0, 0, 0] and hand[:2] == [1e-20, 1e-30]
PY
