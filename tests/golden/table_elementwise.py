"""Samples of elementwise ops and comparisons."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad


# PyTorch's side where it has no such op, or decides otherwise.
# Of clamp: the gradients of PyTorch 2.14 and newer at the bounds, whichever PyTorch this is: none at bounds that are
# numbers, and half to each of those that are equal at bounds that are Tensors.


def clamp(x, low, high):
    inside = (x > (-inf if low is None else low)) & (x < (inf if high is None else high))
    return torch.where(inside, x, torch.clamp(x.detach(), low, high))


def clamp_tensors(x, low, high):
    at_equal_bounds = torch.where(x < low, low, torch.where(x > high, high, x))
    return torch.where(low == high, at_equal_bounds, torch.minimum(torch.maximum(x, low), high))


def hardsigmoid(x):
    """PyTorch's slope is the float32 nearest to 1/6."""
    return clamp(x / 6 + 0.5, 0, 1)


def number(value):
    """As a Tensor, for ops that take only these."""
    return torch.tensor(value).double()


# ---- two operands ----


def binary(name, theirs, ours, left=randn, right=randn, prefix="", only=None):
    """The samples of two operands: all ways to broadcast."""
    shapes = {"same shape": ((3, 4), (3, 4)), "row": ((2, 3, 4), (4,)), "row on the left": ((4,), (2, 3, 4)),
              "column and row": ((3, 1), (1, 4)), "0-d": ((), ()), "0-d and 2-d": ((), (2, 3)),
              "size 1": ((1, 1), (3,)), "zero-size": ((0, 3), (3,)), "zero-size and size 1": ((2, 0), (2, 1))}
    op(name, theirs, ours, *[S(prefix + shape, left(*a), right(*b)) for shape, (a, b) in shapes.items()
                             if only is None or shape in only])


for name, sign in ("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"):
    binary(name, f"torch.{name}(x, y)", f"{name}(x, y)", right=away_from_zero if name == "div" else randn)
    op(name, "", "",
       S("number on the right", away_from_zero(2, 3), theirs=f"x {sign} 2.5", ours=f"x {sign} 2.5"),
       S("number on the left", away_from_zero(2, 3), theirs=f"-1.5 {sign} x", ours=f"-1.5 {sign} x"))
for name, sign in ("add", "+"), ("sub", "-"), ("mul", "*"):
    op(name, f"x {sign} x", f"x {sign} x", S("of itself", away_from_zero(2, 3)))
for name in "add", "sub":
    binary(name, f"torch.{name}(x, y, alpha=-1.5)", f"{name}(x, y, -1.5)", prefix="alpha, ")
for mode in "trunc", "floor":
    rounded = f"torch.div(x, y, rounding_mode='{mode}')", f"div(x, y, RoundingMode::{mode})"
    binary("div", *rounded, lambda *shape: uniform(-9, 9, *shape), away_from_zero, f"{mode}, ",
           only=["same shape", "row", "0-d", "zero-size"])
    op("div", *rounded,
       S(f"{mode}, signs", values([7, -7, 7, -7, 6, -0.5, 0, 1]), values([2, 2, -2, -2, -2, 3, 5, -4])))

for name in "maximum", "minimum":
    binary(name, f"torch.{name}(x, y)", f"{name}(x, y)")
    op(name, f"torch.{name}(x, y)", f"{name}(x, y)",
       S("ties", values([1, 2, -3, 0]), values([1, 5, -3, 0]), differences=False),
       S("a number", values([1, 2, -3, 0, 0.5]), theirs=f"torch.{name}(x, number(0.5))", ours=f"{name}(x, 0.5)",
         differences=False))

binary("logaddexp", "torch.logaddexp(x, y)", "logaddexp(x, y)")
op("logaddexp", "torch.logaddexp(x, y)", "logaddexp(x, y)",
   S("large numbers", values([800, -800, 0]), values([799, -801, -800]), second=False))

op("lerp", "torch.lerp(x, y, {weight})", "lerp(x, y, {weight})",
   *[S(f"weight {weight}", randn(3, 4), randn(4), weight=weight) for weight in (0.25, 0.75, 1, -0.5)],
   S("a Tensor", randn(2, 3), randn(3), uniform(-1, 2, 2, 3), weight="z"))
# PyTorch 1.13 does not sum the second gradients of broadcast operands as it should.
op("addcmul", "x + y * z", "addcmul(x, y, z)", S("broadcast", randn(3, 1), randn(4), randn(2, 1, 4)),
   S("value", randn(2, 3), randn(2, 3), randn(2, 3), theirs="torch.addcmul(x, y, z, value=-1.5)",
     ours="addcmul(x, y, z, -1.5)"))

