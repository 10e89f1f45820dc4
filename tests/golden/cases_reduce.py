"""Golden cases of reductions and scans along dimensions."""

import math

import torch
import torch.nn.functional as F

from cases import distinct, randn, uniform, values

# Sample, shape, dims (None: all), keepdim.
SAMPLES = (
    ("all", (3, 4), None, False),
    ("dim 0", (3, 4), (0,), False),
    ("dim -1", (2, 3, 4), (-1,), False),
    ("middle, keepdim", (2, 3, 4), (1,), True),
    ("dims 0 and 2", (2, 3, 4), (0, 2), False),
    ("dims -1 and -3, keepdim", (2, 3, 4), (-1, -3), True),
    ("no rows", (0, 3), (1,), False),
)
# Ones that have no variance.
SMALL_SAMPLES = (
    ("0-d", (), None, False),
    ("size 1", (3, 1), (1,), False),
    ("size 1, keepdim", (1, 3), (-2,), True),
)


def dims_of(shape, dims):
    return tuple(range(len(shape))) if dims is None else dims


def add_sums(cases):
    ops = {
        "sum": lambda x, dims, keep: torch.sum(x, dims, keep),
        "mean": lambda x, dims, keep: torch.mean(x, dims, keep),
        "logsumexp": lambda x, dims, keep: torch.logsumexp(x, dims, keep),
        "var": lambda x, dims, keep: torch.var(x, dims, unbiased=True, keepdim=keep),
        "std": lambda x, dims, keep: torch.std(x, dims, unbiased=True, keepdim=keep),
        "amax": lambda x, dims, keep: torch.amax(x, dims, keep),
        "amin": lambda x, dims, keep: torch.amin(x, dims, keep),
    }
    for op, f in ops.items():
        inputs = distinct if op in ("amax", "amin") else randn
        for sample, shape, dims, keep in SAMPLES + (() if op in ("var", "std") else SMALL_SAMPLES):
            dims = dims_of(shape, dims)
            if shape == ():  # PyTorch spells "all" as no dims here
                dims = (0,) if op in ("logsumexp",) else ()
            cases.add(f"{op}/{sample}", lambda x: f(x, dims, keep), inputs(*shape))
    cases.add("sum/dtype", lambda x: x.sum(1, dtype=torch.float64), randn(2, 3))
    cases.add("prod/dtype", lambda x: x.prod(1, dtype=torch.float64), randn(2, 3))
    cases.add("cumsum/dtype", lambda x: x.cumsum(1, dtype=torch.float64), randn(2, 3))
    cases.add("sum/nothing", torch.sum, randn(0, 3))
    cases.add("sum/nothing, dim 0", lambda x: x.sum(0), randn(0, 3))
    for op in ("var", "std"):
        f = getattr(torch, op)
        cases.add(f"{op}/biased, all", lambda x: f(x, unbiased=False), randn(3, 4))
        cases.add(f"{op}/biased, dim 1", lambda x: f(x, 1, unbiased=False), randn(3, 4))
        cases.add(
            f"{op}/biased, dims 0 and -1, keepdim",
            lambda x: f(x, (0, -1), unbiased=False, keepdim=True),
            randn(2, 3, 4),
        )
        for correction in (0, 2, -1):
            g = lambda x: f(x, 1, correction=correction)
            cases.add(f"{op}/correction {correction}", g, randn(3, 4))
        g = lambda x: f(x, (0, -1), correction=3, keepdim=True)
        cases.add(f"{op}/correction 3, dims 0 and -1, keepdim", g, randn(2, 3, 4))
    cases.add("var/biased, size 1", lambda x: torch.var(x, 1, unbiased=False), randn(3, 1))
    cases.add("var/equal numbers", lambda x: torch.var(x, 1), values([[2, 2, 2], [1, 2, 4]]))
    cases.add(
        "std/equal numbers",
        lambda x: torch.std(x, 1),
        values([[2, 2, 2], [1, 2, 4]]),
        second=False,
    )
    inf = float("inf")
    cases.add(
        "logsumexp/minus infinities and large numbers",
        lambda x: torch.logsumexp(x, 1),
        # exp(x - y) is no better than y, and float32 has the largest of many hundreds exactly
        values([[-inf, 1, 2], [500, 480, 470], [-800, -inf, -840]]),
    )
    for sample, shape, to in (
        ("the same shape", (2, 3), (2, 3)),
        ("a leading dimension", (4, 3), (3,)),
        ("a size of 1", (4, 3), (4, 1)),
        ("both", (2, 3, 4), (3, 1)),
        ("to 0-d", (2, 3), ()),
        ("0-d", (), ()),
        ("from nothing", (0, 3), (3,)),
    ):
        cases.add(f"sum_to/{sample}", lambda x: x.sum_to_size(to), randn(*shape))


