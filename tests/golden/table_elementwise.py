"""Samples of elementwise ops and comparisons."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad
nan, tiny = math.nan, 2.0**-60

# ---- PyTorch's side if it has no such op, or another rule ----

# clamp has the gradients of PyTorch 2.14 and newer at the bounds, whichever PyTorch this is: none at bounds that are
# numbers, and half to each of those that are equal at bounds that are Tensors.  If one of three Tensors is NaN, x gets
# all of it, unless it is beyond the other bound.


def clamp(x, low, high):
    inside = (low is None or x > low) & (high is None or x < high)
    return torch.where(inside, x, torch.clamp(x.detach(), low, high))


def clamp_tensors(x, low, high):
    at_equal_bounds = torch.where(x < low, low, torch.where(x > high, high, x))
    limited = torch.where(low == high, at_equal_bounds, torch.minimum(torch.maximum(x, low), high))
    is_nan = x.isnan() | low.isnan() | high.isnan()
    return torch.where(is_nan, nan + torch.where((x < low) | (x > high), number(0), x), limited)


def hardsigmoid(x):
    """PyTorch's slope is the float32 nearest to 1/6."""
    return clamp(x / 6 + 0.5, 0, 1)


def number(value):
    """For functions that take Tensors alone."""
    return torch.tensor(value).double()


# ---- two operands ----


def special(name, *inputs, **options):
    """A sample of NaN, infinities, zeros and ends of ranges."""
    return S(name, *map(values, inputs), finite=False, second=False, **options)


def binary(name, theirs, ours, left=randn, right=randn, prefix=""):
    """All ways to broadcast two operands, and operands that do not fit.  `ours` has {} in their places."""
    shapes = {
        "same shape": ((3, 4), (3, 4)), "0-d": ((), ()), "0-d and 2-d": ((), (2, 3)), "2-d and 0-d": ((2, 3), ()),
        "size 1": ((1, 1), (3,)), "row": ((2, 3, 4), (4,)), "row on the left": ((4,), (2, 3, 4)),
        "long row": ((3, 37), (37,)), "column": ((4, 5), (4, 1)), "column on the left": ((4, 1), (4, 19)),
        "column and row": ((3, 1), (1, 4)), "both ways": ((3, 1, 4), (2, 1)), "middle": ((2, 3, 4), (2, 1, 4)),
        "outermost": ((2, 3, 4), (2, 1, 1)), "zero-size": ((0, 3), (3,)), "zero-size and size 1": ((2, 0), (2, 1))}
    op(name, theirs, ours.format("x", "y"), *[S(prefix + s, left(*a), right(*b)) for s, (a, b) in shapes.items()])
    call = lambda x, y, error, *fragments: bad(ours.format(x, y), error, f"{name}:", *fragments)
    call("zeros({2, 3})", "zeros({4})", "ShapeError", "(2, 3)", "(4,)", "broadcast", "-1")
    call("zeros({5, 2, 3})", "zeros({4, 3})", "ShapeError", "(5, 2, 3)", "(4, 3)", "-2")
    call("zeros({2})", "zeros({2}, DType::float64)", "DTypeError", "float32", "float64", "to(")
    call("zeros({2})", "Tensor()", "ValueError", "operand 2 of 2", "undefined")
    call("Tensor()", "zeros({2})", "ValueError", "operand 1 of 2", "undefined")


for name, sign in ("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"):
    binary(name, f"torch.{name}(x, y)", name + "({}, {})", right=away_from_zero if name == "div" else randn)
    for place, text in ("right", f"x {sign} 2.5"), ("left", f"-1.5 {sign} x"):
        op(name, text, text, S(f"number on the {place}", away_from_zero(2, 3)))
    if name != "div":  # the gradient of x / x is 0: only rounding errors would be compared
        op(name, f"x {sign} x", f"x {sign} x", S("of itself", away_from_zero(2, 3)))
    bad(f"Tensor() {sign} 2.0", "ValueError", f"{name}:", "operand 1 of 2", "undefined")
    bad(f"2.0 {sign} Tensor()", "ValueError", f"{name}:", "operand 2 of 2", "undefined")
