"""Samples of softmax, norms, dropout, losses and attention."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad


class Options:
    """Keywords in PyTorch's text, designated initializers in ours."""

    ORDER = ("weight ignore_index label_smoothing reduction pos_weight delta beta log_target "
             "is_causal dropout_p scale causal_offset enable_gqa softcap").split()

    def __init__(self, **given):
        self.given = {name: given[name] for name in self.ORDER if name in given}

    def __repr__(self):
        return ", ".join(f"{name}={value!r}" if name == "reduction" else f"{name}={value}"
                         for name, value in self.given.items())

    def __str__(self):
        return ", ".join(f".{name} = " + (f"Reduction::{value}" if name == "reduction" else cpp_text(value))
                         for name, value in self.given.items())


def reduced(name, *inputs, by=("none", "mean", "sum"), **given):
    """A sample of each reduction."""
    options = {k: v for k, v in given.items() if k in Options.ORDER}
    rest = {k: v for k, v in given.items() if k not in options}
    return [S(f"{name}, {r}" if name else r, *inputs, r=r, o=Options(**options, reduction=r), **rest) for r in by]


not_finite = {"finite": False, "differences": False, "second": False}

# ---- softmax ----


def softmax(x, dim):
    """A line of only -inf gives zeros; PyTorch's, NaN."""
    nothing = (x == -inf).all(dim, keepdim=True)
    return x.masked_fill(nothing, 0.0).softmax(dim).masked_fill(nothing, 0.0)


def hidden(rows, columns, is_hidden):
    return mask([[is_hidden(row, column) for column in range(columns)] for row in range(rows)])


for name, theirs in ("softmax", "softmax"), ("log_softmax", "F.log_softmax"):
    op(name, f"{theirs}(x, {{dim}})", f"{name}(x, {{dim}})",
       S("dim 0", randn(3, 4), dim=0), S("dim -1", randn(2, 3, 4), dim=-1), S("middle", randn(2, 3, 4), dim=1),
       S("0-d", randn(), dim=0), S("size 1", randn(3, 1), dim=1), S("no rows", randn(0, 3), dim=1),
       S("nothing", randn(3, 0), dim=1),
       S("dtype", randn(2, 3), theirs=f"x.{name}(1, dtype=torch.float64)", ours=f"{name}(x, 1, DType::float64)"),
       S("large numbers", values([[900, 901, 899], [-700, -702, -701]]), dim=1),
       S("minus infinities", values([[-inf, 1, 2], [0.5, -inf, -inf]]), dim=1, finite=False, differences=False),
       S("middle from the end", randn(2, 4, 3), dim=-2), S("0-d from the end", randn(), dim=-1),
       S("register and some", randn(3, 37), dim=-1), S("full registers", randn(2, 32), dim=-1),
       S("columns, register and some", randn(2, 3, 37), dim=1), S("columns, full registers", randn(2, 3, 16), dim=1),
       S("infinity", values([[1, 1, 1, 1], [1, inf, 1, 1], [1, 1, 1, 1]]), dim=1, **not_finite),
       S("NaN", values([[1, 1, 1, 1], [1, math.nan, 1, 1], [-inf] * 4]), dim=1, **not_finite),
       S("NaN among -inf", values([[-inf] * 5 + [math.nan] + [-inf] * 14, [-inf] * 20]), dim=1, **not_finite),
       S("long rows", randn(9, 2500), dim=-1, large=True), S("long columns", randn(200, 70), dim=0, large=True),
       S("many rows", randn(500, 65), dim=-1, large=True), S("many columns", randn(40, 9, 70), dim=1, large=True))
    # log_softmax has no differences where it is -inf.
    op(name, f"{theirs}(x.masked_fill(m, -inf), {{dim}})", f"{name}(masked_fill(x, m, -INFINITY), {{dim}})",
       *(S(sample, randn(rows, columns), hidden(rows, columns, f), dim=dim, **(not_finite if name == "log_softmax" else {}))
         for sample, rows, columns, dim, f in (
           ("partly masked", 4, 19, 1, lambda r, c: (19 * r + c) % 3 == 0),
           ("partly masked columns", 4, 19, 0, lambda r, c: (19 * r + c) % 3 == 0),
           ("rows masked completely", 5, 19, 1, lambda r, c: (19 * r + c) % 3 == 0 or r % 3 == 0),
           ("short rows masked completely", 5, 3, 1, lambda r, c: r % 3 == 0),
           ("columns masked completely", 4, 20, 0, lambda r, c: c % 3 == 2),
           ("all masked", 2, 3, 1, lambda r, c: True))))
    bad(f"{name}(zeros({{2, 3}}), 2)", "ValueError", name, "2")
    bad(f"{name}(zeros({{2, 3}}), -3)", "ValueError", name, "-3")
    bad(f"{name}(zeros({{}}), 1)", "ValueError", name, "1")

# ---- norms ----


def rms_norm(x, shape, weight=None, eps=None):
    """PyTorch 1.13 has none."""
    dims = tuple(range(-len(shape), 0))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    y = x * torch.rsqrt((x * x).mean(dims, keepdim=True) + eps)
    return y if weight is None else y * weight


