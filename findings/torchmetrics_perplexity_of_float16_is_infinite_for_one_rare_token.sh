#!/bin/sh
# Packages: torchmetrics 1.9.0, torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect Perplexity of a model's logits, which it asks for, to be the exponential of their cross entropy.
# It takes the softmax in the type of the logits, and then the logarithm of the target's probability.  In float16 a probability under
# 3e-8 is 0, its logarithm -inf: one token with a loss of 18 among a million makes the perplexity of all of them infinite, where the cross
# entropy of the same float16 logits is good.  In float32 it takes a loss of 104.
#
# A user meets it who evaluates a language model in float16: over a vocabulary of thousands of tokens a rare one with such a loss is common.
#
# Output on 2026-11-30 (999 tokens of loss 0.0009, and one of 10, 16, 18; then 100 and 110):
#   float16: 1.011 1.017 inf, from the cross entropy 1.011 1.018 1.020
#   float32: 1.106 inf, from the cross entropy 1.106 1.117
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torchmetrics==1.9.0 torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import torch
from torchmetrics.text import Perplexity


def perplexities(dtype, losses):
    found, usual = [], []
    for loss in losses:
        logits = torch.tensor([7.0, 0.0]).repeat(1, 1000, 1)
        logits[0, 500] = torch.tensor([0.0, loss])
        logits, target = logits.to(dtype), torch.zeros(1, 1000, dtype=torch.long)
        found.append(Perplexity()(logits, target).item())
        usual.append(torch.nn.functional.cross_entropy(logits[0], target[0]).exp().item())
    print(f"{str(dtype)[6:]}: {' '.join(f'{x:.3f}' for x in found)}, from the cross entropy {' '.join(f'{x:.3f}' for x in usual)}")
    return found, usual


infinite = float("inf")
found, usual = perplexities(torch.float16, [10, 16, 18])
assert max(found[:2]) < 1.02 and found[2] == infinite and max(usual) < 1.02
found, usual = perplexities(torch.float32, [100, 110])
assert found[0] < 1.2 and found[1] == infinite and max(usual) < 1.2
PY