def add_products(cases):
    either = lambda *shape: uniform(0.5, 2, *shape)
    cases.add("prod/all", torch.prod, either(2, 3))
    cases.add("prod/dim 0", lambda x: x.prod(0), randn(3, 2))
    cases.add("prod/dim -1, keepdim", lambda x: x.prod(-1, True), either(2, 3, 4))
    cases.add("prod/middle", lambda x: x.prod(1), randn(2, 3, 2))
    cases.add("prod/0-d", torch.prod, randn())
    # Of one factor, PyTorch's second derivative is not 0 but what rounding leaves.
    cases.add("prod/size 1", lambda x: x.prod(1), randn(3, 1), second=False)
    cases.add("prod/nothing", torch.prod, randn(0, 2))
    cases.add("prod/one zero, all", torch.prod, values([[2, 0, 3], [0.5, -1, 4]]))
    cases.add(
        "prod/none, one, two and three zeros, dim 1",
        lambda x: x.prod(1),
        values([[2, 1, 3], [2, 0, 3], [0, 5, 0], [0, 0, 0]]),
    )


def add_extrema(cases):
    ties = values([[1, 5, 5], [-2, -7, -7], [5, 0, -7]])
    for op in ("max", "min"):
        f = getattr(torch, op)
        cases.add(f"{op}/all", f, distinct(3, 4))
        cases.add(f"{op}/all, ties", f, ties)
        cases.add(f"{op}/0-d", f, randn())
        cases.add(f"{op}/dim 0", lambda x: f(x, 0), distinct(3, 4))
        cases.add(f"{op}/dim -1, keepdim", lambda x: f(x, -1, True), distinct(2, 3, 4))
        cases.add(f"{op}/dim 1, ties", lambda x: f(x, 1), ties)
        cases.add(f"{op}/dim 0, ties", lambda x: f(x, 0), ties)
        cases.add(f"{op}/size 1", lambda x: f(x, 1), randn(3, 1))
        cases.add(f"{op}/no rows", lambda x: f(x, 1), randn(0, 3))
        g = getattr(torch, "a" + op)
        cases.add(f"a{op}/ties", lambda x: g(x, 1), ties)
        cases.add(f"a{op}/ties, all", lambda x: g(x, (0, 1)), ties)
        cases.add(f"a{op}/ties, keepdim", lambda x: g(x, -1, True), ties)


def add_norms(cases):
    norm = torch.linalg.vector_norm
    for order in (2, 1, 3, 0.5, -1, math.inf, -math.inf, 0):
        cases.add(f"vector_norm/ord {order}", lambda x: norm(x, order), distinct(2, 3))
        cases.add(f"vector_norm/ord {order}, dim 1", lambda x: norm(x, order, 1), distinct(2, 3))
    cases.add(
        "vector_norm/dims 0 and -1, keepdim", lambda x: norm(x, 2, (0, -1), True), randn(2, 3, 2)
    )
    # The second derivative of |x| is 0, and in floating point what rounding leaves.
    cases.add("vector_norm/0-d", norm, randn(), second=False)
    cases.add("vector_norm/size 1", lambda x: norm(x, 2, 1), randn(3, 1), second=False)
    cases.add("vector_norm/no rows", lambda x: norm(x, 3, 1), randn(0, 3))
    cases.add("vector_norm/nothing", norm, randn(0, 3))
    some = values([[0, 0, 0], [3, 0, -4]])
    for order in (2, 1, 3, math.inf):
        f = lambda x: norm(x, order, 1)
        cases.add(f"vector_norm/zeros, ord {order}", f, some, second=False)
    ties = values([[2, -2, 1], [3, 3, -3]])
    for order in (math.inf, -math.inf):
        cases.add(f"vector_norm/ties, ord {order}", lambda x: norm(x, order, 1), ties)