for name in "add", "sub":
    binary(name, f"torch.{name}(x, y, alpha=-1.5)", name + "({}, {}, -1.5)", prefix="alpha, ")
op("mul", "x * y", "x * y", S("several threads", randn(150, 260), randn(260), large=True))
for mode in "trunc", "floor":
    theirs, ours = f"torch.div(x, y, rounding_mode='{mode}')", f"div({{}}, {{}}, RoundingMode::{mode})"
    binary("div", theirs, ours, lambda *shape: uniform(-9, 9, *shape), away_from_zero, f"{mode}, ")
    op("div", theirs, ours.format("x", "y"),
       S(f"{mode}, signs", values([7, -7, 7, -7, 6, -0.5, 0, 1]), values([2, 2, -2, -2, -2, 3, 5, -4])),
       special(f"{mode}, special values", [1, -1, 0, inf, 5, -5, nan], [0, 0, 0, 2, inf, inf, 1]),
       S(f"{mode}, large", values([2.0**100]), values([-3]), differences=False),
       # 1 / 0.1 rounds to 10, but 10 times the double 0.1 (and the float) is more than 1
       S(f"{mode}, tenths", values([1, -1]), values([1, 1]), theirs=theirs.replace("y", "y / 10"),
         ours=ours.format("x", "y / 10.0")))

for name in "maximum", "minimum":
    binary(name, f"torch.{name}(x, y)", name + "({}, {})")
    op(name, f"torch.{name}(x, y)", f"{name}(x, y)",
       S("ties", values([1, 2, -3, 0]), values([1, 5, -3, 0]), differences=False),
       special("NaN and infinities", [nan, 2, nan, inf, -inf, inf, -inf], [2, nan, nan, 1, 1, inf, inf]))
    op(name, f"torch.{name}(x, number(0.5))", f"{name}(x, 0.5)", S("number, register and some", randn(37)),
       S("a number", values([1, 2, -3, 0, 0.5]), differences=False))

binary("logaddexp", "torch.logaddexp(x, y)", "logaddexp({}, {})")
op("logaddexp", "torch.logaddexp(x, y)", "logaddexp(x, y)",
   S("large numbers", values([800, -800, 0]), values([799, -801, -800]), second=False),
   S("tie and far apart", values([0, 800]), values([0, -800]), second=False, differences=True),
   special("NaN and infinities", [inf, -inf, inf, -inf, 1, nan], [inf, -inf, -inf, 2, nan, inf]),
   special("beside an infinity", [0, -inf], [inf, inf]))

binary("pow", "torch.pow(x, y)", "pow({}, {})", positive)
op("pow", "torch.pow(x, {e})", "pow(x, {e})",
   *[S(f"exponent {e}", positive(2, 3), e=e) for e in (2, 3, 0.5, -1, 0, 1, -2.5)],
   *[S(f"register and some, exponent {e}", positive(37), e=e) for e in (2, 3, 0.5, -0.5, 1.7, -1, -2, 1, 0, 4)],
   *[S(f"of either sign, exponent {e}", away_from_zero(2, 3), e=e) for e in (2, 3, -1, -2, 5)],
   *[S(f"base 0, exponent {e}", values([0, 1, -2]), e=e) for e in (0, 1, 2, 3, 4)],
   *[special(f"special values, exponent {e}", [0, 1, -1, -2.5, inf, nan, 2.0**-26, 2.0**26], e=e)
     for e in (2, 3, 0.5, -0.5, 1.7, -1, -2, 1, 0, 4)],
   S("base 0, Tensor exponent", values([0, 0, 0, 2]), values([1, 2, 3, 1.5]), e="y", second=False),
   special("special values, Tensor exponent", [0, 0, 0, 1, -2, -2, -2, inf, nan, 2],
           [0, 1, -1, nan, 3, -2, 0.5, -1, 0, inf], e="y"))
# 0^e is 0 for all e > 0, and so are its derivatives in e.
op("pow", "torch.stack([x[0] ** 2 + 0 * y[0], x[1] ** y[1]])", "pow(x, y)",
   S("base 0, second derivatives", values([0, 2]), values([2, 3]), differences=False))
