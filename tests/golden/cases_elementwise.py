"""Golden cases of elementwise ops and comparisons."""

import operator

import torch
import torch.nn.functional as F

from cases import distinct, mask, randn, uniform, values

UNARY_SHAPES = {"3-d": (2, 3, 4), "0-d": (), "size 1": (1, 1), "zero-size": (2, 0)}
BINARY_SHAPES = {
    "same shape": ((3, 4), (3, 4)),
    "row": ((2, 3, 4), (4,)),
    "row on the left": ((4,), (2, 3, 4)),
    "column and row": ((3, 1), (1, 4)),
    "0-d": ((), ()),
    "0-d and 2-d": ((), (2, 3)),
    "size 1": ((1, 1), (3,)),
    "zero-size": ((0, 3), (3,)),
    "zero-size and size 1": ((2, 0), (2, 1)),
}


def positive(*shape):
    return uniform(0.25, 3, *shape)


def away_from_zero(*shape):
    """Of either sign."""

    def draw(generator):
        x = uniform(-2, 2, *shape)(generator)
        return torch.where(x < 0, x - 0.25, x + 0.25)

    return draw


def hardsigmoid(x):
    """By its formula: PyTorch's slope is the float32 nearest to 1/6."""
    return clamp(x / 6 + 0.5, 0, 1)


def uniform_angle(*shape):
    return uniform(-1.25, 1.25, *shape)


def add_binary(cases):
    ops = {
        "add": (torch.add, randn, randn),
        "sub": (torch.sub, randn, randn),
        "mul": (torch.mul, randn, randn),
        "div": (torch.div, randn, away_from_zero),
        "pow": (torch.pow, positive, randn),
        "maximum": (torch.maximum, randn, randn),
        "minimum": (torch.minimum, randn, randn),
        "logaddexp": (torch.logaddexp, randn, randn),
    }
    for op, (f, left, right) in ops.items():
        for sample, (a, b) in BINARY_SHAPES.items():
            cases.add(f"{op}/{sample}", f, left(*a), right(*b))
    for op, f in (
        ("add", operator.add),
        ("sub", operator.sub),
        ("mul", operator.mul),
        ("div", operator.truediv),
    ):
        cases.add(f"{op}/number on the right", lambda x: f(x, 2.5), away_from_zero(2, 3))
        cases.add(f"{op}/number on the left", lambda x: f(-1.5, x), away_from_zero(2, 3))
        if op != "div":  # whose gradient is 0, and in floating point what rounding leaves
            cases.add(f"{op}/of itself", lambda x: f(x, x), away_from_zero(2, 3))
        if op in ("add", "sub"):
            for sample, (a, b) in BINARY_SHAPES.items():
                g = lambda x, y: getattr(torch, op)(x, y, alpha=-1.5)
                cases.add(f"{op}/alpha, {sample}", g, randn(*a), randn(*b))
    for mode in ("trunc", "floor"):
        f = lambda x, y: torch.div(x, y, rounding_mode=mode)
        for sample in ("same shape", "row", "0-d", "zero-size"):
            a, b = BINARY_SHAPES[sample]
            cases.add(f"div/{mode}, {sample}", f, uniform(-9, 9, *a), away_from_zero(*b))
        some = values([7, -7, 7, -7, 6, -0.5, 0, 1]), values([2, 2, -2, -2, -2, 3, 5, -4])
        cases.add(f"div/{mode}, signs", f, *some)
    for weight in (0.25, 0.75, 1, -0.5):
        f = lambda x, y: torch.lerp(x, y, weight)
        cases.add(f"lerp/weight {weight}", f, randn(3, 4), randn(4))
    cases.add("lerp/a Tensor", torch.lerp, randn(2, 3), randn(3), uniform(-1, 2, 2, 3))
    # PyTorch 1.13 does not sum the second gradients of broadcast operands as it should.
    f = lambda x, a, b: x + a * b
    cases.add("addcmul/broadcast", f, randn(3, 1), randn(4), randn(2, 1, 4))
    f = lambda x, a, b: torch.addcmul(x, a, b, value=-1.5)
    cases.add("addcmul/value", f, randn(2, 3), randn(2, 3), randn(2, 3))
    some = values([800, -800, 0]), values([799, -801, -800])
    cases.add("logaddexp/large numbers", torch.logaddexp, *some, second=False)
    for op in ("maximum", "minimum"):
        f = lambda x: getattr(torch, op)(x, torch.tensor(0.5).double())
        cases.add(f"{op}/a number", f, values([1, 2, -3, 0, 0.5]))
        some = values([1, 2, -3, 0]), values([1, 5, -3, 0])
        cases.add(f"{op}/ties", getattr(torch, op), *some)