def add_distances(cases):
    for p in (2, 3):
        cases.add(f"norm/p {p}", lambda x: x.norm(p), randn(2, 3))
        cases.add(f"norm/p {p}, dim 1", lambda x: x.norm(p, 1, True), randn(2, 3))
        cases.add(f"normalize/p {p}", lambda x: F.normalize(x, p), randn(2, 3, 2))
    cases.add("normalize/dim -1, eps", lambda x: F.normalize(x, dim=-1, eps=2), distinct(2, 3))
    cases.add("normalize/zeros", F.normalize, values([[0, 0], [3, 4]]), second=False)
    cases.add("cosine_similarity/rows", F.cosine_similarity, randn(3, 4), randn(3, 4))
    cases.add("cosine_similarity/dim 0", lambda x, y: F.cosine_similarity(x, y, 0), randn(4), randn(4))
    cases.add(
        "cosine_similarity/broadcast", lambda x, y: F.cosine_similarity(x, y, -1), randn(2, 3, 4), randn(4)
    )


def add_matrix_norms(cases):
    f = lambda x, dims=(-2, -1), keep=False: torch.linalg.matrix_norm(x, "fro", dims, keep)
    for sample, shape in (("square", (3, 3)), ("tall", (4, 2)), ("wide", (2, 3)), ("batch", (2, 3, 2)), ("no matrices", (0, 2, 3))):
        cases.add(f"matrix_norm/fro, {sample}", f, randn(*shape))
    cases.add("matrix_norm/fro, dims 2 and 0, keepdim", lambda x: f(x, (2, 0), True), randn(3, 2, 2))


def add_along(cases):
    cases.add("cumsum/dim 0", lambda x: x.cumsum(0), randn(3, 4))
    cases.add("cumsum/dim -1", lambda x: x.cumsum(-1), randn(2, 3, 4))
    cases.add("cumsum/middle", lambda x: x.cumsum(1), randn(2, 3, 4))
    cases.add("cumsum/0-d", lambda x: x.cumsum(0), randn())
    cases.add("cumsum/size 1", lambda x: x.cumsum(1), randn(3, 1))
    cases.add("cumsum/zero-size", lambda x: x.cumsum(1), randn(3, 0))
    # Where factors are 0, PyTorch's second gradients of cumprod are other ones: by its definition.
    products = lambda x: torch.stack([x[:, : i + 1].prod(1) for i in range(x.shape[1])], 1)
    cases.add("cumprod/dim 0", lambda x: x.cumprod(0), randn(3, 4))
    cases.add("cumprod/dim -1", lambda x: x.cumprod(-1), randn(2, 3, 4))
    cases.add("cumprod/zeros", products, values([[2, 0, 3, 0.5], [0, 2, 0, 4], [1, 2, 3, 4]]))
    cases.add("cumprod/zero-size", lambda x: x.cumprod(1), randn(3, 0))
    ties = values([[1, 5, 5, 2], [-2, -7, -2, -2]])
    for descending in (False, True):
        f = lambda x, dim=-1: torch.sort(x, dim=dim, descending=descending, stable=True)
        cases.add(f"sort/descending {descending}", f, distinct(3, 5))
        cases.add(f"sort/dim 0, descending {descending}", lambda x: f(x, 0), distinct(3, 5))
        cases.add(f"sort/ties, descending {descending}", f, ties)
        nans = values([1, float("nan"), 3, float("inf"), float("nan")])
        cases.add(f"sort/NaN, descending {descending}", f, nans, finite=False)
    cases.add("topk/last", lambda x: x.topk(2), distinct(3, 5))
    cases.add("topk/smallest", lambda x: x.topk(2, largest=False), distinct(3, 5))
    cases.add("topk/dim 0", lambda x: x.topk(3, 0), distinct(5, 2))
    cases.add("topk/dim -2, smallest", lambda x: x.topk(2, -2, False), distinct(2, 4, 3))
    cases.add("topk/all of them", lambda x: x.topk(4, 1), distinct(2, 4))
    cases.add("topk/none of them", lambda x: x.topk(0, 1), distinct(2, 4))
    cases.add("topk/size 1", lambda x: x.topk(1), distinct(3, 1))
    cases.add("topk/0-d", lambda x: x.topk(1), randn())


def add(cases):
    add_sums(cases)
    add_products(cases)
    add_extrema(cases)
    add_norms(cases)
    add_distances(cases)
    add_matrix_norms(cases)
    add_along(cases)