op("pow", "torch.pow(0, x)", "pow(0.0, x)", special("number 0 as base", [0, 1, 2]))
op("div", "1 / x", "1 / x", special("number on the left, special values", [0, -0.0, 2, inf, nan]))
for base in 2, 0.5, 1:
    op("pow", f"torch.pow({base}, x)", f"pow({base}, x)", S(f"number {base} as base", randn(2, 3)),
       S(f"number {base} as base, register and some", randn(37)),
       special(f"number {base} as base, special values", [0, inf, -inf, nan]))

# ---- three operands ----

ternary = {"one shape": ((3, 7), (3, 7), (3, 7)), "rows and columns": ((4, 1), (5,), (2, 1, 5)), "0-d": ((), (), ()),
           "0-d and a vector": ((37,), (), (37,)), "zero-size": ((0, 3), (3,), (1, 3))}
op("lerp", "torch.lerp(x, y, {weight})", "lerp(x, y, {weight})",
   *[S(f"weight {weight}", randn(3, 4), randn(4), weight=weight) for weight in (0.25, 0.75, 1, -0.5)],
   S("a Tensor", randn(2, 3), randn(3), uniform(-1, 2, 2, 3), weight="z"),
   *[S(name, *[randn(*s) for s in shapes], weight="z") for name, shapes in ternary.items()])
# PyTorch 1.13 does not sum the second gradients of broadcast operands correctly.
op("addcmul", "x + {value} * y * z", "addcmul(x, y, z, {value})",
   S("broadcast", randn(3, 1), randn(4), randn(2, 1, 4), theirs="x + y * z", ours="addcmul(x, y, z)"),
   S("value", randn(2, 3), randn(2, 3), randn(2, 3), theirs="torch.addcmul(x, y, z, value=-1.5)", value=-1.5),
   *[S(name, *[randn(*s) for s in shapes], value=2.5) for name, shapes in ternary.items()])
for name in "lerp", "addcmul":
    bad(f"{name}(zeros({{2, 3}}), zeros({{4}}), zeros({{}}))", "ShapeError", f"{name}:", "(2, 3)", "(4,)")
    bad(f"{name}(zeros(2), zeros(2), zeros(2, DType::float64))", "DTypeError", f"{name}:", "float32", "float64")

# ---- one operand ----

WIDE = [0, -0.0, 1, -1, inf, -inf, nan, tiny, -tiny, 30, -30, 1000, -1000]


def shapes(draw, prefix=""):
    return [S(prefix + name, draw(*shape)) for name, shape in {
        "3-d": (2, 3, 4), "0-d": (), "size 1": (1, 1), "register and some": (37,), "zero-size": (2, 0)}.items()]


def small_and_large(prefix=""):
    return S(prefix + "small and large", values([-40, -20, -9, -4, -2.5, -1.5, -1, -0.5, -0.0625, 0, 0.03125, 0.75,
                                                 1.25, 2, 6, 11, 30, 60]))


def unary(name, *samples, theirs="torch.{}(x)", draw=randn, numbers=WIDE):
    """An op of one operand: the samples that all such ops have, drawn by `draw`; special values; and its own."""
    op(name, theirs.format(name), f"{name}(x)", *shapes(draw), special("special values", numbers), *samples)
    named = [] if name in ("clone", "hardsigmoid") else [f"{name}:", "operand 1 of 1"]
    bad(f"{name}(Tensor())", "ValueError", *named, "undefined")


def angles(*shape):
    return uniform(-1.25, 1.25, *shape)


for name in "neg", "exp", "clone", "square", "atan", "sinh", "cosh", "asinh":
    unary(name)
for name in "log", "sqrt", "rsqrt", "log2", "log10":
    unary(name, draw=positive, numbers=[0, 1, inf, nan, tiny, 1 / tiny, -1, 8, 1000])
for name in "sin", "cos", "tanh", "erf", "sigmoid":
    unary(name, small_and_large(), numbers=[0, nan, tiny, 30, -30, 1000] if name in ("sin", "cos") else WIDE)
for name in "log1p", "expm1":  # exact for numbers that are lost when 1 is added
    unary(name, draw=positive if name == "log1p" else randn, numbers=[0, -0.0, 1, -1, -2, inf, -inf, nan, 30, -30])
    op(name, f"torch.{name}(x * 1e-20) * 1e20", f"{name}(x * 1e-20) * 1e20", S("small", randn(37)))