def add_unary(cases):
    ops = {
        "neg": (torch.neg, randn),
        "exp": (torch.exp, randn),
        "log": (torch.log, positive),
        "sqrt": (torch.sqrt, positive),
        "rsqrt": (torch.rsqrt, positive),
        "abs": (torch.abs, away_from_zero),
        "sin": (torch.sin, randn),
        "cos": (torch.cos, randn),
        "tanh": (torch.tanh, randn),
        "erf": (torch.erf, randn),
        "sigmoid": (torch.sigmoid, randn),
        "relu": (torch.relu, away_from_zero),
        "gelu": (F.gelu, randn),
        "silu": (F.silu, randn),
        "clone": (torch.clone, randn),
        "expm1": (torch.expm1, randn),
        "log1p": (torch.log1p, positive),
        "softplus": (F.softplus, randn),
        "mish": (F.mish, randn),
        "logsigmoid": (F.logsigmoid, randn),
        "elu": (F.elu, away_from_zero),
        "leaky_relu": (F.leaky_relu, away_from_zero),
        "hardtanh": (F.hardtanh, randn),
        "square": (torch.square, randn),
        "reciprocal": (torch.reciprocal, away_from_zero),
        "log2": (torch.log2, positive),
        "log10": (torch.log10, positive),
        "tan": (torch.tan, uniform_angle),
        "atan": (torch.atan, randn),
        "sinh": (torch.sinh, randn),
        "cosh": (torch.cosh, randn),
        "asinh": (torch.asinh, randn),
        "sign": (torch.sign, away_from_zero),
        "floor": (torch.floor, randn),
        "ceil": (torch.ceil, randn),
        "round": (torch.round, randn),
        "hardsigmoid": (hardsigmoid, randn),
    }
    for op, (f, inputs) in ops.items():
        for sample, shape in UNARY_SHAPES.items():
            cases.add(f"{op}/{sample}", f, inputs(*shape))
    wide = values(
        [-40, -20, -9, -4, -2.5, -1.5, -1, -0.5, -0.0625, 0, 0.03125, 0.75, 1.25, 2, 6, 11, 30, 60]
    )
    for op in ("sin", "cos", "tanh", "erf", "sigmoid", "gelu", "silu", "softplus", "mish", "logsigmoid"):
        cases.add(f"{op}/small and large", ops[op][0], wide)
    for sample, shape in UNARY_SHAPES.items():
        cases.add(f"gelu/tanh, {sample}", lambda x: F.gelu(x, approximate="tanh"), randn(*shape))
    cases.add("gelu/tanh, small and large", lambda x: F.gelu(x, approximate="tanh"), wide)
    for op in ("abs", "relu", "leaky_relu"):
        cases.add(f"{op}/at 0", ops[op][0], values([-1, 0, 2, 0.5]))
    # PyTorch's second derivative at 0 is 0, not that of the piece it has chosen.
    cases.add("elu/at 0", F.elu, values([-1, 0, 2, 0.5]), second=False)
    steps = values([-2.5, -2, -1.5, -0.5, 0, 0.25, 0.5, 1, 1.5, 2.5, 3])
    for op in ("sign", "floor", "ceil", "round"):
        cases.add(f"{op}/at the steps", getattr(torch, op), steps)
    cases.add("hardsigmoid/at the bounds", hardsigmoid, values([-3, 0, 3, 5, -4]))
    cases.add("hardtanh/at the bounds", F.hardtanh, values([-1, 0, 2, 1, -3]))
    cases.add("softplus/beta", lambda x: F.softplus(x, 2.5), randn(2, 3))
    cases.add("softplus/threshold", lambda x: F.softplus(x, 0.5, 1), values([-3, 1, 1.5, 2.5, 6]))
    cases.add("elu/alpha", lambda x: F.elu(x, 0.5), away_from_zero(2, 3))
    cases.add("leaky_relu/slope", lambda x: F.leaky_relu(x, -0.5), away_from_zero(2, 3))
    cases.add("hardtanh/bounds", lambda x: F.hardtanh(x, -0.25, 2), randn(2, 3))
    for exponent in (2, 3, 0.5, -1, 0, 1, -2.5):
        cases.add(f"pow/exponent {exponent}", lambda x: torch.pow(x, exponent), positive(2, 3))
    for exponent in (2, 3, -1, -2):
        cases.add(
            f"pow/of either sign, exponent {exponent}",
            lambda x: torch.pow(x, exponent),
            away_from_zero(2, 3),
        )
    for exponent in (0, 1, 2, 3):
        cases.add(
            f"pow/base 0, exponent {exponent}", lambda x: torch.pow(x, exponent), values([0, 1, -2])
        )
    for base in (2, 0.5, 1):
        cases.add(f"pow/number {base} as base", lambda x: torch.pow(base, x), randn(2, 3))
    cases.add(
        "pow/base 0, Tensor exponent",
        torch.pow,
        values([0, 0, 0, 2]),
        values([1, 2, 3, 1.5]),
        second=False,
    )
    cases.add("to/float64", lambda x: x.to(torch.float64), randn(2, 3))
    cases.add("to/float32", lambda x: x.to(torch.float32), randn(2, 3))
    cases.add(
        "to/float32, squared, and back",
        lambda x: (x.to(torch.float32) * x.to(torch.float32)).to(torch.float64),
        values([0.5, -1.25, 3, 0.125]),
    )
    cases.add("to/zero-size", lambda x: x.to(torch.float32), randn(0, 2))


