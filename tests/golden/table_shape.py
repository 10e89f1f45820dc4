"""Samples of ops on shapes, of parts, indexing, scans and selection."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad

if torch:
    arange_indices, reshape = torch.arange, torch.reshape
# Integers of large samples, some of them the same: a text in both languages.
PICKS = "reshape(arange_indices(0, {count}) * 7 % 37, {sizes})"


def picks(*sizes):
    return {"sizes": sizes, "count": math.prod(sizes), "large": True}


# ---- another shape

RESHAPES = [
    S("flat", randn(2, 3), to=(6,)), S("-1", randn(2, 3, 4), to=(4, -1)), S("0-d", randn(), to=(1, 1)),
    S("to 0-d", randn(1, 1), to=()), S("zero-size", randn(0, 3), to=(3, 0, 2)),
    S("the same", randn(2, 3), to=(2, 3)), S("-1 alone", randn(2, 3), to=-1),
    S("zero-size, -1", randn(0, 3), to=(-1, 3)), S("large", randn(200, 300), to=(300, 200), large=True)]
for name in ("reshape", "view"):
    op(name, "x." + name + "({to})", name + "(x, {to})", *RESHAPES)
    bad(name + "(zeros({2, 3}), {4, 2})", "ShapeError", name, "(2, 3)", "6", "(4, 2)", "8")
    bad(name + "(zeros({2, 3}), {-1, -1})", "ShapeError", name, "(-1, -1)", "more than one -1")
    bad(name + "(zeros({2, 3}), {4, -1})", "ShapeError", name, "(2, 3)", "(4, -1)")
    bad(name + "(zeros({0, 3}), {-1, 0})", "ShapeError", name, "(0, 3)", "(-1, 0)", "any number")
    bad(name + "(zeros({}), {2, 3})", "ShapeError", name, "1 element but", "()", "(2, 3)")
    bad(name + "(zeros({1}), {2, -1})", "ShapeError", name, "the 1 element of x (1,)", "(2, -1)")
    bad(name + "(zeros({2, 3}), {-1, 0})", "ShapeError", name, "(2, 3)", "(-1, 0)")
    bad(name + "(zeros({2, 3}), {-2, 3})", "ShapeError", name, "-2", "negative")

op("flatten", "x.flatten()", "flatten(x)",
   S("all", randn(2, 3, 2)), S("0-d", randn()), S("zero-size", randn(2, 0)))
op("flatten", "x.flatten({dims})", "flatten(x, {dims})",
   S("from 1", randn(2, 3, 2), dims="1"), S("-3 to -2", randn(2, 3, 2), dims="-3, -2"),
   S("one", randn(2, 3), dims="1, 1"))
bad("flatten(zeros({2, 3}), 0, 2)", "ValueError", "out of range")
bad("flatten(zeros({2, 3}), 1, 0)", "ValueError", "flatten", "start_dim 1", "end_dim 0")
for name in ("reshape_as", "view_as"):
    op(name, f"x.{name}(torch.zeros(3, 2))", f"{name}(x, zeros({{3, 2}}))", S("2-d", randn(2, 3)))
    bad(f"{name}(zeros({{2, 3}}), zeros({{4, 2}}))", "ShapeError", name.removesuffix("_as"), "(2, 3)", "(4, 2)")
op("unflatten", "x.unflatten({dim}, {sizes})", "unflatten(x, {dim}, {sizes})",
   S("last, -1", randn(2, 6), dim=-1, sizes=(2, -1)), S("first", randn(6, 2), dim=0, sizes=(1, 3, 2)),
   S("middle", randn(2, 4, 3), dim=1, sizes=(2, 2)), S("zero-size", randn(2, 0), dim=1, sizes=(0, 3)),
   S("zero-size, -1", randn(0, 4), dim=1, sizes=(-1, 2)))
op("unflatten", "m.long().unflatten({dim}, {sizes}).bool()", "unflatten(m, {dim}, {sizes})",
   S("mask", mask([[True, False, True, True]]), dim=1, sizes=(2, 2)))
bad("unflatten(zeros({2, 6}), 1, {4, -1})", "ShapeError", "unflatten", "(4, -1)", "dimension 1 of x (2, 6)")
bad("unflatten(zeros({0, 6}), 1, {5})", "ShapeError", "unflatten", "(5)", "dimension 1 of x (0, 6)")
bad("unflatten(zeros({2, 1}), 1, {})", "ShapeError", "unflatten", "sizes () are none")
bad("unflatten(zeros({}), 0, {1})", "ShapeError", "unflatten", "0-d")
bad("unflatten(zeros({2, 6}), 2, {6})", "ValueError", "unflatten", "out of range")

op("squeeze", "x.squeeze()", "squeeze(x)",
   S("all", randn(1, 3, 1, 2)), S("to 0-d", randn(1, 1)), S("zero-size", randn(1, 0)), S("none", randn(3, 2)),
   S("0-d", randn()))
op("squeeze", "x.squeeze({dim})", "squeeze(x, {dim})",
   S("dim -2", randn(3, 1, 1), dim=-2), S("not of size 1", randn(3, 1), dim=0), S("dim 0", randn(1, 3, 1), dim=0),
   S("dim -1 of 0-d", randn(), dim=-1), S("no dims", randn(1, 3, 1), theirs="x.clone()", ours="squeeze(x, Dims{})"),
   # PyTorch 2 takes a list; 1.13 one dimension at a time, so from the last.
   S("dims 0 and -1", randn(1, 3, 1), dim=(0, -1), theirs="x.squeeze(-1).squeeze(0)"),
   S("dims 3, 0 and 1, one not of size 1", randn(1, 3, 1, 1), dim=(3, 0, 1),
     theirs="x.squeeze(3).squeeze(1).squeeze(0)"))
bad("squeeze(zeros({2, 3}), 2)", "ValueError", "out of range")
bad("squeeze(zeros({}), 1)", "ValueError", "out of range")
bad("squeeze(zeros({2, 3}), {0, 2})", "ValueError", "out of range")
bad("squeeze(zeros({1, 3, 1}), {2, -1})", "ValueError", "squeeze", "dimension -1", "(2, -1)", "twice")

op("unsqueeze", "x.unsqueeze({dim})", "unsqueeze(x, {dim})",
   S("0", randn(2, 3), dim=0), S("-1", randn(2, 3), dim=-1), S("0-d", randn(), dim=0),
   S("zero-size", randn(0, 2), dim=1), S("middle", randn(2, 3), dim=1), S("from the end", randn(2, 3), dim=-3))
for dim in (3, -4):
    bad("unsqueeze(zeros({2, 3}), " + f"{dim})", "ValueError", "out of range")

op("expand", "x.expand({to})", "expand(x, {to})",
   S("sizes of 1", randn(2, 1, 4), to=(2, 3, 4)), S("new dimensions, -1", randn(1, 4), to=(2, 3, -1)),
   S("0-d", randn(), to=(2, 2)), S("zero-size", randn(1, 3), to=(0, 3)), S("columns", randn(3, 1), to=(2, -1, 2)),
   S("the same", randn(2, 3), to=(2, -1)), S("to no columns", randn(3, 1), to=(3, 0)),
   S("large", randn(300, 1), to=(300, 200), large=True))
bad("expand(zeros({2, 3}), {2, 4})", "ShapeError", "expand", "(2, 3)", "(2, 4)")
bad("expand(zeros({2, 1}), {2})", "ShapeError", "expand", "(2, 1)")
bad("expand(zeros({2, 1}), {-1, 2, 1})", "ShapeError", "expand", "-1", "(2, 1)")
bad("expand(zeros({1}), {-2})", "ShapeError", "expand", "-2", "negative")

EXPANDED = [S("a row", randn(4)), S("new dimension", randn(3, 1)), S("the same", randn(2, 3, 4))]
op("broadcast_to", "x.broadcast_to(2, 3, 4)", "broadcast_to(x, {2, 3, 4})", *EXPANDED)
bad("broadcast_to(zeros({3, 2}), {2, 3, 4})", "ShapeError", "(2, 3, 4)", "(3, 2)")
op("expand_as", "x.expand_as(torch.zeros(2, 3, 4))", "expand_as(x, zeros({2, 3, 4}))", *EXPANDED)
bad("expand_as(zeros({3, 2}), zeros({2, 3, 4}))", "ShapeError", "(2, 3, 4)", "(3, 2)")
op("contiguous", "x.clone()", "contiguous(x)", S("itself", randn(2, 3)))

# ---- another order

op("permute", "x.permute({dims})", "permute(x, {dims})",
   S("3-d", randn(2, 3, 4), dims=(2, 0, 1)), S("negative", randn(2, 1, 3, 2), dims=(-1, 0, -2, 1)),
   S("0-d", randn(), dims=()), S("zero-size", randn(0, 3), dims=(1, 0)), S("the same", randn(2, 3), dims=(0, 1)),
   S("heads", randn(2, 3, 2, 4), dims=(0, 2, 1, 3)), S("size 1 in front", randn(2, 1, 3), dims=(1, 0, 2)),
   S("narrow and deep", randn(50, 3, 60), dims=(2, 0, 1), large=True), S("large", randn(17, 71, 43), dims=(2, 0, 1), large=True))
bad("permute(zeros({2, 3}), {0, 2})", "ValueError", "out of range")
bad("permute(zeros({2, 3}), {0})", "ValueError", "permute", "(0)", "(2, 3)")
bad("permute(zeros({2, 3}), {1, -1})", "ValueError", "permute", "(1, -1)", "twice")
op("transpose", "x.transpose({dims})", "transpose(x, {dims})",
   S("2-d", randn(2, 3), dims="0, 1"), S("negative", randn(2, 3, 4), dims="-1, 0"),
   S("zero-size", randn(0, 3), dims="0, 1"), S("with itself", randn(3, 4), dims="1, -1"), S("0-d", randn(), dims="0, -1"),
   S("blocks and rest", randn(19, 21), dims="0, 1"),
   *[S(name, randn(*sizes), dims="0, 1", large=True) for name, *sizes in (
       ("tall", 9000, 5), ("wide", 5, 9000), ("large", 205, 170))])
bad("transpose(zeros({2, 3}), 0, 2)", "ValueError", "out of range")
op("swapaxes", "x.swapaxes(0, -1)", "swapaxes(x, 0, -1)", S("3-d", randn(2, 3, 4)), S("zero-size", randn(0, 3, 1)))
bad("swapaxes(zeros({2, 3, 4}), 3, 0)", "ValueError", "out of range")
op("movedim", "x.movedim({source}, {to})", "movedim(x, {source}, {to})",
   S("one", randn(2, 3, 4), source=0, to=-1), S("two", randn(2, 3, 4), source=(0, -1), to=(1, 0)),
   S("ends exchanged", randn(2, 3, 4), source=(0, -1), to=(2, 0)), S("zero-size", randn(0, 3, 1), source=(0, -1), to=(2, 0)),
   S("none", randn(2, 3), source=(), to=()), S("0-d", randn(), source=0, to=-1))
bad("movedim(zeros({2, 3, 4}), 0, 3)", "ValueError", "out of range")
bad("movedim(zeros({2, 3}), {0, 1}, 0)", "ValueError", "movedim", "(0, 1)", "(0)")
bad("movedim(zeros({2, 3}), {0, 1}, {0, 0})", "ValueError", "movedim", "twice")
op("flip", "x.flip({dims})", "flip(x, {dims})",
   S("dim 0", randn(3, 2), dims=(0,)), S("dims -1 and 0", randn(2, 3, 4), dims=(-1, 0)),
   S("no dims", randn(2, 3), dims=()), S("zero-size", randn(0, 3), dims=(1,)), S("0-d", randn(), dims=(0,)),
   S("zero-size, both", randn(0, 2), dims=(0, 1)), S("large", randn(200, 300), dims=(1,), large=True))
bad("flip(zeros({2, 3}), 2)", "ValueError", "out of range")
bad("flip(zeros({2, 3}), {0, -2})", "ValueError", "flip", "(0, -2)", "twice")
op("roll", "x.roll({by})", "roll(x, {by})",
   S("dim 1", randn(2, 5), by="2, 1"), S("flattened", randn(2, 3), by="-1"), S("zero-size", randn(0, 3), by="1, 0"),
   S("backwards, twice around", randn(5, 2), by="-11, 0"), S("all around", randn(2, 3), by="6, 1"), S("0-d", randn(), by="1"),
   S("two", randn(4, 3), theirs="x.roll((-1, 4), (0, 1))", ours="roll(x, {-1, 4}, {0, 1})"))
bad("roll(zeros({2, 3}), 1, 2)", "ValueError", "out of range")
bad("roll(zeros({2, 3}), {1, 2}, 0)", "ValueError", "roll: 2 shifts for 1 dimension")

# ---- elements used several times, or not at all

op("repeat", "x.repeat({times})", "repeat(x, {times})",
   S("both", randn(2, 3), times=(3, 2)), S("new dimension", randn(2, 3), times=(2, 1, 2)), S("0-d", randn(), times=3),
   S("zero-size", randn(0, 3), times=(2, 2)), S("new dimensions", randn(2, 3), times=(2, 1, 4, 1)),
   S("0-d, two sizes", randn(), times=(2, 3)), S("0-d, no sizes", randn(), times=()), S("once", randn(2, 3), times=(1, 1)),
   S("never", randn(2, 3), times=(0, 2)), S("large", randn(60, 50), times=(3, 5), large=True))
bad("repeat(zeros({2, 3}), 2)", "ShapeError", "repeat: sizes (2)", "(2, 3)")
bad("repeat(zeros(2), {-1})", "ShapeError", "repeat", "-1")
op("repeat_interleave", "torch.repeat_interleave(x, {times})", "repeat_interleave(x, {times})",
   S("flattened", randn(2, 3), times="2"), S("dim 0", randn(2, 3), times="3, 0"), S("dim -1", randn(2, 3, 2), times="2, -1"),
   S("a list, dim 1", randn(2, 3), ids([2, 0, 3]), times="i, 1"),
   S("a list of one, dim 1", randn(2, 3), ids([2]), times="i, 1"),
   S("middle", randn(2, 2, 2), times="2, 1"), S("1-d", randn(3), times="2"), S("never", randn(2, 3), times="0, 0"),
   S("zero-size", randn(0, 3), times="2, 0"), S("0-d", randn(), times="3, 0", theirs="x.expand(3)"),
   S("a list, dim 0", randn(3, 2), ids([2, 0, 3]), times="i, 0"), S("a list, dim -1", randn(2, 3), ids([1, 2, 1]), times="i, -1"),
   S("a list for size 1", randn(1, 2), ids([3]), times="i, 0"), S("0-d repeats", randn(2), one_id(3), times="i, 0"),
   S("flattened, a list", randn(2, 2), ids([1, 0, 2, 0]), times="i"), S("large", randn(60, 50), times="7, 0", large=True))
bad("repeat_interleave(zeros({2, 3}), 2, 2)", "ValueError", "out of range")
bad("repeat_interleave(ones({3}), INT64_MAX)", "ShapeError", "has too many elements")
bad("one_hot(Indices{INT64_MAX})", "ValueError", "one_hot")
for n in "INT64_MAX", "INT64_MIN", "INT64_MIN + 1":
    bad(f"diag(ones({{3}}), {n})", "ShapeError", "diag")
for sizes in "4294967296, 4294967296", "0, 4294967296, 4294967296":
    bad(f"zeros({{{sizes}}})", "ShapeError", "too many elements")
bad("cat(std::vector<Tensor>(16, zeros({0, INT64_MAX / 8})), 1)", "ShapeError", "too many elements")
bad("repeat_interleave(zeros(2), -1)", "ValueError", "repeat_interleave: repeats is -1")
bad("repeat_interleave(zeros(2), {9223372036854775807, 9223372036854775807}, 0)", "ShapeError", "repeat_interleave", "too many")
bad("repeat_interleave(zeros(2), {1, -2}, 0)", "ValueError", "repeat_interleave: repeats[1] is -2")
bad("repeat_interleave(zeros({2, 3}), {1, 2}, 1)", "ShapeError", "repeat_interleave: 2 repeats", "dimension 1", "(2, 3)", "size 3")
bad("repeat_interleave(zeros({2, 2}), {{1, 2}, {1, 2}}, 1)", "ShapeError", "repeat_interleave: repeats", "(2, 2)")
for name, all_of_it in (("tril", 7), ("triu", -7)):
    op(name, "x." + name + "({diagonal})", name + "(x, {diagonal})",
       S("square", randn(3, 3), diagonal=0), S("diagonal 1", randn(2, 3, 4), diagonal=1),
       S("diagonal -1", randn(2, 3, 4), diagonal=-1), S("tall, all of it", randn(4, 2), diagonal=all_of_it),
       S("zero-size", randn(0, 3), diagonal=0), S("none of it", randn(2, 3), diagonal=-all_of_it),
       S("no columns", randn(2, 0), diagonal=0), S("large", randn(3, 90, 100), diagonal=2, large=True),
       S("infinite and NaN", values([[inf, inf, -inf], [math.nan, inf, math.nan], [-inf, inf, inf]]), diagonal=0, finite=False,
         differences=False))
    bad(name + "(zeros({3}), 0)", "ShapeError", name, "(3,)")
some = mask([[True, True, False], [True, False, True], [True, True, True]])
op("tril", "m.long().tril({diagonal}).bool()", "tril(m, {diagonal})",
   S("mask", some, diagonal=0, ours="tril(m)"), S("mask, diagonal 1", some, diagonal=1))
op("diag", "x.diag({diagonal})", "diag(x, {diagonal})",
   S("of a matrix", randn(3, 3), diagonal=0, ours="diag(x)"), S("of a matrix, 1", randn(2, 4), diagonal=1),
   S("of a matrix, -2", randn(4, 3), diagonal=-2), S("a matrix", randn(3), diagonal=0),
   S("a matrix, 2", randn(2), diagonal=2), S("a matrix, -1", randn(3), diagonal=-1),
   S("wide, at the end", randn(2, 4), diagonal=3), S("at the corner", randn(2, 3), diagonal=3),
   S("beyond it", randn(2, 3), diagonal=-3, theirs="x[:0, 0]"), S("no rows", randn(0, 3), diagonal=0), S("of nothing", randn(0), diagonal=1))
bad("diag(zeros({2, 2, 2}))", "ShapeError", "diag", "(2, 2, 2)")
PADS = [("last", (2, 3), (1, 2)), ("both", (2, 3), (1, 0, 2, 1)), ("cut", (3, 4), (-1, 2, 0, -2)),
        ("zero-size", (0, 3), (1, 1, 1, 0))]
op("pad", "F.pad(x, {sizes})", "pad(x, {sizes})", *[S(name, randn(*x), sizes=sizes) for name, x, sizes in PADS])
op("pad", "F.pad(x, {sizes}, value=-1.5)", "pad(x, {sizes}, -1.5)",
   *[S(f"{name}, value", randn(*x), sizes=sizes) for name, x, sizes in PADS],
   S("cut and filled", randn(3, 4), sizes=(-1, 2)), S("cut on all sides", randn(3, 4), sizes=(-1, -2, -2, 0)),
   S("all cut, then filled", randn(2, 2), sizes=(-2, 3)), S("no rows", randn(0, 2), sizes=(0, 0, 1, 1)),
   S("none", randn(2, 3), sizes=()))
bad("pad(zeros({2, 3}), 1)", "ValueError", "pad", "(1)", "(2, 3)")
bad("pad(zeros(2), {1, 1, 1, 1})", "ValueError", "pad", "(1, 1, 1, 1)")
bad("pad(zeros(2), {-2, -1})", "ShapeError", "pad", "-2", "-1", "dimension 0")
for left in "INT64_MAX", "-INT64_MAX", "INT64_MIN":
    for right in "INT64_MAX", "-INT64_MAX", "INT64_MIN":
        bad(f"pad(ones(5), {{{left}, {right}}})", "ShapeError", "pad: ")
bad("roll(scalar(3), 1, 0)", "ShapeError", "roll: x is 0-d")
for xy in ("ij", "xy"):
    op("meshgrid", "torch.meshgrid({xs}, indexing='" + xy + "')", "meshgrid({{xs}}, Meshgrid::" + xy + ")",
       S(xy, randn(2), randn(3), xs="x, y"), S(f"{xy}, three", randn(2), randn(3), randn(), xs="x, y, z"),
       S(f"{xy}, lines", randn(2), randn(3), randn(2), xs="x, y, z"), S(f"{xy}, one, 0-d", randn(), xs="x"))
bad("meshgrid({zeros(2), zeros({2, 1})})", "ShapeError", "meshgrid: axis 1", "(2, 1)")
bad("meshgrid({ones(2), ones(2, DType::float64)})", "DTypeError", "meshgrid: axis 0 is float32 but axis 1 is float64")

# ---- parts

op("slice", "x[{part}]", "slice(x, {ours_part})",
   S("range", randn(4, 2), part="1:3", ours_part="0, 1, 3"),
   S("dim -1, step 2", randn(2, 5), part="..., 1::2", ours_part="-1, 1, {}, 2"),
   S("negative ends", randn(2, 4), part=":, -3:-1", ours_part="1, -3, -1"),
   S("clipped", randn(3, 2), part="-9:9", ours_part="0, -9, 9"),
   S("nothing", randn(3, 2), part="2:1", ours_part="0, 2, 1"),
   S("step 3, middle", randn(2, 6, 2), part=":, :5:3", ours_part="1, {}, 5, 3"),
   S("step beyond the end", randn(4), part="2::9", ours_part="0, 2, {}, 9"),
   S("all", randn(3, 2), part=":", ours_part="0, {}, {}"), S("zero-size", randn(0, 2), part="0:3", ours_part="0, 0, 3"),
   S("large", randn(200, 300), part=":, 7:297:2", ours_part="1, 7, 297, 2", large=True))
bad("slice(zeros({2, 3}), 2, 0, 1)", "ValueError", "out of range")
bad("slice(zeros({3}), 0, 0, 3, 0)", "ValueError", "slice", "step 0")
bad("slice(zeros({3}), 0, 0, 3, -1)", "ValueError", "step -1", "flip")
bad("slice(zeros({}), 0, 0, 1)", "ShapeError", "slice", "0-d")
op("narrow", "x.narrow({part})", "narrow(x, {part})",
   S("dim 0", randn(4, 2), part="0, 1, 2"), S("dim -1, negative start", randn(2, 4), part="-1, -2, 2"),
   S("nothing", randn(2, 3), part="1, 1, 0"), S("all", randn(3, 2), part="0, 0, 3"),
   S("nothing, at the end", randn(3), part="0, 3, 0"), S("zero-size", randn(2, 0), part="0, 1, 1"))
bad("narrow(zeros({2, 3}), 2, 0, 1)", "ValueError", "out of range")
bad("narrow(zeros({3, 2}), 0, 2, 2)", "ValueError", "narrow", "start 2", "length 2", "(3, 2)")
bad("narrow(zeros({3}), 0, -4, 1)", "ValueError", "narrow", "-4", "(3,)")
bad("narrow(zeros({3}), 0, 2, -1)", "ValueError", "narrow", "length -1", "negative")
bad("zeros({3}).narrow(0, 2, -2)", "ValueError", "narrow", "length -2", "negative")
bad("narrow(zeros({}), 0, 0, 0)", "ShapeError", "narrow", "0-d")
op("select", "x.select({part})", "select(x, {part})",
   S("dim 0", randn(3, 2), part="0, 1"), S("dim -1, negative index", randn(2, 3, 4), part="-1, -2"),
   S("to 0-d", randn(3), part="0, 2"), S("zero-size", randn(2, 0), part="0, 0"),
   S("dim -2, the last", randn(2, 3, 2), part="-2, -1"), S("column", randn(3, 2), part="1, 0"))
bad("select(zeros({2, 3}), 2, 0)", "ValueError", "out of range")
bad("select(zeros({3, 2}), 0, 3)", "ValueError", "select", "index 3", "(3, 2)")
bad("select(zeros({3}), 0, -4)", "ValueError", "index -4", "(3,)")
bad("select(zeros({}), 0, 0)", "ShapeError", "select", "0-d")
op("select_scatter", "x.select_scatter(y, {part})", "select_scatter(x, y, {part})",
   S("dim 0", randn(3, 2), randn(2), part="0, 1"), S("an element", randn(3), randn(), part="0, 2"),
   S("dim -1, negative index", randn(2, 3, 4), randn(2, 3), part="-1, -2"),
   S("middle", randn(2, 3, 2), randn(2, 2), part="1, 2"), S("zero-size", randn(2, 0), randn(0), part="0, 1"),
   S("large", randn(200, 300), randn(200), part="1, 7", large=True))
bad("select_scatter(zeros({2, 3}), zeros(3, DType::float64), 0, 0)", "DTypeError", "select_scatter:", "x is float32", "float64", "to()")
bad("select_scatter(zeros({2, 3}), zeros(2), 0, 1)", "ShapeError", "select_scatter: src", "(2,)", "(2, 3)", "(3,)")
bad("select_scatter(zeros({2, 3}), zeros(3), 0, 2)", "ValueError", "select_scatter: index 2", "(2, 3)")
bad("select_scatter(zeros({}), zeros({}), 0, 0)", "ShapeError", "select_scatter", "0-d")
op("index", "x[{part}]", "index(x, {ours_part})",
   S("integer and range", randn(3, 4), part="1, 0:2", ours_part="{1, Slice{0, 2}}"),
   S("ellipsis, step", randn(2, 3, 4), part="..., ::2", ours_part="{Ellipsis{}, Slice{{}, {}, 2}}"),
   S("new axes", randn(3, 4), part="None, :, -1, None", ours_part="{NewAxis{}, Slice{}, -1, NewAxis{}}"),
   S("to 0-d", randn(3, 4), part="-1, 2", ours_part="{-1, 2}"),
   S("ellipsis and integer", randn(2, 3, 4), part="..., -1", ours_part="{Ellipsis{}, -1}"),
   S("around an ellipsis", randn(2, 3, 4), part="1, ..., ::2", ours_part="{1, Ellipsis{}, Slice{{}, {}, 2}}"),
   S("fewer than dimensions", randn(3, 2), part="2", ours_part="{2}"), S("none", randn(3, 2), part="()", ours_part="{}"),
   S("0-d", randn(), part="..., None", ours_part="{Ellipsis{}, NewAxis{}}"),
   S("zero-size", randn(2, 0), part="1:9", ours_part="{Slice{1, 9}}"))
op("index", "x[{part}]", "index(x, {ours_part})",
   *(S(name, randn(*x), *lists, part=part, ours_part=ours or "{" + part + "}") for name, x, lists, part, ours in (
       ("a list of rows", (3, 2), [ids([2, 0, 2])], "i", ""), ("a list of columns", (2, 3, 2), [ids([-1, 0], 1, 2)], ":, i", "{Slice{}, i}"),
       ("elements, some twice", (3, 4), [ids([2, 0, -1]), ids([1, -4, 1])], "i, j", ""),
       ("lists that broadcast", (3, 4, 2), [ids([2, 0], 2, 1), ids([1, 3, 0])], "i, j", ""),
       ("lists side by side", (2, 3, 4), [ids([2, 0]), ids([1, 3])], ":, i, j", "{Slice{}, i, j}"),
       ("lists around a slice", (3, 2, 4), [ids([2, 0]), ids([1, 3])], "i, 1:, j", "{i, Slice{1}, j}"),
       ("lists around a new axis", (3, 4), [ids([2, 0]), ids([1, 3])], "i, None, j", "{i, NewAxis{}, j}"),
       ("lists around an integer", (3, 2, 4), [ids([2, 0]), ids([1, 3])], "i, 1, j", ""),
       ("a list, an integer before it", (2, 3, 4), [ids([2, 0])], "1, :, i", "{1, Slice{}, i}"),
       ("the last of two lists", (3, 4, 2), [ids([2, 0]), ids([1, 3])], "..., i, j * 0", "{Ellipsis{}, i, j * 0}"),
       ("a 0-d list", (3, 4), [one_id(-1), ids([1, 3])], "i, j", ""), ("no elements", (3, 4), [ids([], 0), ids([], 2, 0)], "i, j", ""),
       ("three lists", (2, 3, 2), [ids([1, 0]), ids([2, 2]), ids([0, 1], 2, 1)], "i, j, k", ""),
       ("no columns of a list", (3, 0), [ids([2, 0])], "i", ""))),
   S("a mask's elements", mask([[True, False], [True, True]]), ids([1, 0]), ids([1, 0]), part="", ours_part="",
     theirs="m[i, j]", ours="index(m, {i, j})"),
   S("ids between slices", ids([5, 6, 7, 8, 9, 4], 2, 3, 1), ids([2, -2]), part="", ours_part="",
     theirs="i[1:, j]", ours="index(i, {Slice{1}, j})"))
bad("index(zeros({3, 4}), {Indices{0, 1}, Indices{1, 4}})", "ValueError", "index: 4", "dimension 1", "size 4")
bad("index(zeros({3, 4}), {2, Indices{1, -5}})", "ValueError", "index: -5", "dimension 1", "size 4")
bad("index(zeros({3, 4}), {Indices{0, 1}, Indices{1, 2, 3}})", "ShapeError", "index", "(2,)", "(3,)")
bad("index(zeros(3), {Indices{0}, Indices{0}})", "ValueError", "index: 2 integers, slices and lists", "(3,)", "1 dimension")
bad("index(zeros({3, 2}), {0, 2})", "ValueError", "index", "2", "dimension 1", "(3, 2)")
bad("index(zeros({3}), {0, Slice{}})", "ValueError", "index", "(3,)")
bad("index(zeros({3}), {Ellipsis{}, Ellipsis{}})", "ValueError", "index", "Ellipsis")
bad("index(zeros({3}), {Slice{0, 3, -1}})", "ValueError", "index", "step -1")
bad("index(zeros({}), {0})", "ValueError", "index", "()")
op("unbind", "x.unbind({dim})", "unbind(x, {dim})",
   S("dim 0", randn(3, 2), dim=0, ours="unbind(x)"), S("dim -1", randn(2, 3), dim=-1), S("to 0-d", randn(3), dim=0))
bad("unbind(zeros({2, 3}), 2)", "ValueError", "out of range")
bad("unbind(zeros({}))", "ShapeError", "unbind", "0-d")
op("split", "x.split({size}, {dim})", "split(x, {size}, {dim})",
   S("size 2 of 5", randn(5, 2), size=2, dim=0, ours="split(x, 2)"), S("dim -1", randn(2, 4), size=3, dim=-1),
   S("larger than x", randn(3, 2), size=4, dim=0), S("sizes, one zero", randn(2, 4), size=[1, 0, 3], dim=1),
   S("zero-size", randn(3, 0), size=2, dim=0), S("even", randn(6, 2), size=2, dim=0), S("no rows", randn(0, 2), size=2, dim=0),
   S("no rows, parts of none", randn(0, 2), size=0, dim=0), S("sizes", randn(6, 2), size=[1, 2, 3], dim=0),
   S("sizes, zero at the ends", randn(2, 3), size=[0, 3, 0], dim=1), S("large", randn(9000, 2), size=[4000, 5000], dim=0, large=True))
bad("split(zeros({2, 3}), 1, 2)", "ValueError", "out of range")
bad("split(zeros({3}), 0)", "ValueError", "split", "0", "(3,)")
bad("split(zeros({5, 2}), {2, 2})", "ValueError", "split", "(2, 2)", "5", "(5, 2)")
bad("split(zeros({5}), {3, 3})", "ValueError", "split", "(3, 3)", "(5,)")
bad("split(zeros({3}), zeros({3}).size(0) - 5)", "ValueError", "split", "-2")
bad("split(zeros({}), 1)", "ShapeError", "split", "0-d")
op("chunk", "x.chunk({n}, {dim})", "chunk(x, {n}, {dim})",
   S("even", randn(2, 4), n=2, dim=1), S("zero-size", randn(0, 4), n=2, dim=1),
   S("3 of 7", randn(7, 1), n=3, dim=0, ours="chunk(x, 3)"), S("fewer than asked", randn(1, 5), n=4, dim=-1),
   S("more than elements", randn(2, 2), n=5, dim=0), S("one", randn(3, 2), n=1, dim=0), S("no rows", randn(0, 2), n=3, dim=0))
bad("chunk(zeros({2, 3}), 2, -3)", "ValueError", "out of range")
bad("chunk(zeros({3}), 0)", "ValueError", "chunk", "0")
bad("chunk(zeros({3}), zeros({3}).size(0) - 5)", "ValueError", "chunk", "-2")
bad("chunk(zeros({}), 1)", "ShapeError", "chunk", "0-d")
op("cat", "torch.cat([{xs}], {dim})", "cat({{xs}}, {dim})",
   S("dim 0", randn(2, 3), randn(1, 3), xs="x, y", dim=0, ours="cat({x, y})"),
   S("dim -1, three", randn(2, 1), randn(2, 3), randn(2, 2), xs="x, y, z", dim=-1),
   S("middle", randn(2, 1, 2), randn(2, 3, 2), xs="x, y", dim=1), S("one", randn(2, 3), xs="x", dim=0),
   S("zero-size", randn(0, 3), randn(2, 3), xs="x, y", dim=0), S("of itself", randn(2, 3), xs="x, x", dim=1),
   S("with (0,)", randn(0), randn(2, 3), randn(0), randn(2, 1), xs="x, y, z, u", dim=1),
   S("only (0,)", randn(0), randn(0), xs="x, y", dim=0), S("no rows last", randn(2, 3), randn(0, 3), xs="x, y", dim=0),
   S("no rows", randn(0, 2), randn(0, 3), xs="x, y", dim=1), S("large", randn(300, 71), randn(300, 129), xs="x, y", dim=1, large=True))
bad("cat({zeros({2, 3}), zeros({2, 3})}, 2)", "ValueError", "out of range")
bad("cat(std::vector<Tensor>())", "ValueError", "cat")
bad("cat({zeros({}), zeros({})})", "ShapeError", "cat", "0-d", "stack")
bad("cat({zeros({2, 3}), zeros({2, 4})})", "ShapeError", "cat", "(2, 3)", "(2, 4)", "dimension 0")
bad("cat({zeros({2, 3}), zeros({2})})", "ShapeError", "cat", "(2, 3)", "(2,)", "2 and 1 dimensions")
bad("cat({zeros({2}), Tensor()})", "ValueError", "cat: Tensor 1 is undefined")
bad("cat({zeros({2}), zeros({2}, DType::float64)})", "DTypeError", "cat", "float32", "float64")
op("stack", "torch.stack([{xs}], {dim})", "stack({{xs}}, {dim})",
   S("dim 0", randn(2, 3), randn(2, 3), xs="x, y", dim=0, ours="stack({x, y})"),
   S("dim -1", randn(2, 3), randn(2, 3), randn(2, 3), xs="x, y, z", dim=-1),
   S("0-d", randn(), randn(), xs="x, y", dim=0), S("zero-size", randn(2, 0), randn(2, 0), xs="x, y", dim=1),
   S("middle", randn(2, 3), randn(2, 3), randn(2, 3), xs="x, y, z", dim=1), S("one", randn(2), xs="x", dim=1),
   S("no rows", randn(0, 2), randn(0, 2), xs="x, y", dim=0))
bad("stack({zeros({2, 3}), zeros({2, 3})}, 3)", "ValueError", "out of range")
bad("stack(std::vector<Tensor>())", "ValueError", "stack")
bad("stack({Tensor(), zeros({2})})", "ValueError", "stack: Tensor 0 is undefined")
bad("stack({zeros({2, 3}), zeros({3, 2})})", "ShapeError", "stack", "(2, 3)", "(3, 2)")
bad("stack({zeros({2}), zeros({2}, DType::float64)})", "DTypeError", "stack", "float32", "float64")

# ---- by indices and masks

op("index_select", "x.index_select({dim}, i)", "index_select(x, {dim}, i)",
   S("repeated", randn(4, 3), ids([2, 0, 2, 3]), dim=0), S("dim -1", randn(2, 4), ids([1, 1, 3]), dim=-1),
   S("middle", randn(2, 3, 2), ids([2, 0, 1, 2]), dim=1), S("no indices", randn(3, 2), ids([], 0), dim=0),
   S("no columns", randn(3, 0), ids([1]), dim=0), S("1-d", randn(5), ids([4, 4, 1]), dim=0),
   S("size 1", randn(1, 3), ids([0, 0]), dim=0), S("0-d", randn(), ids([0]), dim=-1), S("0-d, one", randn(), one_id(0), dim=-1))
LINES = [("rows", (90, 71), 0, 400), ("inner", (30, 40, 20), 1, 60), ("columns", (200, 50), 1, 90)]  # x, dim, how many
op("index_select", "x.index_select({dim}, " + PICKS + ")", "index_select(x, {dim}, " + PICKS + ")",
   *[S(f"large, {name}", randn(*x), dim=dim, **picks(n)) for name, x, dim, n in LINES])
bad("index_select(zeros({4, 3}), 0, {0, 4})", "ValueError", "index_select", "index 4", "(1,)", "0 to 3")
bad("index_select(zeros({4, 3}), 1, {-1})", "ValueError", "index_select", "index -1", "0 to 2")
bad("index_select(zeros({4, 3}), 0, {{0, 1}})", "ShapeError", "index_select", "(1, 2)", "1-dimensional")
bad("index_select(zeros({}), 0, {0, 0})", "ShapeError", "index_select", "2 indices", "0-d")
bad("index_select(zeros({4, 3}), 2, {0})", "ValueError", "index_select", "out of range")
op("index_add", "x.index_add({dim}, i, y)", "index_add(x, {dim}, i, y)",
   S("repeated", randn(4, 3), ids([2, 0, 2]), randn(3, 3), dim=0),
   S("dim -1", randn(2, 4), ids([1, 1]), randn(2, 2), dim=-1),
   S("middle", randn(2, 3, 2), ids([2, 0]), randn(2, 2, 2), dim=1),
   S("no indices", randn(3, 2), ids([], 0), randn(0, 2), dim=0), S("1-d", randn(5), ids([4, 4, 1]), randn(3), dim=0),
   S("no columns", randn(4, 0), ids([1, 2]), randn(2, 0), dim=0), S("size 1", randn(1, 3), ids([0, 0]), randn(2, 3), dim=0),
   S("0-d", randn(), ids([0]), randn(), dim=0))
op("index_add", "x.index_add({dim}, " + PICKS + ", y)", "index_add(x, {dim}, " + PICKS + ", y)",
   *[S(f"large, {name}", randn(*x), randn(*x[:dim], n, *x[dim + 1:]), dim=dim, **picks(n)) for name, x, dim, n in LINES])
bad("index_add(zeros({4, 3}), 0, {0, 1}, zeros({3, 3}))", "ShapeError", "index_add", "(3, 3)", "(4, 3)", "2 indices", "(2, 3)")
bad("index_add(zeros({4, 3}), 0, {0, 4}, zeros({2, 3}))", "ValueError", "index_add", "index 4", "0 to 3")
bad("index_add(zeros({4, 3}), 0, {0}, zeros({1, 3}, DType::float64))", "DTypeError", "index_add", "float32", "float64")
bad("index_add(zeros({4, 3}), 0, {{0, 1}}, zeros({2, 3}))", "ShapeError", "index_add", "1-dimensional")
bad("index_add(zeros({4, 3}), 2, {0}, zeros({1, 3}))", "ValueError", "index_add", "out of range")
op("embedding", "F.embedding(i, x)", "embedding(i, x)",
   S("table, some twice", ids([0, 2, 2, 1, 0, 4], 2, 3), randn(5, 3)), S("one id", one_id(2), randn(3, 4)),
   # PyTorch 1.13 fails in the second gradients of no ids.
   S("no ids", ids([], 2, 0), randn(3, 4), second=False, differences=True), S("one column", ids([1, 0, 1]), randn(2, 1)),
   S("no ids, 1-d", ids([], 0), randn(3, 4), second=False, differences=True), S("no columns", ids([1, 0]), randn(3, 0)),
   S("two uses", ids([0, 2]), ids([2, 2]), randn(3, 4), theirs="F.embedding(i, x) * F.embedding(j, x)",
     ours="embedding(i, x) * embedding(j, x)"),  # the second finds the gradient of the first
   S("large", randn(60, 150), theirs="F.embedding(" + PICKS + ", x)", ours="embedding(" + PICKS + ", x)", **picks(16, 40)))
bad("embedding({{0, 1}, {5, 2}}, zeros({5, 3}))", "ValueError", "embedding", "index 5", "(1, 0)", "0 to 4")
bad("embedding({0, -1}, zeros({5, 3}))", "ValueError", "embedding", "index -1", "(1,)")
bad("embedding({0}, zeros({5}))", "ShapeError", "embedding", "(5,)", "(V, C)")
bad("embedding({0}, Tensor())", "ValueError", "undefined")
# x, dim, indices and their shape
ELEMENTS = [
    ("more than x has", (2, 3), -1, [2, 0, 1, 1, 0, 2, 2, 1, 0, 2, 0, 1, 0, 0], (2, 7)),
    ("one row", (4, 5), 0, [3, 0, 3], (1, 3)),
    ("3-d, some twice", (2, 4, 3), 1, [0, 2, 1, 3, 2, 1, 1, 0, 3, 1, 1, 2], (2, 2, 3)),
    ("3-d, first, smaller", (3, 4, 3), 0, [2, 0, 1, 1, 0, 2, 2, 1, 0, 2, 0, 1, 0, 0, 1, 2, 2, 2, 1, 0], (5, 2, 2)),
    ("3-d, last, smaller", (2, 3, 4), 2, [3, 0, 1, 3, 2, 2, 0, 0, 1, 2, 3, 1], (1, 2, 6)),
    ("1-d", (5,), 0, [4, 1, 4], (3,)),
    ("size 1", (1, 4), 0, [0] * 12, (3, 4))]
LARGE = [("last", (300, 80), 1, (300, 60)), ("first", (80, 300), 0, (70, 300))]
op("gather", "x.gather({dim}, i)", "gather(x, {dim}, i)",
   S("dim 0", randn(3, 4), ids([0, 2, 1, 0, 2, 2, 1, 1], 2, 4), dim=0),
   S("dim -1", randn(3, 4), ids([3, 0, 1, 1, 2, 3], 3, 2), dim=-1),
   S("smaller off dim", randn(3, 4), ids([1, 0, 1, 2, 0, 0], 3, 2), dim=0),
   S("3-d, middle", randn(2, 3, 2), ids([0, 2, 1, 1, 2, 0, 0, 2], 2, 2, 2), dim=1),
   S("no indices", randn(3, 4), ids([], 0, 4), dim=0), S("no indices, another rank", randn(3, 4), ids([], 0), dim=1),
   S("no indices, a larger rank", randn(3, 4), ids([], 2, 0, 5), dim=1), S("0-d", randn(), one_id(0), dim=0),
   S("no indices, larger off dim", randn(3, 4), ids([], 0, 9), dim=1),
   *[S(name, randn(*x), ids(data, *shape), dim=dim) for name, x, dim, data, shape in ELEMENTS])
op("gather", "x.gather({dim}, " + PICKS + ")", "gather(x, {dim}, " + PICKS + ")",
   *[S(f"large, {name}", randn(*x), dim=dim, **picks(*shape)) for name, x, dim, shape in LARGE])
bad("gather(zeros({4, 3}), 0, {0, 1})", "ShapeError", "gather", "(2,)", "(4, 3)", "as many dimensions")
bad("gather(zeros({4, 3}), 0, {{0, 0, 0, 0}})", "ShapeError", "gather", "(1, 4)", "(4, 3)", "dimension 1")
bad("gather(zeros({4, 3}), 1, {{0, 1}, {2, 3}})", "ValueError", "gather", "index 3", "(1, 1)", "0 to 2")
bad("gather(zeros({4, 3}), 1, {{-2}})", "ValueError", "gather", "index -2", "(0, 0)")
bad("gather(zeros({4, 3}), -3, {{0}})", "ValueError", "gather", "out of range")
op("scatter_add", "x.scatter_add({dim}, i, y)", "scatter_add(x, {dim}, i, y)",
   S("dim 0", randn(3, 4), ids([0, 2, 1, 0, 2, 2, 1, 0], 2, 4), randn(2, 4), dim=0),
   S("dim -1", randn(3, 4), ids([3, 0, 1, 1, 2, 2], 3, 2), randn(3, 2), dim=-1),
   # PyTorch refuses the gradient of a src larger than the indices.
   S("larger src", randn(3, 4), ids([3, 3], 2, 1), randn(3, 2), dim=1, theirs="x.scatter_add(1, i, y[:2, :1])"),
   S("larger src, both ways", randn(3, 4), ids([3, 0, 1, 1], 2, 2), randn(5, 3), dim=1,
     theirs="x.scatter_add(1, i, y[:2, :2])"),
   S("no indices", randn(3, 4), ids([], 0, 4), randn(0, 4), dim=0), S("0-d", randn(), one_id(0), randn(), dim=-1),
   S("no indices, another rank", randn(3, 4), ids([], 2, 0, 5), randn(2, 2), dim=1, theirs="x + 0 * y.sum()"),
   *[S(name, randn(*x), ids(data, *shape), randn(*shape), dim=dim) for name, x, dim, data, shape in ELEMENTS])
op("scatter_add", "x.scatter_add({dim}, " + PICKS + ", y)", "scatter_add(x, {dim}, " + PICKS + ", y)",
   *[S(f"large, {name}", randn(*x), randn(*shape), dim=dim, **picks(*shape)) for name, x, dim, shape in LARGE])
bad("scatter_add(zeros({4, 3}), 0, {0, 1}, zeros({2}))", "ShapeError", "scatter_add", "(2,)", "(4, 3)")
bad("scatter_add(zeros({4, 3}), 0, {{0, 0, 0, 0}}, zeros({1, 4}))", "ShapeError", "scatter_add", "(1, 4)", "x (4, 3)", "dimension 1")
bad("scatter_add(zeros({4, 3}), 0, {{0, 0}, {1, 1}}, zeros({1, 2}))", "ShapeError", "scatter_add", "(2, 2)", "src (1, 2)", "dimension 0")
bad("scatter_add(zeros({4, 3}), 0, {{4}}, zeros({1, 1}))", "ValueError", "scatter_add", "index 4", "0 to 3")
bad("scatter_add(zeros({4, 3}), 0, {{0}}, zeros({1, 1}, DType::float64))", "DTypeError", "scatter_add", "float32", "float64")
bad("scatter_add(zeros({4, 3}), 2, {{0}}, zeros({1, 1}))", "ValueError", "scatter_add", "out of range")


def in_turn(x, dim, i, y):
    """scatter where several go to one place: the last stays, and only it gets a gradient.  PyTorch promises neither."""
    for at in range(i.shape[dim]):
        x = x.scatter(dim, i.narrow(dim, at, 1), y.narrow(dim, at, 1))
    return x


some = ids([0, 2, 1, 0, 2, 1, 0, 2], 2, 4)
op("scatter", "x.scatter({dim}, i, y)", "scatter(x, {dim}, i, y)",
   S("dim 0", randn(3, 4), some, randn(2, 4), dim=0), S("no indices", randn(3, 4), ids([], 0, 4), randn(0, 4), dim=0),
   S("dim -1", randn(3, 4), ids([3, 0, 1, 2, 2, 0], 3, 2), randn(3, 2), dim=-1),
   S("a number", randn(3, 4), some, theirs="x.scatter(0, i, -1.5)", ours="scatter(x, 0, i, -1.5)"),
   S("0-d", randn(), one_id(0), randn(), dim=-1),
   S("larger src", randn(3, 4), ids([3, 0, 1, 2], 2, 2), randn(5, 3), dim=1, theirs="x.scatter(1, i, y[:2, :2])"))
op("scatter", "in_turn(x, {dim}, i, y)", "scatter(x, {dim}, i, y)",
   *[S(name, randn(*x), ids(data, *shape), randn(*shape), dim=dim) for name, x, dim, data, shape in ELEMENTS])
op("scatter", "in_turn(x, {dim}, " + PICKS + ", y)", "scatter(x, {dim}, " + PICKS + ", y)",
   *[S(f"large, {name}", randn(*x), randn(*shape), dim=dim, **picks(*shape)) for name, x, dim, shape in LARGE])
bad("scatter(zeros({2, 3}), 0, {{0, 0, 0}}, zeros(3, DType::float64))", "DTypeError", "scatter:", "x is float32", "float64", "to()")
bad("scatter(zeros({4, 3}), 0, {0, 1}, zeros(2))", "ShapeError", "scatter: the index", "(2,)", "(4, 3)")
bad("scatter(zeros({4, 3}), 0, {{0, 1}}, zeros({1, 1}))", "ShapeError", "scatter: the index", "src (1, 1)")
bad("scatter(zeros({4, 3}), 0, {{0, 4}}, 1)", "ValueError", "scatter: index 4", "(0, 1)", "0 to 3")


def put_in_turn(x, ids, y):
    """index_put of y[0], y[1], ...: the last stays."""
    for at in range(len(y)):
        x = x.index_put(tuple(i[at : at + 1] for i in ids), y[at : at + 1])
    return x


op("index_put", "x.index_put((i,), y)", "index_put(x, {i}, y)",
   S("rows", randn(3, 4), ids([2, 0]), randn(2, 4)), S("rows, one value each", randn(3, 4), ids([2, -3]), randn(2, 1)),
   S("no indices", randn(3, 2), ids([], 0), randn(0, 2)), S("a 0-d index", randn(3, 2), one_id(2), randn(2)),
   S("no columns", randn(3, 0), ids([0, 1]), randn(2, 0)),
   S("rows, one twice", randn(3, 4), ids([2, 0, 2]), randn(3, 1), theirs="put_in_turn(x, (i,), y)"))
op("index_put", "x.index_put((i, j), y)", "index_put(x, {i, j}, y)",
   S("elements", randn(3, 4), ids([2, 0]), ids([1, -1]), randn(2)),
   S("rows and columns", randn(3, 4), ids([2, 0], 2, 1), ids([1, 3]), randn(2, 2)),
   S("one value", randn(2, 3, 2), ids([1, 0]), ids([2]), randn()), S("from the end", randn(3, 4), ids([-1, 0]), ids([-4, -1]), randn(2)),
   S("some twice", randn(3, 4), ids([0, 2, 0]), ids([3, 1, 3]), randn(3), theirs="put_in_turn(x, (i, j), y)"))
op("index_put", "x.index_put((i,), y, accumulate=True)", "index_put(x, {i}, y, true)",
   S("added, rows", randn(3, 4), ids([2, 0]), randn(2, 4)), S("added, rows, one twice", randn(3, 4), ids([2, 0, 2]), randn(3, 1)),
   S("added, no indices", randn(3, 2), ids([], 0), randn(0, 2)), S("added, a 0-d index", randn(3, 2), one_id(2), randn(2)),
   S("added, no columns", randn(3, 0), ids([0, 1]), randn(2, 0)))
op("index_put", "x.index_put((i, j), y, accumulate=True)", "index_put(x, {i, j}, y, true)",
   S("added, some twice", randn(3, 4, 2), ids([2, 0, 2]), ids([1, 3, 1]), randn(3, 2)),
   S("added, one value", randn(3, 4), ids([2, 0, 2]), ids([1, 3, 1]), randn()),
   S("added, from the end", randn(3, 4), ids([-1, 0]), ids([-4, -1]), randn(2)),
   S("added, rows and columns", randn(3, 4), ids([2, 0], 2, 1), ids([1, 3]), randn(2, 2)))
bad("index_put(zeros(3), {Indices{0}}, zeros(1, DType::float64))", "DTypeError", "index_put: x is float32 but values is float64")
bad("index_put(zeros(3), {}, zeros(1))", "ValueError", "index_put: 0 lists", "(3,)")
bad("index_put(zeros(3), {Indices{0}, Indices{0}}, zeros(1))", "ValueError", "index_put: 2 lists", "(3,)", "1 dimension")
bad("index_put(zeros({3, 4}), {Indices{0, 1}, Indices{1, 4}}, zeros(2))", "ValueError", "index_put: 4", "dimension 1", "size 4")
bad("index_put(zeros(3), {Indices{0}}, Tensor())", "ValueError", "index_put", "values are undefined")
bad("index_put(zeros({3, 4}), {Indices{0, 1}, Indices{1, 2, 3}}, zeros(2))", "ShapeError", "index_put", "(2,)", "(3,)")
bad("index_put(zeros({3, 4}), {Indices{0, 1}}, zeros({2, 3}))", "ShapeError", "index_put: values (2, 3)", "(2, 4)")


def irregular(*shape):
    """True at the first place, and at others in no simple pattern."""
    return Input(lambda generator: (torch.arange(math.prod(shape)) * 7 % 37 < 20).reshape(shape), "mask")


some = mask([[True, False, True], [False, True, True]])
op("masked_select", "x.masked_select(m)", "masked_select(x, m)",
   S("same shape", randn(2, 3), some), S("both broadcast", randn(3, 1, 1), some), S("0-d", randn(), mask(True)),
   S("nothing", randn(2), mask([False, False])), S("nothing, broadcast", randn(2, 3), mask([False])),
   *[S(name, randn(*x), irregular(*m)) for name, x, m in (
       ("mask row", (3, 7), (7,)), ("mask column", (3, 7), (3, 1)), ("mask 0-d", (2, 3), ()), ("mask larger", (4,), (2, 3, 4)),
       ("zero-size", (0, 3), (3,)))],
   S("large", randn(150, 260), theirs="x.masked_select(" + PICKS + " < 20)", ours="masked_select(x, " + PICKS + " < 20)",
     **picks(150, 260)))
op("masked_select", "x[m]", "x[m]",
   S("x[mask]", randn(2, 3, 2), some), S("x[mask] of rows", randn(2, 3), mask([False, True])),
   S("x[mask], 0-d", randn(2), mask(True)))
bad("masked_select(zeros(3), Mask{true, false})", "ShapeError", "masked_select:", "(3,)", "(2,)")
bad("zeros({2, 3})[Mask{true, false, true}]", "ShapeError", "operator[]: the mask (3,)", "first sizes of x (2, 3)")
bad("zeros(1)[Mask{{true}}]", "ShapeError", "operator[]: the mask (1, 1)", "x (1,)")

# ---- scans and selection

WAYS = [("1-d", (6,), 0), ("middle of 3", (2, 4, 3), 1), ("of size 1", (3, 1), 1), ("no rows", (0, 3), 1)]
MANY = [("large, last", (60, 500), 1), ("large, first", (70, 300), 0)]
for name in ("cumsum", "cumprod"):
    op(name, "x." + name + "({dim})", name + "(x, {dim})", S("negative dim of 0-d", randn(), dim=-1),
       *[S(way, randn(*x), dim=dim, large=(way, x, dim) in MANY) for way, x, dim in WAYS + MANY])
    bad(name + "(zeros({4, 3}), 2)", "ValueError", name, "dimension 2", "out of range")
    bad(name + "(Tensor(), 0)", "ValueError", "undefined")
op("cumsum", "i.cumsum({dim})", "cumsum(i, {dim})",
   S("Indices", ids([3, -1, 2**62, 2**62, 0, 5], 3, 2), dim=0), S("Indices, last", ids(range(12), 2, 3, 2), dim=-1),
   S("no Indices", ids([], 0, 2), dim=1), S("0-d Indices", one_id(4), dim=0))
left_padded = mask([[False, False, True, True], [True] * 4, [False] * 4])
op("cumsum", "m.cumsum({dim})", "cumsum(m, {dim})", S("mask", left_padded, dim=1), S("mask, first", left_padded, dim=0))
op("clamp", None, None,
   S("Indices", ids([-3, 0, 7, 2]), theirs="i.clamp(0, 5)", ours="clamp(i, 0, 5)"),
   S("Indices, above", ids([-3, 0, 7, 2]), theirs="i.clamp(min=1)", ours="clamp(i, 1, std::nullopt)"),
   S("Indices, below", ids([-3, 0, 7, 2]), theirs="i.clamp(max=1)", ours="i.clamp(std::nullopt, 1)"),
   S("Indices, bounds of their own", ids([-3, 0, 7, 2]), ids([0, 1, 2, 3], 4, 1), ids([1, 1, 5, 2]), theirs="i.clamp(j, k)",
     ours="clamp(i, j, k)"),
   S("positions of left-padded rows", left_padded, theirs="(m.cumsum(-1) - 1).clamp(min=0)",
     ours="(m.cumsum(-1) - 1).clamp(0, std::nullopt)"))
bad("clamp(Indices{1}, std::nullopt, std::nullopt)", "ValueError", "clamp: at least one")
bad("clamp(Indices{1, 2}, Indices{1, 2, 3}, 5)", "ShapeError", "maximum", "(2,)", "(3,)")
for name, of_masks in ("maximum", "|"), ("minimum", "&"):
    op(name, f"torch.{name}(i, j)", f"{name}(i, j)", S("Indices", ids([3, -1, 2]), ids([0, 5], 2, 1)),
       S("Indices and a number", ids([3, -1, 2]), theirs=f"torch.{name}(i, torch.tensor(1))", ours=f"{name}(i, 1)"),
       S("masks", mask([True, False]), mask([[True], [False]]), theirs=f"m {of_masks} n", ours=f"{name}(m, n)"))
op("cumprod", "torch.stack([x[: i + 1].prod(0) for i in range(len(x))])", "cumprod(x, 0)",
   S("a zero", values([2, 0, 3, 0.5])), S("zeros, 1-d", values([0, 2, 0, 0, 3])))
op("cumprod", "x.detach().cumprod(0)", "cumprod(x, 0)",
   S("infinite, then NaN", values([inf, 2, 0, 1, math.nan, 3]), finite=False),
   S("infinite and negative", values([1, -inf, -2, 3, math.nan, 1]), finite=False))
for largest in (True, False):
    text = ", largest" if largest else ", smallest"
    op("sort", "torch.sort(x, dim={dim}, descending={largest}, stable=True)", "sort(x, {dim}, {largest})",
       *[S(way + text, distinct(*x), dim=dim, largest=largest) for way, x, dim in WAYS])
    op("topk", "x.topk({k}, {dim}, {largest})", "topk(x, {k}, {dim}, {largest})",
       *[S(way + text + f" {k}", distinct(*x), dim=dim, largest=largest, k=k) for way, x, dim in WAYS for k in sorted({1, x[dim]})])
    # Some elements are equal: of these, the first come first.
    op("sort", "torch.sort(x, dim={dim}, descending={largest}, stable=True)[0]", "sort(x, {dim}, {largest}).values",
       *[S(way + text, randn(*x), dim=dim, largest=largest, large=True) for way, x, dim in MANY])
    op("topk", "torch.sort(x, dim={dim}, descending={largest}, stable=True)[0].narrow({dim}, 0, {k})", "topk(x, {k}, {dim}, {largest}).values",
       *[S(way + text, randn(*x), dim=dim, largest=largest, k=x[dim] // 2, large=True) for way, x, dim in MANY])
op("sort", "x.sort()", "sort(x)", S("0-d", randn()))
bad("sort(zeros(3), 1)", "ValueError", "sort", "out of range")
bad("topk(zeros({4, 3}), 4)", "ValueError", "topk", "k is 4", "(4, 3)", "3 elements")
bad("topk(zeros({4, 3}), 1, 2)", "ValueError", "topk", "out of range")
