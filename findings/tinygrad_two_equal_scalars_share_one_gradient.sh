#!/bin/sh
# Package: tinygrad 0.14.0 (CPython 3.11, Linux; its own interpreter as the device).
#
# One would expect that the slope of a + 2 * b is 1 in a and 2 in b, whatever their values, and that of |x| at 1 is 1.
# Two scalar tensors of one dtype and one value are one node of the graph, even after realize(): at a = b = 3 both slopes are 3.  A scalar
# is one node with the constants of a formula, too: at 1, |x| has the slope 2, softsign none and erf three times its own, as there is a 1
# in what they are made of.  Tensors of one element, made from a list, are right.
#
# A user meets it who has two scales, temperatures or rates that start at the same number, or checks a gradient at 1.  A scalar without a
# dtype is refused with an error.  Two equal ones were reported before (tinygrad/tinygrad, issue 9597, closed), and this version has them.
#
# Output on 2026-12-01:
#   a + 2 * b at a = 3, b = 4: slopes 1.0, 2.0
#   a + 2 * b at a = 3, b = 3: slopes 3.0, 3.0
#   at 2: abs 1.0000, softsign 0.1111, erf 0.0207; in brackets 1.0000, 0.1111, 0.0207
#   at 1: abs 2.0000, softsign 0.0000, erf 1.3583; in brackets 1.0000, 0.2500, 0.4151
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tinygrad==0.14.0
DEV=PYTHON "$work/venv/bin/python" - <<'PY'
from tinygrad import Tensor, dtypes


def slopes(first, second):
    a, b = (Tensor(v, dtype=dtypes.float32).realize() for v in (first, second))
    return [g.item() for g in (a + 2 * b).gradient(a, b)]


def three(x):
    return [y.sum().gradient(x)[0].item() for y in (x.abs(), x.softsign(), x.erf())]


different, equal = slopes(3.0, 4.0), slopes(3.0, 3.0)
print(f"a + 2 * b at a = 3, b = 4: slopes {different[0]}, {different[1]}\na + 2 * b at a = 3, b = 3: slopes {equal[0]}, {equal[1]}")
assert different == [1, 2] and equal == [3, 3]
for v in (2.0, 1.0):
    scalar, bracket = three(Tensor(v, dtype=dtypes.float32)), three(Tensor([v]))
    print(f"at {v:.0f}: abs {scalar[0]:.4f}, softsign {scalar[1]:.4f}, erf {scalar[2]:.4f};"
          f" in brackets {bracket[0]:.4f}, {bracket[1]:.4f}, {bracket[2]:.4f}")
    wrong = [abs(s - b) > 0.2 for s, b in zip(scalar, bracket)]
    assert wrong == [v == 1] * 3
PY
