#!/usr/bin/env python3
"""What PyTorch's CPU generator draws, transform by transform.

    /usr/bin/python3 tests/golden/generator.py    PyTorch 1.13: generator.safetensors, what all versions draw
    python tests/golden/generator.py              PyTorch 2.15: generator_2_15.safetensors, what changed since

Each function below is a transform: after manual_seed it yields one result after the other, and
"<transform>/<k>/<seed>" is the k-th.  random_test.cpp draws the same, in the same order.
(Not random.py: the other scripts here would find it in place of Python's own module of that name.)

PyTorch 1.13 is the one without MKL (Debian: python3-torch); the same PyTorch writes the same bytes.
"""

import math
from pathlib import Path

import torch
from golden import Golden
from torch.nn import init

F32, F64 = torch.float32, torch.float64
SEEDS = 42, 1337


def rand():
    for dtype in F32, F64:
        for n in 1, 7, 33:
            yield torch.rand(n, dtype=dtype)
    big = torch.rand(100003).double()  # multiples of 2^-24: their sum is exact
    yield big[-5:]
    yield big.sum()


def uniform_():
    for dtype in F32, F64:
        for low, high in (-0.1, 0.3), (0, 1), (-2, 3), (5, 5):
            yield torch.empty(20, dtype=dtype).uniform_(low, high)


def randn():
    for dtype in F32, F64:
        for n in 1, 2, 3, 15, 16, 17, 31, 32, 33, 48, 100:  # some have a tail
            yield torch.randn(n, dtype=dtype)
        yield torch.randn(100003, dtype=dtype)[::1001]


def normal_():
    for dtype in F32, F64:
        for n in 5, 16, 37:
            yield torch.empty(n, dtype=dtype).normal_(0.5, 2)
            yield torch.empty(n, dtype=dtype).normal_(0.3, 0.7)
            yield torch.empty(n, dtype=dtype).normal_(0, 0.02)


def trunc_normal_():
    inside = (0, 1, -2, 2), (0.5, 0.02, 0.45, 0.6), (1, 2, -1, 4), (0, 0.02, -2, 2)
    tails = (0, 1, -9, 9), (0, 1, 3, 6), (0, 1, -3, 0)
    for dtype in F32, F64:
        for options in inside + tails:
            yield init.trunc_normal_(torch.empty(60, dtype=dtype), *options)


def exponential():
    for dtype in F32, F64:
        for rate in 1, 2.5, 0.1:
            yield torch.empty(25, dtype=dtype).exponential_(rate)


def bernoulli():
    for dtype in F32, F64:
        for p in 0.8, 0.3, 0, 1:
            yield torch.empty(40, dtype=dtype).bernoulli_(p)
        yield torch.bernoulli(torch.rand(40, dtype=dtype))


def dropout():
    for dtype in F32, F64:
        for p in 0.1, 0.3, 0.5, 1:
            yield torch.nn.functional.dropout(torch.ones(5, 7, dtype=dtype), p)


def randint():
    narrow = (0, 2), (0, 1000), (-5, 7), (0, 2**28 - 1), (0, 2**28), (0, 2**32 - 1)
    wide = (0, 2**32), (-7, 2**40), (-2**62, 2**62 + 5)
    for low, high in narrow + wide:
        yield torch.randint(low, high, (12,))
    yield torch.randint(1000, (100003,)).sum()


def randperm():
    for n in 0, 1, 2, 20, 63:
        yield torch.randperm(n)
    big = torch.randperm(20011)
    yield big[::1001]
    yield (big * torch.arange(20011)).sum()


def multinomial():
    for dtype in F32, F64:
        weights = torch.tensor([0.1, 0.4, 0, 0.2, 0.3], dtype=dtype)
        for _ in range(6):
            yield torch.multinomial(weights, 1)
        yield torch.multinomial(weights, 1, replacement=True)
        yield torch.multinomial(weights, 4)
        yield torch.multinomial(weights, 30, replacement=True)
        rows = torch.rand(3, 100, dtype=dtype) * 7
        yield torch.multinomial(rows, 1)
        yield torch.multinomial(rows, 20)
        yield torch.multinomial(rows, 20, replacement=True)


def _initialised(fill):
    """fill on sizes below and above 16, with more than two dimensions, in both dtypes."""
    for dtype in F32, F64:
        for sizes in (3, 4), (5, 7), (3, 4, 2):
            yield from fill(lambda: torch.empty(sizes, dtype=dtype))


GAINS, SLOPES = (1, 5 / 3, math.sqrt(2)), (0, 0.2, math.sqrt(5))


def xavier_uniform_():
    return _initialised(lambda x: (init.xavier_uniform_(x(), gain) for gain in GAINS))


def xavier_normal_():
    return _initialised(lambda x: (init.xavier_normal_(x(), gain) for gain in GAINS))


def kaiming_uniform_():
    return _initialised(lambda x: (init.kaiming_uniform_(x(), a) for a in SLOPES))


def kaiming_normal_():
    return _initialised(lambda x: (init.kaiming_normal_(x(), a) for a in SLOPES))


def kaiming_options():
    kinds = ("fan_in", "relu"), ("fan_out", "tanh"), ("fan_out", "selu"), ("fan_in", "linear"), ("fan_in", "sigmoid")
    return _initialised(lambda x: (init.kaiming_uniform_(x(), mode=mode, nonlinearity=kind) for mode, kind in kinds))


def interleaved():
    yield torch.randn(3)  # keeps its fourth value ...
    yield torch.rand(2)
    yield torch.randint(100, (3,))
    yield torch.randn(16)  # ... which blocks of 16 do not touch,
    yield torch.randperm(5)
    yield torch.randn(2, dtype=F64)  # and which comes first here, whatever the dtype
    yield torch.empty(3).exponential_()
    yield torch.randn(20, dtype=F64)
    yield torch.empty(2).bernoulli_(0.5)
    yield torch.empty(4).normal_(3, 0.1)
    yield init.trunc_normal_(torch.empty(3))
    yield torch.nn.functional.dropout(torch.ones(9), 0.2)
    yield torch.randn(1)
    yield torch.multinomial(torch.ones(9), 3)
    torch.manual_seed(5)  # forgets the kept value
    yield torch.randn(1, dtype=F64)
    yield torch.rand(623)[-3:]  # across the end of a block of 624 words
    yield torch.rand(3, dtype=F64)


SAME = [rand, uniform_, randn, normal_, exponential, bernoulli, dropout, randperm, xavier_uniform_, xavier_normal_,
        kaiming_uniform_, kaiming_normal_, kaiming_options]
CHANGED = [trunc_normal_, randint, multinomial, interleaved]


def main():
    torch.set_num_threads(1)
    new = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 15)
    golden = Golden(Path(__file__).with_name("generator_2_15.safetensors" if new else "generator.safetensors"),
                    {"source": f"tests/golden/generator.py, PyTorch {torch.__version__.split('+')[0]}"})
    for case in CHANGED if new else SAME:
        for seed in SEEDS:
            torch.manual_seed(seed)
            for k, result in enumerate(case()):
                golden.add(f"{case.__name__}/{k}/{seed}", result)
    print(f"{golden.write()} bytes: {golden.path}")


if __name__ == "__main__":
    main()
