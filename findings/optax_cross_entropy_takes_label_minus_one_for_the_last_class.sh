#!/bin/sh
# Packages: optax 0.2.8, jax 0.10.2 (CPython 3.11, x86-64 Linux).
#
# The documentation assumes labels from 0 to the number of classes less one.  One would expect that others are refused, ignored, or at
# least treated alike.
# Of three classes, softmax_cross_entropy_with_integer_labels takes -1 for the last one, -3 for the first: it trains the class.  Labels
# of -100 and of 3 give a loss of NaN, but a finite gradient, the probabilities, which lowers every logit; so a step with them is taken,
# and a check that gradients are finite passes.  The same labels by one_hot give a loss of 0 and no gradient.
#
# A user meets it who pads labels with -1, or with -100 as in PyTorch, and masks nothing.
#
# Output on 2026-11-30 (logits 0, 0, 0):
#   label 2: loss 1.0986, gradient [0.3333, 0.3333, -0.6667]; one-hot loss 1.0986
#   label -3: loss 1.0986, gradient [-0.6667, 0.3333, 0.3333]; one-hot loss 0
#   label -1: loss 1.0986, gradient [0.3333, 0.3333, -0.6667]; one-hot loss 0
#   label -100: loss nan, gradient [0.3333, 0.3333, 0.3333]; one-hot loss 0
#   label 3: loss nan, gradient [0.3333, 0.3333, 0.3333]; one-hot loss 0
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import math

import jax
import jax.numpy as jnp
import optax

said = {}
for label in (2, -3, -1, -100, 3):
    labels = jnp.array([label])
    f = lambda x: optax.softmax_cross_entropy_with_integer_labels(x, labels).sum()
    loss, gradient = jax.value_and_grad(f)(jnp.zeros((1, 3)))
    g = lambda x: optax.softmax_cross_entropy(x, jax.nn.one_hot(labels, 3)).sum()
    one_hot, none = jax.value_and_grad(g)(jnp.zeros((1, 3)))
    assert label == 2 or (one_hot == 0 and not none.any())
    said[label] = float(loss), [round(x, 4) for x in gradient[0].tolist()]
    print(f"label {label}: loss {loss:.5g}, gradient {said[label][1]}; one-hot loss {abs(one_hot):.5g}")
assert said[-1] == said[2] and said[-3][1] == [-0.6667, 0.3333, 0.3333]
assert all(math.isnan(said[label][0]) and said[label][1] == [0.3333] * 3 for label in (-100, 3))
PY
