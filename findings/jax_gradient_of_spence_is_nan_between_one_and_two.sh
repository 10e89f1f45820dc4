#!/bin/sh
# Packages: jax 0.10.2 with jaxlib 0.10.2, numpy 2.4.6, scipy 1.17.1 (CPython 3.11, x86-64 Linux).
#
# One would expect the gradient of jax.scipy.special.spence, the dilogarithm, where its documentation defines it, for all positive numbers:
# log(x) / (1 - x), and -1 at 1, from the integral that it gives.
# The values are right to 12 digits.  The gradient is NaN at each x above 1 and up to 2, and 0 at 1: log(1 - x) of a branch that is not
# taken is NaN there, and 0 times NaN is NaN.  Above 2 the argument is inverted first, and all is well again.
#
# A user meets it who trains with a Fermi-Dirac integral, a loop integral or a copula's Debye function as a layer or a loss: the loss is
# finite, and all weights are NaN after one step.
#
# Output on 2026-12-01 (float64):
#   x        0.5 1 1.25 1.5 2 2.5
#   value    0.582241 0 -0.235900 -0.448414 -0.822467 -1.147381
#   gradient -1.386294 0 nan nan nan -0.610860
#   expected -1.386294 -1 -0.892574 -0.810930 -0.693147 -0.610860
#   float32 at 1.5: value -0.448414, gradient nan
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1
JAX_PLATFORMS=cpu "$work/venv/bin/python" - <<'PY'
import jax
import numpy as np
import scipy.special
from jax.scipy.special import spence

jax.config.update("jax_enable_x64", True)
x = np.array([0.5, 1, 1.25, 1.5, 2, 2.5])
value, gradient = np.array(spence(x)), np.array([jax.grad(spence)(v) for v in x])
expected = np.array([-1 if v == 1 else np.log(v) / (1 - v) for v in x])
for name, row in (("x", x), ("value", value), ("gradient", gradient), ("expected", expected)):
    print(f"{name:8}", *(f"{v:g}" if v * 4 % 1 == 0 else f"{v:.6f}" for v in row))
single = np.float32(1.5)
print(f"float32 at 1.5: value {spence(single):.6f}, gradient {jax.grad(spence)(single)}")
assert np.allclose(value, scipy.special.spence(x), rtol=1e-12, atol=0)
assert np.allclose(gradient[[0, 5]], expected[[0, 5]]) and gradient[1] == 0 and np.isnan(gradient[2:5]).all()
assert np.isnan(jax.grad(spence)(single))
PY
