#!/usr/bin/env python3
"""What a gradient check of a TransformerBlock costs, beside torch.autograd.gradcheck of the same block.

  extras/benchmarks/gradcheck_vs_pytorch.py [--binary B] [--rounds R] [--fast-only]

nanoGPT's block, 32 wide, 4 heads, a sequence of 8, float64, all inputs and parameters.  Needs python3-torch; the
binary is examples/gradcheck_attention.  Prints seconds of the full and the fast check, the best of the rounds, in
turn in one run, and ours as a ratio of PyTorch's.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "scripts" / "pytorch"))


def ours(binary, env):
    done = subprocess.run([binary, "--time"], env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"failed: {binary} --time\n{done.stdout}")
    return {kind: float(seconds) for kind, seconds in re.findall(r"(\w+) ([\d.]+) seconds", done.stdout)}


def theirs(fast):
    import torch

    import gpt

    torch.manual_seed(1337)
    torch.set_num_threads(1)  # faster than two at this size
    block = gpt.Block(gpt.Config(vocab_size=1, block_size=8, n_head=4, n_embd=32, bias=True, dropout=0.0)).double()
    x = torch.randn(1, 8, 32, dtype=torch.float64, requires_grad=True)
    begin = time.perf_counter()
    # gradcheck changes its inputs in place, so the block sees it, without the cost of functional_call
    torch.autograd.gradcheck(lambda given, *parameters: block(given), (x, *block.parameters()), fast_mode=fast)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build/release/examples/gradcheck_attention"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fast-only", action="store_true", help="PyTorch's full check takes several seconds")
    a = parser.parse_args()
    os.environ.pop("OPENBLAS_CORETYPE", None)
    kinds = ["fast"] if a.fast_only else ["full", "fast"]
    best = {kind: [float("inf"), float("inf")] for kind in kinds}
    for _ in range(a.rounds):
        for kind, seconds in ours(a.binary, os.environ).items():
            if kind in best:
                best[kind][0] = min(best[kind][0], seconds)
        for kind in kinds:
            best[kind][1] = min(best[kind][1], theirs(kind == "fast"))
    for kind, (mine, other) in best.items():
        print(f"{kind}: xgrad {mine:.4f} s, PyTorch {other:.4f} s, ratio {mine / other:.3f}")


if __name__ == "__main__":
    main()
