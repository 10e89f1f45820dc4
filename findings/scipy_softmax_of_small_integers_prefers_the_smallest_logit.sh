#!/bin/sh
# Packages: scipy 1.17.1, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect softmax of integers to be that of the same numbers in floating point, as logsumexp beside it is.
# scipy.special.softmax and log_softmax subtract the largest logit in the integers' own type, which wraps: in int8 -127 - 127 is 2, so
# the smallest logit gets most of the probability, without a warning.  In an unsigned type each logit but the largest wraps: 0 and NaN.
#
# A user meets it who samples from the int8 or uint8 logits of a quantized model: the likeliest token becomes a rare one.
#
# Output on 2026-11-30:
#   int8 [127, -127]: softmax [0.11920 0.88086], log_softmax [-2.127 -0.127], logsumexp 127.0
#   uint8 [3, 1]: softmax [0.00000 nan], log_softmax [-inf -inf], logsumexp 3.1
#   float32 [127, -127]: softmax [1.00000 0.00000], log_softmax [0.000 -254.000], logsumexp 127.0
#   float32 [3, 1]: softmax [0.88080 0.11920], log_softmax [-0.127 -2.127], logsumexp 3.1
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q scipy==1.17.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import warnings

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

warnings.simplefilter("error")
found = {}
for dtype, logits in (("int8", [127, -127]), ("uint8", [3, 1]), ("float32", [127, -127]), ("float32", [3, 1])):
    x = np.array(logits, dtype)
    if dtype == "uint8":
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, of the exponential that is infinite
    p, log_p, total = softmax(x), log_softmax(x), logsumexp(x)
    found[dtype, logits[0]] = p, log_p, total
    numbers = " ".join(f"{y:.5f}" for y in p), " ".join(f"{y:.3f}" for y in log_p)
    print(f"{dtype} {logits}: softmax [{numbers[0]}], log_softmax [{numbers[1]}], logsumexp {total:.1f}")
p, log_p, total = found["int8", 127]
assert p[1] > 0.88 and log_p[1] > -0.2 and total == 127
p, log_p, total = found["uint8", 3]
assert p[0] == 0 and np.isnan(p[1]) and np.isinf(log_p).all() and abs(total - 3.127) < 0.001
assert found["float32", 127][0].tolist() == [1, 0] and abs(found["float32", 3][0][0] - 0.8808) < 0.001
PY
