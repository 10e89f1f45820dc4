#!/usr/bin/env python3
"""The largest errors of PyTorch's norms and reductions, as xgrad_tests "[.accuracy-summary]" counts ours.

The rows are of the same kinds (tests/autograd/accuracy_rows.hpp), with other random numbers.  Errors are
in epsilons of the largest element, what is right is computed in long double.
"""
import numpy as np
import torch

LENGTHS = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 127, 256, 384, 800]
WIDE = np.longdouble
rng = np.random.default_rng(1)


def rows_about(dtype):
    for n in LENGTHS:
        for about in (0.0, 1.0, -0.1, 100.3, -10000.3, 1e6):
            at = dtype(about)
            after = np.nextafter(at, dtype(2 * at))
            yield np.full(n, at)
            row = np.full(n, at)
            row[n // 2] = after
            yield row
            yield (at + (after - at) * rng.integers(0, 8, n)).astype(dtype)
            for size in (1e-3, 1.0, 1e4):
                yield (about + size * rng.normal(size=n)).astype(dtype)


def rows_of_all_magnitudes(dtype):
    low, high = (-140, 127) if dtype == np.float32 else (-1060, 1023)
    for n in LENGTHS:
        for e in range(low, high + 1, (high - low) // 24):
            yield np.ldexp(rng.uniform(-1, 1, n), e).astype(dtype)


def error(got, want, scale, dtype):
    limits = np.finfo(dtype)
    got = np.asarray(got, dtype=WIDE)
    if np.isnan(got).any():
        return np.inf
    off = np.abs(got - want)
    off[(np.isinf(got)) & (np.abs(want) > WIDE(limits.max) * (1 - 4 * WIDE(limits.eps)))] = 0
    return float(np.max(off / (WIDE(limits.eps) * max(WIDE(scale), WIDE(limits.tiny)))))


def deviations(x):
    for _ in range(2):
        x = x - x.mean()
    return x


def norm(x, g, centred, eps, dtype):
    v, d = (deviations(x), deviations(g)) if centred else (x, g)
    r = 1 / np.sqrt((v * v).mean() + WIDE(eps))
    h = v * r
    dx = r * (d - h * (d * h).mean())
    h_scale = r * max(np.abs(v).max(), WIDE(np.finfo(dtype).tiny))
    return h, dx, h_scale, r * (np.abs(d).max() + h_scale / r * r * np.sqrt((d * d).mean()))


def spread(x, root):
    if len(x) == 1:
        return None
    v, degrees = deviations(x), len(x) - 1
    var = (v * v).sum() / degrees
    y = np.sqrt(var) if root else var
    return y, (v * 0 if y == 0 else v / y / degrees if root else 2 * v / degrees)


def vector_norm(x, order):
    most = np.abs(x).max()
    if most == 0:
        return most, x * 0
    y = most * ((np.abs(x) / most) ** order).sum() ** (WIDE(1) / order)
    return y, np.sign(x) * (np.abs(x) / y) ** (order - 1)


def plain_rows(dtype):
    for n in LENGTHS:
        yield rng.normal(size=n).astype(dtype)


def all_rows(dtype):
    yield from rows_about(dtype)
    yield from rows_of_all_magnitudes(dtype)


def show(name, rows, dtype, worst):
    print(f"{name:20} {rows:8} {np.dtype(dtype).name:8} {worst[0]:10.3g} {worst[1]:10.3g}")


def show_norm(centred, kind, rows, dtype):
    worst = [0, 0]
    for i, row in enumerate(rows(dtype)):
        n = len(row)
        g = ((0, 100.3)[i % 2] + (i % 3 > 0) * rng.uniform(1, 2, n)).astype(dtype)
        h, dx, h_scale, dx_scale = norm(row.astype(WIDE), g.astype(WIDE), centred, 1e-5, dtype)
        x = torch.tensor(row, requires_grad=True)
        f = torch.nn.functional
        y = f.layer_norm(x, (n,)) if centred else f.rms_norm(x, (n,), eps=1e-5)
        (got,) = torch.autograd.grad(y, x, torch.tensor(g))
        worst[0] = max(worst[0], error(y.detach().numpy(), h, h_scale, dtype))
        worst[1] = max(worst[1], error(got.numpy(), dx, dx_scale, dtype))
    show("layer_norm" if centred else "rms_norm", kind, dtype, worst)


def show_reduction(name, f, wide, kind, rows, dtype):
    limits = np.finfo(dtype)
    worst = [0, 0]
    for row in rows(dtype):
        want = wide(row.astype(WIDE))
        if want is None:
            continue
        y, dx = want
        x = torch.tensor(row, requires_grad=True)
        got = f(x)
        worst[0] = max(worst[0], error([got.item()], np.array([y]), abs(y), dtype))
        if y == 0 or limits.tiny <= y <= limits.max:
            (gradient,) = torch.autograd.grad(got, x)
            worst[1] = max(worst[1], error(gradient.numpy(), dx, np.abs(dx).max(), dtype))
    show(name, kind, dtype, worst)


norm_of = torch.linalg.vector_norm
for dtype in (np.float32, np.float64):
    for centred in (True, False):
        for kind, rows in (("plain", plain_rows), ("offsets", rows_about)):
            show_norm(centred, kind, rows, dtype)
    for kind, rows in (("plain", plain_rows), ("all", all_rows)):
        show_reduction("var", torch.var, lambda x: spread(x, False), kind, rows, dtype)
        show_reduction("std", torch.std, lambda x: spread(x, True), kind, rows, dtype)
        show_reduction("vector_norm", norm_of, lambda x: vector_norm(x, 2), kind, rows, dtype)
        show_reduction("vector_norm, ord 3", lambda x: norm_of(x, 3), lambda x: vector_norm(x, 3),
                       kind, rows, dtype)
