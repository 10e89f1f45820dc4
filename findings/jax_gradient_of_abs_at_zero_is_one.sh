#!/bin/sh
# Packages: jax 0.10.2 with jaxlib 0.10.2 (CPython 3.11, x86-64 Linux).
#
# One would expect the subgradient 0 of abs at 0, as PyTorch, MLX and tinygrad give it and as JAX's own sign(0) says.
# JAX gives 1, at -0.0 as well, while relu's gradient at 0 is 0: a penalty of sum(abs(w)) pushes a weight that is exactly zero, and a step
# of gradient descent moves it to -lr.
#
# A user meets it who trains with an L1 penalty from zeros, or compares an L1 loss's gradients where prediction and target are equal.
#
# Output on 2026-11-29:
#   abs at 0: 1, at -0: 1, sign(0): 0, relu at 0: 0
#   zeros after one step of 0.1: [-0.1 -0.1 -0.1]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import jax
import jax.numpy as jnp

at_zero, at_minus_zero = (float(jax.grad(jnp.abs)(x)) for x in (0.0, -0.0))
sign, relu = float(jnp.sign(0.0)), float(jax.grad(jax.nn.relu)(0.0))
print(f"abs at 0: {at_zero:g}, at -0: {at_minus_zero:g}, sign(0): {sign:g}, relu at 0: {relu:g}")
w = jnp.zeros(3)
w = w - 0.1 * jax.grad(lambda w: jnp.abs(w).sum())(w)
print(f"zeros after one step of 0.1: {w}")
assert (at_zero, at_minus_zero, sign, relu) == (1, 1, 0, 0) and (w < 0).all()
PY
