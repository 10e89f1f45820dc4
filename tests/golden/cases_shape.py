"""Golden cases of ops on shapes, of parts, and indexing."""

import torch
import torch.nn.functional as F

from cases import ids, mask, one_id, randn


def add_shapes(cases):
    for op, f in (("reshape", torch.reshape), ("view", lambda x, sizes: x.view(sizes))):
        for sample, shape, to in (
            ("flat", (2, 3), (6,)),
            ("-1", (2, 3, 4), (4, -1)),
            ("0-d", (), (1, 1)),
            ("to 0-d", (1, 1), ()),
            ("zero-size", (0, 3), (3, 0, 2)),
        ):
            cases.add(f"{op}/{sample}", lambda x: f(x, to), randn(*shape))
    cases.add("flatten/all", torch.flatten, randn(2, 3, 2))
    cases.add("flatten/0-d", torch.flatten, randn())
    cases.add("flatten/from 1", lambda x: x.flatten(1), randn(2, 3, 2))
    cases.add("flatten/-3 to -2", lambda x: x.flatten(-3, -2), randn(2, 3, 2))
    cases.add("flatten/zero-size", torch.flatten, randn(2, 0))
    cases.add("permute/3-d", lambda x: x.permute(2, 0, 1), randn(2, 3, 4))
    cases.add("permute/negative", lambda x: x.permute(-1, 0, -2, 1), randn(2, 1, 3, 2))
    cases.add("permute/0-d", lambda x: x.permute(()), randn())
    cases.add("permute/zero-size", lambda x: x.permute(1, 0), randn(0, 3))
    cases.add("transpose/2-d", lambda x: x.transpose(0, 1), randn(2, 3))
    cases.add("transpose/negative", lambda x: x.transpose(-1, 0), randn(2, 3, 4))
    cases.add("transpose/zero-size", lambda x: x.transpose(0, 1), randn(0, 3))
    cases.add("squeeze/all", torch.squeeze, randn(1, 3, 1, 2))
    cases.add("squeeze/to 0-d", torch.squeeze, randn(1, 1))
    cases.add("squeeze/dim -2", lambda x: x.squeeze(-2), randn(3, 1, 1))
    cases.add("squeeze/not of size 1", lambda x: x.squeeze(0), randn(3, 1))
    cases.add("squeeze/zero-size", torch.squeeze, randn(1, 0))
    # PyTorch 2 takes a list; 1.13 one dimension at a time, so from the last.
    several = lambda *dims: lambda x: [x := x.squeeze(d) for d in dims][-1]
    cases.add("squeeze/dims 0 and -1", several(-1, 0), randn(1, 3, 1))
    cases.add("squeeze/dims 3, 0 and 1, one not of size 1", several(3, 1, 0), randn(1, 3, 1, 1))
    cases.add("unsqueeze/0", lambda x: x.unsqueeze(0), randn(2, 3))
    cases.add("unsqueeze/-1", lambda x: x.unsqueeze(-1), randn(2, 3))
    cases.add("unsqueeze/0-d", lambda x: x.unsqueeze(0), randn())
    cases.add("unsqueeze/zero-size", lambda x: x.unsqueeze(1), randn(0, 2))
    cases.add("expand/sizes of 1", lambda x: x.expand(2, 3, 4), randn(2, 1, 4))
    cases.add("expand/new dimensions, -1", lambda x: x.expand(2, 3, -1), randn(1, 4))
    cases.add("expand/0-d", lambda x: x.expand(2, 2), randn())
    cases.add("expand/zero-size", lambda x: x.expand(0, 3), randn(1, 3))
    cases.add("repeat/both", lambda x: x.repeat(3, 2), randn(2, 3))
    cases.add("repeat/new dimension", lambda x: x.repeat(2, 1, 2), randn(2, 3))
    cases.add("repeat/0-d", lambda x: x.repeat(3), randn())
    cases.add("repeat/zero-size", lambda x: x.repeat(2, 2), randn(0, 3))
    each = lambda *a: lambda x: torch.repeat_interleave(x, *a)
    cases.add("repeat_interleave/flattened", each(2), randn(2, 3))
    cases.add("repeat_interleave/dim 0", each(3, 0), randn(2, 3))
    cases.add("repeat_interleave/dim -1", each(2, -1), randn(2, 3, 2))
    some = lambda dim: lambda x, i: torch.repeat_interleave(x, i, dim)
    cases.add("repeat_interleave/a list, dim 1", some(1), randn(2, 3), ids([2, 0, 3]))
    cases.add("repeat_interleave/a list of one, dim 1", some(1), randn(2, 3), ids([2]))
    for op in ("tril", "triu"):
        f = getattr(torch, op)
        cases.add(f"{op}/square", f, randn(3, 3))
        for diagonal in (1, -1):
            cases.add(f"{op}/diagonal {diagonal}", lambda x: f(x, diagonal), randn(2, 3, 4))
        cases.add(f"{op}/tall, all of it", lambda x: f(x, -7 if op == "triu" else 7), randn(4, 2))
        cases.add(f"{op}/zero-size", f, randn(0, 3))
    some = mask([[True, True, False], [True, False, True], [True, True, True]])
    cases.add("tril/mask", lambda m: torch.tril(m.long()).bool(), some)
    cases.add("tril/mask, diagonal 1", lambda m: torch.tril(m.long(), 1).bool(), some)