op("log1p", "torch.log1p(x)", "log1p(x)", S("either sign", uniform(-0.75, 1, 37)))
for name in "sign", "floor", "ceil", "round":
    unary(name, S("at the steps", values([-2.5, -2, -1.5, -0.5, 0, 0.25, 0.5, 1, 1.5, 2.5, 3]), differences=False),
          draw=away_from_zero if name == "sign" else randn, numbers=WIDE + [2.0**40, -(2.0**100)])
unary("reciprocal", draw=away_from_zero)
unary("tan", draw=angles, numbers=[0, nan, tiny, 30, -30, 1000])

# ---- activations ----

for name in "gelu", "silu", "softplus", "mish", "logsigmoid":
    unary(name, small_and_large(), theirs="F.{}(x)")
op("gelu", "F.gelu(x, approximate='tanh')", "gelu(x, Gelu::tanh)", *shapes(randn, "tanh, "),
   small_and_large("tanh, "), special("tanh, special values", WIDE))
op("softplus", "F.softplus(x, {beta}, {threshold})", "softplus(x, {beta}, {threshold})",
   S("beta", randn(2, 3), beta=2.5, threshold=20),
   S("threshold", values([-3, 1, 1.5, 2.5, 6]), beta=0.5, threshold=1),
   S("negative beta", uniform(-4, 4, 37), beta=-1.5, threshold=2),
   special("special values, negative beta", WIDE, beta=-1.5, threshold=2))
at_0 = values([-1, 0, 2, 0.5])
for name in "abs", "relu":
    unary(name, S("at 0", at_0, differences=False), draw=away_from_zero)
unary("leaky_relu", S("at 0", at_0, differences=False), theirs="F.{}(x)", draw=away_from_zero)
op("leaky_relu", "F.leaky_relu(x, -0.5)", "leaky_relu(x, -0.5)", S("slope", away_from_zero(2, 3)),
   S("slope, register and some", away_from_zero(37)))
# elu and hardtanh pass the gradient at NaN, as in PyTorch 2.15; 1.13 does so for some elements only.
at_nan, no_nan = special("NaN", [nan, 0.5], theirs="x * 1"), [v for v in WIDE if v == v]
# PyTorch's second derivative at 0 is 0, not that of the chosen branch.
unary("elu", S("at 0", at_0, second=False), at_nan,
      S("where exp is infinite", values([1000, -1000, 800]), second=False, differences=True), theirs="F.{}(x)", draw=away_from_zero,
      numbers=no_nan)
op("elu", "F.elu(x, 0.5)", "elu(x, 0.5)", S("alpha", away_from_zero(2, 3)),
   S("alpha, register and some", away_from_zero(37)))
unary("hardtanh", S("at the bounds", values([-1, 0, 2, 1, -3]), differences=False), at_nan, theirs="F.{}(x)",
      numbers=no_nan)
op("hardtanh", "F.hardtanh(x, {low}, {high})", "hardtanh(x, {low}, {high})",
   S("bounds", randn(2, 3), low=-0.25, high=2), S("bounds, register and some", uniform(-3, 9, 37), low=0, high=6),
   special("bounds, special values", [0, 6, inf, -inf], low=0, high=6))
bad("hardtanh(zeros(2), 2, 1)", "ValueError", "hardtanh", "min 2", "max 1")
unary("hardsigmoid", S("at the bounds", values([-3, 0, 3, 5, -4]), differences=False), theirs="{}(x)")

# ---- copies and choices ----

op("to", "x.to(torch.{dtype})", "to(x, DType::{dtype})", S("float64", randn(2, 3), dtype="float64"),
   S("float32", randn(2, 3), dtype="float32", differences=False),
   S("zero-size", randn(0, 2), dtype="float32", differences=False),
   S("float32, squared, and back", values([0.5, -1.25, 3, 0.125]), differences=False,
     theirs="(x.to(torch.float32) * x.to(torch.float32)).to(torch.float64)",
     ours="to(to(x, DType::float32) * to(x, DType::float32), DType::float64)"),
   special("float32 and back, special values", [inf, -inf, nan, 0], theirs="x.to(torch.float32).to(torch.float64)",
           ours="to(to(x, DType::float32), DType::float64)"),
   S("same dtype", randn(3, 4), theirs="x.to(x.dtype)", ours="to(x, x.dtype())"))

