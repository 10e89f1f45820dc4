#!/bin/sh
# Packages: torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that gradients of bfloat16 weights are added in float32 and rounded once, as a Linear's are.
# Each row of an Embedding's gradient is one running bfloat16: 1000 uses of a token with gradient 1 give 256, where adding 1 changes
# nothing any more.  index_add is the same, scatter_add gives 1000, and so do a Linear's weight and a bias that is broadcast.
#
# A user meets it who trains a bfloat16 model on a CPU: the commonest tokens, thousands in a batch, get the shortest steps.
#
# Output on 2026-11-29:
#   embedding 256, index_add 256, scatter_add 1000, linear 1000, broadcast 1000
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import torch

kind, n = torch.bfloat16, 1000
ids, ones = torch.zeros(n, dtype=torch.long), torch.ones(n, dtype=kind)


def gradient(weight, f):
    f(weight.requires_grad_()).sum().backward()
    return weight.grad.flatten()[0].item()


found = {
    "embedding": gradient(torch.zeros(2, 1, dtype=kind), lambda w: torch.nn.functional.embedding(ids, w)),
    "index_add": torch.zeros(1, dtype=kind).index_add(0, ids, ones).item(),
    "scatter_add": torch.zeros(1, dtype=kind).scatter_add(0, ids, ones).item(),
    "linear": gradient(torch.zeros(1, 1, dtype=kind), lambda w: torch.nn.functional.linear(ones[:, None], w)),
    "broadcast": gradient(torch.zeros(1, dtype=kind), lambda w: torch.zeros(n, dtype=kind) + w),
}
print(", ".join(f"{name} {value:g}" for name, value in found.items()))
assert list(found.values()) == [256, 256, 1000, 1000, 1000]
PY