def add_arrangements(cases):
    cases.add("swapaxes/3-d", lambda x: x.swapaxes(0, -1), randn(2, 3, 4))
    cases.add("movedim/one", lambda x: x.movedim(0, -1), randn(2, 3, 4))
    cases.add("movedim/two", lambda x: x.movedim((0, -1), (1, 0)), randn(2, 3, 4))
    cases.add("broadcast_to/new dimension", lambda x: x.broadcast_to(2, 3, 4), randn(3, 1))
    cases.add("expand_as/a row", lambda x: x.expand_as(torch.zeros(2, 3, 4)), randn(4))
    cases.add("contiguous/itself", lambda x: x.clone(), randn(2, 3))
    cases.add("unbind/dim 0", lambda x: x.unbind(), randn(3, 2))
    cases.add("unbind/dim -1", lambda x: x.unbind(-1), randn(2, 3))
    cases.add("roll/dim 1", lambda x: x.roll(2, 1), randn(2, 5))
    cases.add("roll/two", lambda x: x.roll((-1, 4), (0, 1)), randn(4, 3))
    cases.add("roll/flattened", lambda x: x.roll(-1), randn(2, 3))
    cases.add("roll/zero-size", lambda x: x.roll(1, 0), randn(0, 3))
    for sample, shape, diagonal in (
        ("of a matrix", (3, 3), 0),
        ("of a matrix, 1", (2, 4), 1),
        ("of a matrix, -2", (4, 3), -2),
        ("a matrix", (3,), 0),
        ("a matrix, 2", (2,), 2),
        ("a matrix, -1", (3,), -1),
    ):
        cases.add(f"diag/{sample}", lambda x: x.diag(diagonal), randn(*shape))
    for sample, shape, sizes in (
        ("last", (2, 3), (1, 2)),
        ("both", (2, 3), (1, 0, 2, 1)),
        ("cut", (3, 4), (-1, 2, 0, -2)),
        ("zero-size", (0, 3), (1, 1, 1, 0)),
    ):
        cases.add(f"pad/{sample}", lambda x: F.pad(x, sizes), randn(*shape))
        cases.add(f"pad/{sample}, value", lambda x: F.pad(x, sizes, value=-1.5), randn(*shape))
    for indexing in ("ij", "xy"):
        f = lambda *xs: torch.meshgrid(*xs, indexing=indexing)
        cases.add(f"meshgrid/{indexing}", f, randn(2), randn(3))
        cases.add(f"meshgrid/{indexing}, three", f, randn(2), randn(3), randn())


