#!/usr/bin/env python3
"""Time and memory of one training step, and the time until the first is made, beside PyTorch doing the same step, in turn on the same machine.

  tests/bench/step_vs_pytorch.py --data TEXT [--preset P] [--batch-size B] [--steps N] [--rounds R] [--python PYTHON]... [--dtype bfloat16]

Each --python is an interpreter that has torch (the default is /usr/bin/python3); it runs scripts/pytorch/train.py eager, with
fused AdamW, and compiled with fused AdamW (PyTorch 2), with --dtype bfloat16 each under autocast as well, on one and on two
threads of its own, each with one and with two of OpenBLAS's: the fastest counts, and is named.  Prints, for each round,
milliseconds a step (median after the first fifth), peak memory, and ours as a ratio of theirs, and seconds from the start of
the process to the line of its first step; then the medians of the ratios.  --busy keeps the second core busy with another
program meanwhile; --dtype is ours, too.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(command, env):
    """Runs a command; returns the peak memory of that process in MiB, and the seconds until it told of its first step."""
    begin, first, lines = time.perf_counter(), None, []
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if first is None and line.startswith("step "):
            first = time.perf_counter() - begin
        lines.append(line)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}\n{''.join(lines)}")
    return usage.ru_maxrss / 1024, first


def train(a, program, threads, env):
    """Both programs take the same flags and write the same files."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        flags = ["--preset", a.preset, "--data", a.data, "--out", out, "--threads", str(threads), "--max-iters", str(a.steps),
                 "--eval-interval", str(10 * a.steps), "--eval-iters", "1", "--dropout", "0"]
        if a.dtype and program[0] == a.binary:
            flags += ["--dtype", a.dtype]
        if a.batch_size:
            flags += ["--batch-size", str(a.batch_size)]
        memory, first = run([*program, *flags], env)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as f:
            times = [json.loads(line)["ms"] for line in f]
    return statistics.median(times[a.steps // 5:]), memory, first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/xgrad"))
    parser.add_argument("--python", action="append")
    parser.add_argument("--preset", default="nano")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"])
    a = parser.parse_args()
    a.data = os.path.abspath(a.data)
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}  # it may name slower kernels
    theirs = [(omp, {**env, "OMP_NUM_THREADS": str(omp), "OPENBLAS_NUM_THREADS": str(blas), "PYTHONUNBUFFERED": "1"})
              for omp in (1, 2) for blas in (1, 2)]
    pythons = a.python or ["/usr/bin/python3"]
    forms = [words + more for words in ([], ["--fused"], ["--fused", "--compile"])
             for more in ([[], ["--dtype", "bfloat16"]] if a.dtype == "bfloat16" else [[]])]
    versions = {p: subprocess.run([p, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout.strip() for p in pythons}
    other = subprocess.Popen(["taskset", "-c", "1", "sh", "-c", "while :; do :; done"]) if a.busy else None
    ratios = {p: [] for p in pythons}
    try:
        for number in range(a.rounds):
            ms, mb, first = train(a, [a.binary, "train"], 2, env)
            print(f"round {number}: xgrad {ms:.2f} ms {mb:.0f} MiB, first step after {first:.2f} s", end="", flush=True)
            for p in pythons:
                script = [p, str(ROOT / "scripts/pytorch/train.py")]
                old = versions[p].startswith("1.")
                (best, memory, first), form = min((train(a, script + form, omp, e), form)
                                                  for form in forms if not (old and form) for omp, e in theirs)
                ratios[p].append((ms / best, mb / memory))
                print(f"   PyTorch {versions[p]} {' '.join(form) or 'eager'} {best:.2f} ms {memory:.0f} MiB {first:.2f} s, ratio {ms / best:.2f}",
                      end="", flush=True)
            print()
    finally:
        if other:
            other.kill()
    for p in pythons:
        print(f"PyTorch {versions[p]}: median ratio: time {statistics.median(r[0] for r in ratios[p]):.2f}, "
              f"memory {statistics.median(r[1] for r in ratios[p]):.2f}")


main()
