#!/bin/sh
# Packages: optax 0.2.8, jax 0.10.2 (CPython 3.11, x86-64 Linux).
#
# One would expect that clipping to a global norm of 1 gives gradients of norm 1.
# The norm is the root of a sum of squares in the gradients' own type.  In float16 the square of 300 is infinite, so the norm is, although
# 949 would fit, and all gradients are divided by it: every one becomes 0, no error, no NaN for a test of finiteness to find.
#
# A user meets it who trains in float16 with a scaled loss, where gradients of some hundreds are usual: the weights stand still.
#
# Output on 2026-11-29:
#   float16: norm inf, clipped [0. 0. 0.]
#   float32: norm 948.683, clipped [0.31622776 0.31622776 0.31622776]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import jax.numpy as jnp
import optax

clip = optax.clip_by_global_norm(1.0)
found = {}
for dtype in ("float16", "float32"):
    gradients = jnp.full(10, 300, dtype)
    clipped, _ = clip.update(gradients, clip.init(gradients))
    found[dtype] = float(optax.global_norm(gradients)), clipped
    print(f"{dtype}: norm {found[dtype][0]:g}, clipped {clipped[:3]}")
assert found["float16"][0] == float("inf") and not found["float16"][1].any() and abs(found["float32"][0] - 948.683) < 0.01
PY
