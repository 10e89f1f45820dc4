#!/bin/sh
# Packages: keras 3.15.1, optax 0.2.8, jax 0.10.2 (CPython 3.11, x86-64 Linux).
#
# One would expect that boundaries [2, 4] change the rate at steps 2 and 4, as milestones do in PyTorch and boundaries in optax.
# PiecewiseConstantDecay keeps the old rate at the boundary itself and changes one step later.  Keras's own staircase of
# ExponentialDecay changes at the step, so two schedules of Keras that look equal on paper are not.
#
# A user meets it who ports a schedule, or splits a run at a boundary: that one step has the large rate.
#
# Output on 2026-11-29:
#   PiecewiseConstantDecay [1.0, 1.0, 1.0, 0.5, 0.5, 0.25]
#   ExponentialDecay       [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
#   optax                  [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q keras==3.15.1 optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
KERAS_BACKEND=jax "$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import optax
from keras.optimizers import schedules

rates = {
    "PiecewiseConstantDecay": schedules.PiecewiseConstantDecay([2, 4], [1.0, 0.5, 0.25]),
    "ExponentialDecay": schedules.ExponentialDecay(1.0, 2, 0.5, staircase=True),
    "optax": optax.piecewise_constant_schedule(1.0, {2: 0.5, 4: 0.5}),
}
found = {name: [float(rate(step)) for step in range(6)] for name, rate in rates.items()}
for name, values in found.items():
    print(f"{name:22} {values}")
assert found["PiecewiseConstantDecay"] == [1, 1, 1, 0.5, 0.5, 0.25]
assert found["ExponentialDecay"] == found["optax"] == [1, 1, 0.5, 0.5, 0.25, 0.25]
PY
