#!/bin/sh
# Packages: pytorch-ignite 0.5.5, torch 2.15.0 (CPython 3.11, x86-64 Linux).
#
# One would expect a correlation between -1 and 1, as of torch.corrcoef, and a coefficient of determination of at most 1.
# PearsonCorrelation is documented as sums over deviations from the means.  It keeps sums of squares and of products, in float32 even if
# the numbers are float64, and subtracts the squares of the sums at the end.  Of numbers near 3000 nothing is left: a
# variance becomes 0, the divisor 1e-8, and the remains of the covariance are divided by it.  R2Score does the
# same to its targets: near 10000 a fit with errors of 0, 0 and 0.5 is better than a perfect one.  Near 0 both are right.
#
# A user meets it who evaluates a regression of years, prices, hertz or pixels that is not centred first; a scheduler or a checkpoint
# handler that keeps the best score keeps that one.
#
# Output on 2026-12-01:
#   {1, 2, 3} and {1, 2, 3.5} plus 0: correlation 0.993399 (torch.corrcoef 0.993399), r2 0.875
#   {1, 2, 3} and {1, 2, 3.5} plus 3000: correlation 1e+08 (torch.corrcoef 0.993399), r2 division by zero
#   {1, 2, 3} and {1, 2, 3.5} plus 10000: correlation -8e+08 (torch.corrcoef 0.993399), r2 1.02083
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pytorch-ignite==0.5.5 torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import torch
from ignite.metrics.regression import PearsonCorrelation, R2Score


def of(metric, prediction, target):
    metric.reset()
    metric.update((prediction, target))
    try:
        return metric.compute()
    except ZeroDivisionError:
        return None


seen = {}
for offset in (0, 3000, 10000):
    target, prediction = torch.tensor([1.0, 2.0, 3.0]) + offset, torch.tensor([1.0, 2.0, 3.5]) + offset
    r, r2 = of(PearsonCorrelation(), prediction, target), of(R2Score(), prediction, target)
    right = torch.corrcoef(torch.stack([prediction, target]))[0, 1].item()
    print(
        f"{{1, 2, 3}} and {{1, 2, 3.5}} plus {offset}: correlation {r:g} (torch.corrcoef {right:g}), "
        f"r2 {'division by zero' if r2 is None else format(r2, 'g')}"
    )
    assert abs(right - 0.9934) < 1e-3
    seen[offset] = r, r2
assert abs(seen[0][0] - 0.9934) < 1e-3 and abs(seen[0][1] - 0.875) < 1e-6
assert seen[3000][0] > 1e6 and seen[10000][0] < -1e6 and seen[10000][1] > 1
PY
