#!/usr/bin/env python3
"""PyTorch's errors beside those that tests/autograd/function_accuracy_test.cpp prints of ours.

    python3 scripts/pytorch/function_accuracy.py     # needs PyTorch 2, NumPy and the C library's long doubles

For each function its largest errors in units of the last place, in float32 and float64, over the numbers of every
magnitude and evenly over [-800, 800] and [-10, 10].  "wrong" is an infinity, a NaN or a zero of the wrong sign.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

L = np.longdouble


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def sigmoid(x):
    e = np.exp(-abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


# erf in float64 is the C library's, right to 1 ulp: no long double of it is at hand
FUNCTIONS = {
    "exp": (torch.exp, np.exp),
    "expm1": (torch.expm1, np.expm1),
    "log": (torch.log, np.log),
    "log2": (torch.log2, np.log2),
    "log10": (torch.log10, np.log10),
    "log1p": (torch.log1p, np.log1p),
    "neg": (torch.neg, np.negative),
    "abs": (torch.abs, np.abs),
    "sqrt": (torch.sqrt, np.sqrt),
    "rsqrt": (torch.rsqrt, lambda x: 1 / np.sqrt(x)),
    "sin": (torch.sin, np.sin),
    "cos": (torch.cos, np.cos),
    "tan": (torch.tan, np.tan),
    "atan": (torch.atan, np.arctan),
    "sinh": (torch.sinh, np.sinh),
    "cosh": (torch.cosh, np.cosh),
    "asinh": (torch.asinh, np.arcsinh),
    "reciprocal": (torch.reciprocal, lambda x: 1 / x),
    "tanh": (torch.tanh, np.tanh),
    "erf": (torch.erf, np.vectorize(lambda v: L(math.erf(v)), otypes=[L])),
    "sigmoid": (torch.sigmoid, sigmoid),
    "logsigmoid": (F.logsigmoid, lambda x: np.minimum(x, 0) - np.log1p(np.exp(-abs(x)))),
    "softplus": (F.softplus, lambda x: np.where(x > 20, x, softplus(x))),
    "silu": (F.silu, lambda x: x * sigmoid(x)),
    "mish": (F.mish, lambda x: x * np.tanh(softplus(x))),
    "elu": (F.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
}


def inputs(dtype):
    random = np.random.default_rng(1)
    n = 400_000
    bits = np.uint32 if dtype == np.float32 else np.uint64
    ends = np.finfo(dtype)
    return np.concatenate([
        np.array([0, -0.0, np.inf, -np.inf, np.nan, ends.tiny, -ends.tiny, ends.max, -ends.max], dtype),
        random.integers(0, np.iinfo(bits).max, n, dtype=bits).view(dtype),
        random.uniform(-800, 800, n).astype(dtype),
        random.uniform(-120, 120, n).astype(dtype),
        random.uniform(-10, 10, n).astype(dtype),
    ])


def largest_error(ours, exact, x):
    want = exact(x.astype(L))
    got, rounded = ours(torch.from_numpy(x)).numpy(), want.astype(x.dtype)
    ends = np.finfo(x.dtype)
    exponent = np.frexp(np.maximum(abs(rounded), ends.tiny).astype(L))[1]
    unit = np.ldexp(L(1), exponent - 1 - ends.nmant)
    finite = np.isfinite(got) & np.isfinite(rounded)
    ulp = np.where(finite, abs(got.astype(L) - want) / unit, np.inf)
    ulp[(got == rounded) & ~finite | np.isnan(got) & np.isnan(rounded)] = 0
    ulp[(x == 0) & (got == 0) & (np.signbit(got) != np.signbit(rounded))] = np.inf
    return float(ulp.max()), float(x[ulp.argmax()])


def main():
    np.seterr(all="ignore")
    torch.set_num_threads(1)
    print("PyTorch", torch.__version__)
    for name, (ours, exact) in FUNCTIONS.items():
        parts = []
        for dtype in (np.float32, np.float64):
            x = inputs(dtype)
            if name in ("silu", "mish"):  # as in the test: below, a factor of the result is subnormal
                x = x[~(x < (-87 if dtype == np.float32 else -708)) | np.isinf(x)]
            ulp, at = largest_error(ours, exact, x)
            parts.append(f"{ulp:12.2f} at {at:<12.6g}" if math.isfinite(ulp) else f"{'wrong':>12} at {at:<12.6g}")
        print(f"{name:12}", *parts)


if __name__ == "__main__":
    main()
