"""Samples of ops on shapes, of parts, indexing, scans and selection."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad

# ---- another shape

RESHAPES = [
    S("flat", randn(2, 3), to=(6,)), S("-1", randn(2, 3, 4), to=(4, -1)), S("0-d", randn(), to=(1, 1)),
    S("to 0-d", randn(1, 1), to=()), S("zero-size", randn(0, 3), to=(3, 0, 2))]
for name in ("reshape", "view"):
    op(name, "x." + name + "({to})", name + "(x, {to})", *RESHAPES)

op("flatten", "x.flatten()", "flatten(x)",
   S("all", randn(2, 3, 2)), S("0-d", randn()), S("zero-size", randn(2, 0)))
op("flatten", "x.flatten({dims})", "flatten(x, {dims})",
   S("from 1", randn(2, 3, 2), dims="1"), S("-3 to -2", randn(2, 3, 2), dims="-3, -2"))

op("squeeze", "x.squeeze()", "squeeze(x)",
   S("all", randn(1, 3, 1, 2)), S("to 0-d", randn(1, 1)), S("zero-size", randn(1, 0)))
op("squeeze", "x.squeeze({dim})", "squeeze(x, {dim})",
   S("dim -2", randn(3, 1, 1), dim=-2), S("not of size 1", randn(3, 1), dim=0),
   # PyTorch 2 takes a list; 1.13 one dimension at a time, so from the last.
   S("dims 0 and -1", randn(1, 3, 1), dim=(0, -1), theirs="x.squeeze(-1).squeeze(0)"),
   S("dims 3, 0 and 1, one not of size 1", randn(1, 3, 1, 1), dim=(3, 0, 1),
     theirs="x.squeeze(3).squeeze(1).squeeze(0)"))

op("unsqueeze", "x.unsqueeze({dim})", "unsqueeze(x, {dim})",
   S("0", randn(2, 3), dim=0), S("-1", randn(2, 3), dim=-1), S("0-d", randn(), dim=0),
   S("zero-size", randn(0, 2), dim=1))

op("expand", "x.expand({to})", "expand(x, {to})",
   S("sizes of 1", randn(2, 1, 4), to=(2, 3, 4)), S("new dimensions, -1", randn(1, 4), to=(2, 3, -1)),
   S("0-d", randn(), to=(2, 2)), S("zero-size", randn(1, 3), to=(0, 3)))

op("broadcast_to", "x.broadcast_to(2, 3, 4)", "broadcast_to(x, {2, 3, 4})", S("new dimension", randn(3, 1)))
op("expand_as", "x.expand_as(torch.zeros(2, 3, 4))", "expand_as(x, zeros({2, 3, 4}))", S("a row", randn(4)))
op("contiguous", "x.clone()", "contiguous(x)", S("itself", randn(2, 3)))

# ---- another order

op("permute", "x.permute({dims})", "permute(x, {dims})",
   S("3-d", randn(2, 3, 4), dims=(2, 0, 1)), S("negative", randn(2, 1, 3, 2), dims=(-1, 0, -2, 1)),
   S("0-d", randn(), dims=()), S("zero-size", randn(0, 3), dims=(1, 0)))
op("transpose", "x.transpose({dims})", "transpose(x, {dims})",
   S("2-d", randn(2, 3), dims="0, 1"), S("negative", randn(2, 3, 4), dims="-1, 0"),
   S("zero-size", randn(0, 3), dims="0, 1"))
op("swapaxes", "x.swapaxes(0, -1)", "swapaxes(x, 0, -1)", S("3-d", randn(2, 3, 4)))
op("movedim", "x.movedim({source}, {to})", "movedim(x, {source}, {to})",
   S("one", randn(2, 3, 4), source=0, to=-1), S("two", randn(2, 3, 4), source=(0, -1), to=(1, 0)))
op("flip", "x.flip({dims})", "flip(x, {dims})",
   S("dim 0", randn(3, 2), dims=(0,)), S("dims -1 and 0", randn(2, 3, 4), dims=(-1, 0)),
   S("no dims", randn(2, 3), dims=()), S("zero-size", randn(0, 3), dims=(1,)))
op("roll", "x.roll({by})", "roll(x, {by})",
   S("dim 1", randn(2, 5), by="2, 1"), S("flattened", randn(2, 3), by="-1"), S("zero-size", randn(0, 3), by="1, 0"),
   S("two", randn(4, 3), theirs="x.roll((-1, 4), (0, 1))", ours="roll(x, {-1, 4}, {0, 1})"))

# ---- elements used several times, or not at all

op("repeat", "x.repeat({times})", "repeat(x, {times})",
   S("both", randn(2, 3), times=(3, 2)), S("new dimension", randn(2, 3), times=(2, 1, 2)), S("0-d", randn(), times=3),
   S("zero-size", randn(0, 3), times=(2, 2)))
op("repeat_interleave", "torch.repeat_interleave(x, {times})", "repeat_interleave(x, {times})",
   S("flattened", randn(2, 3), times="2"), S("dim 0", randn(2, 3), times="3, 0"), S("dim -1", randn(2, 3, 2), times="2, -1"),
   S("a list, dim 1", randn(2, 3), ids([2, 0, 3]), times="i, 1"),
   S("a list of one, dim 1", randn(2, 3), ids([2]), times="i, 1"))
for name, all_of_it in (("tril", 7), ("triu", -7)):
    op(name, "x." + name + "({diagonal})", name + "(x, {diagonal})",
       S("square", randn(3, 3), diagonal=0), S("diagonal 1", randn(2, 3, 4), diagonal=1),
       S("diagonal -1", randn(2, 3, 4), diagonal=-1), S("tall, all of it", randn(4, 2), diagonal=all_of_it),
       S("zero-size", randn(0, 3), diagonal=0))
some = mask([[True, True, False], [True, False, True], [True, True, True]])
op("tril", "m.long().tril({diagonal}).bool()", "tril(m, {diagonal})",
   S("mask", some, diagonal=0, ours="tril(m)"), S("mask, diagonal 1", some, diagonal=1))
op("diag", "x.diag({diagonal})", "diag(x, {diagonal})",
   S("of a matrix", randn(3, 3), diagonal=0, ours="diag(x)"), S("of a matrix, 1", randn(2, 4), diagonal=1),
   S("of a matrix, -2", randn(4, 3), diagonal=-2), S("a matrix", randn(3), diagonal=0),
   S("a matrix, 2", randn(2), diagonal=2), S("a matrix, -1", randn(3), diagonal=-1))
PADS = [("last", (2, 3), (1, 2)), ("both", (2, 3), (1, 0, 2, 1)), ("cut", (3, 4), (-1, 2, 0, -2)),
        ("zero-size", (0, 3), (1, 1, 1, 0))]
op("pad", "F.pad(x, {sizes})", "pad(x, {sizes})", *[S(name, randn(*x), sizes=sizes) for name, x, sizes in PADS])
op("pad", "F.pad(x, {sizes}, value=-1.5)", "pad(x, {sizes}, -1.5)",
   *[S(f"{name}, value", randn(*x), sizes=sizes) for name, x, sizes in PADS])
for xy in ("ij", "xy"):
    op("meshgrid", "torch.meshgrid({xs}, indexing='" + xy + "')", "meshgrid({{xs}}, Meshgrid::" + xy + ")",
       S(xy, randn(2), randn(3), xs="x, y"), S(f"{xy}, three", randn(2), randn(3), randn(), xs="x, y, z"))

# ---- parts

op("slice", "x[{part}]", "slice(x, {ours_part})",
   S("range", randn(4, 2), part="1:3", ours_part="0, 1, 3"),
   S("dim -1, step 2", randn(2, 5), part="..., 1::2", ours_part="-1, 1, {}, 2"),
   S("negative ends", randn(2, 4), part=":, -3:-1", ours_part="1, -3, -1"),
   S("clipped", randn(3, 2), part="-9:9", ours_part="0, -9, 9"),
   S("nothing", randn(3, 2), part="2:1", ours_part="0, 2, 1"),
   S("step 3, middle", randn(2, 6, 2), part=":, :5:3", ours_part="1, {}, 5, 3"))
op("narrow", "x.narrow({part})", "narrow(x, {part})",
   S("dim 0", randn(4, 2), part="0, 1, 2"), S("dim -1, negative start", randn(2, 4), part="-1, -2, 2"),
   S("nothing", randn(2, 3), part="1, 1, 0"))
op("select", "x.select({part})", "select(x, {part})",
   S("dim 0", randn(3, 2), part="0, 1"), S("dim -1, negative index", randn(2, 3, 4), part="-1, -2"),
   S("to 0-d", randn(3), part="0, 2"), S("zero-size", randn(2, 0), part="0, 0"))
op("select_scatter", "x.select_scatter(y, {part})", "select_scatter(x, y, {part})",
   S("dim 0", randn(3, 2), randn(2), part="0, 1"), S("an element", randn(3), randn(), part="0, 2"),
   S("dim -1, negative index", randn(2, 3, 4), randn(2, 3), part="-1, -2"))
op("index", "x[{part}]", "index(x, {ours_part})",
   S("integer and range", randn(3, 4), part="1, 0:2", ours_part="{1, Slice{0, 2}}"),
   S("ellipsis, step", randn(2, 3, 4), part="..., ::2", ours_part="{Ellipsis{}, Slice{{}, {}, 2}}"),
   S("new axes", randn(3, 4), part="None, :, -1, None", ours_part="{NewAxis{}, Slice{}, -1, NewAxis{}}"),
   S("to 0-d", randn(3, 4), part="-1, 2", ours_part="{-1, 2}"))
op("unbind", "x.unbind({dim})", "unbind(x, {dim})",
   S("dim 0", randn(3, 2), dim=0, ours="unbind(x)"), S("dim -1", randn(2, 3), dim=-1))
op("split", "x.split({size}, {dim})", "split(x, {size}, {dim})",
   S("size 2 of 5", randn(5, 2), size=2, dim=0, ours="split(x, 2)"), S("dim -1", randn(2, 4), size=3, dim=-1),
   S("larger than x", randn(3, 2), size=4, dim=0), S("sizes, one zero", randn(2, 4), size=[1, 0, 3], dim=1),
   S("zero-size", randn(3, 0), size=2, dim=0))
op("chunk", "x.chunk({n}, {dim})", "chunk(x, {n}, {dim})",
   S("even", randn(2, 4), n=2, dim=1), S("zero-size", randn(0, 4), n=2, dim=1),
   S("3 of 7", randn(7, 1), n=3, dim=0, ours="chunk(x, 3)"), S("fewer than asked", randn(1, 5), n=4, dim=-1))
op("cat", "torch.cat([{xs}], {dim})", "cat({{xs}}, {dim})",
   S("dim 0", randn(2, 3), randn(1, 3), xs="x, y", dim=0, ours="cat({x, y})"),
   S("dim -1, three", randn(2, 1), randn(2, 3), randn(2, 2), xs="x, y, z", dim=-1),
   S("middle", randn(2, 1, 2), randn(2, 3, 2), xs="x, y", dim=1), S("one", randn(2, 3), xs="x", dim=0),
   S("zero-size", randn(0, 3), randn(2, 3), xs="x, y", dim=0), S("of itself", randn(2, 3), xs="x, x", dim=1))
op("stack", "torch.stack([{xs}], {dim})", "stack({{xs}}, {dim})",
   S("dim 0", randn(2, 3), randn(2, 3), xs="x, y", dim=0, ours="stack({x, y})"),
   S("dim -1", randn(2, 3), randn(2, 3), randn(2, 3), xs="x, y, z", dim=-1),
   S("0-d", randn(), randn(), xs="x, y", dim=0), S("zero-size", randn(2, 0), randn(2, 0), xs="x, y", dim=1))

# ---- by indices and masks

op("index_select", "x.index_select({dim}, i)", "index_select(x, {dim}, i)",
   S("repeated", randn(4, 3), ids([2, 0, 2, 3]), dim=0), S("dim -1", randn(2, 4), ids([1, 1, 3]), dim=-1),
   S("middle", randn(2, 3, 2), ids([2, 0, 1, 2]), dim=1), S("no indices", randn(3, 2), ids([], 0), dim=0),
   S("no columns", randn(3, 0), ids([1]), dim=0))
op("index_add", "x.index_add({dim}, i, y)", "index_add(x, {dim}, i, y)",
   S("repeated", randn(4, 3), ids([2, 0, 2]), randn(3, 3), dim=0),
   S("dim -1", randn(2, 4), ids([1, 1]), randn(2, 2), dim=-1),
   S("middle", randn(2, 3, 2), ids([2, 0]), randn(2, 2, 2), dim=1),
   S("no indices", randn(3, 2), ids([], 0), randn(0, 2), dim=0))
op("embedding", "F.embedding(i, x)", "embedding(i, x)",
   S("table, some twice", ids([0, 2, 2, 1, 0, 4], 2, 3), randn(5, 3)), S("one id", one_id(2), randn(3, 4)),
   # PyTorch 1.13 fails in the second gradients of no ids.
   S("no ids", ids([], 2, 0), randn(3, 4), second=False), S("one column", ids([1, 0, 1]), randn(2, 1)))
op("gather", "x.gather({dim}, i)", "gather(x, {dim}, i)",
   S("dim 0", randn(3, 4), ids([0, 2, 1, 0, 2, 2, 1, 1], 2, 4), dim=0),
   S("dim -1", randn(3, 4), ids([3, 0, 1, 1, 2, 3], 3, 2), dim=-1),
   S("smaller off dim", randn(3, 4), ids([1, 0, 1, 2, 0, 0], 3, 2), dim=0),
   S("3-d, middle", randn(2, 3, 2), ids([0, 2, 1, 1, 2, 0, 0, 2], 2, 2, 2), dim=1),
   S("no indices", randn(3, 4), ids([], 0, 4), dim=0), S("no indices, another rank", randn(3, 4), ids([], 0), dim=1),
   S("no indices, a larger rank", randn(3, 4), ids([], 2, 0, 5), dim=1), S("0-d", randn(), one_id(0), dim=0))
op("scatter_add", "x.scatter_add({dim}, i, y)", "scatter_add(x, {dim}, i, y)",
   S("dim 0", randn(3, 4), ids([0, 2, 1, 0, 2, 2, 1, 0], 2, 4), randn(2, 4), dim=0),
   S("dim -1", randn(3, 4), ids([3, 0, 1, 1, 2, 2], 3, 2), randn(3, 2), dim=-1),
   # PyTorch refuses the gradient of a src larger than the indices.
   S("larger src", randn(3, 4), ids([3, 3], 2, 1), randn(3, 2), dim=1, theirs="x.scatter_add(1, i, y[:2, :1])"),
   S("no indices", randn(3, 4), ids([], 0, 4), randn(0, 4), dim=0))
# Where several go to one place, PyTorch does not say which stays.
some = ids([0, 2, 1, 0, 2, 1, 0, 2], 2, 4)
op("scatter", "x.scatter({dim}, i, y)", "scatter(x, {dim}, i, y)",
   S("dim 0", randn(3, 4), some, randn(2, 4), dim=0), S("no indices", randn(3, 4), ids([], 0, 4), randn(0, 4), dim=0),
   S("dim -1", randn(3, 4), ids([3, 0, 1, 2, 2, 0], 3, 2), randn(3, 2), dim=-1),
   S("a number", randn(3, 4), some, theirs="x.scatter(0, i, -1.5)", ours="scatter(x, 0, i, -1.5)"))
op("index_put", "x.index_put((i,), y)", "index_put(x, {i}, y)",
   S("rows", randn(3, 4), ids([2, 0]), randn(2, 4)), S("rows, one value each", randn(3, 4), ids([2, -3]), randn(2, 1)),
   S("no indices", randn(3, 2), ids([], 0), randn(0, 2)))
op("index_put", "x.index_put((i, j), y)", "index_put(x, {i, j}, y)",
   S("elements", randn(3, 4), ids([2, 0]), ids([1, -1]), randn(2)),
   S("rows and columns", randn(3, 4), ids([2, 0], 2, 1), ids([1, 3]), randn(2, 2)))
op("index_put", "x.index_put((i, j), y, accumulate=True)", "index_put(x, {i, j}, y, true)",
   S("added, some twice", randn(3, 4, 2), ids([2, 0, 2]), ids([1, 3, 1]), randn(3, 2)),
   S("added, one value", randn(3, 4), ids([2, 0, 2]), ids([1, 3, 1]), randn()))
some = mask([[True, False, True], [False, True, True]])
op("masked_select", "x.masked_select(m)", "masked_select(x, m)",
   S("same shape", randn(2, 3), some), S("both broadcast", randn(3, 1, 1), some), S("0-d", randn(), mask(True)),
   S("nothing", randn(2), mask([False, False])))
op("masked_select", "x[m]", "x[m]",
   S("x[mask]", randn(2, 3, 2), some), S("x[mask] of rows", randn(2, 3), mask([False, True])))

bad("roll(zeros(2), 1, 1)", "ValueError", "roll", "1")