# torch.clamp with the gradients of PyTorch 2.14 and newer at its bounds, whichever PyTorch this is:
# none at bounds that are numbers, and half to each of those that are equal at bounds that are Tensors.


def clamp(x, low, high):
    inside = (x > (-torch.inf if low is None else low)) & (x < (torch.inf if high is None else high))
    return torch.where(inside, x, torch.clamp(x.detach(), low, high))


def clamp_tensors(x, low, high):
    at_equal_bounds = torch.where(x < low, low, torch.where(x > high, high, x))
    return torch.where(low == high, at_equal_bounds, torch.minimum(torch.maximum(x, low), high))


def add_choices(cases):
    for sample, low, high in (
        ("both", -0.5, 0.75),
        ("min", -0.5, None),
        ("max", None, 0.75),
        ("min above max", 0.75, -0.5),
    ):
        cases.add(f"clamp/{sample}", lambda x: clamp(x, low, high), randn(3, 4))
        cases.add(
            f"clamp/{sample}, at the bounds",
            lambda x: clamp(x, low, high),
            values([-2, -0.5, 0, 0.75, 3]),
        )
    between = [1, 1, 2, 3, 5, 2.5]
    low, high = [2, 2, 2, 0, 6, 3], [2, 4, 4, 3, 4, 2]
    cases.add("clamp/Tensors, ties", clamp_tensors, values(between), values(low), values(high))
    cases.add("clamp/Tensors", clamp_tensors, randn(3, 4), uniform(-1, 0.5, 3, 4), uniform(-0.5, 1, 3, 4))
    cases.add("clamp/Tensors, row and column", clamp_tensors, randn(3, 4), randn(4), randn(3, 1))
    cases.add("clamp/Tensors, 0-d", clamp_tensors, randn(), randn(), randn())
    cases.add("clamp/Tensors, zero-size", clamp_tensors, randn(0, 2), randn(2), randn())
    cases.add("clamp/min, a Tensor", torch.maximum, randn(3, 4), randn(4))
    cases.add("clamp/min, a Tensor, ties", torch.maximum, values(between), values(low))
    cases.add("clamp/max, a Tensor", torch.minimum, randn(3, 4), randn(4))
    cases.add("clamp/max, a Tensor, ties", torch.minimum, values(between), values(high))
    cases.add("clamp/0-d", lambda x: clamp(x, -0.5, 0.75), values(0.25))
    cases.add("clamp/zero-size", lambda x: clamp(x, -0.5, 0.75), randn(0, 2))

    row, column = mask([True, False, False, True]), mask([[True], [False], [True]])
    cases.add("where/condition row", torch.where, row, randn(3, 4), randn(3, 4))
    cases.add("where/condition column", torch.where, column, randn(3, 4), randn(4))
    cases.add("where/condition the largest", torch.where, row, randn(1), randn())
    cases.add("where/0-d", torch.where, mask(True), randn(), randn())
    cases.add("where/zero-size", torch.where, mask([[], []]), randn(2, 1), randn(2, 0))
    cases.add(
        "where/number on the right",
        lambda m, x: torch.where(m, x, torch.tensor(0.5).double()),
        row,
        randn(3, 4),
    )
    cases.add(
        "where/number on the left",
        lambda m, x: torch.where(m, torch.tensor(0.5).double(), x),
        column,
        randn(3, 4),
    )
    fill = lambda x, m: x.masked_fill(m, 0.5)
    cases.add("masked_fill/row", fill, randn(3, 4), row)
    cases.add("masked_fill/column", fill, randn(2, 3, 4), column)
    cases.add("masked_fill/0-d", fill, randn(), mask(True))
    cases.add("masked_fill/mask 0-d", fill, randn(2, 3), mask(False))
    cases.add("masked_fill/zero-size", fill, randn(2, 0), mask([[], []]))
    cases.add("masked_fill/mask larger", fill, randn(3, 1), row)
    value = lambda x, m, v: x.masked_fill(m, v)
    cases.add("masked_fill/value a Tensor, row", value, randn(3, 4), row, randn())
    cases.add("masked_fill/value a Tensor, 0-d", value, randn(), mask(True), randn())
    cases.add("masked_fill/value a Tensor, mask larger", value, randn(4), column, randn())
    cases.add("masked_fill/value a Tensor, zero-size", value, randn(2, 0), mask([[], []]), randn())
    cases.add(
        "masked_fill/minus infinity",
        lambda x, m: x.masked_fill(m, float("-inf")),
        randn(3, 4),
        row,
        finite=False,
    )