binary("pow", "torch.pow(x, y)", "pow(x, y)", positive)
op("pow", "torch.pow(x, {e})", "pow(x, {e})",
   *[S(f"exponent {e}", positive(2, 3), e=e) for e in (2, 3, 0.5, -1, 0, 1, -2.5)],
   *[S(f"of either sign, exponent {e}", away_from_zero(2, 3), e=e) for e in (2, 3, -1, -2)],
   *[S(f"base 0, exponent {e}", values([0, 1, -2]), e=e) for e in (0, 1, 2, 3)],
   S("base 0, Tensor exponent", values([0, 0, 0, 2]), values([1, 2, 3, 1.5]), e="y", second=False))
op("pow", "torch.pow({base}, x)", "pow({base}, x)",
   *[S(f"number {base} as base", randn(2, 3), base=base) for base in (2, 0.5, 1)])

# ---- one operand ----


def shapes(draw, prefix=""):
    return [S(prefix + name, draw(*shape))
            for name, shape in (("3-d", (2, 3, 4)), ("0-d", ()), ("size 1", (1, 1)), ("zero-size", (2, 0)))]


def small_and_large(prefix=""):
    return S(prefix + "small and large", values([-40, -20, -9, -4, -2.5, -1.5, -1, -0.5, -0.0625, 0, 0.03125, 0.75,
                                                 1.25, 2, 6, 11, 30, 60]))


def unary(name, *samples, draw=randn, theirs="torch.{}(x)"):
    """An op of one operand: samples of all such ops, drawn by `draw`, and its own."""
    op(name, theirs.format(name), f"{name}(x)", *shapes(draw), *samples)


def angles(*shape):
    return uniform(-1.25, 1.25, *shape)


for name in "neg", "exp", "clone", "expm1", "square", "atan", "sinh", "cosh", "asinh":
    unary(name)
for name in "log", "sqrt", "rsqrt", "log1p", "log2", "log10":
    unary(name, draw=positive)
for name in "sin", "cos", "tanh", "erf", "sigmoid":
    unary(name, small_and_large())
for name in "gelu", "silu", "softplus", "mish", "logsigmoid":
    unary(name, small_and_large(), theirs="F.{}(x)")
for name in "sign", "floor", "ceil", "round":
    unary(name, S("at the steps", values([-2.5, -2, -1.5, -0.5, 0, 0.25, 0.5, 1, 1.5, 2.5, 3]), differences=False),
          draw=away_from_zero if name == "sign" else randn)
at_0 = S("at 0", values([-1, 0, 2, 0.5]), differences=False)
for name in "abs", "relu":
    unary(name, at_0, draw=away_from_zero)
unary("reciprocal", draw=away_from_zero)
unary("tan", draw=angles)
unary("hardsigmoid", S("at the bounds", values([-3, 0, 3, 5, -4]), differences=False), theirs="{}(x)")
unary("hardtanh", S("at the bounds", values([-1, 0, 2, 1, -3]), differences=False),
      S("bounds", randn(2, 3), theirs="F.hardtanh(x, -0.25, 2)", ours="hardtanh(x, -0.25, 2)"), theirs="F.{}(x)")
# PyTorch's second derivative at 0 is 0, not that of the piece it has chosen.
unary("elu", S("at 0", values([-1, 0, 2, 0.5]), second=False),
      S("alpha", away_from_zero(2, 3), theirs="F.elu(x, 0.5)", ours="elu(x, 0.5)"), draw=away_from_zero,
      theirs="F.{}(x)")
unary("leaky_relu", at_0, S("slope", away_from_zero(2, 3), theirs="F.leaky_relu(x, -0.5)", ours="leaky_relu(x, -0.5)"),
      draw=away_from_zero, theirs="F.{}(x)")
op("softplus", "F.softplus(x, {beta}, {threshold})", "softplus(x, {beta}, {threshold})",
   S("beta", randn(2, 3), beta=2.5, threshold=20),
   S("threshold", values([-3, 1, 1.5, 2.5, 6]), beta=0.5, threshold=1))
op("gelu", "F.gelu(x, approximate='tanh')", "gelu(x, Gelu::tanh)", *shapes(randn, "tanh, "),
   small_and_large("tanh, "))

op("to", "x.to(torch.{dtype})", "to(x, DType::{dtype})", S("float64", randn(2, 3), dtype="float64"),
   S("float32", randn(2, 3), dtype="float32", differences=False), S("zero-size", randn(0, 2), dtype="float32", differences=False),
   S("float32, squared, and back", values([0.5, -1.25, 3, 0.125]), differences=False,
     theirs="(x.to(torch.float32) * x.to(torch.float32)).to(torch.float64)",
     ours="to(to(x, DType::float32) * to(x, DType::float32), DType::float64)"))

# ---- choices ----