for name, low, high in ("both", -0.5, 0.75), ("min", -0.5, None), ("max", None, 0.75), ("min above max", 0.75, -0.5):
    op("clamp", f"clamp(x, {low}, {high})", f"clamp(x, {cpp_text(low)}, {cpp_text(high)})", S(name, randn(3, 4)),
       S(f"{name}, register and some", uniform(-2, 2, 37)),
       S(f"{name}, at the bounds", values([-2, -0.5, 0, 0.75, 3]), differences=False),
       special(f"{name}, special values", [inf, -inf, nan, 0]))
op("clamp", "clamp(x, -0.5, 0.75)", "clamp(x, -0.5, 0.75)", S("0-d", values(0.25)), S("zero-size", randn(0, 2)))
between, lowest, highest = values([1, 1, 2, 3, 5, 2.5]), values([2, 2, 2, 0, 6, 3]), values([2, 4, 4, 3, 4, 2])
op("clamp", "clamp_tensors(x, y, z)", "clamp(x, y, z)",
   S("Tensors", randn(3, 4), uniform(-1, 0.5, 3, 4), uniform(-0.5, 1, 3, 4)),
   S("Tensors, register and some", uniform(-2, 2, 37), uniform(-2, 1, 37), uniform(-1, 2, 37)),
   S("Tensors, row and column", randn(3, 4), randn(4), randn(3, 1)),
   S("Tensors, larger than x", randn(4), randn(2, 1, 4), randn(3, 1)),
   S("Tensors, 0-d", randn(), randn(), randn()),
   S("Tensors, zero-size", randn(0, 2), randn(2), randn()),
   S("Tensors, ties", between, lowest, highest, differences=False),
   special("Tensors, NaN and infinities", [nan, 0, 0, inf, -inf, 5], [0, nan, 0, 0, 0, -inf], [1, 1, nan, 1, inf, inf]),
   special("Tensors, beside a bound that is NaN", [0, 2, 2], [1, nan, 1], [nan, 1, nan]))
op("clamp", "clamp_tensors(x, w, number(inf))", "clamp(x, w, Tensor())",
   S("min, a constant, NaN", values([nan, 1, nan, -inf]), Fixed(values([1, nan, nan, -inf])), finite=False, second=False))
for name, theirs, ours, ties in (("min", "maximum", "y, Tensor()", lowest), ("max", "minimum", "Tensor(), y", highest)):
    op("clamp", f"torch.{theirs}(x, y)", f"clamp(x, {ours})", S(f"{name}, a Tensor", randn(3, 4), randn(4)),
       S(f"{name}, a Tensor, ties", between, ties, differences=False))
bad("clamp(zeros({2}), std::nullopt, std::nullopt)", "ValueError", "clamp", "min")
bad("clamp(zeros({2}), Tensor(), Tensor())", "ValueError", "clamp:", "min", "max", "defined")
bad("clamp(Tensor(), zeros({2}), Tensor())", "ValueError", "clamp:", "operand 1 of 2", "undefined")
bad("clamp(zeros({2}), zeros({2}), zeros({2}, DType::float64))", "DTypeError", "clamp:", "float32", "float64", "to(")
bad("clamp(zeros({2}), zeros({3}), Tensor())", "ShapeError", "clamp:", "(2,)", "(3,)", "broadcast")


def some(*shape):
    """A mask that is true in an irregular pattern."""
    return Input(lambda generator: torch.tensor([i % 3 == 0 or i % 7 == 2 for i in range(math.prod(shape))],
                                                dtype=torch.bool).reshape(shape), "mask")


