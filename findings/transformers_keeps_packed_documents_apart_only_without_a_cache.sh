#!/bin/sh
# Packages: transformers 5.24.0, torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that keeping the keys and values of a forward pass (use_cache) does not change its logits.
# Two documents packed in one row, position_ids=[0, 1, 2, 0, 1, 2], are kept apart, but only with use_cache=False and no attention_mask.
# With the cache, which is the usual setting, in model.train() too, or with an attention_mask of ones, the second document sees the first.
# It makes no difference in the first document, and there is no warning.
#
# A user meets it who packs short documents into rows in a loop of their own: Trainer turns the cache off, a plain loop does not, and the
# loss sinks all the same.  A tokenizer's attention_mask of ones, passed along, does it in Trainer, too.
#
# Output on 2026-11-30 (the largest difference of the second document's logits from those it has alone):
#   no cache: 0.0000
#   cache: 0.0453
#   no cache, mask of ones: 0.0453
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q transformers==5.24.0 torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, intermediate_size=32)).train()
first, second = torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5, 6]])
row = torch.cat([first, second], 1)
positions = torch.tensor([[0, 1, 2, 0, 1, 2]])
ones = torch.ones_like(row)


def differ(**arguments):
    logits = model(row, position_ids=positions, **arguments).logits
    assert torch.allclose(logits[:, :3], model(first).logits, atol=1e-6)
    return (logits[:, 3:] - model(second).logits).abs().max().item()


alone, cached, masked = differ(use_cache=False), differ(), differ(use_cache=False, attention_mask=ones)
print(f"no cache: {alone:.4f}")
print(f"cache: {cached:.4f}")
print(f"no cache, mask of ones: {masked:.4f}")
assert alone < 1e-6 and cached > 0.01 and masked > 0.01
PY
