#!/bin/sh
# Packages: peft 0.21.2, transformers 5.24.0, torch 2.15.0 (CPython 3.11, x86-64 Linux).
#
# One would expect that merge_and_unload() keeps a model's logits, as it says that it merges the adapters into the base.
# A GPT-2 ties its head to its embedding.  An adapter of the embedding, target_modules=["wte"], changes the embedding alone while
# it is an adapter.  Merged, it is added to the one matrix that both share, so the head changes as well: other logits, and no
# warning.  A Llama gets a warning that names ensure_weight_tying=True.  With that option the head has the adapter, too, and the merged
# logits differ again.
#
# A user meets it who tunes new tokens by an adapter of the embedding and then merges it, to ship one model.
#
# Output on 2026-11-29:
#   gpt2: logits up to 0.236, merged off by 123, warnings 0
#   llama with ensure_weight_tying: logits up to 122, merged off by 122
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torch==2.15.0 transformers==5.24.0 peft==0.21.2
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import warnings

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

ids = torch.arange(12).unsqueeze(0)


def merged(base, **options):
    torch.manual_seed(1)
    config = LoraConfig(r=4, lora_alpha=8, init_lora_weights=False, **options)
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        model = get_peft_model(base, config).eval()
        logits = model(input_ids=ids).logits
        off = (model.merge_and_unload()(input_ids=ids).logits - logits).abs().max().item()
    return logits.abs().max().item(), off, sum("tie" in str(w.message) for w in caught)


torch.manual_seed(0)
gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=32))
size, off, warned = merged(gpt2, target_modules=["wte"])
print(f"gpt2: logits up to {size:.3g}, merged off by {off:.3g}, warnings {warned}")
assert off > 10 * size and warned == 0

torch.manual_seed(0)
llama = LlamaForCausalLM(LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
                                     max_position_embeddings=32, tie_word_embeddings=True))
size, off, _ = merged(llama, target_modules=["embed_tokens"], ensure_weight_tying=True)
print(f"llama with ensure_weight_tying: logits up to {size:.3g}, merged off by {off:.3g}")
assert off > size / 2
PY