def add_comparisons(cases):
    """Not differentiable."""
    a, b = values([[1, 2, 3], [-1, 0, 2]]), values([1, 0, 3])
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        cases.add(f"{op}/row", getattr(operator, op), a, b)
        cases.add(f"{op}/number", lambda x: getattr(operator, op)(x, 2), a)
    inf = float("inf")
    cases.add("isfinite/1-d", torch.isfinite, values([1, inf, -inf, float("nan"), 0]))
    for op in ("isinf", "isnan"):
        cases.add(f"{op}/1-d", getattr(torch, op), values([1, inf, -inf, float("nan"), 0]))
    ties = values([[1, 5, 5], [-2, -7, -7], [5, 0, -7]])
    for descending in (False, True):
        f = lambda x: torch.sort(x, dim=1, descending=descending, stable=True)[1]
        cases.add(f"argsort/ties, descending {descending}", f, ties)
    for op in ("argmax", "argmin"):
        f = getattr(torch, op)
        cases.add(f"{op}/all", f, distinct(3, 4))
        cases.add(f"{op}/dim 0", lambda x: f(x, 0), distinct(3, 4))
        cases.add(f"{op}/dim -1, keepdim", lambda x: f(x, -1, True), distinct(2, 3, 4))
        cases.add(f"{op}/0-d", f, randn())
        cases.add(f"{op}/ties", f, ties)
        cases.add(f"{op}/ties, dim 1", lambda x: f(x, 1), ties)


def add(cases):
    add_binary(cases)
    add_unary(cases)
    add_choices(cases)
    add_comparisons(cases)
