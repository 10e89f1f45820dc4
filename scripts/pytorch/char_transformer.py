#!/usr/bin/env python3
"""examples/char_transformer/char_transformer.cpp in PyTorch, which draws the same numbers and so prints the same losses.

  scripts/pytorch/char_transformer.py [TEXT] [--steps N] [--every N] [--seed N]

Needs PyTorch 1.13 or newer, built without MKL, such as Debian's python3-torch.
"""
import argparse
import math
import re
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

B, T, C, H, LAYERS = 12, 64, 128, 4, 4
PROGRAM = Path(__file__).parents[2] / "examples/char_transformer/char_transformer.cpp"


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.c_attn(x).view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4)
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        scores = (q / math.sqrt(C // H) @ k.mT).masked_fill(future, -math.inf)
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(C), CausalSelfAttention(), nn.LayerNorm(C)
        self.c_fc, self.c_proj = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x))))


class CharTransformer(nn.Module):
    def __init__(self, V):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        self.h, self.ln_f = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(C)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * LAYERS) if name.endswith("c_proj.weight") else 0.02)

    def loss(self, ids, starts):
        at = starts + torch.arange(T)
        x = self.wte(ids[at]) + self.wpe(torch.arange(T))
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), ids[at + 1].flatten())


def learning_rate(step, steps):
    """Rises over the first twentieth, then half a cosine wave from 1e-3 down to 1e-4."""
    warmup = steps // 20
    if step < warmup:
        return 1e-3 * (step + 1) / (warmup + 1)
    return 1e-4 + 9e-4 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", metavar="TEXT", help="by default the verses of the program")
    for name, value in {"steps": 2000, "every": 100, "seed": 1337}.items():
        parser.add_argument("--" + name, type=int, default=value, metavar="N")
    a = parser.parse_args()
    text = (Path(a.text) if a.text else PROGRAM).read_bytes().decode()
    if not a.text:
        text = re.search(r'R"\((.*?)\)"', text, re.DOTALL).group(1)
    characters = sorted(set(text))
    ids = torch.tensor([characters.index(c) for c in text])[:len(text) * 9 // 10]

    torch.manual_seed(a.seed)
    model = CharTransformer(len(characters))
    groups = [{"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.99))
    for step in range(a.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, a.steps)
        optimizer.zero_grad()
        loss = model.loss(ids, torch.randint(len(ids) - T, (B, 1)))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if a.every > 0 and step % a.every == 0:
            print(f"step {step} loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
