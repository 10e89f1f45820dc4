"""Samples of softmax, norms, dropout, losses and attention."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad


class Options:
    """Keywords in PyTorch's text, designated initializers in ours."""

    ORDER = ("weight ignore_index label_smoothing reduction pos_weight delta beta log_target "
             "is_causal dropout_p scale causal_offset enable_gqa").split()

    def __init__(self, **given):
        self.given = {name: given[name] for name in self.ORDER if name in given}

    def __repr__(self):
        return ", ".join(f"{name}={value!r}" if name == "reduction" else f"{name}={value}"
                         for name, value in self.given.items())

    def __str__(self):
        return ", ".join(f".{name} = " + (f"Reduction::{value}" if name == "reduction" else cpp_text(value))
                         for name, value in self.given.items())


def reduced(name, *inputs, theirs=None, second=True, **options):
    """A sample of each reduction."""
    return [S(f"{name}, {r}" if name else r, *inputs, theirs=theirs, second=second, r=r, o=Options(**options, reduction=r))
            for r in ("none", "mean", "sum")]


# ---- softmax ----

for name in "softmax", "log_softmax":
    op(name, f"x.{name}({{dim}})", f"{name}(x, {{dim}})",
       S("dim 0", randn(3, 4), dim=0), S("dim -1", randn(2, 3, 4), dim=-1), S("middle", randn(2, 3, 4), dim=1),
       S("0-d", randn(), dim=0), S("size 1", randn(3, 1), dim=1), S("no rows", randn(0, 3), dim=1),
       S("nothing", randn(3, 0), dim=1),
       S("dtype", randn(2, 3), theirs=f"x.{name}(1, dtype=torch.float64)", ours=f"{name}(x, 1, DType::float64)"),
       S("large numbers", values([[900, 901, 899], [-700, -702, -701]]), dim=1),
       S("minus infinities", values([[-inf, 1, 2], [0.5, -inf, -inf]]), dim=1, finite=False, differences=False),
       S("long rows", randn(9, 2500), dim=-1, large=True))
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
op("rms_norm", "rms_norm(x, ({n},), y, 0.25)", "rms_norm(x, {n}, y, 0.25)",
   S("eps 0.25", randn(3, 4), randn(4), n=4), S("size 1", randn(3, 1), n=1))

# ---- dropout ----


def several_dropouts(x):
    """Each goes on where the one before has stopped drawing."""
    for p in (0.25, 1e-9, 0, 0.125):
        x = F.dropout(x, p)
    return x + F.dropout(x, 1) + F.dropout(x, 0.5)


op("dropout", "F.dropout(x, {p})", "dropout(x, {p})",
   *(S(f"p {p}", randn(5, 7), p=p, seed=11) for p in (0.25, 0.5, 0.9, 0, 1)),
   S("not in training", randn(2, 3), theirs="F.dropout(x, 0.5, False)", ours="dropout(x, 0.5, false)", seed=11),
   S("0-d", randn(), p=0.5, seed=12), S("zero-size", randn(2, 0), p=0.5, seed=12),
   S("one after the other", randn(4, 5), theirs="several_dropouts(x)", seed=13,
     ours="[](Tensor a) { for (const double p : {0.25, 1e-9, 0.0, 0.125}) a = dropout(a, p);"
          " const Tensor b = dropout(a, 1); return a + b + dropout(a, 0.5); }(x)"))

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
   S("all ignored, sum", randn(2, 3), ids([-100, -100]), o=Options(reduction="sum")),
   S("one class", randn(2, 1), ids([0, 0]), o=Options(reduction="sum")),
   S("no rows, none", randn(0, 3), no_ids, o=Options(reduction="none")),
   S("no rows, sum", randn(0, 3), no_ids, o=Options(reduction="sum")),
   S("large numbers", values([[600, 0, 601], [-5, -500, 2]]), ids([0, 2]), o=Options()))
