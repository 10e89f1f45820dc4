#!/usr/bin/env python3
"""What a training step of a tiny model costs, beside PyTorch and micrograd doing the same step.

  extras/benchmarks/moons_vs_peers.py [--binary B] [--steps N] [--rounds R]

micrograd's example: a multilayer perceptron 2-16-16-1 with ReLU, the max-margin loss, 100 points on two moons, SGD,
the same initial weights.  Needs torch; micrograd is left out where it is not installed.  Prints the median
microseconds of a step, in turn in one run, and ours as a ratio of each.  PyTorch runs on one thread, as it is
fastest here.  Fails if the losses after the last step differ by more than 1e-4 (micrograd: after its own 3 steps).
"""
import argparse
import math
import statistics
import subprocess
import sys
import time

import torch

try:
    import micrograd.nn
except ImportError:
    micrograd = None

MICROGRAD_STEPS = 3  # one takes a tenth of a second


def moons():
    angles = [math.pi * i / 49 for i in range(50)]
    first = [(math.cos(a), math.sin(a)) for a in angles]
    return first + [(1 - x, 0.5 - y) for x, y in first], [-1.0] * 50 + [1.0] * 50


def model():
    torch.manual_seed(1337)
    return torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16), torch.nn.ReLU(),
                               torch.nn.Linear(16, 1))


def timed(step, steps):
    """Median microseconds of a step, and what the last one returned."""
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        loss = step()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times), loss


def xgrad_time(binary, steps):
    out = subprocess.run([binary, str(steps)], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return float(out[0]), float(out[3])


def torch_time(steps):
    torch.set_num_threads(1)
    points, labels = moons()
    x, y = torch.tensor(points), torch.tensor(labels).unsqueeze(1)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step():
        loss = torch.relu(1 - y * net(x)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return timed(step, steps)


def micrograd_time(steps):
    points, labels = moons()
    net = micrograd.nn.MLP(2, [16, 16, 1])
    for layer, linear in zip(net.layers, [m for m in model() if isinstance(m, torch.nn.Linear)]):
        for neuron, row, bias in zip(layer.neurons, linear.weight.tolist(), linear.bias.tolist()):
            neuron.b.data = bias
            for w, value in zip(neuron.w, row):
                w.data = value

    def step():
        losses = [(1 - y * net(p)).relu() for p, y in zip(points, labels)]
        loss = sum(losses) * (1 / len(losses))
        net.zero_grad()
        loss.backward()
        for p in net.parameters():
            p.data -= 0.1 * p.grad
        return loss.data

    return timed(step, steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/extras/benchmarks/xgrad_moons")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    peers = {"PyTorch": (torch_time, a.steps)}
    if micrograd is not None:
        peers["micrograd"] = (micrograd_time, MICROGRAD_STEPS)
    wanted = {steps: xgrad_time(a.binary, steps)[1] for _, steps in peers.values()}
    ratios = {name: [] for name in peers}
    for number in range(a.rounds):
        ours, _ = xgrad_time(a.binary, a.steps)
        line = f"round {number}: xgrad {ours:.1f} us"
        for name, (run, steps) in peers.items():
            theirs, loss = run(steps)
            if abs(loss - wanted[steps]) > 1e-4:
                sys.exit(f"{name}: loss {loss} after {steps} steps, ours is {wanted[steps]}")
            ratios[name].append(theirs / ours)
            line += f"   {name} {theirs:.1f} us ({theirs / ours:.1f} times)"
        print(line, flush=True)
    print("median: " + ", ".join(f"{name} takes {statistics.median(r):.1f} times as long" for name, r in ratios.items()))


main()
