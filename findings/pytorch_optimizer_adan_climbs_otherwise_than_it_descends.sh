#!/bin/sh
# Packages: pytorch-optimizer 4.1.0, torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect maximize=True to climb f by the steps that minimise -f, as all of torch's optimizers do.
# Adan adds the difference from the gradient before, which is 0 at the first step.  With maximize=True that step sets the gradient aside
# before its sign is changed, and subtracts it after: the difference is twice the gradient, it stays in the moving averages, and the
# steps that follow are 14 to 22 % shorter.  Lion, AdaBelief and AdamP of the same package climb as they descend.
#
# A user meets it who maximises a reward or a likelihood with Adan: the run is slower than the same run with the sign of the loss changed.
#
# Output on 2026-12-01 (a weight after each of five steps of 0.1):
#   Adan minimises x^2:  0.9000 0.8008 0.7021 0.6042 0.5074
#   Adan maximises -x^2: 0.9000 0.8144 0.7340 0.6564 0.5809
#   the others' largest difference: 0
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pytorch-optimizer==4.1.0 torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import pytorch_optimizer
import torch


def places(kind, maximize, **options):
    x = torch.ones(1, requires_grad=True)
    optimizer = kind([x], lr=0.1, maximize=maximize, **options)
    found = []
    for _ in range(5):
        optimizer.zero_grad()
        (-x * x if maximize else x * x).sum().backward()
        optimizer.step()
        found.append(x.item())
    return torch.tensor(found)


down, up = (places(pytorch_optimizer.Adan, maximize) for maximize in (False, True))
for name, steps in ("Adan minimises x^2: ", down), ("Adan maximises -x^2:", up):
    print(name, *(f"{x:.4f}" for x in steps.tolist()))
others = [getattr(pytorch_optimizer, name) for name in ("Lion", "AdaBelief", "AdamP")] + [torch.optim.Adam]
largest = max((places(kind, False) - places(kind, True)).abs().max().item() for kind in others)
print(f"the others' largest difference: {largest:g}")
assert abs(up[0] - down[0]) < 1e-4 and (up - down)[1:].min() > 0.01 and largest == 0
PY
