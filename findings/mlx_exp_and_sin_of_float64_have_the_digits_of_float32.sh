#!/bin/sh
# Packages: mlx 0.32.4 with mlx-cpu 0.32.4 (CPython 3.11, x86-64 Linux).
#
# One would expect 16 digits from float64, which MLX has on the CPU alone: of all functions or of none.
# sqrt, tanh and pow of a float64 array have them.  exp and sin have the eight digits of float32, in an array whose dtype is float64, and
# so have sigmoid, softmax and logsumexp, which are made of exp.
#
# A user meets it who turns to float64 to check a derivative by differences, or a float32 result against a better one.
#
# Output on 2026-11-29:
#   sqrt 0.0e+00  tanh 0.0e+00  exp 4.3e-08  sin 4.8e-08  sigmoid 2.0e-08
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'mlx[cpu]==0.32.4'
"$work/venv/bin/python" - <<'PY'
import math

import mlx.core as mx

mx.set_default_device(mx.cpu)
x = mx.array([0.1], dtype=mx.float64)
truth = {"sqrt": math.sqrt(0.1), "tanh": math.tanh(0.1), "exp": math.exp(0.1), "sin": math.sin(0.1), "sigmoid": 1 / (1 + math.exp(-0.1))}
off = {}
for name, value in truth.items():
    y = getattr(mx, name)(x)
    assert y.dtype == mx.float64
    off[name] = abs(y.item() / value - 1)
print("  ".join(f"{name} {error:.1e}" for name, error in off.items()))
assert max(off["sqrt"], off["tanh"]) < 1e-15 and min(off["exp"], off["sin"], off["sigmoid"]) > 1e-9
PY
