"""Samples of reductions, extrema, norms, distances, scans, sorting and matrix products."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad

# ---- reductions over several dimensions ----


def over(x, dims):
    """An empty list means all."""
    return dims or tuple(range(max(1, x.dim())))


# Sample, shape, dims, keepdim.
WAYS = (
    ("dim 0", (3, 4), (0,), False),
    ("dim -1", (2, 3, 4), (-1,), False),
    ("no rows", (0, 3), (1,), False),
    ("middle, keepdim", (2, 3, 4), (1,), True),
    ("between sizes of 1", (1, 4, 1), (1,), True),
    ("no columns, keepdim", (3, 0, 2), (0,), True),
    ("neighbours", (2, 3, 4), (1, 2), False),
    ("dims 0 and 2", (2, 3, 4), (0, 2), False),
    ("dims -1 and -3, keepdim", (2, 3, 4), (-1, -3), True),
    ("every second", (2, 3, 2, 3, 2), (0, 2, 4), False),
    ("every other second, keepdim", (2, 3, 2, 3, 2), (1, 3), True),
    ("an empty list", (2, 3), (), False),
    ("an empty list, keepdim", (2, 3), (), True),
)
# One element, which has no variance.
ONE = (
    ("size 1", (3, 1), (1,), False),
    ("size 1, keepdim", (1, 3), (-2,), True),
    ("0-d", (), (), False),
    ("0-d, dim -1", (), (-1,), False),
    ("0-d, dim 0, keepdim", (), (0,), True),
)
# For registers, blocks, tiles and threads.
LARGE = (
    ("odd columns", (9, 21), (0,), False),
    ("short rows", (35, 3), (1,), False),
    ("register and some", (2, 37), (1,), False),
    ("narrow columns", (300, 3), (0,), False),
    ("many rows, in blocks", (1500, 40), (0,), False),
    ("wide rows, in tiles", (20, 1100), (0,), False),
    ("long rows, in blocks", (3, 5000), (1,), False),
    ("outer and inner", (5, 300, 70), (1,), False),
    ("apart, large", (40, 30, 50), (0, 2), False),
    ("all, large", (200, 300), (), False),
)
# PyTorch reduces at most 64 dimensions: sample, dims of (2, 3, 4), ours of the same with sizes of 1 between, keepdim,
# and the shape without sizes of 1.
MANY = (2, *[1] * 63, 3, *[1] * 4, 4)
MANY_WAYS = (
    ("70 dimensions, some", (1, 2), (69, 2, 64), False, (2,)),
    ("70 dimensions, most, keepdim", (0, 1), tuple(range(65)), True, (4,)),
    ("70 dimensions, all", (), (), False, ()),
)


def ways(ours, draw=randn, some=WAYS + ONE, large=LARGE, prefix="", **options):
    many = f"reshape({ours}, {{to}})".replace("(x,", f"(reshape(x, {cpp_text(MANY)}),")
    many = many.replace("{dims}", "{our_dims}").replace("{keep}", "{our_keep}")
    return [
        *[S(prefix + name, draw(*shape), dims=dims, keep=keep, **options) for name, shape, dims, keep in some],
        *[S(prefix + name, randn(*shape), dims=dims, keep=keep, large=True, **options) for name, shape, dims, keep in large],
        *[S(prefix + name, draw(2, 3, 4), ours=many, dims=dims, keep=False, our_dims=our_dims, our_keep=keep, to=to, **options)
          for name, dims, our_dims, keep, to in MANY_WAYS]]


KINK = {"finite": False, "second": False}
NOTHING = S("of nothing", randn(2, 0), dims=(1,), keep=False, finite=False)
INFINITIES = values([[inf, 1], [inf, -inf], [math.nan, 1]])
for name in ("sum", "mean"):
    op(name, f"x.{name}(over(x, {{dims}}), {{keep}})", ours := f"{name}(x, {{dims}}, {{keep}})", *ways(ours), NOTHING,
       S("of nothing, apart", randn(2, 3, 0), dims=(0, 2), keep=False, finite=False),
       S("infinities", INFINITIES, dims=(1,), keep=False, **KINK))
    op(name, f"x.{name}()", f"{name}(x)", S("all", randn(3, 4)), S("all, 0-d", randn()), S("all, in blocks", randn(150, 170), large=True))
op("sum", "x.sum()", "sum(x)",
   S("nothing", randn(0, 3)), S("nothing, dim 0", randn(0, 3), theirs="x.sum(0)", ours="sum(x, 0)"),
   S("dtype", randn(2, 3), theirs="x.sum(1, dtype=torch.float64)", ours="sum(x, 1, false, DType::float64)"))

SPECIAL = values([[1, math.nan, 2], [inf, -inf, 0], [-inf, -inf, -inf], [3, 3, 1]])
for name, draw in (("logsumexp", randn), ("amax", distinct), ("amin", distinct)):
    op(name, f"x.{name}(over(x, {{dims}}), {{keep}})", ours := f"{name}(x, {{dims}}, {{keep}})",
       S("all", draw(3, 4), dims=(), keep=False), *ways(ours, draw), S("special columns", SPECIAL, dims=(0,), keep=False, **KINK))
op("logsumexp", "x.logsumexp(1)", "logsumexp(x, 1)",
   # exp(x - y) is no better than y, and float32 has the largest of many hundreds exactly
   S("minus infinities and large numbers", values([[-inf, 1, 2], [500, 480, 470], [-800, -inf, -840]])),
   S("thousands", values([[1000, 1001], [-1000, -1002]]), theirs="x.detach().logsumexp(1)"), S("of nothing", randn(2, 0), finite=False),
   S("special values", values([[1, math.nan, 2], [inf, -inf, 0], [3, 3, 1]]), **KINK),
   # Our gradient is 0 there, PyTorch's is NaN.
   S("minus infinities alone", values([[-inf, -inf]]), theirs="x.logsumexp(1).detach() + 0 * x.clamp(min=0).sum(1)", **KINK))
for name in ("amax", "amin"):
    op(name, f"x.{name}(1)", f"{name}(x, 1)", S("special values", SPECIAL, **KINK))
# Each row alone.
SPECIAL_ROWS = values([[1, math.nan, math.nan], [inf, 2, inf], [-inf, 1, 2], [inf, inf, inf]])


def of_rows(name, theirs, ours):
    op(name, f"torch.stack([{theirs} for r in x])", "stack({" + ", ".join(ours.format(f"x[{i}]") for i in range(4)) + "})",
       S(f"special rows, {ours}", SPECIAL_ROWS, **KINK))


for name in ("max", "min"):
    of_rows(name, f"r.{name}()", name + "({})")
    of_rows(name, f"r.{name}(0)[0]", name + "({}, 0).values")
    of_rows(f"a{name}", f"r.a{name}()", f"a{name}({{}}, 0)")
of_rows("logsumexp", "r.logsumexp(0)", "logsumexp({}, 0)")
of_rows("std", "r.std()", "xgrad::std({})")
for p in (2, 3, -1, inf):
    of_rows("vector_norm", f"torch.linalg.vector_norm(r, {p})", f"vector_norm({{}}, {p})")

EQUAL = values([[2, 2, 2], [1, 2, 4]])
for name, cpp in (("var", "var"), ("std", "xgrad::std")):
    op(name, f"x.{name}(over(x, {{dims}}), correction=int({{c}}), keepdim={{keep}})",
       ours := f"{cpp}(x, {{dims}}, {{c}}, {{keep}})", *ways(ours, some=WAYS, c=1),
       S("all", randn(3, 4), dims=(), c=1, keep=False), S("0-d", randn(), dims=(), c=0, keep=False, differences=False, second=False),
       S("biased, all", randn(3, 4), dims=(), c=False, keep=False),
       S("biased, dim 1", randn(3, 4), dims=(1,), c=False, keep=False),
       S("biased, dims 0 and -1, keepdim", randn(2, 3, 4), dims=(0, -1), c=False, keep=True),
       S("equal numbers", EQUAL, dims=(1,), c=True, keep=False, second=name == "var"),
       *[S(f"correction {c}", randn(3, 4), dims=(1,), c=c, keep=False) for c in (0, 2, -1)],
       *[S(f"far from zero, correction {c}", uniform(1000, 1001, 4, 50), dims=(1,), c=c, keep=False, large=True)
         for c in (0, 1, 2)],
       S("correction 3, dims 0 and -1, keepdim", randn(2, 3, 4), dims=(0, -1), c=3, keep=True))
    # With no more elements than the correction, values are NaN or infinite; gradients are not compared.
    op(name, f"x.detach().{name}(1, correction={{c}}, keepdim=False)", f"{cpp}(x, 1, {{c}})",
       S("size 1", randn(3, 1), c=1, finite=False), S("correction 3 of 2", randn(3, 2), c=3, finite=False),
       S("of nothing", randn(2, 0), c=1, finite=False))
    op(name, f"x.{name}(1, correction=0) * (4 / 2.5) ** {{root}}", f"{cpp}(x, 1, 1.5)",
       S("correction 1.5", randn(3, 4), root=1 if name == "var" else 0.5))
op("var", "x.var(1, unbiased=False)", "var(x, 1, false)", S("biased, size 1", randn(3, 1)))

op("sum_to", "x.sum_to_size({to})", "sum_to(x, {to})",
   S("the same shape", randn(2, 3), to=(2, 3)), S("a leading dimension", randn(4, 3), to=(3,)),
   S("a size of 1", randn(4, 3), to=(4, 1)), S("both", randn(2, 3, 4), to=(3, 1)), S("to 0-d", randn(2, 3), to=()),
   S("0-d", randn(), to=()), S("from nothing", randn(0, 3), to=(3,)), S("of nothing", randn(0, 3), to=(0, 1)),
   S("a leading size of 1", randn(1, 3), to=(3,)), S("rows, in blocks", randn(600, 100), to=(100,), large=True),
   S("columns, in blocks", randn(600, 100), to=(600, 1), large=True), S("all, in blocks", randn(600, 100), to=(), large=True),
   S("70 dimensions", randn(2, 3, 4), theirs="x.sum((0, 1))", many=MANY, to=(*[1] * 64, 4),
     ours="flatten(sum_to(reshape(x, {many}), {to}))"))

# ---- reductions along a dimension ----

EITHER = lambda *shape: uniform(0.5, 2, *shape)
LINES = [way for way in WAYS + ONE if len(way[2]) == 1 and way[0] not in ("dim 0", "dim -1", "no rows", "size 1", "size 1, keepdim")]
LARGE_LINES = [way for way in LARGE if len(way[2]) == 1]


def lines(draw, large_draw=randn):
    """The ways that reduce one dimension."""
    return [*[S(name, draw(*shape), dim=dims[0], keep=keep) for name, shape, dims, keep in LINES],
            *[S(name, large_draw(*shape), dim=dims[0], keep=keep, large=True) for name, shape, dims, keep in LARGE_LINES]]


NEAR_ONE = lambda *shape: uniform(0.98, 1.02, *shape)  # the product of thousands neither vanishes nor overflows
op("prod", "x.prod()", "prod(x)",
   S("all", EITHER(2, 3)), S("0-d", randn()), S("nothing", randn(0, 2)), S("all, in blocks", NEAR_ONE(150, 170), large=True),
   S("one zero, all", values([[2, 0, 3], [0.5, -1, 4]])), S("a zero", values([0])),
   S("a zero at the end", values([3, 2, 0])), S("zeros at both ends", values([0, 2, 0]), theirs="x.prod(0)"))
op("prod", "x.prod({dim}, {keep})", "prod(x, {dim}, {keep})", *lines(EITHER, NEAR_ONE))
op("prod", "x.prod({dim})", "prod(x, {dim})",
   S("dim 0", randn(3, 2), dim=0), S("middle", randn(2, 3, 2), dim=1), S("of both signs", away_from_zero(4, 7), dim=1),
   # The second derivative of one factor is 0; PyTorch's is a rounding error.
   S("size 1", randn(3, 1), dim=1, second=False, differences=True), S("of nothing", randn(2, 0), dim=1),
   S("none, one, two and three zeros, dim 1", values([[2, 1, 3], [2, 0, 3], [0, 5, 0], [0, 0, 0]]), dim=1),
   S("zeros in columns", values([[0, 2, 3, 4], [5, 0, 0, 2], [1, 2, 3, -4], [0, 0, 0, 0]]), dim=0),
   S("dim -1, keepdim", EITHER(2, 3, 4), theirs="x.prod(-1, True)", ours="prod(x, -1, true)"),
   S("dtype", randn(2, 3), theirs="x.prod(1, dtype=torch.float64)", ours="prod(x, 1, false, DType::float64)"))

TIES = values([[1, 5, 5], [-2, -7, -7], [5, 0, -7]])
for name in ("max", "min"):
    op(name, f"x.{name}()", f"{name}(x)", S("all", distinct(3, 4)), S("all, ties", TIES, differences=False), S("0-d", randn()),
       S("all, in blocks", randn(150, 170), large=True))
    op(name, f"x.{name}({{dim}}, {{keep}})", f"{name}(x, {{dim}}, {{keep}})", *lines(distinct),
       S("dim 0", distinct(3, 4), dim=0, keep=False), S("dim -1, keepdim", distinct(2, 3, 4), dim=-1, keep=True),
       S("dim 1, ties", TIES, dim=1, keep=False, differences=False),
       S("dim 0, ties", TIES, dim=0, keep=False, differences=False),
       S("size 1", randn(3, 1), dim=1, keep=False), S("no rows", randn(0, 3), dim=1, keep=False),
       S("special values", SPECIAL, dim=1, keep=False, **KINK), S("special columns", SPECIAL, dim=0, keep=False, **KINK))
    op(f"a{name}", f"x.a{name}({{dims}}, {{keep}})", f"a{name}(x, {{dims}}, {{keep}})",
       S("ties", TIES, dims=(1,), keep=False, differences=False),
       S("ties, all", TIES, dims=(0, 1), keep=False, differences=False),
       S("ties, keepdim", TIES, dims=(-1,), keep=True, differences=False))

# ---- norms and distances ----

norm = lambda x, *a: torch.linalg.vector_norm(x, *a)
for p in (2, 1, 3, inf, 1.5, 0.5, -1, -inf, 0):
    # The small samples are enough for orders that differ from 3 by the exponent alone.
    some = {"some": WAYS} if p in (2, 1, 3, inf, -inf, 0) else {"some": WAYS[:4], "large": ()}
    op("vector_norm", "norm(x, {p}, over(x, {dims}), {keep})", ours := "vector_norm(x, {p}, {dims}, {keep})",
       *ways(ours, distinct, prefix=f"ord {p}, ", p=p, **some))
op("vector_norm", "norm(x, {p}, 1)", "vector_norm(x, {p}, 1)",
   *[S(f"ord {p}, dim 1", distinct(2, 3), p=p) for p in (2, 1, 3, 0.5, -1, inf, -inf, 0)],
   *[S(f"ord {p}", distinct(2, 3), p=p, theirs="norm(x, {p})", ours="vector_norm(x, {p})")
     for p in (2, 1, 3, 0.5, -1, inf, -inf, 0)],
   # The second derivative of |x| is 0; PyTorch's is a rounding error.
   S("size 1", randn(3, 1), p=2, second=False, differences=True),
   S("0-d", randn(), theirs="norm(x)", ours="vector_norm(x)", second=False, differences=True),
   S("nothing", randn(0, 3), theirs="norm(x)", ours="vector_norm(x)"), S("no rows", randn(0, 3), p=3),
   S("dims 0 and -1, keepdim", randn(2, 3, 2), theirs="norm(x, 2, (0, -1), True)", ours="vector_norm(x, 2, {0, -1}, true)"),
   *[S(f"zeros, ord {p}", values([[0, 0, 0], [3, 0, -4]]), p=p, second=False) for p in (2, 1, 3, inf)],
   *[S(f"zeros, ord {p}", values([[0, 0], [0, -3], [4, 3]]), p=p, theirs="norm(x.detach(), {p}, 1)") for p in (1.5, 0.5, -1, -inf, 0)],
   *[S(f"gradient at zeros, ord {p}", values([[0, 0]]), p=p, theirs="0 * x.sum(1)", differences=False) for p in (0.5, -inf, 0)],
   S("gradient, ord -inf, beside zeros", values([[0, 0], [3, 4]]), p=-inf, theirs="x[:, 0] * x.detach()[:, 0].sign()", second=False),
   *[S(f"of nothing, ord {p}", randn(2, 0), p=p, second=False) for p in (2, 1, 3, 1.5, 0.5, 0)],
   *[S(f"ties, ord {p}", values([[2, -2, 1], [3, 3, -3]]), p=p, differences=False) for p in (inf, -inf)])
op("norm", "x.norm({p})", "norm(x, {p})", *[S(f"p {p}", randn(2, 3), p=p) for p in (2, 3)])
op("norm", "x.norm({p}, 1, True)", "norm(x, {p}, 1, true)", *[S(f"p {p}, dim 1", randn(2, 3), p=p) for p in (2, 3)])
op("normalize", "F.normalize(x, {p})", "normalize(x, {.p = {p}})", *[S(f"p {p}", randn(2, 3, 2), p=p) for p in (2, 3)],
   S("dim -1, eps", distinct(2, 3), theirs="F.normalize(x, dim=-1, eps=2)", ours="normalize(x, {.dim = -1, .eps = 2})"),
   S("zeros", values([[0, 0], [3, 4]]), theirs="F.normalize(x)", ours="normalize(x)", second=False),
   S("zeros, eps", values([[0, 0]]), theirs="F.normalize(x, eps=0.5)", ours="normalize(x, {.eps = 0.5})", second=False),
   S("dim -3", randn(4, 2, 3), theirs="F.normalize(x, 3, -3)", ours="normalize(x, {.p = 3, .dim = -3})"),
   S("no rows", randn(0, 3), theirs="F.normalize(x)", ours="normalize(x)"))
op("cosine_similarity", "F.cosine_similarity(x, y, {dim})", "cosine_similarity(x, y, {dim})",
   S("rows", randn(3, 4), randn(3, 4), dim=1), S("dim 0", randn(4), randn(4), dim=0),
   S("broadcast", randn(2, 3, 4), randn(4), dim=-1),
   # PyTorch 1.13 differentiates as if no length were clamped.
   S("shorter than eps", uniform(-0.1, 0.1, 3, 4), randn(3, 4), ours="cosine_similarity(x, y, -1, 0.5)",
     theirs="(x * y).sum(-1) / x.norm(dim=-1).clamp(min=0.5) / y.norm(dim=-1).clamp(min=0.5)"))
op("matrix_norm", "torch.linalg.matrix_norm(x)", "matrix_norm(x)",
   S("fro, square", randn(3, 3)), S("fro, tall", randn(4, 2)), S("fro, wide", randn(2, 3)),
   S("fro, batch", randn(2, 3, 2)), S("fro, no matrices", randn(0, 2, 3)),
   S("fro, batches of batches", randn(2, 3, 2, 2)))
op("matrix_norm", "torch.linalg.matrix_norm(x, 'fro', {dims}, True)", "matrix_norm(x, {dims}, true)",
   S("fro, dims 2 and 0, keepdim", randn(3, 2, 2), dims=(2, 0)), S("fro, dims 0 and -1, keepdim", randn(3, 2, 4), dims=(0, -1)),
   S("fro, one column", randn(3, 1), dims=(1, 0)), S("fro, no rows", randn(2, 0, 3), dims=(1, 2)))

# ---- scans and sorting ----

op("cumsum", "x.cumsum({dim})", "cumsum(x, {dim})",
   S("dim 0", randn(3, 4), dim=0), S("dim -1", randn(2, 3, 4), dim=-1), S("middle", randn(2, 3, 4), dim=1),
   S("0-d", randn(), dim=0), S("size 1", randn(3, 1), dim=1), S("zero-size", randn(3, 0), dim=1),
   S("dtype", randn(2, 3), theirs="x.cumsum(1, dtype=torch.float64)", ours="cumsum(x, 1, DType::float64)"))


def products(x):
    """cumprod along dimension 1, whose second gradients of factors of 0 are others in PyTorch."""
    return torch.stack([x[:, : i + 1].prod(1) for i in range(x.shape[1])], 1)


op("cumprod", "x.cumprod({dim})", "cumprod(x, {dim})",
   S("dim 0", randn(3, 4), dim=0), S("dim -1", randn(2, 3, 4), dim=-1), S("zero-size", randn(3, 0), dim=-1),
   S("zeros", values([[2, 0, 3, 0.5], [0, 2, 0, 4], [1, 2, 3, 4]]), dim=-1, theirs="products(x)"))
for down in (False, True):
    ties = values([[1, 5, 5, 2], [-2, -7, -2, -2]])
    nans = values([1, math.nan, 3, inf, math.nan])
    op("sort", "torch.sort(x, dim={dim}, descending={down}, stable=True)", "sort(x, {dim}, {down})",
       S(f"descending {down}", distinct(3, 5), dim=-1, down=down),
       S(f"ties, descending {down}", ties, dim=-1, down=down, differences=False),
       S(f"NaN, descending {down}", nans, dim=-1, down=down, finite=False, differences=False),
       S(f"dim 0, descending {down}", distinct(3, 5), dim=0, down=down))
op("topk", "x.topk({k}, {dim}, {largest})", "topk(x, {k}, {dim}, {largest})",
   S("last", distinct(3, 5), k=2, dim=-1, largest=True), S("smallest", distinct(3, 5), k=2, dim=-1, largest=False),
   S("dim 0", distinct(5, 2), k=3, dim=0, largest=True), S("dim -2, smallest", distinct(2, 4, 3), k=2, dim=-2, largest=False),
   S("all of them", distinct(2, 4), k=4, dim=1, largest=True), S("none of them", distinct(2, 4), k=0, dim=1, largest=True),
   S("size 1", distinct(3, 1), k=1, dim=-1, largest=True), S("0-d", randn(), k=1, dim=-1, largest=True))
# The first of equals is taken first, and NaN is the largest.
op("topk", "(x[[{taken}]], torch.tensor([{taken}]))", "topk(x, {k}, 0, {largest})",
   *[S(name, values(data), k=len(taken.split(",")), taken=taken, largest=largest, finite=False, differences=False) for name, data, taken, largest in (
       ("ties", [3, 1, 3, 2], "0", True), ("zeros", [0, 0, 0, 0], "0", True), ("NaN and ties", [2, 5, math.nan, 5, 1], "2, 1, 3, 0", True),
       ("NaN and ties, smallest", [2, 5, math.nan, 5, 1], "4, 0, 1, 3", False))])

# ---- matrix products ----

op("matmul", "x @ y", "matmul(x, y)",
   S("2-d", randn(2, 3), randn(3, 4)), S("row by matrix", randn(3), randn(3, 4)),
   S("matrix by column", randn(2, 3), randn(3)), S("row by column", randn(3), randn(3)),
   S("batch", randn(2, 2, 3), randn(2, 3, 4)), S("broadcast batches", randn(2, 1, 2, 3), randn(3, 3, 2)),
   S("batch by matrix", randn(2, 3, 4), randn(4, 2)), S("row by batch", randn(3), randn(2, 3, 2)),
   S("batch by column", randn(2, 2, 3), randn(3)), S("size 1", randn(1, 1), randn(1, 1)),
   S("no rows", randn(0, 3), randn(3, 2)), S("nothing to add", randn(2, 0), randn(0, 3)),
   S("no batches", randn(0, 2, 3), randn(3, 2)), S("column by row", randn(3, 1), randn(1, 4)),
   S("two batch dimensions by matrix", randn(2, 2, 3, 4), randn(4, 2)), S("matrix by batch", randn(3, 4), randn(2, 4, 5)),
   S("batch of one by batch", randn(1, 2, 4), randn(3, 4, 2)), S("batch by batch of one", randn(3, 2, 4), randn(1, 4, 2)),
   S("batches across", randn(3, 1, 2, 2), randn(1, 2, 2, 3)), S("batches of other ranks", randn(2, 3, 2, 2), randn(3, 2, 2)),
   S("inner batch broadcast", randn(2, 3, 2, 2), randn(2, 1, 2, 2)), S("no inner size, vectors", randn(0), randn(0)),
   S("no columns", randn(2, 3, 2), randn(2, 0)), S("no batch, broadcast", randn(1, 2, 3), randn(0, 3, 2)),
   S("cut by rows", randn(200, 70), randn(70, 60), large=True), S("cut by columns", randn(30, 90), randn(90, 210), large=True),
   S("many small", randn(60, 12, 20), randn(60, 20, 14), large=True),
   S("few large", randn(2, 170, 180), randn(2, 180, 150), large=True),
   S("many into one", randn(9, 4, 10, 24), randn(4, 24, 12), large=True), S("of itself", randn(3, 3), theirs="x @ x", ours="matmul(x, x)"))
op("mm", "x.mm(y)", "mm(x, y)",
   S("usual", randn(2, 3), randn(3, 4)), S("size 1", randn(1, 1), randn(1, 1)), S("zero-size", randn(2, 0), randn(0, 3)),
   S("in pieces", randn(130, 60), randn(60, 140), large=True))
op("bmm", "x.bmm(y)", "bmm(x, y)",
   S("usual", randn(2, 2, 3), randn(2, 3, 4)), S("size 1", randn(1, 1, 2), randn(1, 2, 1)),
   S("zero-size", randn(0, 2, 3), randn(0, 3, 1)), S("no inner size", randn(2, 3, 0), randn(2, 0, 2)),
   S("in pieces", randn(9, 40, 50), randn(9, 50, 30), large=True))
op("dot", "x.dot(y)", "dot(x, y)", S("usual", randn(4), randn(4)), S("size 1", randn(1), randn(1)),
   S("zero-size", randn(0), randn(0)), S("long", randn(3000), randn(3000), large=True))
op("outer", "x.outer(y)", "outer(x, y)", S("usual", randn(3), randn(4)), S("size 1", randn(1), randn(1)),
   S("zero-size", randn(0), randn(3)))
for sample, x, weight in (("2-d", (3, 4), (2, 4)), ("3-d", (2, 3, 4), (5, 4)), ("1-d", (4,), (2, 4)),
                          ("one output", (3, 2), (1, 2)), ("no rows", (0, 4), (2, 4)),
                          ("no inputs", (2, 0), (4, 0)), ("no outputs", (2, 3), (0, 3))):
    op("linear", "F.linear(x, y, z)", "linear(x, y, z)",
       S(sample, randn(*x), randn(*weight), randn(weight[0])), S(f"{sample}, no bias", randn(*x), randn(*weight)))
op("linear", "x @ y + z", "linear(x, y, z)", S("weight (in,), bias ()", randn(4, 2, 3), randn(3), randn()))
op("linear", "F.linear(x, y, z)", "linear(x, y, z)", S("in pieces", randn(5, 60, 50), randn(70, 50), randn(70), large=True))
op("linear", "x @ y", "linear(x, y)", S("x (in,), weight (in,)", randn(3), randn(3)))
op("linear", "F.linear(F.linear(x, y, z), y, z)", "linear(linear(x, y, z), y, z)", S("used twice", randn(3, 3), randn(3, 3), randn(3)))


def einsum(equation, *shapes, name=None, **options):
    """A sample named after its equation."""
    operands = ", ".join("xyzuv"[: len(shapes)])
    op("einsum", f"torch.einsum({equation!r}, {operands})", f'einsum("{equation}", {{{operands}}})',
       S(name or equation, *[randn(*shape) for shape in shapes], **options))


for equation, *shapes in (
    # one operand
    ("ij->ij", (2, 3)), ("ij->ji", (2, 3)), ("ijk->kij", (2, 3, 4)), ("ii->i", (3, 3)), ("ii->", (3, 3)), ("ii", (3, 3)),
    ("iij->j", (2, 2, 3)), ("iji->ji", (2, 3, 2)), ("iii->i", (2, 2, 2)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ba", (2, 3)),
    ("aB", (2, 3)), ("...ii->...i", (2, 3, 3)), ("...i->...", (2, 2, 3)), ("...", (2, 3)), ("...->", (2, 3)),
    ("i...->...", (2, 3, 2)), ("->", ()),
    # two
    ("i,i", (3,), (3,)), ("i,i->", (4,), (4,)), ("i,j->ij", (2,), (3,)), ("i,j->ji", (2,), (3,)), ("i,j", (2,), (3,)),
    ("ij,ji->ij", (2, 3), (3, 2)), ("ij,ij->", (2, 3), (2, 3)), ("ij,ij->i", (2, 3), (2, 3)), ("ij,jk", (2, 3), (3, 2)),
    (" i j , j k -> k i ", (2, 3), (3, 4)), ("ji,jk->ik", (3, 2), (3, 4)), ("ij,kj->ik", (2, 3), (4, 3)),
    ("ji,kj->ik", (3, 2), (4, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("bji,bkj->bik", (2, 4, 3), (2, 2, 4)),
    ("bij,jk->bik", (2, 3, 4), (4, 2)), ("bthd,bshd->bhts", (1, 2, 2, 3), (1, 3, 2, 3)),
    ("bhts,bshd->bthd", (2, 2, 3, 4), (2, 4, 2, 2)), ("ijk,jil->kl", (2, 3, 2), (3, 2, 2)), ("ij,k->i", (2, 3), (4,)),
    ("ij,->ij", (2, 3), ()), ("ii,ij->j", (3, 3), (3, 2)), ("b,bij->ij", (2,), (2, 3, 2)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)), ("...i,...i->...", (2, 3, 2), (3, 2)), ("i...,...j", (2, 3), (3, 2)),
    ("b...,b->...", (2, 3, 2), (2,)),
    # sizes of 0
    ("ij,ij->ij", (0, 3), (0, 3)),
    # more
    ("i,ij,j->", (2,), (2, 3), (3,)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)), ("ij,ik,il->jkl", (2, 2), (2, 3), (2, 2)),
    ("i,i,i->i", (3,), (3,), (3,)), ("a,b,c,d->dcba", (2,), (3,), (1,), (2,)),
):
    einsum(equation, *shapes)
einsum("ij,ij->ij", (1, 3), (2, 3), name="broadcast")
einsum("ij,jk->ik", (2, 1), (3, 4), name="broadcast sum")
einsum("ij,jk->ik", (2, 1), (1, 3), name="sum of one")
einsum("ij,jk->ik", (2, 0), (0, 3), name="sum of none")
einsum("bij,bjk->bik", (0, 2, 3), (0, 3, 2), name="no batch")
einsum("ii->i", (0, 0), name="nothing")
einsum("bij,bjk->bik", (6, 40, 50), (6, 50, 30), name="in pieces", large=True)

# ---- bad calls ----

LISTS = {name: f"{name}({{x}}, {{dims}}, false)" for name in ("sum", "mean", "logsumexp", "amax", "amin")}
LISTS |= {"var": "var({x}, {dims}, 1, false)", "std": "xgrad::std({x}, {dims}, 1, false)", "vector_norm": "vector_norm({x}, 2, {dims})"}
ALONG = {name: f"{name}({{x}}, {{dims}})" for name in ("prod", "max", "min")}
for name, call in (LISTS | ALONG).items():
    dim = lambda d, alone=name in ALONG: str(d) if alone else f"{{{d}}}"  # ops along one dimension take no list
    bad(filled(call, {"x": "zeros({2, 3})", "dims": dim(2)}, str), "ValueError", name, "dimension 2", "out of range", "2-d")
    bad(filled(call, {"x": "zeros({2, 3})", "dims": dim(-3)}, str), "ValueError", name, "dimension -3", "out of range")
    bad(filled(call, {"x": "zeros({})", "dims": dim(1)}, str), "ValueError", name, "dimension 1", "0-d")
    bad(filled(call, {"x": "Tensor()", "dims": dim(0)}, str), "ValueError", "undefined")
for name, call in LISTS.items():
    bad(filled(call, {"x": "zeros({2, 3})", "dims": "{1, -1}"}, str), "ValueError", name, "dimension -1", "twice", "1, -1")
for name in ("max", "min", "amax", "amin"):
    bad(f"{name}(zeros({{2, 0}}), {'1' if name in ALONG else '{1}'})", "ShapeError", name, "(2, 0)", "no elements")
for name in ("max", "min"):
    bad(f"{name}(zeros({{0}}))", "ShapeError", name, "(0,)")
for p in (inf, -1):
    bad(f"vector_norm(zeros({{2, 0}}), {p}, 1)", "ShapeError", "vector_norm", "(2, 0)", "no elements")
bad("vector_norm(zeros({2}), not_a_number)", "ValueError", "vector_norm", "NaN")
bad("matrix_norm(zeros({2, 3}), 1)", "ValueError", "matrix_norm:", "1 dim", "two")
bad("matrix_norm(zeros({2, 3, 4}), {0, 1, 2})", "ValueError", "matrix_norm:", "3 dims", "two")
bad("matrix_norm(zeros({2, 3}), {1, -1})", "ValueError", "matrix_norm:", "twice", "(1, -1)")
bad("matrix_norm(zeros({2, 3}), {0, 2})", "ValueError", "matrix_norm:", "out of range")
bad("matrix_norm(zeros({3}), {-2, -1})", "ValueError", "matrix_norm:", "dimension -2", "1-d")
bad("matrix_norm(Tensor())", "ValueError", "undefined")
bad("normalize(zeros(3))", "ValueError", "dimension 1", "out of range")
bad("cosine_similarity(zeros({2, 3}), zeros({2, 4}))", "ShapeError", "cosine_similarity", "(2, 3)", "(2, 4)")
bad("sum_to(zeros({2, 3}), {2})", "ShapeError", "sum_to", "(2, 3)", "(2,)")
bad("sum_to(zeros({1, 3}), {2, 3})", "ShapeError", "sum_to", "(2, 3)", "(1, 3)")
bad("sum_to(zeros({3}), {1, 3})", "ShapeError", "sum_to", "(1, 3)", "(3,)")
bad("sum_to(Tensor(), {1})", "ValueError", "undefined")

bad("matmul(ones({2, 3}), ones({4, 5}))", "ShapeError", "matmul", "(2, 3)", "(4, 5)", "second last")
bad("matmul(zeros({274177, 0}), zeros({0, 67280421310721}))", "ShapeError", "too many elements")
bad("matmul(zeros({0, 4294967296, 0}), zeros({0, 0, 4294967296}))", "ShapeError", "too many elements")
bad("matmul(ones({2, 3}), ones({4}))", "ShapeError", "matmul", "(2, 3)", "(4,)", "only")
bad("matmul(ones({2, 3, 4}), ones({5, 4, 3}))", "ShapeError", "matmul", "(2,)", "(5,)")
bad("matmul(scalar(1), ones({3}))", "ShapeError", "matmul", "()", "mul()")
bad("matmul(ones({2, 2}), ones({2, 2}, DType::float64))", "DTypeError", "matmul", "float32", "float64")
bad("mm(ones({2, 3}), ones({2, 3}))", "ShapeError", "mm", "(2, 3)", "(m, k) and (k, n)")
bad("mm(ones({2, 2, 3}), ones({3, 3}))", "ShapeError", "mm", "(2, 2, 3)", "matmul()")
bad("bmm(ones({1, 2, 3}), ones({2, 3, 2}))", "ShapeError", "bmm", "(1, 2, 3)", "(2, 3, 2)", "matmul()")
bad("bmm(ones({2, 2, 3}), ones({2, 2, 3}))", "ShapeError", "bmm", "(2, 2, 3)")
bad("dot(ones({2}), ones({3}))", "ShapeError", "dot", "(2,)", "(3,)")
bad("dot(ones({2, 2}), ones({2, 2}))", "ShapeError", "dot", "(2, 2)")
bad("dot(ones({2}), ones({2}, DType::float64))", "DTypeError", "dot")
bad("outer(ones({2, 2}), ones({2}))", "ShapeError", "outer", "(2, 2)")
bad("linear(ones({2, 5, 7}), ones({16, 8}))", "ShapeError",
    "linear: x (2, 5, 7) has last dimension 7 but weight (16, 8) expects 8")
bad("linear(ones({2, 5}), ones({1, 2, 5}))", "ShapeError", "linear", "(1, 2, 5)", "(out, in)")
bad("linear(ones({2, 5}), ones({5}), ones({2}))", "ShapeError", "linear", "bias (2,)", "it must be ()")
bad("linear(scalar(1), ones({2, 1}))", "ShapeError", "linear", "0-d")
bad("linear(ones({2, 5}), ones({3, 5}), ones({5}))", "ShapeError", "linear", "bias (5,)", "(3, 5)", "(3,)")
bad("linear(ones({2, 5}), ones({3, 5}), ones({3}, DType::float64))", "DTypeError", "linear", "float32", "float64")
bad('einsum("i", std::vector<Tensor>{})', "ValueError", "einsum 'i'", "no operands")
bad('einsum("ij,jk->ik", {ones({2, 2})})', "ValueError", "'ij,jk->ik'", "2", "1")
bad('einsum("ij", {ones({2, 2}), ones({2})})', "ValueError", "'ij'", "1", "2")
bad('einsum("i1->i", {ones({2, 2})})', "ValueError", "'i1->i'", "'1'")
bad('einsum("i->i->i", {ones({2})})', "ValueError", "'i->i->i'", "'-'")
bad('einsum("..i->i", {ones({2, 2})})', "ValueError", "'..i->i'", "'.'")
bad('einsum("...i...->i", {ones({2, 2})})', "ValueError", "'...i...->i'", "twice")
bad('einsum("ijk->i", {ones({2, 3})})', "ShapeError", "'ijk->i'", "operand 0 (2, 3)", "3")
bad('einsum("ij...->i", {ones({2})})', "ShapeError", "'ij...->i'", "(2,)")
bad('einsum("ij,jk->ik", {ones({2, 3}), ones({4, 5})})', "ShapeError", "'ij,jk->ik'", "'j'", "4", "operand 1 (4, 5)", "3")
bad('einsum("...i,...i->i", {ones({2, 3}), ones({4, 3})})', "ShapeError", "'...i,...i->i'", "'...'", "(4, 3)")
bad('einsum("ii->i", {ones({2, 3})})', "ShapeError", "'ii->i'", "'i'", "(2, 3)")
bad('einsum("ij->ik", {ones({2, 3})})', "ValueError", "'ij->ik'", "'k'")
bad('einsum("ij->ii", {ones({2, 3})})', "ValueError", "'ij->ii'", "'i'", "twice")
bad('einsum("i,i->", {ones({2}), ones({2}, DType::float64)})', "DTypeError", "einsum", "float32", "float64")