row, column, nothing = mask([True, False, False, True]), mask([[True], [False], [True]]), mask([[], []])
op("where", "torch.where(m, x, y)", "where(m, x, y)",
   S("condition row", row, randn(3, 4), randn(3, 4)),
   S("condition column", column, randn(3, 4), randn(4)),
   S("condition the largest", row, randn(1), randn()),
   S("0-d", mask(True), randn(), randn()),
   S("zero-size", nothing, randn(2, 1), randn(2, 0)),
   *[S(name, some(*m), randn(*x), randn(*y)) for name, m, x, y in (
       ("same shape", (3, 7), (3, 7), (3, 7)), ("condition 3-d", (2, 3, 4), (4,), (3, 1)),
       ("condition the smallest", (1,), (3, 1), (1, 4)), ("condition 0-d", (), (3, 5), (5,)),
       ("condition and numbers", (3, 5), (), ()), ("long rows", (2, 37), (37,), (2, 1)))],
   special("NaN and infinities not chosen", [1, nan, inf], [nan, 2, 3], theirs="torch.where(x == 1, x, y)",
           ours="where(x == 1.0, x, y)"),
   S("several threads", randn(150, 260), randn(260), large=True, theirs="torch.where(x > 0.5, x, y)",
     ours="where(x > 0.5, x, y)"),
   S("many rows", randn(150, 260), randn(150, 1), randn(), large=True, theirs="torch.where(y > 0.5, x, z)",
     ours="where(y > 0.5, x, z)"),
   S("number on the right", row, randn(3, 4), theirs="torch.where(m, x, number(0.5))", ours="where(m, x, 0.5)"),
   S("number on the left", column, randn(3, 4), theirs="torch.where(m, number(0.5), x)", ours="where(m, 0.5, x)"),
   S("-inf on the left", column, randn(5), theirs="torch.where(m, number(-inf), x)", ours="where(m, -INFINITY, x)",
     finite=False))
bad("where(Mask({1, 0}), zeros({3}), zeros({3}))", "ShapeError", "where:", "(2,)", "(3,)", "broadcast")
bad("where(Mask({1, 0}), zeros({2}), zeros({2}, DType::float64))", "DTypeError", "where:", "float32", "float64")
for operands, which in ("Tensor(), zeros(2)", "a"), ("zeros(2), Tensor()", "b"), ("Tensor(), 1", "a"), ("1, Tensor()", "b"):
    bad(f"where(Mask({{1, 0}}), {operands})", "ValueError", f"where: {which} is undefined")

fills = {"row": (randn(3, 4), row), "column": (randn(2, 3, 4), column), "0-d": (randn(), mask(True)),
         "mask 0-d": (randn(2, 3), mask(False)), "mask larger": (randn(3, 1), row), "zero-size": (randn(2, 0), nothing),
         "same shape": (randn(3, 7), some(3, 7)), "long rows": (randn(2, 37), some(37)),
         "both ways": (randn(2, 1, 4), some(3, 1)), "mask larger than 0-d": (randn(), some(2, 3))}
op("masked_fill", "x.masked_fill(m, 0.5)", "masked_fill(x, m, 0.5)", *[S(name, *fill) for name, fill in fills.items()],
   S("minus infinity", randn(3, 4), row, theirs="x.masked_fill(m, -inf)", ours="masked_fill(x, m, -INFINITY)",
     finite=False))
fills["mask larger"] = randn(4), column
op("masked_fill", "x.masked_fill(m, y)", "masked_fill(x, m, y)",
   *[S(f"value a Tensor, {name}", *fill, randn()) for name, fill in fills.items()])
bad("masked_fill(zeros({2, 3}), Mask({1, 0}), 0)", "ShapeError", "masked_fill:", "(2, 3)", "(2,)")
bad("masked_fill(zeros({2}), Mask({1, 0}), zeros({1}))", "ShapeError", "masked_fill:", "value", "(1,)", "0-d", "where()")
bad("masked_fill(zeros({2}), Mask({1, 0}), scalar(1, DType::float64))", "DTypeError", "masked_fill:", "float32", "float64")
bad("masked_fill(Tensor(), Mask({1, 0}), 1)", "ValueError", "masked_fill: x is undefined")
bad("masked_fill(zeros({2}), Mask({1, 0}), Tensor())", "ValueError", "masked_fill: value is undefined")

# ---- comparisons, which have no derivative ----

