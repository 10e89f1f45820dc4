#!/usr/bin/env python3
"""Writes curves.csv: the losses of short runs in PyTorch, which the tests compare with ours.

  tests/lm/program/curve.py          curves.csv
  tests/lm/program/curve.py SCENES   curves_bfloat16.csv, under torch.autocast

A line "# FLAGS" begins each curve; its lines are "step,loss".  The text is made by the rule in text(), which the test
repeats.  SCENES is a file with the text of corpus::scenes_corpus(), on which `xgrad train` without --data trains.
Needs python3-torch.
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../scripts/pytorch"))
import gpt
import torch

TINY = "--block-size 16 --batch-size 6 --n-layer 2 --n-head 2 --n-embd 32 --warmup-iters 5 --lr-decay-iters 35 "
CURVES = [
    TINY + "--max-iters 40 --seed 1337 --learning-rate 0.01 --min-lr 0.001",
    TINY + "--max-iters 40 --seed 7 --learning-rate 0.005 --min-lr 0.0001 --dropout 0.2 --bias --gradient-accumulation-steps 2 "
           "--weight-decay 0.3 --grad-clip 0.5 --beta2 0.95",
    TINY + "--max-iters 20 --seed 3 --n-head 4 --dropout 0.5 --grad-clip 0",
]
ROUNDED = ["--preset nano --max-iters 300 --dtype bfloat16"]


def text():
    """Words drawn by a linear congruential generator."""
    words = "the old cat sat on a red mat and saw two small dogs run by".split()
    state, lines = 1, []
    for _ in range(300):
        line = []
        for _ in range(5):
            state = (state * 1103515245 + 12345) % 2**31
            line.append(words[(state >> 16) % len(words)])
        lines.append(" ".join(line) + ".\n")
    return "".join(lines)


def main():
    rounded = len(sys.argv) > 1
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(text())
        file.flush()
        source = gpt.Text(sys.argv[1] if rounded else file.name)
    with open(os.path.join(HERE, "curves_bfloat16.csv" if rounded else "curves.csv"), "w", encoding="utf-8") as out:
        print(f"# PyTorch {torch.__version__}", file=out)
        for flags in ROUNDED if rounded else CURVES:
            a = gpt.parse_recipe(flags.split())
            training = gpt.Training(a, source)
            print("# " + flags, file=out)
            for step in range(a.max_iters):
                print(f"{step},{training.step()[0]:.{5 if rounded else 9}g}", file=out)


main()
