#!/bin/sh
# Package: tinygrad 0.14.0 (CPython 3.11, Linux; its own interpreter as the device).
#
# One would expect that sparse_categorical_crossentropy ignores what ignore_index names, so that rows with that label might as well be
# left out: its documentation refers to PyTorch's loss, where any number can be named.
# It does so for -100 and -2.  -1 is the default and means "none", also where it is passed: the loss of the rows that count is divided by
# all rows, and with label smoothing the rows that should be ignored are trained to predict every class alike.  No warning.
#
# A user meets it who marks padding with -1, as nanoGPT does, and passes ignore_index=-1: with three quarters of padding the gradients are
# a quarter of what they should be, and more or less so from batch to batch.
#
# Output on 2026-12-01 (one row that counts, three ignored):
#   label smoothing 0.0: without the rows 0.4076, ignored as -100 0.4076, as -2 0.4076, as -1 0.1019
#     largest slope of an ignored logit: as -100 0.0000, as -2 0.0000, as -1 0.0000
#   label smoothing 0.1: without the rows 0.5076, ignored as -100 0.5076, as -2 0.5076, as -1 0.2933
#     largest slope of an ignored logit: as -100 0.0000, as -2 0.0000, as -1 0.0144
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tinygrad==0.14.0
DEV=PYTHON "$work/venv/bin/python" - <<'PY'
from tinygrad import Tensor

logits = Tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 3.0], [5.0, 0.0, 3.0]])
for smoothing in (0.0, 0.1):
    alone = logits[:1].sparse_categorical_crossentropy(Tensor([0]), label_smoothing=smoothing).item()
    loss, slope = {}, {}
    for index in (-100, -2, -1):
        y = logits.sparse_categorical_crossentropy(Tensor([0, index, index, index]), ignore_index=index, label_smoothing=smoothing)
        loss[index], slope[index] = y.item(), y.gradient(logits)[0][1:].abs().max().item() + 0.0
    print(f"label smoothing {smoothing}: without the rows {alone:.4f}, ignored as -100 {loss[-100]:.4f}, as -2 {loss[-2]:.4f},"
          f" as -1 {loss[-1]:.4f}")
    print(f"  largest slope of an ignored logit: as -100 {slope[-100]:.4f}, as -2 {slope[-2]:.4f}, as -1 {slope[-1]:.4f}")
    assert abs(loss[-100] - alone) < 1e-5 and abs(loss[-2] - alone) < 1e-5 and slope[-100] == slope[-2] == 0
    assert loss[-1] < 0.6 * alone and (slope[-1] > 0.01) == (smoothing > 0)
PY
