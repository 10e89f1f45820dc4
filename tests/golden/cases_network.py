"""Golden cases of softmax, norms, dropout, losses and attention."""

import math

import torch
import torch.nn.functional as F

from cases import Fixed, ids, mask, one_id, probabilities, randn, uniform, values


def add_softmax(cases):
    inf = float("inf")
    for op, f in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        for sample, shape, dim in (
            ("dim 0", (3, 4), 0),
            ("dim -1", (2, 3, 4), -1),
            ("middle", (2, 3, 4), 1),
            ("0-d", (), 0),
            ("size 1", (3, 1), 1),
            ("no rows", (0, 3), 1),
            ("nothing", (3, 0), 1),
        ):
            cases.add(f"{op}/{sample}", lambda x: f(x, dim), randn(*shape))
        cases.add(f"{op}/dtype", lambda x: f(x, 1, dtype=torch.float64), randn(2, 3))
        cases.add(
            f"{op}/large numbers", lambda x: f(x, 1), values([[900, 901, 899], [-700, -702, -701]])
        )
        cases.add(
            f"{op}/minus infinities",
            lambda x: f(x, 1),
            values([[-inf, 1, 2], [0.5, -inf, -inf]]),
            finite=False,
        )


def rms_norm(x, shape, weight=None, eps=None):
    """By its formula: PyTorch 1.13 has none."""
    dims = tuple(range(-len(shape), 0))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    y = x * torch.rsqrt((x * x).mean(dims, keepdim=True) + eps)
    return y if weight is None else y * weight


def add_norms(cases):
    for sample, shape, normalized in (
        ("last", (3, 5), (5,)),
        ("3-d", (2, 2, 4), (4,)),
        ("last two", (2, 3, 4), (3, 4)),
        ("all", (6,), (6,)),
        ("no rows", (0, 3), (3,)),
    ):
        inputs = randn(*shape), randn(*normalized), randn(*normalized)
        cases.add(
            f"layer_norm/{sample}", lambda x, w, b: F.layer_norm(x, normalized, w, b), *inputs
        )
        cases.add(
            f"layer_norm/{sample}, weight", lambda x, w: F.layer_norm(x, normalized, w), *inputs[:2]
        )
        cases.add(f"layer_norm/{sample}, plain", lambda x: F.layer_norm(x, normalized), *inputs[:1])
        cases.add(f"rms_norm/{sample}", lambda x, w: rms_norm(x, normalized, w), *inputs[:2])
        cases.add(f"rms_norm/{sample}, plain", lambda x: rms_norm(x, normalized), *inputs[:1])
    # PyTorch 1.13 fails in the second gradients of a bias without a weight.
    cases.add("layer_norm/bias", lambda x, b: F.layer_norm(x, (4,)) + b, randn(3, 4), randn(4))
    cases.add("layer_norm/eps 0.25", lambda x: F.layer_norm(x, (4,), eps=0.25), randn(3, 4))
    cases.add("rms_norm/eps 0.25", lambda x, w: rms_norm(x, (4,), w, 0.25), randn(3, 4), randn(4))
    cases.add("rms_norm/size 1", lambda x: rms_norm(x, (1,), eps=0.25), randn(3, 1))


def seeded(seed, f):
    """f after manual_seed(seed)."""

    def g(*inputs):
        torch.manual_seed(seed)
        return f(*inputs)

    return g


def add_dropout(cases):
    for p in (0.25, 0.5, 0.9, 0, 1):
        cases.add(f"dropout/p {p}", seeded(11, lambda x: F.dropout(x, p)), randn(5, 7))
    evaluate = lambda x: F.dropout(x, 0.5, training=False)
    cases.add("dropout/not in training", seeded(11, evaluate), randn(2, 3))
    cases.add("dropout/0-d", seeded(12, lambda x: F.dropout(x, 0.5)), randn())
    cases.add("dropout/zero-size", seeded(12, lambda x: F.dropout(x, 0.5)), randn(2, 0))

    def several(x):  # each goes on where the one before has stopped drawing
        for p in (0.25, 1e-9, 0, 0.125):
            x = F.dropout(x, p)
        return x + F.dropout(x, 1) + F.dropout(x, 0.5)

    cases.add("dropout/one after the other", seeded(13, several), randn(4, 5))


REDUCTIONS = ("none", "mean", "sum")


