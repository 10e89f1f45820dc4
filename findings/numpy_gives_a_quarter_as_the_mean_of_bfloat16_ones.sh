#!/bin/sh
# Packages: numpy 2.4.6, ml_dtypes 0.6.0 (CPython 3.11, x86-64 Linux).
#
# One would expect 1 as the mean of a thousand ones: NumPy adds float16 in float32 for a mean, and adds long arrays in pairs.
# For bfloat16 it does neither.  The type is not NumPy's own, so its sum is one running bfloat16, which stays at 256, as 257 needs one
# bit more.  The mean is 0.2559 and no warning is given, whereas the dot product of the same array with itself is 1000.
#
# A user meets it who looks at the mean or the norm of a model's bfloat16 weights in NumPy, with safetensors or from JAX.
#
# Output on 2026-11-29:
#   float16: mean 1 of 100000 ones
#   bfloat16: sum 256.0, mean 0.255859375, dot product 1000.0 of 1000 ones
#   sum with dtype=float32: 1000
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 ml_dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import ml_dtypes
import numpy as np

ones = np.ones(1000, ml_dtypes.bfloat16)
half = np.ones(100000, np.float16).mean()
print(f"float16: mean {half:g} of 100000 ones")
print(f"bfloat16: sum {ones.sum()}, mean {ones.mean()}, dot product {np.dot(ones, ones)} of 1000 ones")
print(f"sum with dtype=float32: {ones.sum(dtype=np.float32):g}")
assert half == 1 and float(ones.sum()) == 256 and 0.25 < float(ones.mean()) < 0.26 and float(np.dot(ones, ones)) == 1000
PY
