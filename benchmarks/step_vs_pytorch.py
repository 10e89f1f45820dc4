#!/usr/bin/env python3
"""Time and memory of one training step, beside PyTorch doing the same step, in turn on the same machine.

  benchmarks/step_vs_pytorch.py --data TEXT [--binary B] [--steps N] [--rounds R] [--reference SCRIPT]

Needs python3-torch.  PyTorch's side is scripts/pytorch/train.py, or another script whose `bench` prints
"ms_per_step X".  Prints milliseconds per step (median after the first fifth), peak memory,
and ours as a ratio of PyTorch's.  PyTorch runs as it is fastest here: two threads of its own, one of BLAS's.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def run(command, env):
    """Runs a command; returns its output and the peak memory of that process in MiB."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}\n{out}{err}")
    return out, usage.ru_maxrss / 1024


def train(a, program, env):
    """Trains the nano recipe; both programs take the same flags and write the same files."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        _, memory = run([*program, "--preset", "nano", "--data", a.data, "--out", out, "--threads", "2",
                         "--max-iters", str(a.steps), "--eval-interval", str(a.steps), "--eval-iters", "1"], env)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as f:
            times = [json.loads(line)["ms"] for line in f]
    return statistics.median(times[a.steps // 5:]), memory


def ours(a, env):
    return train(a, [a.binary, "train"], env)


def theirs(a, env):
    env = {**env, "OPENBLAS_NUM_THREADS": "1"}
    if not a.reference:
        here = os.path.dirname(os.path.abspath(__file__))
        return train(a, ["/usr/bin/python3", os.path.join(here, "../scripts/pytorch/train.py")], env)
    out, memory = run(["/usr/bin/python3", a.reference, "bench", "--data", a.data, "--steps", str(a.steps),
                       "--threads", "2"], env)
    return float(out.split()[1]), memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference")
    parser.add_argument("--data", required=True)
    parser.add_argument("--binary", default="build/release/examples/char_transformer")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}  # it may name slower kernels
    rows = []
    for number in range(a.rounds):
        (our_ms, our_mb), (their_ms, their_mb) = ours(a, env), theirs(a, env)
        rows.append((our_ms / their_ms, our_mb / their_mb))
        print(f"round {number}: xgrad {our_ms:.2f} ms {our_mb:.0f} MiB   PyTorch {their_ms:.2f} ms {their_mb:.0f} MiB   "
              f"ratio {rows[-1][0]:.2f} time {rows[-1][1]:.2f} memory", flush=True)
    print(f"median ratio: time {statistics.median(r[0] for r in rows):.2f}, "
          f"memory {statistics.median(r[1] for r in rows):.2f}")


main()