def add_cross_entropy(cases):
    some = ids([2, 0, 2, 1])
    loss = lambda **options: lambda x, t: F.cross_entropy(x, t, **options)
    weighted = lambda **options: lambda x, t, w: F.cross_entropy(x, t, w, **options)
    weight = Fixed(uniform(0.25, 2, 3))
    op = "cross_entropy"
    for reduction in REDUCTIONS:
        r = {"reduction": reduction}
        cases.add(f"{op}/{reduction}", loss(**r), randn(4, 3), some)
        cases.add(f"{op}/weight, {reduction}", weighted(**r), randn(4, 3), some, weight)
        cases.add(
            f"{op}/ignored, {reduction}", loss(**r), randn(4, 3), ids([2, -100, 0, -100])
        )
        cases.add(f"{op}/smoothed, {reduction}", loss(label_smoothing=0.25, **r), randn(4, 3), some)
        cases.add(
            f"{op}/all options, {reduction}",
            weighted(label_smoothing=0.125, ignore_index=1, **r),
            randn(4, 3),
            some,
            weight,
        )
        cases.add(f"{op}/(N V d), {reduction}", loss(**r), randn(2, 3, 2), ids([0, 2, 1, 1], 2, 2))
        cases.add(
            f"{op}/probabilities, {reduction}", loss(**r), randn(4, 3), probabilities(4, 3)
        )
        cases.add(
            f"{op}/probabilities, smoothed and weighted, {reduction}",
            weighted(label_smoothing=0.25, **r),
            randn(4, 3),
            probabilities(4, 3),
            weight,
        )
    cases.add(
        f"{op}/(N V d1 d2), all options",
        weighted(label_smoothing=0.125, ignore_index=0),
        randn(2, 3, 2, 2),
        ids([0, 1, 2, 1, 2, 2, 0, 1], 2, 2, 2),
        weight,
    )
    cases.add(f"{op}/(V)", loss(), randn(5), one_id(3))
    cases.add(f"{op}/(V), probabilities", loss(), randn(5), probabilities(5))
    cases.add(f"{op}/smoothing 1", loss(label_smoothing=1.0), randn(4, 3), some)
    cases.add(f"{op}/(N V d), probabilities", loss(), randn(2, 3, 2), probabilities(2, 3, 2))
    cases.add(f"{op}/all ignored, sum", loss(reduction="sum"), randn(2, 3), ids([-100, -100]))
    cases.add(f"{op}/one class", loss(reduction="sum"), randn(2, 1), ids([0, 0]))
    cases.add(f"{op}/no rows, none", loss(reduction="none"), randn(0, 3), ids([], 0))
    cases.add(f"{op}/no rows, sum", loss(reduction="sum"), randn(0, 3), ids([], 0))
    cases.add(
        f"{op}/large numbers", loss(), values([[600, 0, 601], [-5, -500, 2]]), ids([0, 2])
    )


def add_other_losses(cases):
    some = ids([2, 0, 2, 1])
    weight = Fixed(uniform(0.25, 2, 3))
    log_p = lambda *shape: uniform(-4, 0, *shape)
    for reduction in REDUCTIONS:
        loss = lambda x, t, w=None: F.nll_loss(x, t, w, reduction=reduction)
        cases.add(f"nll_loss/{reduction}", loss, log_p(4, 3), some)
        cases.add(f"nll_loss/weight, {reduction}", loss, log_p(4, 3), some, weight)
        cases.add(
            f"nll_loss/weight, ignored, {reduction}",
            loss,
            log_p(4, 3),
            ids([-100, 0, 2, -100]),
            weight,
        )
        cases.add(f"nll_loss/(N V d), {reduction}", loss, log_p(2, 3, 2), ids([0, 2, 1, 1], 2, 2))
        square = lambda x, t: F.mse_loss(x, t, reduction=reduction)
        cases.add(f"mse_loss/{reduction}", square, randn(3, 4), randn(3, 4))
    ignoring = lambda x, t: F.nll_loss(x, t, ignore_index=2)
    cases.add("nll_loss/ignore_index 2", ignoring, log_p(4, 3), some)
    cases.add("nll_loss/(V)", F.nll_loss, log_p(4), one_id(1))
    summed = lambda x, t: F.nll_loss(x, t, reduction="sum")
    cases.add("nll_loss/no rows, sum", summed, log_p(0, 3), ids([], 0))
    cases.add("mse_loss/0-d", F.mse_loss, randn(), randn())
    cases.add("mse_loss/size 1", F.mse_loss, randn(1, 1), randn(1, 1))
    summed = lambda x, t: F.mse_loss(x, t, reduction="sum")
    cases.add("mse_loss/zero-size", summed, randn(0, 2), randn(0, 2))


def binary_cross_entropy(x, t, w=1, reduction="mean"):
    """By its formula: PyTorch adds 1e-12 in second gradients."""
    y = -w * (t * torch.log(x) + (1 - t) * torch.log1p(-x))
    return y if reduction == "none" else getattr(y, reduction)()


