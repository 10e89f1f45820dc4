#!/bin/sh
# Packages: pytorch_optimizer 4.1.0, torch 2.15.0 (CPython 3.11, x86-64 Linux).
#
# One would expect that a step of LAMB without weight decay moves a tensor by the learning rate times its norm: that is what its trust
# ratio is for.  By its documentation the package's Lamb follows the version of the paper without bias correction.
# It corrects all the same, behind the trust ratio, where the correction no longer cancels: the rate is divided by 1 - beta1^t.  The first
# step is 10 times as long as asked for with beta1 0.9, 100 times with 0.99, and the first 20 together are more than twice as long.  With
# a rate of 0.1 the first step takes the weights to 0.  adam_debias=True, which Lamb's documentation does not list, mends it.
#
# A user meets it who trains with large batches, for which LAMB is made, with large rates and without a warm-up, or fine-tunes.
#
# Output on 2026-12-01:
#   rate 0.01, steps over norms and rate: [10.0, 5.26, 3.69, 2.91]
#   rate 0.01, beta1 0.99: [100.0]
#   rate 0.01, adam_debias=True: [1.0, 1.0, 1.0, 1.0]
#   rate 0.1: norm 5 -> 0.0
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pytorch_optimizer==4.1.0 torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import torch
from pytorch_optimizer import Lamb


def steps(count, lr, **options):
    w = torch.nn.Parameter(torch.full((4,), 2.5))
    optimizer, out = Lamb([w], lr=lr, **options), []
    for _ in range(count):
        before = w.detach().clone()
        w.grad = torch.ones(4)
        optimizer.step()
        out.append(((w.detach() - before).norm() / before.norm() / lr).item())
    return out, w.detach().norm().item()


first, _ = steps(4, 0.01)
print(f"rate 0.01, steps over norms and rate: {[round(v, 2) for v in first]}")
slower, _ = steps(1, 0.01, betas=(0.99, 0.999))
print(f"rate 0.01, beta1 0.99: {[round(v, 2) for v in slower]}")
plain, _ = steps(4, 0.01, adam_debias=True)
print(f"rate 0.01, adam_debias=True: {[round(v, 2) for v in plain]}")
_, norm = steps(1, 0.1)
print(f"rate 0.1: norm 5 -> {norm:.1f}")
total = sum(steps(20, 0.001)[0])
assert all(abs(v * (1 - 0.9 ** (t + 1)) - 1) < 0.01 for t, v in enumerate(first)) and abs(slower[0] - 100) < 1
assert all(abs(v - 1) < 0.01 for v in plain) and norm < 0.01 and total > 40
PY
