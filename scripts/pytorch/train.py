#!/usr/bin/env python3
"""`xgrad train` in PyTorch: the same flags, the same draws, the same files.

  scripts/pytorch/train.py --data TEXT --out DIR [--preset nano|baby|micro] [--n-layer N ...]

Writes metrics.jsonl as xgrad does, and model.safetensors, which `xgrad train --init-from` reads.
"""
import argparse
import json
import os
import sys
import time

import torch

import gpt
from safetensors_file import save_safetensors


def run(a, on_step=lambda row: None):
    """Makes a run of a recipe; shows each row of metrics.jsonl to on_step.  Returns the training and its text."""
    if a.threads:
        torch.set_num_threads(a.threads)
    os.makedirs(a.out, exist_ok=True)
    for name in ("metrics.jsonl", "model.safetensors"):
        if os.path.exists(os.path.join(a.out, name)):
            sys.exit(f"{a.out}: the folder holds a run already ({name}); name another, or remove it")

    text = gpt.Text(a.data)
    training = gpt.Training(a, text)
    if getattr(a, "compile", False):
        training.model.loss = torch.compile(training.model.loss)
    with open(os.path.join(a.out, "metrics.jsonl"), "w", encoding="utf-8") as metrics:
        for step in range(a.max_iters):
            begin = time.perf_counter()
            loss, rate, norm = training.step()
            row = {"step": step, "loss": loss, "lr": rate, "grad_norm": norm,
                   "ms": round(1e3 * (time.perf_counter() - begin), 3)}
            if step + 1 == a.max_iters:
                row["final_val_loss"] = gpt.validation_loss(training.model, text.validation, gpt.LAST_BLOCKS)
                row["final_val_loss_over"] = f"at most {gpt.LAST_BLOCKS:,} blocks"
            print(json.dumps(row), file=metrics, flush=True)
            on_step(row)

    config = {**vars(training.model.config), "data": os.path.abspath(a.data)}
    save_safetensors(training.model.state_dict(), os.path.join(a.out, "model.safetensors"),
                     {"format": "pt", "config": json.dumps(config), "characters": text.characters})
    return training, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--data", required=True, metavar="TEXT")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--compile", action="store_true", help="through torch.compile (PyTorch 2), whose sums may be in another order")
    parser.add_argument("--fused", action="store_true", help="AdamW's fused form (PyTorch 2.4)")
    gpt.add_recipe(parser)
    run(gpt.fill_recipe(parser.parse_args()), lambda row: print(f"step {row['step']} loss {row['loss']:.9g}"))


if __name__ == "__main__":
    main()
