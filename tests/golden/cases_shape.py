"""Golden cases of matrix products."""

import torch
import torch.nn.functional as F

from cases import randn


def add_matrix_products(cases):
    for sample, a, b in (
        ("2-d", (2, 3), (3, 4)),
        ("row by matrix", (3,), (3, 4)),
        ("matrix by column", (2, 3), (3,)),
        ("row by column", (3,), (3,)),
        ("batch", (2, 2, 3), (2, 3, 4)),
        ("broadcast batches", (2, 1, 2, 3), (3, 3, 2)),
        ("batch by matrix", (2, 3, 4), (4, 2)),
        ("row by batch", (3,), (2, 3, 2)),
        ("batch by column", (2, 2, 3), (3,)),
        ("size 1", (1, 1), (1, 1)),
        ("no rows", (0, 3), (3, 2)),
        ("nothing to add", (2, 0), (0, 3)),
        ("no batches", (0, 2, 3), (3, 2)),
    ):
        cases.add(f"matmul/{sample}", torch.matmul, randn(*a), randn(*b))
    cases.add("matmul/of itself", lambda x: x @ x, randn(3, 3))
    for op, f, shapes in (
        ("mm", torch.mm, (((2, 3), (3, 4)), ((1, 1), (1, 1)), ((2, 0), (0, 3)))),
        (
            "bmm",
            torch.bmm,
            (((2, 2, 3), (2, 3, 4)), ((1, 1, 2), (1, 2, 1)), ((0, 2, 3), (0, 3, 1))),
        ),
        ("dot", torch.dot, (((4,), (4,)), ((1,), (1,)), ((0,), (0,)))),
        ("outer", torch.outer, (((3,), (4,)), ((1,), (1,)), ((0,), (3,)))),
    ):
        for sample, (a, b) in zip(("usual", "size 1", "zero-size"), shapes):
            cases.add(f"{op}/{sample}", f, randn(*a), randn(*b))
    for sample, x, weight in (
        ("2-d", (3, 4), (2, 4)),
        ("3-d", (2, 3, 4), (5, 4)),
        ("1-d", (4,), (2, 4)),
        ("one output", (3, 2), (1, 2)),
        ("no rows", (0, 4), (2, 4)),
    ):
        cases.add(f"linear/{sample}", F.linear, randn(*x), randn(*weight), randn(weight[0]))
        cases.add(f"linear/{sample}, no bias", F.linear, randn(*x), randn(*weight))
    for equation, *shapes in (
        ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
        ("bthd,bshd->bhts", (1, 2, 2, 3), (1, 3, 2, 3)),
        ("ij,jk", (2, 3), (3, 2)),
        ("ba", (2, 3)),
        ("ii->i", (3, 3)),
        ("ii", (3, 3)),
        ("ij->", (2, 3)),
        ("i,i", (3,), (3,)),
        ("i,j->ji", (2,), (3,)),
        ("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)),
        ("...i->...", (2, 2, 3)),
        ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
        ("ijk,jil->kl", (2, 3, 2), (3, 2, 2)),
        ("ij,ij->ij", (0, 3), (0, 3)),
    ):
        f = lambda *xs: torch.einsum(equation, *xs)
        cases.add(f"einsum/{equation}", f, *[randn(*shape) for shape in shapes])


def add(cases):
    add_matrix_products(cases)
