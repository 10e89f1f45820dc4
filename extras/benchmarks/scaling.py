#!/usr/bin/env python3
"""How long a step takes on many hosts; extras/mpi/README.md has the results.

  extras/benchmarks/scaling.py                                    the predictions
  extras/benchmarks/scaling.py --data TEXT [--rounds N]           beside measurements on this machine (needs extras with MPI)

Measures `nano` on 2 ranks of 1 thread beside 1 process of 2 threads, on more ranks than there are processors, and over a
network that extras/benchmarks/slow_network.cpp slows down.

  T = C s / S + u P + X                    a step
  D = (1 + m) (R - 1) / R G                bytes that a rank sends, and receives
  N = D / W + (1 + m) (R - 1) M o          what the network needs
  X = max(N_last, N - B) + 6 (L + (R - 1) o)

C         forward and backward of the whole batch on one host
S, R, s   shards, ranks, and the most shards that a rank has
P, u, G   parameters, what a rank does for each of them (sum, norm, clipping, AdamW), and bytes of the gradient: 4 P
m         1 where a rank's shards are one subtree of the sum's tree, else the number of subtrees that they fall into
M, o      buckets, and what a message costs its rank
W, L      bandwidth of a rank, latency; six latencies are exchanges and agreements that nothing hides
B         from a rank's first complete bucket to its last: 2/3 of its last shard's time, without the first bucket's part
N_last    the part of N of the last bucket, that of the embedding, which nothing hides
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUCKET_BYTES = 1 << 20


class Model:
    def __init__(self, name, layers, width, block, vocabulary):
        self.name, self.layers, self.width, self.block = name, layers, width, block
        of_block = [width, 3 * width * width, width * width, width, 4 * width * width, 4 * width * width]
        self.parameters = [vocabulary * width, block * width, *of_block * layers, width]  # as named_parameters() has them
        self.count = sum(self.parameters)

    def flops(self, tokens):
        """Of a step: 2 for a multiply-add, and a backward is two forwards."""
        return tokens * (6 * (self.count - self.block * self.width) + 12 * self.layers * self.block * self.width)

    def buckets(self):
        """Bytes of each, as DataParallel::make_buckets()."""
        sizes = []
        for n in reversed(self.parameters):
            if not sizes or sizes[-1] >= BUCKET_BYTES:
                sizes.append(0)
            sizes[-1] += 4 * n
        return sizes


def subtrees(begin, end, first, last):
    if begin >= last or end <= first:
        return 0
    if begin >= first and end <= last:
        return 1
    middle = begin + (end - begin) // 2
    return subtrees(begin, middle, first, last) + subtrees(middle, end, first, last)


def most_subtrees(shards, ranks):
    return max(subtrees(0, shards, r * shards // ranks, (r + 1) * shards // ranks) for r in range(ranks))


def exchange(model, shards, ranks, window, latency, bandwidth, per_message):
    """Seconds that a step takes longer for its messages, of which backward's last `window` seconds hide some."""
    if ranks == 1:
        return 0
    m = most_subtrees(shards, ranks)
    wire = [(1 + m) * b * (ranks - 1) / ranks / bandwidth + (1 + m) * (ranks - 1) * per_message for b in model.buckets()]
    return max(wire[-1], sum(wire) - window) + 6 * (latency + (ranks - 1) * per_message)


def backward_window(compute, shards, buckets):
    """Seconds from a rank's first complete bucket to its last: most of the backward of its last shard."""
    return compute / shards * 2 / 3 * (1 - buckets[0] / sum(buckets))