def add_pointwise_losses(cases):
    p, logits, target = uniform(0.125, 0.875, 3, 4), randn(3, 4), uniform(0.125, 0.875, 3, 4)
    weight, pos_weight = Fixed(uniform(0.25, 2, 4)), Fixed(uniform(0.25, 2, 4))
    with_logits = F.binary_cross_entropy_with_logits
    for reduction in REDUCTIONS:
        r = {"reduction": reduction}
        plain = lambda f, **options: lambda x, t: f(x, t, **options, **r)
        weighted = lambda f: lambda x, t, w: f(x, t, w.expand(3, 4), **r)
        for op in ("l1_loss", "huber_loss", "smooth_l1_loss"):
            cases.add(f"{op}/{reduction}", plain(getattr(F, op)), randn(3, 4), randn(3, 4))
        cases.add(f"huber_loss/delta, {reduction}", plain(F.huber_loss, delta=0.5), randn(3, 4), randn(3, 4))
        cases.add(f"smooth_l1_loss/beta, {reduction}", plain(F.smooth_l1_loss, beta=0.5), randn(3, 4), randn(3, 4))
        cases.add(f"kl_div/{reduction}", plain(F.kl_div), randn(3, 4), target)
        cases.add(f"kl_div/log_target, {reduction}", plain(F.kl_div, log_target=True), randn(3, 4), randn(3, 4))
        op = "binary_cross_entropy"
        cases.add(f"{op}/itself, {reduction}", plain(F.binary_cross_entropy), p, target, second=False)
        cases.add(f"{op}/{reduction}", plain(binary_cross_entropy), p, target)
        cases.add(f"{op}/weight, {reduction}", weighted(binary_cross_entropy), p, target, weight)
        op = "binary_cross_entropy_with_logits"
        cases.add(f"{op}/{reduction}", plain(with_logits), logits, target)
        cases.add(f"{op}/weight, {reduction}", weighted(with_logits), logits, target, weight)
        f = lambda x, t, w, u: with_logits(x, t, w, pos_weight=u, **r)
        cases.add(f"{op}/pos_weight, {reduction}", f, logits, target, weight, pos_weight)
    some = values([1, 2, -3, 0.5]), values([1, 0, -2, 0])
    for op in ("l1_loss", "huber_loss", "smooth_l1_loss"):
        f = lambda x, t: getattr(F, op)(x, t, reduction="none")
        cases.add(f"{op}/at the kinks", f, *some, second=False)
    cases.add("smooth_l1_loss/beta 0", lambda x, t: F.smooth_l1_loss(x, t, beta=0), randn(3, 4), randn(3, 4))
    certain = lambda x: F.binary_cross_entropy(x, torch.tensor([0.0, 1, 0, 1]).double(), reduction="none")
    cases.add("binary_cross_entropy/certain", certain, values([0, 0, 1, 1]), second=False)
    large = values([80, -80, 60, -90]), values([1, 0, 0.5, 0.25])
    cases.add("binary_cross_entropy_with_logits/large", with_logits, *large)


def attention(q, k, v, allowed=None, added=None, scale=None, dropout_p=0.0):
    """By its formula: PyTorch 1.13 has no public one.  A row that is masked completely gives
    zeros."""
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if added is not None:
        scores = scores + added
    if allowed is None:
        weights = torch.softmax(scores, -1)
    else:
        some = allowed.any(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(~allowed & some, float("-inf")), -1)
        weights = weights.masked_fill(~some, 0.0)
    return F.dropout(weights, dropout_p) @ v


def causal_mask(t, s):
    return torch.ones(t, s, dtype=torch.bool).tril()