op("cross_entropy", "F.cross_entropy(x, y, {o})", "cross_entropy(x, y, {{o}})",
   *reduced("probabilities", randn(4, 3), probabilities(4, 3)),
   *reduced("probabilities, smoothed and weighted", randn(4, 3), probabilities(4, 3), weight,
            weight="w", label_smoothing=0.25),
   S("(V), probabilities", randn(5), probabilities(5), o=Options()),
   S("(N V d), probabilities", randn(2, 3, 2), probabilities(2, 3, 2), o=Options()))


def log_p(*shape):
    return uniform(-4, 0, *shape)


op("nll_loss", "F.nll_loss(x, i, {o})", "nll_loss(x, i, {{o}})",
   *reduced("", log_p(4, 3), some),
   *reduced("weight", log_p(4, 3), some, weight, weight="w"),
   *reduced("weight, ignored", log_p(4, 3), ids([-100, 0, 2, -100]), weight, weight="w"),
   *reduced("(N V d)", log_p(2, 3, 2), two_rows),
   S("ignore_index 2", log_p(4, 3), some, o=Options(ignore_index=2)),
   S("(V)", log_p(4), one_id(1), o=Options()),
   S("no rows, sum", log_p(0, 3), no_ids, o=Options(reduction="sum")))

# ---- losses by element ----

for name in "mse_loss", "l1_loss":
    op(name, f"F.{name}(x, y, reduction='{{r}}')", f"{name}(x, y, Reduction::{{r}})", *reduced("", randn(3, 4), randn(3, 4)))
op("mse_loss", "F.mse_loss(x, y, reduction='{r}')", "mse_loss(x, y, Reduction::{r})",
   S("0-d", randn(), randn(), r="mean"), S("size 1", randn(1, 1), randn(1, 1), r="mean"),
   S("zero-size", randn(0, 2), randn(0, 2), r="sum"))
at_the_kinks = values([1, 2, -3, 0.5]), values([1, 0, -2, 0])
op("l1_loss", "F.l1_loss(x, y, reduction='none')", "l1_loss(x, y, Reduction::none)",
   S("at the kinks", *at_the_kinks, second=False))
for name, option in ("huber_loss", "delta"), ("smooth_l1_loss", "beta"):
    op(name, f"F.{name}(x, y, {{o}})", f"{name}(x, y, {{{{o}}}})",
       *reduced("", randn(3, 4), randn(3, 4)),
       *reduced(option, randn(3, 4), randn(3, 4), **{option: 0.5}),
       S("at the kinks", *at_the_kinks, o=Options(reduction="none"), second=False))
op("smooth_l1_loss", "F.smooth_l1_loss(x, y, {o})", "smooth_l1_loss(x, y, {{o}})",
   S("beta 0", randn(3, 4), randn(3, 4), o=Options(beta=0)))


def binary_cross_entropy(x, t, weight=1, reduction="mean"):
    """PyTorch adds 1e-12 in second gradients."""
    y = -weight * (t * torch.log(x) + (1 - t) * torch.log1p(-x))
    return y if reduction == "none" else getattr(y, reduction)()


between = uniform(0.125, 0.875, 3, 4)
weight, pos_weight = Fixed(uniform(0.25, 2, 4)), Fixed(uniform(0.25, 2, 4))
op("kl_div", "F.kl_div(x, y, {o})", "kl_div(x, y, {{o}})",
   *reduced("", randn(3, 4), between),
   *reduced("log_target", randn(3, 4), randn(3, 4), log_target=True))
op("binary_cross_entropy", "binary_cross_entropy(x, y, {o})", "binary_cross_entropy(x, y, {{o}})",
   *reduced("itself", between, between, theirs="F.binary_cross_entropy(x, y, {o})", second=False),
   *reduced("", between, between),
   *reduced("weight", between, between, weight, weight="w"),
   S("certain", values([0, 0, 1, 1]), theirs="F.binary_cross_entropy(x, torch.tensor([0., 1, 0, 1]).double(), reduction='none')",
     ours="binary_cross_entropy(x, tensor({0, 1, 0, 1}, x.dtype()), {.reduction = Reduction::none})", second=False))
