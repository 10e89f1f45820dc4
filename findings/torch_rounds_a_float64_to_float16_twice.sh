#!/bin/sh
# Packages: torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect the nearest float16 from a conversion, by IEEE's rule, as NumPy gives it.
# PyTorch takes a float64 to float32 first.  1 + 2^-11 + 2^-40 lies just above the middle between 1 and the next float16, so that is
# nearest; rounded to float32 it lies in the middle, and the second rounding goes to the even neighbour, 1.
#
# A user meets it who stores float64 results in float16 from both libraries and compares bits: 560 of ten million normal numbers differ.
#
# Output on 2026-11-29:
#   torch 1.0, by way of float32 in numpy 1.0, numpy 1.0009765625
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import numpy as np
import torch

x = np.array([1 + 2.0**-11 + 2.0**-40])
torchs, twice, once = torch.from_numpy(x).to(torch.float16).item(), x.astype(np.float32).astype(np.float16).item(), x.astype(np.float16).item()
print(f"torch {torchs}, by way of float32 in numpy {twice}, numpy {once}")
assert torchs == twice == 1 and once == 1 + 2.0**-10
PY
