#!/usr/bin/env python3
"""Time of a step of `nano` on two ranks of one thread, beside PyTorch's DistributedDataParallel on gloo, in turn on the same machine.

  extras/benchmarks/ddp_vs_pytorch.py --data TEXT [--ranks N] [--steps N] [--rounds R] [--python PYTHON]...

Each --python is an interpreter that has torch (the default is /usr/bin/python3).  Both train the same model from the same
weights on the same batches; the norm of the first gradient is compared.  Prints, for each round, milliseconds a step (median
after the first fifth) and ours as a ratio of theirs; then the medians of the ratios.  Needs extras with MPI.
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def worker(a):
    """One of PyTorch's processes; the first prints a line for each step."""
    sys.path.insert(0, str(ROOT / "scripts/pytorch"))
    import gpt
    import torch

    class Loss(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x, y):
            return self.model.loss(x, y)

    class Ranks(torch.nn.parallel.DistributedDataParallel):
        def loss(self, x, y):
            n = len(x) // a.ranks
            rows = slice(a.worker * n, (a.worker + 1) * n)
            return self(x[rows], y[rows])

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{a.store}", rank=a.worker, world_size=a.ranks)
    training = gpt.Training(gpt.parse_recipe([]), gpt.Text(a.data))
    training.model = Ranks(Loss(training.model))
    for _ in range(a.steps):
        begin = time.perf_counter()
        _, _, norm = training.step()
        if a.worker == 0:
            print(json.dumps({"grad_norm": norm, "ms": 1e3 * (time.perf_counter() - begin)}))
    torch.distributed.destroy_process_group()


def summary(a, rows):
    return statistics.median(row["ms"] for row in rows[a.steps // 5:]), rows[0]["grad_norm"]


def ours(a, env):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        subprocess.run([*shlex.split(a.mpirun), "-n", str(a.ranks), a.binary, "train", "-q", "--data", a.data, "--out", out, "--threads",
                        "1", "--max-iters", str(a.steps), "--eval-interval", str(10 * a.steps), "--eval-iters", "1"],
                       env=env, stdout=subprocess.DEVNULL, check=True)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            return summary(a, [json.loads(line) for line in file])


def theirs(a, python, env):
    with tempfile.TemporaryDirectory() as folder:
        command = [python, __file__, "--data", a.data, "--ranks", str(a.ranks), "--steps", str(a.steps), "--store",
                   os.path.join(folder, "store"), "--worker"]
        processes = [subprocess.Popen([*command, str(rank)], env=env, stdout=subprocess.PIPE, text=True) for rank in range(a.ranks)]
        out = [p.communicate()[0] for p in processes]
        if any(p.returncode for p in processes):
            sys.exit(f"failed: {' '.join(command)}")
        return summary(a, [json.loads(line) for line in out[0].splitlines()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--binary", default=str(ROOT / "build/release/extras/mpi/char_transformer"))
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--python", action="append")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.worker is not None:
        worker(a)
        return
    if 12 % a.ranks:
        parser.error("the batch has 12 rows, as many for each rank")
    a.data = os.path.abspath(a.data)
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}  # it may name slower kernels
    one_thread = {**env, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    pythons = a.python or ["/usr/bin/python3"]
    versions = {p: subprocess.run([p, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout.strip() for p in pythons}
    ratios = {p: [] for p in pythons}
    for number in range(a.rounds):
        ms, norm = ours(a, env)
        print(f"round {number}: xgrad {ms:.2f} ms", end="", flush=True)
        for p in pythons:
            other, other_norm = theirs(a, p, one_thread)
            if abs(norm - other_norm) > 1e-4 * norm:
                sys.exit(f"\nthe first gradient's norm is {norm} here, {other_norm} there")
            ratios[p].append(ms / other)
            print(f"   PyTorch {versions[p]} {other:.2f} ms, ratio {ms / other:.2f}", end="", flush=True)
        print()
    for p in pythons:
        print(f"PyTorch {versions[p]}: median ratio {statistics.median(ratios[p]):.2f}")


main()
