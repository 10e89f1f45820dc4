#!/bin/sh
# Packages: torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that F.linear_cross_entropy gives the same loss and gradients with `options` (in chunks, which saves memory) as
# without, and that a target of -100 hides its row.
# In chunks a batch whose targets are all ignored has gradients of NaN, where the loss without chunks (NaN, too) leaves them 0; and an
# ignored row of NaN, such as padding that was never written, makes the loss NaN, where the loss without chunks does not read it.
#
# A user meets it who turns chunks on for a large vocabulary, and fine-tunes on answers alone: the first batch that holds no answer
# ends the training, which went on before.
#
# Output on 2026-11-30:
#   all ignored: gradient 0 without chunks, nan in chunks
#   an ignored row of NaN: loss 1.6094 without chunks, nan in chunks
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import torch
from torch.nn.functional import linear_cross_entropy

chunks = torch.nn.LinearCrossEntropyOptions()
weight = torch.zeros(5, 3)  # five classes alike: a loss of log 5


def loss_and_gradient(x, target, options):
    x = x.clone().requires_grad_()
    loss = linear_cross_entropy(x, weight, torch.tensor(target), options=options)
    loss.backward()
    return loss.item(), x.grad.abs().max().item()


hidden = torch.ones(4, 3)
_, plain = loss_and_gradient(hidden, [-100] * 4, None)
_, chunked = loss_and_gradient(hidden, [-100] * 4, chunks)
print(f"all ignored: gradient {plain:g} without chunks, {chunked:g} in chunks")
assert plain == 0 and chunked != chunked

hidden[2] = float("nan")
plain, _ = loss_and_gradient(hidden, [0, 1, -100, 2], None)
chunked, _ = loss_and_gradient(hidden, [0, 1, -100, 2], chunks)
print(f"an ignored row of NaN: loss {plain:.4f} without chunks, {chunked:g} in chunks")
assert abs(plain - 1.6094) < 1e-4 and chunked != chunked
PY