def causal_self_attention(qkv, n_head, dropout_p=0.0):
    b, t, c = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    heads = [x.view(b, t, n_head, c // n_head).transpose(1, 2) for x in qkv.split(c, -1)]
    y = attention(*heads, allowed=causal_mask(t, t), dropout_p=dropout_p)
    return y.transpose(1, 2).reshape(b, t, c)


def add_attention(cases):
    op = "scaled_dot_product_attention"
    inputs = randn(2, 3, 2), randn(2, 4, 2), randn(2, 4, 3)
    plain = lambda q, k, v: attention(q, k, v)
    masked = lambda q, k, v, m: attention(q, k, v, allowed=m)
    added = lambda q, k, v, m: attention(q, k, v, added=m)
    causal = lambda q, k, v: attention(q, k, v, allowed=causal_mask(q.shape[-2], k.shape[-2]))
    cases.add(f"{op}/3-d", plain, *inputs)
    cases.add(f"{op}/2-d", plain, randn(3, 2), randn(4, 2), randn(4, 2))
    cases.add(f"{op}/heads", plain, randn(2, 2, 3, 2), randn(2, 2, 2, 2), randn(2, 2, 2, 1))
    cases.add(f"{op}/broadcast batches", plain, randn(2, 1, 3, 2), randn(2, 2, 2), randn(1, 2, 1))
    cases.add(f"{op}/of itself", lambda x: attention(x, x, x), randn(3, 2))
    cases.add(f"{op}/size 1", plain, randn(1, 1, 1), randn(1, 1, 1), randn(1, 1, 1))
    cases.add(f"{op}/no positions", plain, randn(2, 0, 2), randn(2, 3, 2), randn(2, 3, 2))
    cases.add(f"{op}/scale 0.375", lambda q, k, v: attention(q, k, v, scale=0.375), *inputs)
    cases.add(f"{op}/causal", causal, randn(2, 4, 2), randn(2, 4, 2), randn(2, 4, 2))
    cases.add(f"{op}/causal, more keys", causal, *inputs)
    cases.add(f"{op}/causal, fewer keys", causal, randn(4, 2), randn(2, 2), randn(2, 2))
    row = [True, False, True, True]
    cases.add(f"{op}/mask of keys", masked, *inputs, mask([row]))
    cases.add(
        f"{op}/mask, one row of nothing", masked, *inputs, mask([row, [False] * 4, [True] * 4])
    )
    of_batches = mask([[row, row, row], [row[::-1], [True] * 4, row]])
    cases.add(f"{op}/mask of batches", masked, *inputs, of_batches)
    cases.add(f"{op}/added mask", added, *inputs, randn(3, 4))
    cases.add(f"{op}/added mask of batches and keys", added, *inputs, randn(2, 1, 4))
    inf = float("inf")
    some = values([[0, -inf, 0.5, -inf], [-inf, 1, 0, 0], [0, 0, 0, -inf]])
    cases.add(f"{op}/added minus infinities", added, *inputs, some)
    drop = lambda q, k, v: attention(q, k, v, dropout_p=0.25)
    cases.add(f"{op}/dropout", seeded(21, drop), *inputs)
    cases.add(
        f"{op}/causal, dropout",
        seeded(22, lambda q, k, v: attention(q, k, v, allowed=causal_mask(3, 3), dropout_p=0.5)),
        randn(2, 2, 3, 2),
        randn(2, 2, 3, 2),
        randn(2, 2, 3, 2),
    )
    def grouped(q, k, v, **options):
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
        return attention(q, k, v, **options)

    shared = randn(2, 4, 3, 2), randn(2, 2, 3, 2), randn(2, 2, 3, 1)
    per_head = mask([[row[:3], row[1:], [True] * 3]] * 3 + [[row[1:]] * 3])
    cases.add(f"{op}/grouped", grouped, *shared)
    cases.add(f"{op}/grouped, causal", lambda *x: grouped(*x, allowed=causal_mask(3, 3)), *shared)
    cases.add(f"{op}/grouped, mask", lambda *x: grouped(*x[:3], allowed=x[3]), *shared, per_head)
    for shape in (4, 3, 3), (2, 1, 1, 3):
        cases.add(f"{op}/grouped, added {shape}", lambda *x: grouped(*x[:3], added=x[3]), *shared, randn(*shape))
    cases.add(f"{op}/grouped, dropout", seeded(24, lambda *x: grouped(*x, dropout_p=0.25)), *shared)
    op = "causal_self_attention"
    cases.add(f"{op}/2 heads", lambda x: causal_self_attention(x, 2), randn(2, 3, 12))
    cases.add(f"{op}/one head", lambda x: causal_self_attention(x, 1), randn(1, 4, 6))
    cases.add(f"{op}/heads of one channel", lambda x: causal_self_attention(x, 3), randn(1, 3, 9))
    cases.add(f"{op}/one position", lambda x: causal_self_attention(x, 2), randn(2, 1, 6))
    cases.add(f"{op}/no batches", lambda x: causal_self_attention(x, 1), randn(0, 2, 3))
    cases.add(
        f"{op}/dropout", seeded(23, lambda x: causal_self_attention(x, 2, 0.25)), randn(2, 4, 12)
    )


def add(cases):
    add_softmax(cases)
    add_norms(cases)
    add_dropout(cases)
    add_cross_entropy(cases)
    add_other_losses(cases)
    add_pointwise_losses(cases)
    add_attention(cases)