for name, shape, n in (
    ("last", (3, 5), (5,)), ("3-d", (2, 2, 4), (4,)), ("last two", (2, 3, 4), (3, 4)), ("all", (6,), (6,)),
    ("no rows", (0, 3), (3,)),
):
    x, weight, bias = randn(*shape), randn(*n), randn(*n)
    op("layer_norm", "F.layer_norm(x, {n}, y, z)", "layer_norm(x, {n}, y, z)",
       S(name, x, weight, bias, n=n), S(f"{name}, weight", x, weight, n=n), S(f"{name}, plain", x, n=n))
    op("rms_norm", "rms_norm(x, {n}, y)", "rms_norm(x, {n}, y)",
       S(name, x, weight, n=n), S(f"{name}, plain", x, n=n))
op("layer_norm", None, None,
   # PyTorch 1.13 fails in the second gradients of a bias without a weight.
   S("bias", randn(3, 4), randn(4), theirs="F.layer_norm(x, (4,)) + y", ours="layer_norm(x, 4, {}, y)"),
   S("eps 0.25", randn(3, 4), theirs="F.layer_norm(x, (4,), eps=0.25)", ours="layer_norm(x, 4, {}, {}, 0.25)"))
op("layer_norm", "F.layer_norm(x, ({n},), y, z, {eps})", "layer_norm(x, {n}, y, z, {eps})",
   *(S(name, randn(rows, n), uniform(0.5, 2, n), randn(n), n=n, eps=1e-5) for name, rows, n in (
       ("no elements", 3, 0), ("register and some", 3, 21), ("full registers", 3, 32))),
   *(S(name, randn(rows, n), uniform(0.5, 2, n), randn(n), n=n, eps=1e-5, large=True) for name, rows, n in (
       ("many rows", 300, 64), ("many short rows", 1000, 3), ("long rows", 20, 1500))),
   # PyTorch's gradients are rounding errors of 0.
   S("size 1", randn(3, 1), randn(1), randn(1), n=1, eps=1e-5, theirs="(x - x) * y + z"),
   S("eps 0.5, weight and bias", randn(3, 5), randn(5), randn(5), n=5, eps=0.5),
   S("far from 0", uniform(1000, 1001, 4, 100), n=100, eps=1e-5, second=False, loose=1e-3))
op("rms_norm", "rms_norm(x, ({n},), y, {eps})", "rms_norm(x, {n}, y, {eps})",
   S("no elements", randn(3, 0), uniform(0.5, 2, 0), n=0, eps=1e-5),
   S("register and some", randn(3, 21), uniform(0.5, 2, 21), n=21, eps=1e-5),
   S("many rows", randn(300, 64), uniform(0.5, 2, 64), n=64, eps=1e-5, large=True),
   # eps is the dtype's: of x times its root, x / sqrt(mean(x^2) + 1) remains.
   S("default eps", uniform(1, 2, 2, 4), theirs="rms_norm(x, (4,), eps=1)",
     ours="rms_norm(x * std::exp2(x.dtype() == DType::float64 ? -26 : -11.5), 4)"))
op("rms_norm", "rms_norm(x, ({n},), y, 0.25)", "rms_norm(x, {n}, y, 0.25)",
   S("eps 0.25", randn(3, 4), randn(4), n=4), S("size 1", randn(3, 1), n=1))
for name in "layer_norm", "rms_norm":
    bad(f"{name}(zeros({{2, 3, 4}}), {{}})", "ShapeError", name, "empty")
    bad(f"{name}(zeros({{2, 3, 4}}), 3)", "ShapeError", name, "(2, 3, 4)", "(3,)")
    bad(f"{name}(zeros({{2, 3, 4}}), 4, ones({{1}}))", "ShapeError", name, "weight", "(1,)", "(4,)")
    bad(f"{name}(zeros({{2, 3, 4}}), 4, ones({{4}}, DType::float64))", "DTypeError", name, "float32", "weight", "float64")
bad("layer_norm(zeros({2, 3, 4}), {1, 2, 3, 4})", "ShapeError", "layer_norm", "(2, 3, 4)", "(1, 2, 3, 4)")
bad("layer_norm(zeros({2, 3, 4}), {3, 4}, {}, ones({4}))", "ShapeError", "layer_norm", "bias", "(4,)", "(3, 4)")

# ---- dropout ----


def several_dropouts(x):
    """Each goes on where the one before has stopped drawing."""
    for p in (0.25, 1e-9, 0, 0.125):
        x = F.dropout(x, p)
    return x + F.dropout(x, 1) + F.dropout(x, 0.5, False) + F.dropout(x, 0.5)


op("dropout", "F.dropout(x, {p})", "dropout(x, {p})",
   *(S(f"p {p}", randn(5, 7), p=p, seed=11) for p in (0.25, 0.5, 0.9, 0, 1)),
   S("not in training", randn(2, 3), theirs="F.dropout(x, 0.5, False)", ours="dropout(x, 0.5, false)", seed=11),
   S("0-d", randn(), p=0.5, seed=12), S("zero-size", randn(2, 0), p=0.5, seed=12),
   S("many", randn(70, 300), p=0.3, seed=5, large=True),
   S("one after the other", randn(4, 5), theirs="several_dropouts(x)", seed=13,
     ours="[](Tensor a) { for (const double p : {0.25, 1e-9, 0.0, 0.125}) a = dropout(a, p);"
          " const Tensor b = dropout(a, 1) + dropout(a, 0.5, false); return a + b + dropout(a, 0.5); }(x)"))
