#!/bin/sh
# Packages: torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that torch.autocast("cpu", torch.bfloat16) multiplies the logits of F.linear_cross_entropy in bfloat16, as it does
# those of F.linear, with `options` (in chunks) as without.
# In chunks the loss is that of float32 to the bit, and no warning says so: the largest product of a step is not autocast.
#
# A user meets it who trains under autocast for its speed, and turns chunks on to save the memory of the logits.
#
# Output on 2026-11-30:
#   without chunks: autocast changes the loss; in chunks: autocast gives the bits of float32
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" -W error - <<'PY'
import torch
from torch.nn.functional import linear_cross_entropy

torch.manual_seed(0)
x, weight = torch.randn(64, 32), torch.randn(100, 32)
target = torch.arange(64)


def changed(options):
    usual = linear_cross_entropy(x, weight, target, options=options)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return linear_cross_entropy(x, weight, target, options=options).item() != usual.item()


says = {True: "autocast changes the loss", False: "autocast gives the bits of float32"}
plain, chunked = changed(None), changed(torch.nn.LinearCrossEntropyOptions())
print(f"without chunks: {says[plain]}; in chunks: {says[chunked]}")
assert plain and not chunked
PY
