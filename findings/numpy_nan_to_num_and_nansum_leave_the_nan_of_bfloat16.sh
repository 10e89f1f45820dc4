#!/bin/sh
# Packages: numpy 2.4.6, ml_dtypes 0.6.0 (CPython 3.11, x86-64 Linux).
#
# One would expect the functions that look past NaN to do so in every type that has NaN, as they do in float16: np.isnan finds those of
# bfloat16, and np.max and np.median do.
# For bfloat16 np.nan_to_num returns its argument as it is, np.nansum, np.nanmean and np.nanstd give NaN, and np.nanargmax the place of the
# NaN, all without an error, where np.nanmax finds the largest number.  np.sort leaves NaN, and the numbers around them, out of order, where
# it puts those of float16 last.
#
# A user meets it who looks at bfloat16 gradients in numpy: the cleaned ones still hold NaN, and one NaN takes the statistics of all others.
#
# Output on 2026-11-30 (of 3, NaN, 1, 2):
#   float16:  nan_to_num [3. 0. 1. 2.]  nansum 6.0  nanmean 2.0  nanmax 3.0  nanargmax 0  sort [ 1.  2.  3. nan]
#   bfloat16: nan_to_num [ 3. nan  1.  2.]  nansum nan  nanmean nan  nanmax 3.0  nanargmax 1  sort [ 3. nan  1.  2.]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 ml_dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import warnings

import ml_dtypes
import numpy as np

warnings.simplefilter("ignore", RuntimeWarning)  # numpy's own, of NaN met on the way
functions = [np.nan_to_num, np.nansum, np.nanmean, np.nanmax, np.nanargmax, np.sort]
found = {}
for dtype in (np.float16, ml_dtypes.bfloat16):
    x = np.array([3, np.nan, 1, 2], dtype)
    assert np.isnan(x).tolist() == [False, True, False, False] and np.isnan(np.max(x)) and np.isnan(np.median(x))
    found[dtype] = [np.asarray(f(x)).astype(np.float32) for f in functions]
    found[dtype][4] = int(np.nanargmax(x))
    print(f"{np.dtype(dtype).name + ':':9}", "  ".join(f"{f.__name__} {y}" for f, y in zip(functions, found[dtype])))
cleaned, total, mean, largest, place, ordered = found[np.float16]
assert not np.isnan(cleaned).any() and total == 6 and mean == 2 and largest == 3 and place == 0 and ordered[:3].tolist() == [1, 2, 3]
cleaned, total, mean, largest, place, ordered = found[ml_dtypes.bfloat16]
assert np.isnan(cleaned[1]) and np.isnan(total) and np.isnan(mean) and largest == 3 and place == 1 and ordered[0] == 3
PY