for p in "-0.1", "1.5", "NAN":
    for training in "true", "false":
        bad(f"dropout(ones({{3}}), {p}, {training})", "ValueError", "dropout", "p ", "between 0 and 1")

# ---- losses of classes ----

some, two_rows, no_ids = ids([2, 0, 2, 1]), ids([0, 2, 1, 1], 2, 2), ids([], 0)
weight = Fixed(uniform(0.25, 2, 3))
op("cross_entropy", "F.cross_entropy(x, i, {o})", "cross_entropy(x, i, {{o}})",
   *reduced("", randn(4, 3), some),
   *reduced("weight", randn(4, 3), some, weight, weight="w"),
   *reduced("ignored", randn(4, 3), ids([2, -100, 0, -100])),
   *reduced("smoothed", randn(4, 3), some, label_smoothing=0.25),
   *reduced("all options", randn(4, 3), some, weight, weight="w", ignore_index=1, label_smoothing=0.125),
   *reduced("(N V d)", randn(2, 3, 2), two_rows),
   S("(N V d1 d2), all options", randn(2, 3, 2, 2), ids([0, 1, 2, 1, 2, 2, 0, 1], 2, 2, 2), weight,
     o=Options(weight="w", ignore_index=0, label_smoothing=0.125)),
   S("(V)", randn(5), one_id(3), o=Options()),
   S("smoothing 1", randn(4, 3), some, o=Options(label_smoothing=1.0)),
   *reduced("all ignored", randn(2, 3), ids([-100, -100]), by=("none", "sum")),
   *reduced("all ignored", randn(2, 3), ids([-100, -100]), by=["mean"], **not_finite),
   *reduced("all ignored and smoothed", randn(2, 3), ids([-100, -100]), label_smoothing=0.125, by=("none", "sum")),
   *reduced("all ignored and smoothed", randn(2, 3), ids([-100, -100]), label_smoothing=0.125, by=["mean"], **not_finite),
   S("one class", randn(2, 1), ids([0, 0]), o=Options(reduction="sum")),
   *reduced("no rows", randn(0, 3), no_ids, by=("none", "sum")),
   *reduced("no rows", randn(0, 3), no_ids, by=["mean"], **not_finite),
   *reduced("register and some", randn(3, 21), ids([20, 0, 16])),
   S("large numbers", values([[600, 0, 601], [-5, -500, 2]]), ids([0, 2]), o=Options()),
   S("a class of probability 0", values([[-inf, 1, 1]] * 2), ids([1, 2]), o=Options(), second=False),
   S("of probability 0", values([[-inf, 1, 1], [-inf, -inf, -inf]]), ids([0, 1]), o=Options(reduction="none"), finite=False, second=False))
op("cross_entropy", "F.cross_entropy(x, y, {o})", "cross_entropy(x, y, {{o}})",
   *reduced("probabilities", randn(4, 3), probabilities(4, 3)),
   *reduced("probabilities, smoothed and weighted", randn(4, 3), probabilities(4, 3), weight,
            weight="w", label_smoothing=0.25),
   *reduced("probabilities, no rows", randn(0, 3), randn(0, 3), by=("none", "sum")),
   *reduced("probabilities, no rows", randn(0, 3), randn(0, 3), by=["mean"], **not_finite),
   *reduced("probabilities, register and some", randn(3, 21), uniform(0, 1, 3, 21)),
   *reduced("probabilities, many rows", randn(300, 65), uniform(0, 1, 300, 65), large=True),
   *reduced("many rows", randn(300, 65), label_smoothing=0.1, large=True,
            theirs="F.cross_entropy(x, torch.arange(300) * 3 % 65, {o})",
            ours="cross_entropy(x, arange_indices(0, 300) * 3 % 65, {{o}})"),
   S("(V), probabilities", randn(5), probabilities(5), o=Options()),
   S("(N V d), probabilities", randn(2, 3, 2), probabilities(2, 3, 2), o=Options()))

head = (randn(4, 2), randn(3, 2), randn(3))
op("linear_cross_entropy", "F.cross_entropy(F.linear(x, y, z), i, {o})", "linear_cross_entropy(x, y, i, z, {{o}})",
   *reduced("", *head, some),
   *reduced("ignored", *head, ids([2, -100, 0, -100])),
   *reduced("all options", *head, some, weight, weight="w", ignore_index=1, label_smoothing=0.125),
   *reduced("all ignored", *head, ids([-100] * 4), by=["sum"]),
   *reduced("all ignored", *head, ids([-100] * 4), by=["mean"], **not_finite),
   *reduced("no rows", randn(0, 2), randn(3, 2), randn(3), no_ids, by=("none", "sum")),
   *reduced("no rows", randn(0, 2), randn(3, 2), randn(3), no_ids, by=["mean"], **not_finite),
   *reduced("register and some", randn(3, 2), randn(21, 2), randn(21), ids([20, 0, 16]), by=["mean"]),
   S("no features", randn(2, 0), randn(3, 0), randn(3), ids([0, 2]), o=Options()),
   S("(K)", randn(2), randn(3, 2), randn(3), one_id(1), o=Options()))
