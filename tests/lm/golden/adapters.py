#!/usr/bin/env python3
"""Writes pretrained/adapters_*: adapters as HuggingFace's PEFT saves them for models in pretrained/, and what they compute.

  tests/lm/golden/adapters.py        (needs torch, transformers 5, peft and safetensors: a virtual environment)

A folder has adapter_config.json, adapter_model.safetensors and expected.safetensors: ids (B, T), f32.logits, and in float64
logits, merged.NAME of each weight that has adapters, and losses (20,) and after.KEY of each matrix in 20 steps of AdamW on ids.
"""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE))
from golden import Golden  # noqa: E402
from pretrained import in_double  # noqa: E402


def write_adapters(base, kind="", **config):
    folder = HERE / "pretrained" / f"adapters_{base}{kind}"
    model = AutoModelForCausalLM.from_pretrained(HERE / "pretrained" / base)
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **config)).eval()
    adapters = {key: p for key, p in model.named_parameters() if "lora_" in key}
    with torch.no_grad():
        for p in adapters.values():  # B is zeros at first
            p.copy_(torch.randn_like(p) * 0.3)
    model.peft_config["default"].base_model_name_or_path = base
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    written = json.loads((folder / "adapter_config.json").read_text())
    written["target_modules"].sort()  # of a set
    (folder / "adapter_config.json").write_text(json.dumps(written, indent=2) + "\n")

    ids = torch.randint(0, model.config.vocab_size, (2, 9))
    golden = Golden(folder / "expected.safetensors")
    golden.add("ids", ids)
    with torch.no_grad():
        golden.add("f32.logits", model(ids).logits)
    golden.add("logits", in_double(model)(ids).logits)
    model.merge_adapter()
    for key, p in model.base_model.model.named_parameters():
        if ".base_layer.weight" in key:
            golden.add("merged." + key.replace(".base_layer", ""), p)
    model.unmerge_adapter()
    optimizer = torch.optim.AdamW(adapters.values(), lr=0.01, weight_decay=0.1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids).logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    golden.add("losses", torch.stack(losses))
    for key, p in get_peft_model_state_dict(model).items():
        if "lora_" in key:  # with lm_head, PEFT saves its own weight as well
            golden.add("after." + key, p)
    print(f"{base}: losses {losses[0].item():.9f} ... {losses[-1].item():.9f}, {golden.write()} bytes")


torch.manual_seed(2)
write_adapters("llama", r=3, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"])
write_adapters("gpt2", r=2, lora_alpha=5, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True, use_rslora=True)
for base in ("llama", "qwen2"):  # a head that is tied, and one that is not
    write_adapters(base, "_head", r=2, target_modules=["q_proj", "lm_head"])
