#!/usr/bin/env python3
"""Tokens per second of generation, one stream of the nano model, beside PyTorch's, in turn on the same machine.

  tests/bench/generate_vs_pytorch.py [--binary B] [--rounds R]

Needs python3-torch; the binary is tests/bench/xgrad_bench (XGRAD_EXTRAS=ON).  PyTorch generates as nanoGPT does: the
whole window goes through scripts/pytorch/gpt.py for each token, with one and with two threads, of which the faster counts.
Prints ours from one token to the end of the block, with the key/value cache, and beyond the block, where nothing can be
cached; the best of the rounds.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CASES = ["generate/in_block", "generate/beyond_block"]


def theirs(threads):
    """PyTorch's tokens per second in the block and beyond; in a process of its own, because its threads stay."""
    sys.path.append(str(ROOT / "scripts" / "pytorch"))
    import torch
    from gpt import GPT, Config

    torch.set_num_threads(threads)
    torch.manual_seed(1337)
    model = GPT(Config(65)).eval()

    @torch.no_grad()
    def generate(idx, tokens):
        start, size = time.perf_counter(), model.config.block_size
        for _ in range(tokens):
            window = idx[:, -size:]
            t = model.transformer
            x = t.drop(t.wte(window) + t.wpe(torch.arange(window.shape[1])))
            for block in t.h:
                x = block(x)
            logits = model.lm_head(t.ln_f(x[:, -1]))
            idx = torch.cat([idx, torch.multinomial(torch.softmax(logits, -1), 1)], dim=1)
        return tokens / (time.perf_counter() - start)

    one, full = torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 65, dtype=torch.long)
    generate(one, 64)
    print(max(generate(one, 64) for _ in range(5)), max(generate(full, 64) for _ in range(5)))


def ours(binary, env):
    out = subprocess.run([binary, "--benchmark_filter=generate/", "--benchmark_min_time=0.3", "--benchmark_format=json"],
                         env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    best = dict.fromkeys(CASES, 0.0)
    for row in json.loads(out)["benchmarks"]:
        name = "/".join(row["name"].split("/")[:2])
        best[name] = max(best[name], row["tokens_per_second"])
    return [best[name] for name in CASES]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build/release/tests/bench/xgrad_bench"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pytorch", type=int, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.pytorch:
        return theirs(a.pytorch)
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}  # it may name slower kernels
    mine, torchs = [0.0] * 2, [0.0] * 2
    for _ in range(a.rounds):
        mine = list(map(max, mine, ours(a.binary, env)))
        for threads in (1, 2):
            out = subprocess.run(["/usr/bin/python3", __file__, "--pytorch", str(threads)],
                                 env={**env, "OPENBLAS_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True, check=True)
            torchs = list(map(max, torchs, map(float, out.stdout.split())))
    for name, number, other in zip(CASES, mine, torchs):
        print(f"{name:28} xgrad {number:7.0f} tokens/s   PyTorch {other:5.0f}   ratio {number / other:.1f}")


main()
