#!/bin/sh
# Packages: torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect a TransformerEncoderLayer in evaluation to add a mask of floats to the attention scores, as its documentation says, and as
# the same layer does in training, in evaluation while gradients are recorded, and with torch.backends.mha's fast path switched off.
# In evaluation under no_grad() each number but 0 forbids its place instead, whatever its size.  With ALiBi, which is 0 on the diagonal alone,
# every token sees itself only: the output is, bit for bit, that of sequences of one token.  A bias without a zero gives NaN.  There is
# no warning.  A src_key_padding_mask of floats is read in the same way; MultiheadAttention adds the bias in both modes.
#
# A user meets it who trains an encoder with ALiBi or a learnt bias of relative places: its validation loss belongs to another model.
#
# Output on 2026-12-01:
#   largest difference from training: recorded 0, no_grad 0.72, no fast path 0, MultiheadAttention 3e-08
#   no_grad: 0 from each token alone, 0 from a mask of bools; NaN in 160 of 160 without a zero
#   padding of -0.5: 0 from padding True
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
x, places = torch.randn(2, 5, 16), torch.arange(5)
alibi = -0.5 * (places - places[:, None]).abs().float()
soft, hard = torch.tensor([[0, 0, -0.5, 0, 0]] * 2), torch.tensor([[False, False, True, False, False]] * 2)


def difference(a, b):
    return (a - b).abs().max().item()


trained = layer.train()(x, src_mask=alibi).detach()
heads = layer.self_attn(x, x, x, attn_mask=alibi, need_weights=False)[0].detach()
layer.eval()
recorded = layer(x, src_mask=alibi).detach()
with torch.no_grad():
    fast = layer(x, src_mask=alibi)
    alone = torch.cat([layer(x[:, i : i + 1]) for i in range(5)], 1)
    bools = layer(x, src_mask=alibi != 0)
    nans = layer(x, src_mask=alibi - 1).isnan().sum().item()
    padded = difference(layer(x, src_key_padding_mask=soft), layer(x, src_key_padding_mask=hard))
    fast_heads = layer.self_attn(x, x, x, attn_mask=alibi, need_weights=False)[0]
    torch.backends.mha.set_fastpath_enabled(False)
    slow = layer(x, src_mask=alibi)
from_training = [difference(recorded, trained), difference(fast, trained), difference(slow, trained), difference(fast_heads, heads)]
print("largest difference from training: recorded {:.1g}, no_grad {:.2g}, no fast path {:.1g}, MultiheadAttention {:.1g}".format(*from_training))
print(f"no_grad: {difference(fast, alone):g} from each token alone, {difference(fast, bools):g} from a mask of bools; NaN in {nans} of {x.numel()} without a zero")
print(f"padding of -0.5: {padded:g} from padding True")
assert from_training[1] > 0.1 and max(from_training[0], *from_training[2:]) < 1e-5
assert difference(fast, alone) < 1e-5 and difference(fast, bools) < 1e-5 and nans == x.numel() and padded < 1e-5
PY
