#!/bin/sh
# Packages: pytorch_optimizer 4.1.0, torch 2.15.0 (CPython 3.11, x86-64 Linux).
#
# One would expect that an optimizer without options steps against the gradient: Ranger, RAdam with Lookahead, moves a weight of 1 towards
# the minimum of w * w / 2 at 0.
# RAdam has no trusted second moment in its first five steps.  The package marks them by a rate times -1 if degenerated_to_sgd is False,
# as it is unless told.  Its RAdam sees the mark and stands still.  Its Ranger takes the mark for a rate and walks up the slope: after
# five steps the weight is 1.55 and the loss is 2.4 times as large.  Lookahead keeps half of that.  With degenerated_to_sgd=True the same
# steps go down; the documentation of that flag speaks of SGD steps, not of their direction.
#
# A user meets it who fine-tunes with Ranger as it comes: the model is worse after the first batches, which looks like a rate too high.
#
# Output on 2026-12-01:
#   Ranger                          [1.1, 1.205, 1.316, 1.432, 1.554, 1.276], loss 0.5 -> 1.21 -> 0.814
#   Ranger, degenerated_to_sgd=True [0.9, 0.805, 0.715, 0.63, 0.55, 0.774], loss 0.5 -> 0.151 -> 0.299
#   RAdam                           [1.0, 1.0, 1.0, 1.0, 1.0, 0.997], loss 0.5 -> 0.5 -> 0.497
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pytorch_optimizer==4.1.0 torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import torch
from pytorch_optimizer import RAdam, Ranger


def walk(name, optimizer, **options):
    w = torch.nn.Parameter(torch.tensor([1.0]))
    steps, losses = optimizer([w], lr=0.1, **options), [0.5]
    out = []
    for _ in range(6):
        steps.zero_grad()
        (w * w / 2).sum().backward()
        steps.step()
        out.append(w.item())
        losses.append(w.item() ** 2 / 2)
    print(f"{name:<31} {[round(v, 3) for v in out]}, loss 0.5 -> {losses[5]:.3g} -> {losses[6]:.3g}")
    return out


up = walk("Ranger", Ranger)
down = walk("Ranger, degenerated_to_sgd=True", Ranger, degenerated_to_sgd=True)
still = walk("RAdam", RAdam)
assert all(a < b for a, b in zip([1.0] + up, up[:5])) and up[4] > 1.5 and up[5] > 1.2
assert all(a > b for a, b in zip([1.0] + down, down[:5])) and still[:5] == [1.0] * 5
PY