op("linear_cross_entropy", "F.cross_entropy(F.linear(x, y), i, {o})", "linear_cross_entropy(x, y, i, {}, {{o}})",
   *reduced("without bias", randn(4, 2), randn(3, 2), some),
   S("more than a block", randn(130, 3), randn(8200, 3), o=Options(label_smoothing=0.1), large=True,
     theirs="F.cross_entropy(F.linear(x, y), torch.arange(130) * 63, {o})",
     ours="linear_cross_entropy(x, y, arange_indices(0, 130) * 63, {}, {{o}})"))
for given, error, *fragments in (
    ("zeros({2, 4}), zeros({3, 5}), Indices{0, 1}", "ShapeError", "(2, 4)", "(3, 5)"),
    ("zeros({1, 2, 4}), zeros({3, 4}), Indices{{0, 1}}", "ShapeError", "(1, 2, 4)", "(N, K)", "flatten"),
    ("zeros({2, 4}), zeros({3, 4}), Indices{0, 1, 2}", "ShapeError", "logits (2, 3)", "(2,)", "(3,)"),
    ("zeros({2, 4}), zeros({3, 4}, DType::float64), Indices{0, 1}", "DTypeError", "float32", "float64"),
):
    bad(f"linear_cross_entropy({given})", error, "linear_cross_entropy", *fragments)


def log_p(*shape):
    return uniform(-4, 0, *shape)


op("nll_loss", "F.nll_loss(x, i, {o})", "nll_loss(x, i, {{o}})",
   *reduced("", log_p(4, 3), some),
   *reduced("weight", log_p(4, 3), some, weight, weight="w"),
   *reduced("weight, ignored", log_p(4, 3), ids([-100, 0, 2, -100]), weight, weight="w"),
   *reduced("(N V d)", log_p(2, 3, 2), two_rows),
   S("ignore_index 2", log_p(4, 3), some, o=Options(ignore_index=2)),
   S("(V)", log_p(4), one_id(1), o=Options()),
   *reduced("no rows", log_p(0, 3), no_ids, by=("none", "sum")),
   *reduced("no rows", log_p(0, 3), no_ids, by=["mean"], **not_finite),
   *reduced("all ignored", log_p(2, 3), ids([-100, -100]), by=("none", "sum")),
   *reduced("all ignored", log_p(2, 3), ids([-100, -100]), by=["mean"], **not_finite))
for name in "cross_entropy", "nll_loss":
    for x, given, error, *fragments in (
        ("zeros({2, 3})", "Indices{0, 3}", "ValueError", "target 3", "(1,)", "3 classes"),
        ("zeros({2, 3})", "Indices{-1, 0}", "ValueError", "target -1", "(0,)", "3 classes"),
        ("zeros({2, 3})", "Indices{-100, 0}, {.ignore_index = -1}", "ValueError", "target -100", "ignore_index -1"),
        ("zeros({2, 3, 4, 5})", "reshape(to_indices(arange_indices(0, 40) == 27) * 7, {2, 4, 5})", "ValueError",
         "target 7", "(1, 1, 2)", "3 classes"),
        ("zeros({2, 3})", "Indices{0}", "ShapeError", "(2, 3)", "(2,)", "(1,)"),
        ("zeros({2, 3, 4, 5})", "Indices{{0, 1}, {1, 2}}", "ShapeError", "(2, 3, 4, 5)", "(2, 4, 5)", "(2, 2)"),
        ("zeros({})", "full_indices({}, 0)", "ShapeError", "0-d"),
        ("zeros({2, 3})", "Indices{0, 1}, {.weight = ones({2})}", "ShapeError", "weight", "(2,)", "3 classes"),
        ("zeros({2, 3})", "Indices{0, 1}, {.weight = ones({3}, DType::float64)}", "DTypeError", "weight", "float32", "float64"),
        ("zeros({2, 3})", "Indices{0, 1}, {.weight = ones({3}).requires_grad_()}", "GraphError", "weight", "detach()"),
    ):
        bad(f"{name}({x}, {given})", error, name, *fragments)
for given, error, *fragments in (
    ("Indices{0, 1}, {.label_smoothing = 1.5}", "ValueError", "label_smoothing 1.5"),
    ("zeros({2, 3}), {.label_smoothing = -0.5}", "ValueError", "label_smoothing -0.5"),
    ("zeros({3, 2})", "ShapeError", "(2, 3)", "(3, 2)"),
    ("zeros({2, 3}, DType::float64)", "DTypeError", "float32", "float64"),
    ("zeros({2, 3}), {.ignore_index = 1}", "ValueError", "ignore_index 1"),
):
    bad(f"cross_entropy(zeros({{2, 3}}), {given})", error, "cross_entropy", *fragments)

# ---- losses by element ----


def unit(*shape):
    return uniform(0.125, 0.875, *shape)


