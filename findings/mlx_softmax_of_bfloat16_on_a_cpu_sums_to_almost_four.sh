#!/bin/sh
# Packages: mlx 0.32.4 with mlx-cpu 0.32.4 (CPython 3.11, x86-64 Linux).
#
# One would expect that a softmax sums to 1 but for rounding: 1000 equal logits, 0.001 each.
# On the CPU, the denominator of a bfloat16 softmax is itself a bfloat16 sum, and stays at 256, as 257 needs one bit more.  Each of 1000
# equal logits gets 1/256, and together they are 3.9.  mx.sum of 1000 bfloat16 ones is 1000, so the sum alone does not show it, and
# precise=True mends it.
#
# A user meets it who runs a bfloat16 language model on a CPU: its vocabulary is long, and its probabilities are too large.
#
# Output on 2026-11-29:
#   each 0.00390625, together 3.90625; precise: together 0.999; sum of ones 1000
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'mlx[cpu]==0.32.4'
"$work/venv/bin/python" - <<'PY'
import mlx.core as mx

mx.set_default_device(mx.cpu)
zeros = mx.zeros((1000,), dtype=mx.bfloat16)
p = mx.softmax(zeros)
together = p.astype(mx.float32).sum().item()
precise = mx.softmax(zeros, precise=True).astype(mx.float32).sum().item()
ones = (zeros + 1).sum().item()
print(f"each {p[0].item():g}, together {together:g}; precise: together {precise:.3g}; sum of ones {ones:g}")
assert together > 3 and abs(precise - 1) < 0.01 and ones == 1000
PY
