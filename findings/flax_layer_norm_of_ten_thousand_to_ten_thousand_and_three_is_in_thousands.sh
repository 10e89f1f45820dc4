#!/bin/sh
# Packages: flax 0.12.8, jax 0.10.2 (CPython 3.11, x86-64 Linux).
#
# One would expect that a row that LayerNorm has normed is between about -1.3 and 1.3 if it has four evenly spaced numbers.
# Flax takes the variance as the mean of squares less the square of the mean, in float32.  Where the mean is ten thousand times the
# spread nothing is left of it: the variance is 0, and the row is divided by the root of epsilon, 0.001.  Its results are a thousand times
# too large, without a warning; the documentation says only that this variance is less stable.  use_fast_variance=False, or
# PyTorch, gives the norm.
#
# A user meets it who norms rows whose mean is thousands of times their spread (raw readings of a sensor, times in seconds), or moves
# weights from PyTorch, where the same row is normed.
#
# Output on 2026-11-30:
#   linen: [-1500.0, -500.0, 500.0, 1500.0], without fast variance: [-1.342, -0.447, 0.447, 1.342]
#   nnx: [-1500.0, -500.0, 500.0, 1500.0], without fast variance: [-1.342, -0.447, 0.447, 1.342]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q flax==0.12.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import jax
import jax.numpy as jnp
from flax import linen, nnx

x = jnp.array([[10000.0, 10001.0, 10002.0, 10003.0]])


def by_linen(fast):
    layer = linen.LayerNorm(use_fast_variance=fast)
    return layer.apply(layer.init(jax.random.key(0), x), x)


def by_nnx(fast):
    return nnx.LayerNorm(4, use_fast_variance=fast, rngs=nnx.Rngs(0))(x)


for name, norm in ("linen", by_linen), ("nnx", by_nnx):
    fast, slow = ([round(v, 3) for v in norm(choice)[0].tolist()] for choice in (True, False))
    print(f"{name}: {fast}, without fast variance: {slow}")
    assert max(fast) > 1000 and 1.3 < max(slow) < 1.4
PY