def sizes(x, y):
    return [*reduced("register and some", x(21), y(21)), *reduced("0-d", x(), y(), by=["mean"]),
            *reduced("no elements", x(0, 5), y(0, 5), by=("none", "sum")),
            *reduced("no elements", x(0, 5), y(0, 5), by=["mean"], **not_finite)]


for name in "mse_loss", "l1_loss":
    op(name, f"F.{name}(x, y, reduction='{{r}}')", f"{name}(x, y, Reduction::{{r}})", *reduced("", randn(3, 4), randn(3, 4)),
       *sizes(randn, randn))
op("mse_loss", "F.mse_loss(x, y, reduction='{r}')", "mse_loss(x, y, Reduction::{r})",
   *reduced("many", randn(70, 500), randn(70, 500), large=True),
   S("0-d", randn(), randn(), r="mean"), S("size 1", randn(1, 1), randn(1, 1), r="mean"),
   S("zero-size", randn(0, 2), randn(0, 2), r="sum"))
at_the_kinks = values([1, 2, -3, 0.5]), values([1, 0, -2, 0])
op("l1_loss", "F.l1_loss(x, y, reduction='none')", "l1_loss(x, y, Reduction::none)",
   S("at the kinks", *at_the_kinks, second=False))
for name, option in ("huber_loss", "delta"), ("smooth_l1_loss", "beta"):
    op(name, f"F.{name}(x, y, {{o}})", f"{name}(x, y, {{{{o}}}})",
       *reduced("", randn(3, 4), randn(3, 4)),
       *reduced(option, randn(3, 4), randn(3, 4), **{option: 0.5}),
       S("at the kinks", *at_the_kinks, o=Options(reduction="none"), second=False), *sizes(randn, randn))
op("smooth_l1_loss", "F.smooth_l1_loss(x, y, {o})", "smooth_l1_loss(x, y, {{o}})",
   S("beta 0", randn(3, 4), randn(3, 4), o=Options(beta=0)))
bad("huber_loss(zeros(2), zeros(2), {.delta = 0})", "ValueError", "huber_loss: delta is 0")
bad("smooth_l1_loss(zeros(2), zeros(2), {.beta = -1})", "ValueError", "smooth_l1_loss: beta is -1")


def binary_cross_entropy(x, t, weight=1, reduction="mean"):
    """PyTorch adds 1e-12 in second gradients, and a target's gradient is infinite at 0 and 1."""
    y = -weight * (t * torch.log(x).clamp(min=-100) + (1 - t) * torch.log1p(-x).clamp(min=-100))
    return y if reduction == "none" else getattr(y, reduction)()


def kl_div(x, t):
    """The gradient of a target of 0 is -x; PyTorch's, NaN."""
    return t * torch.log(t.masked_fill(t == 0, 1)) - t * x


between = unit(3, 4)
weight, pos_weight = Fixed(uniform(0.25, 2, 4)), Fixed(uniform(0.25, 2, 4))
op("kl_div", "F.kl_div(x, y, {o})", "kl_div(x, y, {{o}})",
   *reduced("", randn(3, 4), between),
   *reduced("log_target", randn(3, 4), randn(3, 4), log_target=True),
   S("a target of 0", values([-1, -2, -0.5]), values([0, 0.25, 0.75]), theirs="kl_div(x, y)", o=Options(reduction="none"),
     second=False),
   *sizes(randn, unit))
op("binary_cross_entropy", "binary_cross_entropy(x, y, {o})", "binary_cross_entropy(x, y, {{o}})",
   *reduced("itself", between, between, theirs="F.binary_cross_entropy(x, y, {o})", second=False),
   *reduced("", between, between),
   *reduced("weight", between, between, weight, weight="w"), *sizes(unit, unit),
   S("of the target, certain", values([0.25, 0.5, 0.75]), Fixed(values([0, 0.5, 1])), o=Options(reduction="none"),
     theirs="binary_cross_entropy(w, x, {o})", ours="binary_cross_entropy(w, x, {{o}})"),
   S("certain", values([0, 0, 1, 1]), theirs="F.binary_cross_entropy(x, torch.tensor([0., 1, 0, 1]).double(), reduction='none')",
     ours="binary_cross_entropy(x, tensor({0, 1, 0, 1}, x.dtype()), {.reduction = Reduction::none})", second=False))
op("binary_cross_entropy_with_logits", "F.binary_cross_entropy_with_logits(x, y, {o})",
   "binary_cross_entropy_with_logits(x, y, {{o}})",
   *reduced("", randn(3, 4), between),
   *reduced("weight", randn(3, 4), between, weight, weight="w"), *sizes(randn, unit),
   *reduced("weights that broadcast", randn(3, 5), unit(3, 5), Fixed(uniform(0.5, 2, 3, 1)), Fixed(uniform(0.5, 2, 5)),
            weight="w", pos_weight="c"),
   *reduced("very large", values([800, -800, 90, -90]), values([1, 0, 0.5, 0.25])),
   *reduced("pos_weight", randn(3, 4), between, weight, pos_weight, weight="w", pos_weight="c"),
   S("large", values([80, -80, 60, -90]), values([1, 0, 0.5, 0.25]), o=Options()))

