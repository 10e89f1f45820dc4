#!/bin/sh
# Packages: bottleneck 1.6.0, pandas 3.1.1, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect the variance of a moving window to be that of the numbers in the window, as it is in pandas, and as move_median and move_max
# forget what has left theirs.
# move_var, move_std, move_mean and move_sum update running sums, in the type of the array, which keep the rounding of the largest number they
# held.  After one 1e6 among float32 ones and twos every later variance is 21845 in place of 0.22, to the end of the array; after one 1e9 every
# later mean of float32 is 1.33 too small, and every later variance of float64 is 0.  The documentation warns of infinities only.
#
# A user meets it who smooths logged losses or norms of gradients, which are float32: after one spike the band around the curve never closes.
#
# Output on 2026-12-01 (windows of 3 of 1 2 1 spike 1 2 1 2 ..., the last two):
#   float32, 1e+06: move_var 21845.334 21845.328 pandas 0.222 0.222
#   float32, 1e+09: move_mean 0.000 0.333 pandas 1.333 1.667
#   float64, 1e+09: move_var 0.000 0.000 pandas 0.222 0.222
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q bottleneck==1.6.0 pandas==3.1.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import bottleneck
import numpy as np
import pandas as pd


def last(dtype, spike, name):
    x = np.resize(np.array([1, 2], dtype), 40)
    x[3] = spike
    windows = pd.Series(x).rolling(3)
    ours = windows.var(ddof=0) if name == "move_var" else windows.mean()
    right = getattr(np, name[5:])(np.lib.stride_tricks.sliding_window_view(x[4:].astype(np.float64), 3), axis=-1)
    assert np.allclose(ours[6:], right, atol=1e-3) and np.array_equal(bottleneck.move_max(x, 3)[6:], np.full(34, 2))
    found = getattr(bottleneck, name)(x, 3)[6:]
    print(f"{np.dtype(dtype).name}, {spike:g}: {name}", *(f"{y:.3f}" for y in found[-2:]), "pandas", *(f"{y:.3f}" for y in ours[-2:]))
    return np.abs(found - right).min()


assert last(np.float32, 1e6, "move_var") > 1e3
assert last(np.float32, 1e9, "move_mean") > 1
assert last(np.float64, 1e9, "move_var") > 0.1
PY
