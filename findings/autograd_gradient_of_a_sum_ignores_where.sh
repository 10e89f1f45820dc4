#!/bin/sh
# Packages: autograd 1.9.1, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that an element that a sum leaves out has gradient zero, as in JAX, or that where= is refused, as autograd
# refuses it in exp, add and other functions of single elements.
# The sum, the mean, the product, the variance and the standard deviation of autograd.numpy take where=, and their values heed it.
# Their gradients do not: each is that of the reduction of all elements, so masked ones receive a gradient, too, and a mean's is
# divided by the count of all.  var(x, mean=m) heeds m only in its value, likewise.  There is no warning.  The package wraps NumPy's
# functions and has no documentation of its own of these arguments.
#
# A user meets it who averages a loss over the tokens that are no padding by np.mean(losses, where=mask).
#
# Output on 2026-11-30:
#   sum: 2.0, gradient [1.0, 1.0, 1.0], should be [1.0, 0.0, 1.0]
#   mean: 1.0, gradient [0.333, 0.333, 0.333], should be [0.5, 0.0, 0.5]
#   prod: 0.75, gradient [1.5, 0.188, 0.5], should be [1.5, 0.0, 0.5]
#   var: 0.25, gradient [-1.0, 1.333, -0.333], should be [-0.5, 0.0, 0.5]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q autograd==1.9.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import autograd.numpy as np
import numpy
from autograd import grad

x = numpy.array([0.5, 4.0, 1.5])
kept = numpy.array([True, False, True])
for name in "sum", "mean", "prod", "var":
    reduce = getattr(np, name)
    masked = grad(lambda v: reduce(v, where=kept))(x)
    true = numpy.zeros(3)
    true[kept] = grad(reduce)(x[kept])
    value = reduce(x, where=kept)
    print(f"{name}: {value}, gradient {masked.round(3).tolist()}, should be {true.round(3).tolist()}")
    assert value == reduce(x[kept])
    assert masked[1] != 0 and true[1] == 0
PY