for name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy",
             "binary_cross_entropy_with_logits"):
    bad(f"{name}(full({{4, 1}}, 0.5), full({{4}}, 0.5))", "ShapeError", name, "(4, 1)", "(4,)", "expand")
    bad(f"{name}(full({{4}}, 0.5), full({{4}}, 0.5, DType::float64))", "DTypeError", name, "float32", "float64")
bad("binary_cross_entropy(full(2, 1.5), zeros(2))", "ValueError", "[0, 1]", "logits")
bad("binary_cross_entropy(full(2, NAN), zeros(2))", "ValueError", "[0, 1]")
bad("binary_cross_entropy(tensor({0.5, 0.2}), tensor({2, -1}))", "ValueError", "target has an element")
bad("binary_cross_entropy(zeros(2), zeros(2), {.pos_weight = ones(2)})", "ValueError",
    "pos_weight is for binary_cross_entropy_with_logits")

# ---- attention ----


def attention(q, k, v, mask=None, is_causal=False, dropout_p=0.0, scale=None, causal_offset=0, enable_gqa=False, softcap=0):
    """PyTorch 1.13 has no public one.  A row that is masked completely gives zeros."""
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1] or 1) if scale is None else scale)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if is_causal:
        t, s = scores.shape[-2:]
        mask = torch.ones(t, s, dtype=torch.bool).tril(max(-t, min(causal_offset, s)))
    if mask is not None:
        scores = scores + mask if mask.is_floating_point() else scores.masked_fill(~mask, -inf)
    return F.dropout(softmax(scores, -1), dropout_p) @ v