numbered = [[[12 * i + 4 * j + k for k in range(4)] for j in range(3)] for i in range(2)]
for name, sign in ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="):
    a, some, operator = values([[1, 2, 3], [-1, 0, 2]]), values([1, 2, 3, nan, inf]), f"operator{sign}:"
    op(name, f"x {sign} {{other}}", f"x {sign} {{other}}", S("row", a, values([1, 0, 3]), other="y"), S("number", a, other=2.0),
       S("NaN and infinity", some, values([2, 2, 2, nan, inf]), other="y"), S("NaN and a number", some, other=2.0),
       S("column and row", values([[1], [2], [3]]), values([1, 2, 3]), other="y"), S("0-d", values(1), values(1), other="y"),
       S("0-d and row", values(2), values([1, 2, 3]), other="y"), S("row and 0-d", values([1, 2, 3]), values(2), other="y"),
       S("zero-size", randn(0, 1), randn(1, 4), other="y"), S("middle", values(numbered), values([[numbered[0][0]], [numbered[0][1]]]), other="y"),
       S("number in the dtype", values(0), theirs=f"(x + 0.1) {sign} 0.1", ours=f"(x + 0.1) {sign} 0.1"))
    bad(f"zeros({{2}}) {sign} zeros({{3}})", "ShapeError", f"{operator} shapes (2,) and (3,)")
    bad(f"zeros({{2}}) {sign} zeros({{2}}, DType::float64)", "DTypeError", f"{operator} operands are float32 and float64")
    bad(f"ones(2) {sign} Tensor()", "ValueError", f"{operator} operand 2 of 2 is undefined")
    bad(f"Tensor() {sign} ones(2)", "ValueError", f"{operator} operand 1 of 2 is undefined")
    bad(f"Tensor() {sign} 2.0", "ValueError", f"{operator} operand 1 of 2 is undefined")
for name in "isfinite", "isinf", "isnan":
    op(name, f"torch.{name}(x)", f"{name}(x)", S("1-d", values([1, inf, -inf, nan, 0])))
    bad(f"{name}(Tensor())", "ValueError", f"{name}: operand 1 of 1 is undefined")
first, second, column = mask([False, False, True, True]), mask([False, True, False, True]), mask([[False], [True]])
op("mask", "m {sign} n", "m {sign} n", *[S(f"{sign}, {name}", m, n, sign=sign) for sign in "&|" for name, m, n in (
    ("1-d", first, second), ("column and row", column, second), ("row and column", second, column))])
op("mask", "~m", "~m", S("not", first))
bad("Mask({1, 0}) & Mask({1, 0, 1})", "ShapeError", "(2,)", "(3,)")
ties = values([[1, 5, 5], [-2, -7, -7], [5, 0, -7]])
op("argsort", "torch.sort(x, dim=1, descending={down}, stable=True)[1]", "argsort(x, 1, {down})",
   *[S(f"ties, descending {down}", ties, down=down) for down in (False, True)])
for name in "argmax", "argmin":
    op(name, f"x.{name}()", f"{name}(x)", S("all", distinct(3, 4)), S("0-d", randn()), S("ties", ties),
       S("NaN and infinity", values([1, nan, inf, nan])), S("NaN and -infinity", values([1, -inf, nan, 0])),
       S("infinities", values([-inf, -inf])), S("many elements", randn(70_000), large=True))
    op(name, f"x.{name}({{dim}}, {{keepdim}})", f"{name}(x, {{dim}}, {{keepdim}})",
       S("dim 0", distinct(3, 4), dim=0, keepdim=False), S("ties, dim 1", ties, dim=1, keepdim=False),
       S("dim -1, keepdim", distinct(2, 3, 4), dim=-1, keepdim=True), S("0-d, keepdim", randn(), dim=-1, keepdim=True),
       S("NaN in each column", values([[1, nan], [nan, 0]]), dim=0, keepdim=False), S("no rows", randn(0, 3), dim=1, keepdim=False),
       S("infinities, dim 0", values([[-inf] * 3] * 2), dim=0, keepdim=False),
       *[S(f"many elements, dim {dim}", randn(70, 1000), dim=dim, keepdim=False, large=True) for dim in (0, 1)])
    bad(f"{name}(zeros({{0}}))", "ShapeError", name)
    bad(f"{name}(zeros({{2, 0}}), 1)", "ShapeError", f"{name}: x (2, 0) has no elements")
    bad(f"{name}(zeros({{2}}), 1)", "ValueError", name)