def add_parts(cases):
    cat = lambda dim: lambda *xs: torch.cat(xs, dim)
    stack = lambda dim: lambda *xs: torch.stack(xs, dim)
    cases.add("cat/dim 0", cat(0), randn(2, 3), randn(1, 3))
    cases.add("cat/dim -1, three", cat(-1), randn(2, 1), randn(2, 3), randn(2, 2))
    cases.add("cat/middle", cat(1), randn(2, 1, 2), randn(2, 3, 2))
    cases.add("cat/one", cat(0), randn(2, 3))
    cases.add("cat/zero-size", cat(0), randn(0, 3), randn(2, 3))
    cases.add("cat/of itself", lambda x: torch.cat([x, x], 1), randn(2, 3))
    cases.add("stack/dim 0", stack(0), randn(2, 3), randn(2, 3))
    cases.add("stack/dim -1", stack(-1), randn(2, 3), randn(2, 3), randn(2, 3))
    cases.add("stack/0-d", stack(0), randn(), randn())
    cases.add("stack/zero-size", stack(1), randn(2, 0), randn(2, 0))
    cases.add("split/size 2 of 5", lambda x: x.split(2), randn(5, 2))
    cases.add("split/dim -1", lambda x: x.split(3, -1), randn(2, 4))
    cases.add("split/larger than x", lambda x: x.split(4), randn(3, 2))
    cases.add("split/sizes, one zero", lambda x: x.split([1, 0, 3], 1), randn(2, 4))
    cases.add("split/zero-size", lambda x: x.split(2, 0), randn(3, 0))
    cases.add("chunk/even", lambda x: x.chunk(2, 1), randn(2, 4))
    cases.add("chunk/3 of 7", lambda x: x.chunk(3), randn(7, 1))
    cases.add("chunk/fewer than asked", lambda x: x.chunk(4, -1), randn(1, 5))
    cases.add("chunk/zero-size", lambda x: x.chunk(2, 1), randn(0, 4))
    cases.add("slice/range", lambda x: x[1:3], randn(4, 2))
    cases.add("slice/dim -1, step 2", lambda x: x[..., 1::2], randn(2, 5))
    cases.add("slice/negative ends", lambda x: x[:, -3:-1], randn(2, 4))
    cases.add("slice/clipped", lambda x: x[-9:9], randn(3, 2))
    cases.add("slice/nothing", lambda x: x[2:1], randn(3, 2))
    cases.add("slice/step 3, middle", lambda x: x[:, :5:3], randn(2, 6, 2))
    cases.add("narrow/dim 0", lambda x: x.narrow(0, 1, 2), randn(4, 2))
    cases.add("narrow/dim -1, negative start", lambda x: x.narrow(-1, -2, 2), randn(2, 4))
    cases.add("narrow/nothing", lambda x: x.narrow(1, 1, 0), randn(2, 3))
    cases.add("select/dim 0", lambda x: x.select(0, 1), randn(3, 2))
    cases.add("select/dim -1, negative index", lambda x: x.select(-1, -2), randn(2, 3, 4))
    cases.add("select/to 0-d", lambda x: x.select(0, 2), randn(3))
    cases.add("select/zero-size", lambda x: x.select(0, 0), randn(2, 0))
    one = lambda *a: lambda x, src: torch.select_scatter(x, src, *a)
    cases.add("select_scatter/dim 0", one(0, 1), randn(3, 2), randn(2))
    cases.add("select_scatter/dim -1, negative index", one(-1, -2), randn(2, 3, 4), randn(2, 3))
    cases.add("select_scatter/an element", one(0, 2), randn(3), randn())
    cases.add("flip/dim 0", lambda x: x.flip(0), randn(3, 2))
    cases.add("flip/dims -1 and 0", lambda x: x.flip(-1, 0), randn(2, 3, 4))
    cases.add("flip/no dims", lambda x: x.flip(()), randn(2, 3))
    cases.add("flip/zero-size", lambda x: x.flip(1), randn(0, 3))
    cases.add("index/integer and range", lambda x: x[1, 0:2], randn(3, 4))
    cases.add("index/ellipsis, step", lambda x: x[..., ::2], randn(2, 3, 4))
    cases.add("index/new axes", lambda x: x[None, :, -1, None], randn(3, 4))
    cases.add("index/to 0-d", lambda x: x[-1, 2], randn(3, 4))