def step(model, tokens, shards, ranks, latency, bandwidth, per_message, flops_per_second, seconds_per_parameter):
    """Seconds of a step on so many ranks, each on a host of its own."""
    compute = model.flops(tokens) / flops_per_second * -(-shards // ranks) / shards
    fixed = seconds_per_parameter * model.count
    window = backward_window(compute, -(-shards // ranks), model.buckets())
    return compute + fixed + exchange(model, shards, ranks, window, latency, bandwidth, per_message)


# ---- predictions ----

NANO, BABY, GPT2 = Model("nano", 4, 128, 64, 65), Model("baby", 6, 384, 256, 65), Model("GPT-2 124M", 12, 768, 1024, 50257)


def predict(a):
    print(f"A host: {a.gflops:g} GFLOP/s, {a.ns_per_parameter:g} ns for a parameter's update; latency {a.latency_us:g} us, {a.us_per_message:g} us "
          "for a message.  Efficiency, with one shard for each host:")
    gbits = (1, 10, 100)
    print("| model, characters or tokens of a step | hosts |", *(f"{g} Gbit/s |" for g in gbits))
    for model, rows in ((NANO, 12), (NANO, 8192), (BABY, 64), (BABY, 2048), (GPT2, 512)):
        def seconds(ranks, gbit, model=model, rows=rows):
            return step(model, rows * model.block, ranks, ranks, a.latency_us * 1e-6, gbit * 1e9 / 8, a.us_per_message * 1e-6,
                        a.gflops * 1e9, a.ns_per_parameter * 1e-9)
        alone = seconds(1, 1)
        for hosts in (8, 64, 512):
            cells = [f"{alone / seconds(hosts, g) / hosts:.0%}" if hosts <= rows else "-" for g in gbits]
            name = f"{model.name}, {rows * model.block:,}: {alone:.3g} s on one" if hosts == 8 else ""
            print(f"| {name} | {hosts} |", *(f"{cell} |" for cell in cells))


# ---- measurements ----


def run(a, ranks, threads, flags=(), network=None):
    """The median of a step's milliseconds."""
    launcher = shlex.split(a.mpirun) + ["-n", str(ranks)] if ranks > 1 else []
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    if network:
        launcher += ["env", f"SLOW_NETWORK_LATENCY_US={network[0]}", f"SLOW_NETWORK_GBIT_S={network[1]}",
                     f"LD_PRELOAD={a.build}/extras/benchmarks/libxgrad_slow_network.so"]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        subprocess.run([*launcher, f"{a.build}/extras/mpi/char_transformer", "train", "-q", "--data", a.data, "--out", out, "--threads",
                        str(threads), "--max-iters", str(a.steps), "--eval-interval", str(10 * a.steps), "--eval-iters", "1",
                        *flags], env=env, stdout=subprocess.DEVNULL, check=True)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            times = [json.loads(line)["ms"] for line in file]
    return statistics.median(times[a.steps // 5:])


def in_turn(a, variants):
    """The times of each, a round of all after the other."""
    return list(zip(*[[run(a, *v) for v in variants] for _ in range(a.rounds)]))


def measure(a):
    threads, ranks = in_turn(a, [(1, 2), (2, 1)])
    print(f"nano: 1 process of 2 threads {statistics.median(threads):.1f} ms, 2 ranks of 1 thread {statistics.median(ranks):.1f} ms: "
          f"{statistics.median(r / t for r, t in zip(ranks, threads)):.2f} times")
    flags = ["--batch-size", "16", "--shards", "8"]
    threads, *ranks = in_turn(a, [(1, 2, flags)] + [(n, 1, flags) for n in (2, 4, 8)])
    print(f"batch 16 in 8 shards on {os.cpu_count()} processors: 1 process {statistics.median(threads):.1f} ms; ranks as a ratio of it: "
          + ", ".join(f"{n}: {statistics.median(r / t for r, t in zip(times, threads)):.2f}" for n, times in zip((2, 4, 8), ranks)))
    networks = [(latency, gbit) for gbit in (10, 1) for latency in (50, 1000)]
    base, *slowed = in_turn(a, [(2, 1, (), (0, 0))] + [(2, 1, (), network) for network in networks])
    print(f"2 ranks without delays: {statistics.median(base):.1f} ms\n| latency | bandwidth | predicted | measured | ratio |")
    buckets = NANO.buckets()
    for (latency, gbit), times in zip(networks, slowed):
        predicted = []
        for ms in base:
            window = backward_window(ms / 1e3, 2, buckets)
            predicted.append(ms + 1e3 * exchange(NANO, 4, 2, window, latency * 1e-6, gbit * 1e9 / 8, 0))
        print(f"| {latency} us | {gbit} Gbit/s | {statistics.median(predicted):.1f} ms | {statistics.median(times):.1f} ms | "
              f"{statistics.median(p / t for p, t in zip(predicted, times)):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a text: measure")
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gflops", type=float, default=640, help="of a host [16 cores of 40]")
    parser.add_argument("--ns-per-parameter", type=float, default=2, help="of what each rank does for all parameters [80 bytes at 40 GB/s]")
    parser.add_argument("--latency-us", type=float, default=50)
    parser.add_argument("--us-per-message", type=float, default=5)
    a = parser.parse_args()
    predict(a)
    if a.data:
        measure(a)


main()
