#!/usr/bin/env python3
"""Causal attention by length, forward and backward, beside PyTorch's fused kernel, in turn on the same machine.

  tests/bench/attention_vs_pytorch.py --python PYTHON [--rounds R]

Four heads of 32, as tests/bench/attention_bench.cpp; PYTHON has torch 2, and runs on one and on two threads, of which the faster
counts.  Prints milliseconds, the best of the rounds, and ours as a ratio of theirs.
"""
import argparse
import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LENGTHS = [64, 512, 1024, 4096, 8192]


def theirs():
    import torch
    import torch.nn.functional as F

    for t in LENGTHS:
        q, k, v = (torch.randn(1, 4, t, 32, requires_grad=True) for _ in range(3))
        best = float("inf")
        for _ in range(max(3, 20000 // t)):
            begin = time.perf_counter()
            F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
            best = min(best, 1000 * (time.perf_counter() - begin))
            q.grad = k.grad = v.grad = None
        print(best)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--binary", default=str(ROOT / "build/release/tests/bench/xgrad_bench"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--theirs", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.theirs:
        return theirs()
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}  # it may name slower kernels
    mine, best = [float("inf")] * len(LENGTHS), [float("inf")] * len(LENGTHS)
    for _ in range(a.rounds):
        out = subprocess.run([a.binary, "--benchmark_filter=causal_attention", "--benchmark_format=json"], env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, check=True).stdout
        rows = {row["name"]: row["real_time"] for row in json.loads(out)["benchmarks"]}
        mine = [min(b, rows[f"causal_attention/{t}/real_time"]) for b, t in zip(mine, LENGTHS)]
        for threads in "12":
            out = subprocess.run([a.python, __file__, "--python", a.python, "--theirs"], env={**env, "OMP_NUM_THREADS": threads},
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
            best = [min(b, float(ms)) for b, ms in zip(best, out.split())]
    for t, ms, other in zip(LENGTHS, mine, best):
        print(f"T = {t:5}: xgrad {ms:8.2f} ms   PyTorch {other:8.2f} ms   ratio {ms / other:.2f}")


main()
