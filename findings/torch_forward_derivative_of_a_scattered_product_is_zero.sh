#!/bin/sh
# Packages: torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect jacfwd and jacrev to agree, and torch.func.hessian, which is one of the other, to be the matrix of second derivatives.
# scatter_reduce with "prod" has no forward rule, and is not refused as index_reduce is: its forward derivative is 0 in every number.  The
# Hessian of 3 * 4 + 5 by the three numbers keeps one term of a quotient rule: -4/3, -3/4 and -1/5 on the diagonal, which is 0, and 0 beside
# it, where a 1 belongs.  Backward over backward is right.  "sum", "mean", "amax" and "amin" agree in both directions.
#
# A user meets it who multiplies probabilities or Jacobians by group, as in a graph or a flow, and takes a Gauss-Newton product, a Hessian
# or a Laplace approximation of it: no warning.  It is known (pytorch/pytorch, issue 196702), and still so in this version.
#
# Output on 2026-12-01:
#   jacrev [[4.0, 3.0, 0.0], [0.0, 0.0, 1.0]]
#   jacfwd [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
#   hessian of the sum, backward over backward [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
#   hessian of the sum, torch.func.hessian     [[-1.3333, 0.0, 0.0], [0.0, -0.75, 0.0], [0.0, 0.0, -0.2]]
#   index_reduce: NotImplementedError
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import torch
from torch.func import hessian, jacfwd, jacrev

x, group = torch.tensor([3.0, 4.0, 5.0], dtype=torch.float64), torch.tensor([0, 0, 1])


def product(x, how="prod"):
    return torch.ones(2, dtype=x.dtype).scatter_reduce(0, group, x, how)


def total(x):
    return product(x).sum()


def rows(matrix):
    return [[round(v, 4) + 0.0 for v in row] for row in matrix.tolist()]


backward, forward = rows(jacrev(product)(x)), rows(jacfwd(product)(x))
right, wrong = rows(torch.autograd.functional.hessian(total, x)), rows(hessian(total)(x))
print(f"jacrev {backward}\njacfwd {forward}")
print(f"hessian of the sum, backward over backward {right}\nhessian of the sum, torch.func.hessian     {wrong}")
try:
    jacfwd(lambda x: torch.ones(2, dtype=x.dtype).index_reduce(0, group, x, "prod"))(x)
    refused = "not refused"
except NotImplementedError as error:
    refused = type(error).__name__
print("index_reduce:", refused)
assert backward == [[4, 3, 0], [0, 0, 1]] and forward == [[0] * 3] * 2 and refused == "NotImplementedError"
assert right == [[0, 1, 0], [1, 0, 0], [0, 0, 0]] and wrong[0][0] < -1 and wrong[0][1] == 0
for how in ("sum", "mean", "amax", "amin"):
    assert torch.equal(jacrev(product)(x, how), jacfwd(product)(x, how))
PY