def causal_self_attention(qkv, n_head, dropout_p=0.0):
    b, t, c = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    heads = [x.view(b, t, n_head, c // n_head).transpose(1, 2) for x in qkv.chunk(3, -1)]
    return attention(*heads, is_causal=True, dropout_p=dropout_p).transpose(1, 2).reshape(b, t, c)


def qkv(t, s, d, dv, *batch):
    return randn(*batch, t, d), randn(*batch, s, d), randn(*batch, s, dv)


def causal(offset, **others):
    return Options(is_causal=True, causal_offset=offset, **others)


name, three = "scaled_dot_product_attention", qkv(3, 4, 2, 3, 2)
row, every = [True, False, True, True], [True] * 4
op(name, "attention(x, y, z, {o})", f"{name}(x, y, z, {{{{o}}}})",
   S("3-d", *three, o=Options()),
   S("2-d", *qkv(3, 4, 2, 2), o=Options()),
   S("heads", *qkv(3, 2, 2, 1, 2, 2), o=Options()),
   S("broadcast batches", randn(2, 1, 3, 2), randn(2, 2, 2), randn(1, 2, 1), o=Options()),
   S("of itself", randn(3, 2), theirs="attention(x, x, x)", ours=f"{name}(x, x, x)"),
   S("size 1", *qkv(1, 1, 1, 1, 1), o=Options()),
   S("no positions", *qkv(0, 3, 2, 2, 2), o=Options()),
   S("scale 0.375", *three, o=Options(scale=0.375)),
   S("causal", *qkv(4, 4, 2, 2, 2), o=Options(is_causal=True)),
   S("causal, more keys", *three, o=Options(is_causal=True)),
   S("causal, fewer keys", *qkv(4, 2, 2, 2), o=Options(is_causal=True)),
   S("dropout", *three, o=Options(dropout_p=0.25), seed=21),
   S("causal, dropout", *qkv(3, 3, 2, 2, 2, 2), o=Options(is_causal=True, dropout_p=0.5), seed=22),
   S("heads share keys", randn(2, 2, 3, 2), randn(2, 1, 3, 2), randn(2, 1, 3, 2), o=Options()),
   S("one query for all", randn(3, 2), randn(2, 2, 3, 2), randn(2, 2, 3, 2), o=Options()),
   S("values of more batches", randn(2, 3, 2), randn(2, 3, 2), randn(2, 2, 3, 2), o=Options()),
   S("one key", *qkv(3, 1, 2, 2), o=Options()), S("one query", *qkv(1, 4, 2, 2), o=Options()),
   S("no batch", *qkv(3, 4, 2, 2, 0), o=Options()), S("no keys", *qkv(3, 0, 2, 2, 2), o=Options()),
   S("no values' channels", *qkv(3, 4, 2, 0), o=Options()),
   S("causal, shared keys", randn(2, 3, 2), randn(3, 2), randn(3, 2), o=Options(is_causal=True)),
   S("causal, the last queries", *qkv(2, 5, 2, 3, 2), o=causal(3)),
   S("causal, the last query", *qkv(1, 4, 2, 2, 2), o=causal(3)),
   S("causal, queries before the last", *qkv(3, 6, 2, 2), o=causal(1)),
   S("causal, all keys seen", *qkv(3, 4, 2, 2), o=causal(9)),
   S("causal, queries before the first key", *qkv(5, 2, 2, 3, 2), o=causal(-3)),
   S("causal, one query sees a key", *qkv(4, 4, 2, 2), o=causal(-3)),
   S("causal, no key seen", *qkv(3, 4, 2, 2), theirs="attention(x, y, z, is_causal=True, causal_offset=-2**63)",
     ours=name + "(x, y, z, {.is_causal = true, .causal_offset = std::numeric_limits<std::int64_t>::min()})"),
   S("causal, all seen", *qkv(3, 4, 2, 2), o=causal(2**63 - 1)),
   S("causal, before the first key, no keys", *qkv(3, 0, 2, 2), o=causal(-1)),
   S("causal, of itself", randn(2, 3, 2), theirs="attention(x, x, x, is_causal=True)", ours=name + "(x, x, x, {.is_causal = true})"),
   S("dropout, before the first key", *qkv(4, 2, 2, 2, 2), o=causal(-2, dropout_p=0.3), seed=5),
   S("dropout, shared keys", randn(2, 3, 2), randn(3, 2), randn(3, 2), o=Options(dropout_p=0.3), seed=5),
   S("everything is dropped", *qkv(3, 4, 2, 2), o=Options(dropout_p=1)),
   S("causal, more than a block", *qkv(40, 40, 2, 2), o=Options(is_causal=True)),
   S("large", *qkv(70, 90, 20, 24, 3), o=Options(), large=True),
   S("large, causal", *qkv(100, 100, 16, 16, 2, 2), o=Options(is_causal=True), large=True),
   S("large, the last queries", *qkv(70, 90, 16, 16, 3), o=causal(20), large=True),
   S("large, before the first key", *qkv(110, 70, 16, 24, 3), o=causal(-40), large=True),
   S("large, dropout", *qkv(70, 60, 8, 8, 2, 2), o=Options(dropout_p=0.1), seed=5, large=True))
op(name, "attention(x, y, z, m)", f"{name}(x, y, z, m)",
   S("mask of keys", *three, mask([row])),
   S("mask, one row of nothing", *three, mask([row, [False] * 4, every])),
   S("mask of batches", *three, mask([[row, row, row], [row[::-1], every, row]])),
   S("mask of keys, heads", *qkv(3, 4, 2, 2, 2, 2), mask([[[row]], [[row[::-1]]]])),
   S("mask of keys, 1-d", *qkv(3, 4, 2, 2), mask(row)), S("mask of queries", *qkv(3, 4, 2, 2), mask([[True], [False], [True]])),
   S("0-d mask", *qkv(3, 4, 2, 2), mask(True)), S("all is masked", *qkv(3, 4, 2, 2), mask([[False]])),
   # q's first channel against k's: ragged, and some rows are masked completely.
   S("mask, large", *qkv(70, 90, 20, 24, 2), large=True,
     theirs="attention(x, y, z, x[..., :1] > y[..., :1].transpose(-1, -2))",
     ours=name + "(x, y, z, x.narrow(-1, 0, 1) > transpose(y.narrow(-1, 0, 1), -1, -2))"))
op(name, "attention(x, y, z, u)", f"{name}(x, y, z, u)",
   S("added mask", *three, randn(3, 4)), S("added mask, 1-d", *qkv(3, 4, 2, 2), randn(4)),
   S("added mask of each batch", *three, randn(2, 3, 4)), S("added mask of heads", *qkv(3, 4, 2, 2, 2, 2), randn(2, 1, 4)),
   S("added mask, large", *qkv(70, 90, 20, 24, 2), randn(70, 90), large=True),
   S("added mask of batches and keys", *three, randn(2, 1, 4)),
   S("added minus infinities", *three, values([[0, -inf, 0.5, -inf], [-inf, 1, 0, 0], [0, 0, 0, -inf]]), differences=False))
op(name, "attention(x, y, z, w)", f"{name}(x, y, z, w)",
   S("constant added mask of -inf", *three, Fixed(values([[-inf, 1, -2, 0.5], [-inf] * 4, [0, -inf, 0.25, -inf]]))),
   S("constant added mask of queries", *three, Fixed(randn(3, 1))))
shared = randn(2, 4, 3, 2), randn(2, 2, 3, 2), randn(2, 2, 3, 1)
op(name, "attention(x, y, z, {m}{o})", f"{name}(x, y, z, {{m}}{{{{o}}}})",
   S("grouped", *shared, m="", o=Options(enable_gqa=True)),
   S("grouped, causal", *shared, m="", o=Options(is_causal=True, enable_gqa=True)),
   S("grouped, mask", *shared, mask([[row[:3], row[1:], [True] * 3]] * 3 + [[row[1:]] * 3]), m="m, ",
     o=Options(enable_gqa=True)),
   *(S(f"grouped, added {shape}", *shared, randn(*shape), m="u, ", o=Options(enable_gqa=True))
     for shape in ((4, 3, 3), (2, 1, 1, 3))),
   S("groups, one, the last queries", randn(3, 2, 2), *qkv(2, 5, 2, 2, 1)[1:], m="", o=causal(3, enable_gqa=True)),
   S("groups of one head", *qkv(3, 4, 2, 2, 2), m="", o=Options(enable_gqa=True)),
   S("groups, before the first key", randn(2, 4, 3, 2), randn(2, 2, 2, 2), randn(2, 2, 2, 3), m="", o=causal(-1, enable_gqa=True)),
   S("groups, large", randn(1, 4, 70, 16), *qkv(70, 90, 16, 16, 1, 2)[1:], m="", o=Options(scale=0.2, enable_gqa=True), large=True),
   S("grouped, dropout", *shared, m="", o=Options(dropout_p=0.25, enable_gqa=True), seed=24))
far = randn(2, 4, 3, 2), uniform(-9, 9, 2, 2, 3, 2), randn(2, 2, 3, 1)
op(name, "attention(x, y, z, {m}{o})", f"{name}(x, y, z, {{m}}{{{{o}}}})",
   S("softcap", *three, m="", o=Options(softcap=0.75)), S("softcap, mask", *three, mask([row, [False] * 4, every]), m="m, ", o=Options(softcap=0.75)),
   S("softcap, added mask", *three, randn(3, 4), m="u, ", o=Options(scale=2, softcap=1.5)),
   S("softcap, grouped", *far, m="", o=Options(is_causal=True, enable_gqa=True, softcap=2)),
   S("softcap, dropout", *three, m="", o=Options(dropout_p=0.25, softcap=0.5), seed=26),
   S("softcap, large", *qkv(70, 90, 20, 24, 3), m="", o=causal(20, softcap=1.25), large=True))
op("causal_self_attention", "causal_self_attention(x, {h})", "causal_self_attention(x, {h})",
   S("2 heads", randn(2, 3, 12), h=2), S("one head", randn(1, 4, 6), h=1), S("heads of one channel", randn(1, 3, 9), h=3),
   S("one position", randn(2, 1, 6), h=2), S("no batches", randn(0, 2, 3), h=1),
   S("no channels", randn(2, 3, 0), h=2), S("no positions", randn(2, 0, 6), h=1),
   S("dropout", randn(2, 4, 12), h="2, 0.25", seed=23),
   S("more than a block", randn(1, 35, 12), h=2),
   S("large", randn(3, 70, 48), h=4, large=True), S("large, dropout", randn(2, 70, 48), h="2, 0.2", seed=6, large=True))

q, k = "ones({2, 3, 2})", "ones({2, 4, 2})"
for given, error, *fragments in (
    ("ones({3}), ones({4, 2}), ones({4, 2})", "ShapeError", "q (3,)", "(T, D)"),
    ("ones({3, 2}), ones({4, 3}), ones({4, 2})", "ShapeError", "(3, 2)", "(4, 3)", "2 and 3"),
    ("ones({3, 2}), ones({4, 2}), ones({5, 2})", "ShapeError", "k has 4", "v has 5"),
    (f"{q}, ones({{3, 4, 2}}), ones({{3, 4, 2}})", "ShapeError", "(2,)", "(3,)"),
    (f"{q}, {k}, ones({{3, 4, 2}})", "ShapeError", "(2,)", "(3,)"),
    (f"{q}, {k}, {k}, ones({{3, 5}}) != 0.0", "ShapeError", "(3, 5)", "(2, 3, 4)"),
    (f"{q}, {k}, {k}, ones({{2, 2, 3, 4}}) != 0.0", "ShapeError", "mask (2, 2, 3, 4)", "scores (2, 3, 4)"),
    (f"{q}, {k}, {k}, ones({{3, 4}}) != 0.0, {{.is_causal = true}}", "ValueError", "is_causal"),
    (f"{q}, {k}, {k}, {{.causal_offset = 1}}", "ValueError", "causal_offset is 1"),
    ("ones({2, 3, 3, 2}), ones({2, 2, 4, 2}), ones({2, 2, 4, 2}), {.enable_gqa = true}", "ShapeError",
     "q (2, 3, 3, 2), k (2, 2, 4, 2)", "enable_gqa"),
    ("ones({4, 3, 2}), ones({2, 4, 2}), ones({1, 4, 2}), {.enable_gqa = true}", "ShapeError", "v (1, 4, 2)", "enable_gqa"),
    ("ones({3, 2}), ones({4, 2}), ones({4, 2}), {.enable_gqa = true}", "ShapeError", "q (3, 2)", "enable_gqa"),
    ("ones({4, 3, 2}), ones({2, 3, 2}), ones({2, 3, 2}), ones({2, 3, 3}), {.enable_gqa = true}", "ShapeError",
     "mask (2, 3, 3) has 2 heads but q has 4"),
    (f"{q}, {k}, {k}, {{.dropout_p = 1.5}}", "ValueError", "dropout_p 1.5"),
    (f"{q}, {k}, {k}, {{.softcap = -1}}", "ValueError", "softcap is -1"),
    ("ones({3, 2}), ones({3, 2}), ones({3, 2}, DType::float64)", "DTypeError", "float32", "float64"),
    ("ones({3, 2}), ones({3, 2}), ones({3, 2}), ones({3, 3}, DType::float64)", "DTypeError", "float32", "float64"),
):
    bad(f"{name}({given})", error, name, *fragments)
name = "causal_self_attention"
bad(f"{name}(ones({{2, 6}}), 1)", "ShapeError", name, "(2, 6)", "(B, T, 3C)")
bad(f"{name}(ones({{1, 2, 12}}), 3)", "ShapeError", name, "(1, 2, 12)", "3 heads")
bad(f"{name}(ones({{1, 2, 12}}), 0)", "ValueError", name, "n_head")
bad(f"{name}(ones({{1, 2, 12}}), 2, -0.1)", "ValueError", name, "dropout_p -0.1")
