#!/usr/bin/env python3
"""Writes weights/: state dicts saved from PyTorch, and what the layers give with them.

  tests/golden/weights.py

Every layer has its own file; `outputs.safetensors` has the inputs and outputs, as "<file>.<what>"; `run.safetensors`
has all values of one run.  Weights are normal,
so that no bias is zero and no gain is one.  Needs python3-torch.
"""
import os
import sys

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts/pytorch"))
import gpt
from dump import dump
from safetensors_file import save_safetensors

outputs = {}


def randomised(layer):
    with torch.no_grad():
        for p in layer.parameters():
            p.normal_(0, 0.3)
    return layer.eval()


def save(name, tensors):
    save_safetensors(tensors, os.path.join(HERE, "weights", name + ".safetensors"), {"torch": torch.__version__})


@torch.no_grad()
def layer(name, module, *inputs):
    """Saves a layer's state dict, and its inputs and output."""
    save(name, module.state_dict())
    for i, x in enumerate(inputs):
        outputs[f"{name}.in{i}"] = x
    y = module(*inputs)
    for i, x in enumerate(y if isinstance(y, tuple) else [y]):
        outputs[f"{name}.out{i}"] = x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(4), nn.LayerNorm(4)
        self.attn = nn.MultiheadAttention(4, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, x):
        h = self.ln_1(x)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        x = x + self.attn(h, h, h, attn_mask=future, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


def main():
    torch.manual_seed(1)
    layer("linear", randomised(nn.Linear(6, 4)), torch.randn(3, 6))
    layer("embedding", randomised(nn.Embedding(7, 5)), torch.randint(7, (2, 4)))
    layer("layer_norm", randomised(nn.LayerNorm(10)), torch.randn(3, 10))
    layer("multi_head_attention", randomised(nn.MultiheadAttention(12, 3, batch_first=True)),
          torch.randn(2, 5, 12), torch.randn(2, 7, 12), torch.randn(2, 7, 12))

    idx = torch.randint(11, (2, 8))
    small = dict(vocab_size=11, block_size=8, n_head=2, n_embd=16)
    layer("gpt", randomised(gpt.GPT(gpt.Config(n_layer=2, bias=True, **small))), idx)

    # A float64 model, and PyTorch's float32 version of it loaded in each dtype.
    wide = randomised(gpt.GPT(gpt.Config(n_layer=1, **small)).double())
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        name = "gpt_" + {torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]
        stored = {key: x.to(dtype) for key, x in wide.state_dict().items()}
        stored.pop("lm_head.weight")
        save(name, stored)
        narrow = gpt.GPT(gpt.Config(n_layer=1, **small)).eval()
        narrow.load(stored)
        with torch.no_grad():
            outputs[f"{name}.out0"] = narrow(idx)
        outputs[f"{name}.wpe"] = narrow.transformer.wpe.weight
    save("outputs", outputs)
    dump(os.path.join(HERE, "weights", "run.safetensors"), randomised(Block()), torch.randn(2, 3, 4))


if __name__ == "__main__":
    main()
