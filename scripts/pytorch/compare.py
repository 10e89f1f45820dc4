"""Trains one model twice, with xgrad and with PyTorch, and compares the losses of all steps.

Takes the flags of `xgrad train`, and these:

  --steps N        as --max-iters
  --tolerance X    the largest relative difference that passes [1e-5]
  --out DIR        where both runs and the picture go [runs/compare-000, runs/compare-001, ...]
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys

# One BLAS thread and all of PyTorch's own, its fastest setting.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.pop("OPENBLAS_CORETYPE", None)  # it may name slower kernels

import torch

import gpt
import train
import validation_loss

ROWS = 20  # of the table, at most
# The words of the text without --data.
WORDS = "a my your the goose badger lantern kettle mayor sailor stole paints kissed loses ate wooden velvet grumpy".split()


def parse_flags():
    parser = argparse.ArgumentParser(prog="compare-pytorch", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help=argparse.SUPPRESS)
    parser.add_argument("--data", metavar="TEXT")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--out", metavar="DIR")
    gpt.add_recipe(parser)
    a = parser.parse_args()
    if a.steps is not None:
        a.max_iters = a.steps
    if a.max_iters is not None and a.max_iters < 1:
        parser.error("there is nothing to compare without steps")
    # The flags that were given, for the other program; it knows the presets itself.
    given = ["--preset", a.preset, "--seed", str(a.seed)]
    if a.threads:
        given += ["--threads", str(a.threads)]
    for name in gpt.NANO:
        if getattr(a, name) is not None:
            given += ["--" + name.replace("_", "-"), str(getattr(a, name))]
    return gpt.fill_recipe(a), given


def new_folder():
    number = 0
    while os.path.exists(path := f"runs/compare-{number:03}"):
        number += 1
    return path


def run_xgrad(a, given):
    command = [os.path.join(a.build, "bin/xgrad"), "train", "--data", a.data,
               "--out", os.path.join(a.out, "xgrad"), *given]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.stderr.write(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
        sys.exit(2)
    with open(os.path.join(a.out, "xgrad/metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Table:
    """A line now and then, with the largest difference since the line before."""

    def __init__(self, ours):
        self.ours, self.theirs, self.shown = ours, [], -1
        self.every = max(100 if len(ours) > 500 else 25, len(ours) // ROWS)
        print("  step        xgrad      PyTorch   difference", flush=True)

    def difference(self, step):
        return abs(self.ours[step]["loss"] - self.theirs[step]["loss"]) / abs(self.theirs[step]["loss"])

    def add(self, row):
        self.theirs.append(row)
        step = row["step"]
        if step % self.every == 0 or step + 1 == len(self.ours):
            largest = max(self.difference(i) for i in range(self.shown + 1, step + 1))
            print(f"{step:6}  {self.ours[step]['loss']:11.7f}  {row['loss']:11.7f}   {largest:10.1e}", flush=True)
            self.shown = step

    def largest(self):
        """The largest difference, and its step.  NaN is the largest of all."""
        if not len(self.theirs) == len(self.ours) > 0:
            sys.exit(f"compare-pytorch: {len(self.ours)} steps of xgrad and {len(self.theirs)} of PyTorch")
        differences = [(self.difference(step), step) for step in range(len(self.theirs))]
        return max(differences, key=lambda d: (math.isnan(d[0]), *d))


def main():
    a, given = parse_flags()
    binaries = os.path.join(a.build, "examples")
    a.out = a.out or new_folder()
    os.makedirs(a.out, exist_ok=True)
    if not a.data:
        a.data = os.path.join(a.out, "text.txt")
        choice = random.Random(1337).choice
        with open(a.data, "w", encoding="ascii") as file:
            file.writelines(choice(WORDS) + choice("     .\n") for _ in range(200_000))

    steps = f"{a.max_iters:,} step{'s' if a.max_iters > 1 else ''}"
    print(f"{steps} of n_layer {a.n_layer}, n_head {a.n_head}, n_embd {a.n_embd}, dropout {a.dropout:g}, seed {a.seed}: "
          "xgrad first, then PyTorch", flush=True)
    table = Table(run_xgrad(a, given))
    folder, a.out = a.out, os.path.join(a.out, "pytorch")
    training, text = train.run(a, table.add)

    largest, at = table.largest()
    print(f"largest relative difference {largest:.1e}, at step {at}; allowed: {a.tolerance:g}")
    model, _ = validation_loss.open_model(os.path.join(folder, "xgrad/checkpoint.safetensors"))
    theirs = gpt.validation_loss(model, text.validation, gpt.LAST_BLOCKS)
    print(f"validation loss of xgrad's weights: {table.ours[-1]['final_val_loss']:.9g} in xgrad, {theirs:.9g} in PyTorch; "
          f"of PyTorch's weights: {table.theirs[-1]['final_val_loss']:.9g}")
    ours_ms, theirs_ms = (statistics.median(row["ms"] for row in rows) for rows in (table.ours, table.theirs))
    print(f"a step takes {ours_ms:.1f} ms in xgrad, {theirs_ms:.1f} ms in PyTorch", flush=True)
    subprocess.run([os.path.join(binaries, "xgrad"), "compare", os.path.join(folder, "xgrad"),
                    os.path.join(folder, "pytorch"), "--out", os.path.join(folder, "losses.svg")], check=True)
    if not largest <= a.tolerance:
        hint = ("; this PyTorch is built with MKL, which draws other masks of dropout"
                if a.dropout and torch.backends.mkl.is_available() else "")
        sys.exit(f"compare-pytorch: the losses differ by more than {a.tolerance:g}{hint}")


if __name__ == "__main__":
    main()