for name, low, high in ("both", -0.5, 0.75), ("min", -0.5, None), ("max", None, 0.75), ("min above max", 0.75, -0.5):
    op("clamp", "clamp(x, {low}, {high})", "clamp(x, {low}, {high})", S(name, randn(3, 4), low=low, high=high),
       S(f"{name}, at the bounds", values([-2, -0.5, 0, 0.75, 3]), low=low, high=high, differences=False))
op("clamp", "clamp(x, -0.5, 0.75)", "clamp(x, -0.5, 0.75)", S("0-d", values(0.25)), S("zero-size", randn(0, 2)))
between, lowest, highest = values([1, 1, 2, 3, 5, 2.5]), values([2, 2, 2, 0, 6, 3]), values([2, 4, 4, 3, 4, 2])
op("clamp", "clamp_tensors(x, y, z)", "clamp(x, y, z)",
   S("Tensors", randn(3, 4), uniform(-1, 0.5, 3, 4), uniform(-0.5, 1, 3, 4)),
   S("Tensors, row and column", randn(3, 4), randn(4), randn(3, 1)),
   S("Tensors, 0-d", randn(), randn(), randn()),
   S("Tensors, zero-size", randn(0, 2), randn(2), randn()),
   S("Tensors, ties", between, lowest, highest, differences=False))
for name, theirs, ours, ties in (("min", "maximum", "y, Tensor()", lowest), ("max", "minimum", "Tensor(), y", highest)):
    op("clamp", f"torch.{theirs}(x, y)", f"clamp(x, {ours})", S(f"{name}, a Tensor", randn(3, 4), randn(4)),
       S(f"{name}, a Tensor, ties", between, ties, differences=False))

row, column, nothing = mask([True, False, False, True]), mask([[True], [False], [True]]), mask([[], []])
op("where", "torch.where(m, x, y)", "where(m, x, y)",
   S("condition row", row, randn(3, 4), randn(3, 4)),
   S("condition column", column, randn(3, 4), randn(4)),
   S("condition the largest", row, randn(1), randn()),
   S("0-d", mask(True), randn(), randn()),
   S("zero-size", nothing, randn(2, 1), randn(2, 0)),
   S("number on the right", row, randn(3, 4), theirs="torch.where(m, x, number(0.5))", ours="where(m, x, 0.5)"),
   S("number on the left", column, randn(3, 4), theirs="torch.where(m, number(0.5), x)", ours="where(m, 0.5, x)"))
op("masked_fill", "x.masked_fill(m, 0.5)", "masked_fill(x, m, 0.5)",
   S("row", randn(3, 4), row),
   S("column", randn(2, 3, 4), column),
   S("0-d", randn(), mask(True)),
   S("mask 0-d", randn(2, 3), mask(False)),
   S("zero-size", randn(2, 0), nothing),
   S("mask larger", randn(3, 1), row),
   S("minus infinity", randn(3, 4), row, theirs="x.masked_fill(m, -inf)", ours="masked_fill(x, m, -INFINITY)",
     finite=False))
op("masked_fill", "x.masked_fill(m, y)", "masked_fill(x, m, y)",
   S("value a Tensor, row", randn(3, 4), row, randn()),
   S("value a Tensor, 0-d", randn(), mask(True), randn()),
   S("value a Tensor, mask larger", randn(4), column, randn()),
   S("value a Tensor, zero-size", randn(2, 0), nothing, randn()))

# ---- comparisons, which have no derivative ----

for name, sign in ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="):
    a = values([[1, 2, 3], [-1, 0, 2]])
    op(name, f"x {sign} y", f"x {sign} y", S("row", a, values([1, 0, 3])))
    op(name, f"x {sign} 2.0", f"x {sign} 2.0", S("number", a))
for name in "isfinite", "isinf", "isnan":
    op(name, f"torch.{name}(x)", f"{name}(x)", S("1-d", values([1, inf, -inf, math.nan, 0])))
ties = values([[1, 5, 5], [-2, -7, -7], [5, 0, -7]])
op("argsort", "torch.sort(x, dim=1, descending={down}, stable=True)[1]", "argsort(x, 1, {down})",
   *[S(f"ties, descending {down}", ties, down=down) for down in (False, True)])
for name in "argmax", "argmin":
    op(name, f"x.{name}()", f"{name}(x)", S("all", distinct(3, 4)), S("0-d", randn()), S("ties", ties))
    op(name, f"x.{name}({{dim}})", f"{name}(x, {{dim}})", S("dim 0", distinct(3, 4), dim=0),
       S("dim -1, keepdim", distinct(2, 3, 4), dim="-1, True", ours=f"{name}(x, -1, true)"),
       S("ties, dim 1", ties, dim=1))
bad("logaddexp(zeros(2), zeros(3))", "ShapeError", "logaddexp", "(2,)")
