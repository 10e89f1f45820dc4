#!/bin/sh
# Packages: optax 0.2.8, keras 3.15.1, jax 0.10.2 (CPython 3.11, x86-64 Linux).
#
# One would expect that AMSGrad with equal rates and decays takes equal steps everywhere, as Adam does.
# Keras, and PyTorch too, take the largest second moment and correct its bias afterwards.  optax corrects it first, and takes the largest
# of the corrected ones.  The correction of an early moment is large, so a large first gradient stays in the denominator: from
# the second step on optax's are shorter than Keras's, and the fourth is little more than half as long.
#
# A user meets it who moves a training from PyTorch or Keras to JAX and compares the losses.
#
# Output on 2026-11-29:
#   Adam     optax [0.9, 0.87337, 0.85221, 0.83436]  keras [0.9, 0.87337, 0.85221, 0.83436]
#   AMSGrad  optax [0.9, 0.87895, 0.8653, 0.85532]  keras [0.9, 0.87337, 0.85222, 0.83438]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q optax==0.2.8 keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
KERAS_BACKEND=jax "$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import jax.numpy as jnp
import keras
import numpy as np
import optax

gradients = [1.0, -0.5, 0.01, 0.01]


def of_optax(optimizer):
    w, out = jnp.array(1.0), []
    state = optimizer.init(w)
    for g in gradients:
        update, state = optimizer.update(jnp.array(g), state, w)
        w = w + update
        out.append(round(float(w), 5))
    return out


def of_keras(optimizer):
    w, out = keras.Variable(1.0), []
    for g in gradients:
        optimizer.apply([np.float32(g)], [w])
        out.append(round(float(w.value), 5))
    return out


adam = of_optax(optax.adam(0.1)), of_keras(keras.optimizers.Adam(0.1))
largest = of_optax(optax.amsgrad(0.1)), of_keras(keras.optimizers.Adam(0.1, amsgrad=True))
print(f"Adam     optax {adam[0]}  keras {adam[1]}\nAMSGrad  optax {largest[0]}  keras {largest[1]}")
assert np.allclose(*adam, atol=2e-5) and abs(largest[0][3] - largest[1][3]) > 0.02
PY
