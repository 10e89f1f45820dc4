#!/bin/sh
# Packages: keras 3.15.1, jax 0.10.2 (CPython 3.11, x86-64 Linux).
#
# One would expect that an optimizer's moving average of the weights moves when the weights do: once for each update.
# With gradient_accumulation_steps=n, Keras moves it on every call, the n - 1 that only add gradients included.  Its horizon in
# updates is then n times shorter: ema_momentum=0.5 with four calls to an update is a momentum of 0.0625.
#
# A user meets it who, for lack of memory, halves the batch and accumulates twice, and keeps the average for evaluation.
#
# Output on 2026-11-29:
#   weights after 4 updates: 0.6 0.6 0.6
#   averages, with 1, 2 and 4 calls to an update: 0.6875 0.66562 0.65332
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
KERAS_BACKEND=jax "$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import keras
import numpy as np


def run(calls):
    steps = calls if calls > 1 else None
    w = keras.Variable(1.0)
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, gradient_accumulation_steps=steps)
    for _ in range(4 * calls):
        optimizer.apply([np.float32(1)], [w])
    weight = float(w.value)
    optimizer.finalize_variable_values([w])  # the average
    return weight, float(w.value)


weights, averages = zip(*(run(calls) for calls in (1, 2, 4)))
print("weights after 4 updates:", *(f"{x:.5g}" for x in weights))
print("averages, with 1, 2 and 4 calls to an update:", *(f"{x:.5g}" for x in averages))
assert np.allclose(weights, 0.6) and averages[0] - averages[1] > 0.02 and averages[1] - averages[2] > 0.01
PY