op("binary_cross_entropy_with_logits", "F.binary_cross_entropy_with_logits(x, y, {o})",
   "binary_cross_entropy_with_logits(x, y, {{o}})",
   *reduced("", randn(3, 4), between),
   *reduced("weight", randn(3, 4), between, weight, weight="w"),
   *reduced("pos_weight", randn(3, 4), between, weight, pos_weight, weight="w", pos_weight="c"),
   S("large", values([80, -80, 60, -90]), values([1, 0, 0.5, 0.25]), o=Options()))

# ---- attention ----


def attention(q, k, v, mask=None, is_causal=False, dropout_p=0.0, scale=None, causal_offset=0, enable_gqa=False):
    """PyTorch 1.13 has no public one.  A row that is masked completely gives zeros."""
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(causal_offset)
    if mask is None or mask.is_floating_point():
        weights = torch.softmax(scores if mask is None else scores + mask, -1)
    else:
        some = mask.any(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(~mask & some, -inf), -1).masked_fill(~some, 0.0)
    return F.dropout(weights, dropout_p) @ v


def causal_self_attention(qkv, n_head, dropout_p=0.0):
    b, t, c = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    heads = [x.view(b, t, n_head, c // n_head).transpose(1, 2) for x in qkv.split(c, -1)]
    return attention(*heads, is_causal=True, dropout_p=dropout_p).transpose(1, 2).reshape(b, t, c)


def qkv(t, s, d, dv, *batch):
    return randn(*batch, t, d), randn(*batch, s, d), randn(*batch, s, dv)


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
   S("causal, dropout", *qkv(3, 3, 2, 2, 2, 2), o=Options(is_causal=True, dropout_p=0.5), seed=22))
op(name, "attention(x, y, z, m)", f"{name}(x, y, z, m)",
   S("mask of keys", *three, mask([row])),
   S("mask, one row of nothing", *three, mask([row, [False] * 4, every])),
   S("mask of batches", *three, mask([[row, row, row], [row[::-1], every, row]])))
op(name, "attention(x, y, z, u)", f"{name}(x, y, z, u)",
   S("added mask", *three, randn(3, 4)),
   S("added mask of batches and keys", *three, randn(2, 1, 4)),
   S("added minus infinities", *three, values([[0, -inf, 0.5, -inf], [-inf, 1, 0, 0], [0, 0, 0, -inf]]), differences=False))
shared = randn(2, 4, 3, 2), randn(2, 2, 3, 2), randn(2, 2, 3, 1)
op(name, "attention(x, y, z, {m}{o})", f"{name}(x, y, z, {{m}}{{{{o}}}})",
   S("grouped", *shared, m="", o=Options(enable_gqa=True)),
   S("grouped, causal", *shared, m="", o=Options(is_causal=True, enable_gqa=True)),
   S("grouped, mask", *shared, mask([[row[:3], row[1:], [True] * 3]] * 3 + [[row[1:]] * 3]), m="m, ",
     o=Options(enable_gqa=True)),
   *(S(f"grouped, added {shape}", *shared, randn(*shape), m="u, ", o=Options(enable_gqa=True))
     for shape in ((4, 3, 3), (2, 1, 1, 3))),
   S("grouped, dropout", *shared, m="", o=Options(dropout_p=0.25, enable_gqa=True), seed=24))
op("causal_self_attention", "causal_self_attention(x, {h})", "causal_self_attention(x, {h})",
   S("2 heads", randn(2, 3, 12), h=2), S("one head", randn(1, 4, 6), h=1), S("heads of one channel", randn(1, 3, 9), h=3),
   S("one position", randn(2, 1, 6), h=2), S("no batches", randn(0, 2, 3), h=1),
   S("dropout", randn(2, 4, 12), h="2, 0.25", seed=23))