def add_indexing(cases):
    rows = lambda dim: lambda x, i: x.index_select(dim, i)
    cases.add("index_select/repeated", rows(0), randn(4, 3), ids([2, 0, 2, 3]))
    cases.add("index_select/dim -1", rows(-1), randn(2, 4), ids([1, 1, 3]))
    cases.add("index_select/middle", rows(1), randn(2, 3, 2), ids([2, 0, 1, 2]))
    cases.add("index_select/no indices", rows(0), randn(3, 2), ids([], 0))
    cases.add("index_select/no columns", rows(0), randn(3, 0), ids([1]))
    gather = lambda dim: lambda x, i: x.gather(dim, i)
    cases.add("gather/dim 0", gather(0), randn(3, 4), ids([0, 2, 1, 0, 2, 2, 1, 1], 2, 4))
    cases.add("gather/dim -1", gather(-1), randn(3, 4), ids([3, 0, 1, 1, 2, 3], 3, 2))
    cases.add("gather/smaller off dim", gather(0), randn(3, 4), ids([1, 0, 1, 2, 0, 0], 3, 2))
    some = ids([0, 2, 1, 1, 2, 0, 0, 2], 2, 2, 2)
    cases.add("gather/3-d, middle", gather(1), randn(2, 3, 2), some)
    cases.add("gather/no indices", gather(0), randn(3, 4), ids([], 0, 4))
    cases.add("gather/no indices, another rank", gather(1), randn(3, 4), ids([], 0))
    cases.add("gather/no indices, a larger rank", gather(1), randn(3, 4), ids([], 2, 0, 5))
    cases.add("gather/0-d", gather(0), randn(), one_id(0))
    scatter = lambda dim: lambda x, i, src: x.scatter_add(dim, i, src)
    some = ids([0, 2, 1, 0, 2, 2, 1, 0], 2, 4)
    cases.add("scatter_add/dim 0", scatter(0), randn(3, 4), some, randn(2, 4))
    cases.add(
        "scatter_add/dim -1", scatter(-1), randn(3, 4), ids([3, 0, 1, 1, 2, 2], 3, 2), randn(3, 2)
    )
    cases.add(
        "scatter_add/larger src",
        lambda x, i, src: x.scatter_add(1, i, src[:2, :1]),  # else PyTorch refuses the gradient
        randn(3, 4),
        ids([3, 3], 2, 1),
        randn(3, 2),
    )
    cases.add("scatter_add/no indices", scatter(0), randn(3, 4), ids([], 0, 4), randn(0, 4))
    # Where several go to one place, PyTorch does not say which stays.
    scatter = lambda dim: lambda x, i, src: x.scatter(dim, i, src)
    some = ids([0, 2, 1, 0, 2, 1, 0, 2], 2, 4)
    cases.add("scatter/dim 0", scatter(0), randn(3, 4), some, randn(2, 4))
    cases.add("scatter/dim -1", scatter(-1), randn(3, 4), ids([3, 0, 1, 2, 2, 0], 3, 2), randn(3, 2))
    cases.add("scatter/no indices", scatter(0), randn(3, 4), ids([], 0, 4), randn(0, 4))
    cases.add("scatter/a number", lambda x, i: x.scatter(0, i, -1.5), randn(3, 4), some)
    put = lambda x, i, v: x.index_put((i,), v)
    put_two = lambda x, i, j, v: x.index_put((i, j), v)
    add = lambda x, i, j, v: x.index_put((i, j), v, accumulate=True)
    i, j = ids([2, 0, 2]), ids([1, 3, 1])
    cases.add("index_put/rows", put, randn(3, 4), ids([2, 0]), randn(2, 4))
    cases.add("index_put/rows, one value each", put, randn(3, 4), ids([2, -3]), randn(2, 1))
    cases.add("index_put/no indices", put, randn(3, 2), ids([], 0), randn(0, 2))
    cases.add("index_put/elements", put_two, randn(3, 4), ids([2, 0]), ids([1, -1]), randn(2))
    cases.add(
        "index_put/rows and columns", put_two, randn(3, 4), ids([2, 0], 2, 1), ids([1, 3]), randn(2, 2)
    )
    cases.add("index_put/added, some twice", add, randn(3, 4, 2), i, j, randn(3, 2))
    cases.add("index_put/added, one value", add, randn(3, 4), i, j, randn())
    some = mask([[True, False, True], [False, True, True]])
    cases.add("masked_select/same shape", torch.masked_select, randn(2, 3), some)
    cases.add("masked_select/both broadcast", torch.masked_select, randn(3, 1, 1), some)
    cases.add("masked_select/0-d", torch.masked_select, randn(), mask(True))
    cases.add("masked_select/nothing", torch.masked_select, randn(2), mask([False, False]))
    cases.add("masked_select/x[mask]", lambda x, m: x[m], randn(2, 3, 2), some)
    cases.add("masked_select/x[mask] of rows", lambda x, m: x[m], randn(2, 3), mask([False, True]))
    add_to = lambda dim: lambda x, i, src: x.index_add(dim, i, src)
    cases.add("index_add/repeated", add_to(0), randn(4, 3), ids([2, 0, 2]), randn(3, 3))
    cases.add("index_add/dim -1", add_to(-1), randn(2, 4), ids([1, 1]), randn(2, 2))
    cases.add("index_add/middle", add_to(1), randn(2, 3, 2), ids([2, 0]), randn(2, 2, 2))
    cases.add("index_add/no indices", add_to(0), randn(3, 2), ids([], 0), randn(0, 2))
    some = ids([0, 2, 2, 1, 0, 4], 2, 3)
    cases.add("embedding/table, some twice", F.embedding, some, randn(5, 3))
    cases.add("embedding/one id", F.embedding, one_id(2), randn(3, 4))
    # PyTorch 1.13 fails in the second gradients of no ids.
    cases.add("embedding/no ids", F.embedding, ids([], 2, 0), randn(3, 4), second=False)
    cases.add("embedding/one column", F.embedding, ids([1, 0, 1]), randn(2, 1))


def add(cases):
    add_shapes(cases)
    add_arrangements(cases)
    add_parts(cases)
    add_indexing(cases)
