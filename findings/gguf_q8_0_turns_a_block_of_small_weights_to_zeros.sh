#!/bin/sh
# Packages: gguf 0.19.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that Q8_0 keeps two digits of whatever size, as each block of 32 numbers has a scale of its own.
# The scale is a float16, and the largest number over 127.  Below about 3.8e-6 it rounds to 0, and the block comes back as zeros;
# above about 8.3e6 it is infinite.  Just above the lower end the scale has one bit: numbers of 6e-6 come back a quarter too large.
#
# A user meets it who quantizes adapters, whose second matrix begins at zero and stays small, or a difference of two models.
#
# Output on 2026-11-29:
#   1e-01 comes back as 0.1
#   6e-06 comes back as 7.57e-06
#   3e-06 comes back as 0
#   1e+07 comes back as inf
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q gguf==0.19.0 numpy==2.4.6
"$work/venv/bin/python" -W ignore - <<'PY'
import gguf
import numpy as np

kind = gguf.GGMLQuantizationType.Q8_0
found = {}
for value in (1e-1, 6e-6, 3e-6, 1e7):
    block = np.full((1, 32), value, np.float32)
    found[value] = float(gguf.quants.dequantize(gguf.quants.quantize(block, kind), kind)[0, 0])
    print(f"{value:.0e} comes back as {found[value]:.3g}")
assert abs(found[1e-1] - 0.1) < 1e-3 and found[6e-6] > 7e-6 and found[3e-6] == 0 and found[1e7] == float("inf")
PY
