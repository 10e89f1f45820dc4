#!/bin/sh
# Package: jax 0.10.2 (CPython 3.11, x86-64 Linux).
#
# One would expect that a query whose mask allows no key sees none: zeros, as from PyTorch 2.15's scaled_dot_product_attention, or NaN,
# as from the formula and from the same mask as a bias of -inf.
# jax.nn.dot_product_attention gives the mean of all values, all of which the mask forbids, and passes the query's gradient on to each of
# them.  A length of 0 keys (key_value_seq_lengths) does the same: it reads what lies beyond the length.
#
# A user meets it whose cross attention has an empty context, or who pools padded places, too: what was to be hidden is mixed in, finite
# and plausible.
#
# Output on 2026-11-30 (values 1 and 9; the first query may see no key, the second the first):
#   mask: [5.0, 1.0]
#   bias: [nan, 1.0]
#   no keys by length: [5.0, 5.0]
#   gradient of the values for the first query: [0.5, 0.5]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import math

import jax
import jax.numpy as jnp

q = k = jnp.ones((1, 2, 1, 2))  # batch, place, head, width
v = jnp.array([1.0, 9.0]).reshape(1, 2, 1, 1) * jnp.ones((1, 1, 1, 2))
mask = jnp.array([[[[False, False], [True, False]]]])


def attend(v=v, **options):
    return jax.nn.dot_product_attention(q, k, v, **options)[0, :, 0, 0]


masked, biased = attend(mask=mask).tolist(), attend(bias=jnp.where(mask, 0, -jnp.inf)).tolist()
none = attend(key_value_seq_lengths=jnp.array([0])).tolist()
gradient = jax.grad(lambda v: attend(v, mask=mask)[0])(v)[0, :, 0, 0].tolist()
print(f"mask: {masked}\nbias: {biased}\nno keys by length: {none}\ngradient of the values for the first query: {gradient}")
assert masked == [5, 1] and math.isnan(biased[0]) and biased[1] == 1 and none == [5, 5] and gradient == [0.5, 0.5]
PY
