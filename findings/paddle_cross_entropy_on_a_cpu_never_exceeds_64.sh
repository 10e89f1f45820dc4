#!/bin/sh
# Package: paddlepaddle 3.3.1 (CPython 3.11, x86-64 Linux).
#
# One would expect that the cross entropy of logits {-100, 0} and class 0 is 100, as the formula in its documentation says, and that a
# logit of minus infinity has probability 0.
# On the CPU, softmax, log_softmax and cross_entropy lift every logit to 64 below the largest.  The loss of -100 is 64, of -1000 too, in
# float64 as well, and its derivative, which stays -1, is that of another function: a finite difference is 0.  A masked logit keeps
# exp(-64), 1.6e-28, and its logarithm is -64.  nll_loss follows log_softmax.  binary_cross_entropy_with_logits of the same gap is 100.
# The documentation says nothing of a bound.
#
# A user meets it who checks gradients, compares a diverging run with PyTorch, adds up log-probabilities of sequences, or asks whether a
# masked token is impossible.
#
# Output on 2026-12-01:
#   gap 60: loss 60, derivative -1, finite difference -1; with two sigmoids' form 60
#   gap 100: loss 64, derivative -1, finite difference 0; with two sigmoids' form 100
#   gap 1000: loss 64, derivative -1, finite difference 0; with two sigmoids' form 1000
#   masked by -inf: softmax [1.6e-28, 1.0], log_softmax [-64.0, 0.0]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q paddlepaddle==3.3.1 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import math

import paddle
import paddle.nn.functional as F

paddle.set_device("cpu")


def loss(gap):
    x = paddle.to_tensor([[-gap, 0.0]], dtype="float64", stop_gradient=False)
    y = F.cross_entropy(x, paddle.to_tensor([0]))
    y.backward()
    return float(y), float(x.grad[0, 0])


for gap in (60.0, 100.0, 1000.0):
    value, derivative = loss(gap)
    difference = (loss(gap - 0.5)[0] - loss(gap + 0.5)[0])
    binary = float(F.binary_cross_entropy_with_logits(paddle.to_tensor([-gap], dtype="float64"), paddle.to_tensor([1.0], dtype="float64")))
    print(f"gap {gap:g}: loss {value:g}, derivative {derivative:g}, finite difference {difference:g}; with two sigmoids' form {binary:g}")
    assert abs(value - min(gap, 64)) < 1e-9 and abs(derivative + 1) < 1e-9 and abs(binary - gap) < 1e-9
    assert abs(difference - (-1 if gap < 64 else 0)) < 1e-9
masked = paddle.to_tensor([[-math.inf, 0.0]])
p, logarithm = F.softmax(masked)[0].tolist(), F.log_softmax(masked)[0].tolist()
print(f"masked by -inf: softmax [{p[0]:.2g}, {p[1]}], log_softmax {logarithm}")
assert 1e-28 < p[0] < 2e-28 and logarithm[0] == -64
PY
