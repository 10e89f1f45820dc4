#!/usr/bin/env python3
"""Every layer of nn/ in PyTorch: initial parameters, outputs and gradients, as layers.safetensors.

    /usr/bin/python3 tests/golden/layers.py

A case has a name and writes

    <case>/init/<parameter>         as manual_seed(1337) and the layer's constructor leave it
    <case>/given/<parameter>        what replaces it where it starts constant, so that it counts
    <case>/in/<input>               inputs, integers among them
    <case>/up/<output>              the gradient that backward starts from
    <case>/f64/out/<output>         results in float64, and so on for f32
    <case>/f64/grad/<parameter>
    <case>/f64/grad_in/<input>

all float32 but the results.  Dropout draws from manual_seed(99), set before the call.  What is not drawn by a layer comes from a
generator that each case seeds by its name, so a new case changes no other's numbers.

Needs PyTorch 1.13 without MKL (Debian: python3-torch) and the standard library; the same PyTorch
writes the same bytes.
"""
import copy
import zlib
from pathlib import Path

import torch
import torch.nn.functional as F
from formulas import (GPT, MLP, CausalSelfAttention, GroupedAttention, LayerNorm, RMSNorm, SelfAttention, SwiGLU,
                      TransformerBlock, alibi, rotary)
from golden import Golden
from torch import nn

golden = Golden(Path(__file__).with_suffix(".safetensors"),
                {"source": f"tests/golden/layers.py, PyTorch {torch.__version__}"})
generator = torch.Generator()  # for all that is not drawn by the layers


def normal(*sizes):
    return torch.randn(sizes, generator=generator)


def flags(share, *sizes):
    return (torch.rand(sizes, generator=generator) < share).long()


def case(name, make, run, inputs):
    """run(layer, **inputs) returns a dict of outputs.  An input is a Tensor, or a function that draws one.  Floating inputs get
    gradients."""
    generator.manual_seed(zlib.crc32(name.encode()))
    inputs = {key: value() if callable(value) else value for key, value in inputs.items()}
    torch.manual_seed(1337)
    layer = make()
    with torch.no_grad():
        for parameter_name, parameter in layer.named_parameters():
            golden.add(f"{name}/init/{parameter_name}", parameter)
            if parameter.numel() > 0 and (parameter == parameter.flatten()[0]).all():
                parameter.add_(normal(*parameter.shape) / 2)
                golden.add(f"{name}/given/{parameter_name}", parameter)
    for key, value in inputs.items():
        golden.add(f"{name}/in/{key}", value)
    up = {}
    for label, dtype in ("f64", torch.float64), ("f32", torch.float32):
        model = copy.deepcopy(layer).to(dtype)
        values = {k: v.to(dtype, copy=True).requires_grad_() if v.is_floating_point() else v
                  for k, v in inputs.items()}
        torch.manual_seed(99)
        outputs = run(model, **values)
        total = 0
        for key, out in outputs.items():
            golden.add(f"{name}/{label}/out/{key}", out)
            if key not in up:
                up[key] = normal(*out.shape)
                golden.add(f"{name}/up/{key}", up[key])
            total = total + (out * up[key].to(dtype)).sum()
        if not total.requires_grad:
            continue
        total.backward()
        for parameter_name, parameter in model.named_parameters():
            golden.add(f"{name}/{label}/grad/{parameter_name}", parameter.grad)
        for key, value in values.items():
            if value.requires_grad:
                golden.add(f"{name}/{label}/grad_in/{key}", value.grad)


def simple(name, make, x):
    case(name, make, lambda layer, x: {"y": layer(x)}, {"x": x})


# ---- the layers that PyTorch has ----

def plain_layers():
    simple("Linear/bias", lambda: nn.Linear(5, 4), lambda: normal(3, 5))
    simple("Linear/no_bias", lambda: nn.Linear(5, 4, bias=False), lambda: normal(3, 5))
    simple("Linear/3d", lambda: nn.Linear(7, 9), lambda: normal(2, 3, 7))
    simple("Linear/1d", lambda: nn.Linear(3, 2), lambda: normal(3))
    simple("Linear/wide", lambda: nn.Linear(40, 17), lambda: normal(6, 40))
    ids = torch.tensor([[0, 3, 3, 6], [6, 3, 1, 0]])  # 2, 4 and 5 get no gradient
    look_up = lambda layer, ids: {"y": layer(ids)}
    case("Embedding/repeated", lambda: nn.Embedding(7, 5), look_up, {"ids": ids})
    case("Embedding/padding", lambda: nn.Embedding(7, 5, padding_idx=3), look_up, {"ids": ids})
    case("Embedding/padding_from_the_end", lambda: nn.Embedding(7, 5, padding_idx=-1), look_up, {"ids": ids})
    case("Embedding/small", lambda: nn.Embedding(3, 4), look_up, {"ids": ids[0, :2] // 3})
    simple("LayerNorm/bias", lambda: nn.LayerNorm(6), lambda: normal(4, 6) * 3 + 1)
    simple("LayerNorm/3d", lambda: nn.LayerNorm(37), lambda: normal(2, 3, 37))
    simple("LayerNorm/two_dimensions", lambda: nn.LayerNorm((3, 4)), lambda: normal(2, 3, 4))
    simple("LayerNorm/eps", lambda: nn.LayerNorm(6, eps=0.1), lambda: normal(4, 6))
    simple("LayerNorm/no_bias", lambda: LayerNorm(6, False), lambda: normal(4, 6))
    simple("RMSNorm/default_eps", lambda: RMSNorm((6,)), lambda: normal(4, 6))
    simple("RMSNorm/eps", lambda: RMSNorm((37,), 0.1), lambda: normal(2, 3, 37))
    simple("RMSNorm/two_dimensions", lambda: RMSNorm((3, 4)), lambda: normal(2, 3, 4))
    simple("Dropout/0.3", lambda: nn.Dropout(0.3), lambda: normal(5, 7))
    simple("Dropout/0.5", lambda: nn.Dropout(), lambda: normal(4, 4))
    simple("Dropout/0", lambda: nn.Dropout(0), lambda: normal(4))
    simple("Dropout/1", lambda: nn.Dropout(1), lambda: normal(4))
    simple("Dropout/eval", lambda: nn.Dropout(0.3).eval(), lambda: normal(5))
    x = lambda: torch.cat([normal(30) * 3, torch.tensor([0.0, -0.0, 1e-3, -1e-3, 20, -20])])
    for layer in nn.ReLU, nn.SiLU, nn.Tanh, nn.Sigmoid:
        simple(f"{layer.__name__}/default", layer, x)
    simple("GELU/erf", nn.GELU, x)
    simple("GELU/tanh", lambda: nn.GELU(approximate="tanh"), x)
    for dim in -1, 0, 1:
        simple(f"Softmax/{dim}", lambda: nn.Softmax(dim), lambda: normal(3, 4, 5) * 4)
    simple("Sequential/mixed",
           lambda: nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6), nn.Dropout(0.4),
                                 nn.Linear(6, 3)),
           lambda: normal(5, 4))


def multi_head_attention():
    B, T, S, C, H = 2, 4, 5, 6, 2
    query, key, value = lambda: normal(B, T, C), lambda: normal(B, S, C), lambda: normal(B, S, C)
    future = torch.ones(T, T).triu(1)
    some = (torch.arange(S) != 1).long()  # no row is forbidden completely
    bool_mask = lambda: flags(0.4, T, S) * some
    per_head = lambda: flags(0.4, B * H, T, S) * some
    padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]])

    def attention(name, inputs, bias=True, dropout=0.0, causal=False, **options):
        def run(layer, query, key=None, value=None, attn_mask=None, padding=None):
            key = query if key is None else key
            mask = future.bool() if causal else attn_mask
            if mask is not None and not mask.is_floating_point():
                mask = mask.bool()
            forbidden_keys = None if padding is None else padding.bool()
            y, weights = layer(query, key, key if value is None else value, attn_mask=mask,
                               key_padding_mask=forbidden_keys, **options)
            return {"y": y} if weights is None else {"y": y, "weights": weights}
        case(f"MultiHeadAttention/{name}",
             lambda: nn.MultiheadAttention(C, H, dropout=dropout, bias=bias, batch_first=True),
             run, inputs)

    self_input = {"query": query}
    cross = {"query": query, "key": key, "value": value}
    attention("self", self_input)
    attention("self_per_head", self_input, average_attn_weights=False)
    attention("self_no_weights", self_input, need_weights=False)
    attention("self_no_bias", self_input, bias=False)
    attention("self_unbatched", {"query": lambda: normal(T, C)})
    attention("causal", self_input, causal=True)
    attention("causal_no_weights", self_input, causal=True, need_weights=False)
    attention("cross", cross)
    attention("cross_no_weights", cross, need_weights=False)
    attention("cross_no_bias_per_head", cross, bias=False, average_attn_weights=False)
    attention("cross_key_is_value", {"query": query, "key": key})
    attention("bool_mask", cross | {"attn_mask": bool_mask})
    attention("bool_mask_no_weights", cross | {"attn_mask": bool_mask}, need_weights=False)
    attention("bool_mask_of_each_head", cross | {"attn_mask": per_head}, average_attn_weights=False)
    attention("additive_mask", cross | {"attn_mask": lambda: normal(T, S)})
    attention("additive_mask_no_weights", cross | {"attn_mask": lambda: normal(T, S)}, need_weights=False)
    attention("additive_mask_of_each_head", cross | {"attn_mask": lambda: normal(B * H, T, S)})
    attention("padding", cross | {"padding": padding})
    padded = cross | {"padding": padding}
    attention("padding_and_bool_mask_no_weights", padded | {"attn_mask": bool_mask},
              need_weights=False)
    attention("padding_and_additive_mask", padded | {"attn_mask": lambda: normal(T, S)})
    attention("dropout", self_input, dropout=0.3)
    attention("dropout_no_weights", cross, dropout=0.3, need_weights=False)
    attention("dropout_causal_no_weights", self_input, dropout=0.3, causal=True, need_weights=False)


def self_attention():
    B, T, C = 2, 4, 6
    x = lambda: normal(B, T, C)
    causal = torch.ones(T, T).tril().bool()
    some = (torch.arange(T) == 0).long()  # no row is forbidden completely
    masked = {"x": x, "mask": lambda: flags(0.5, B, T, T) | some}
    plain = lambda layer, x: layer(x)
    whole = lambda: SelfAttention(C)
    case("SelfAttention/plain", whole, plain, {"x": x})
    case("SelfAttention/unbatched", whole, plain, {"x": lambda: normal(T, C)})
    case("SelfAttention/causal", whole, lambda layer, x: layer(x, causal), {"x": x})
    case("SelfAttention/mask", whole, lambda layer, x, mask: layer(x, mask.bool()), masked)
    case("SelfAttention/mask_and_causal", whole,
         lambda layer, x, mask: layer(x, mask.bool() & causal), masked)
    case("SelfAttention/widths", lambda: SelfAttention(C, d_k=3, d_v=5), plain, {"x": x})
    case("SelfAttention/no_output_projection", lambda: SelfAttention(C, 3, 5, False), plain, {"x": x})


def transformer():
    x = lambda: normal(2, 5, 8)
    for name, dropout, bias in ("bias", 0.0, True), ("no_bias", 0.0, False), ("dropout", 0.2, True):
        simple(f"CausalSelfAttention/{name}", lambda: CausalSelfAttention(8, 2, dropout, bias), x)
        simple(f"MLP/{name}", lambda: MLP(8, dropout, bias), x)
        simple(f"TransformerBlock/{name}", lambda: TransformerBlock(8, 2, dropout, bias), x)
    ids = lambda: torch.randint(11, (2, 6), generator=generator)

    def targets():
        drawn = torch.randint(11, (2, 6), generator=generator)
        drawn[1, 2] = -100  # does not count
        return drawn

    def loss(model, ids, targets):
        return {"loss": F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())}

    both = {"ids": ids, "targets": targets}
    case("GPT/logits", lambda: GPT(11, 6, 2, 2, 8, 0.0, True),
         lambda model, ids: {"logits": model(ids)}, {"ids": ids})
    case("GPT/last_logits", lambda: GPT(11, 8, 1, 4, 8, 0.3, False).eval(),
         lambda model, ids: {"logits": model(ids)[:, -1]}, {"ids": ids})
    case("GPT/loss", lambda: GPT(11, 6, 2, 2, 8, 0.0, True), loss, both)
    case("GPT/loss_dropout", lambda: GPT(11, 6, 2, 2, 8, 0.2, False), loss, both)


def more_plain_layers():
    x = lambda: torch.cat([normal(30) * 3, torch.tensor([0.0, -0.0, 1e-3, -1e-3, 20, -20])])
    simple("Identity/default", nn.Identity, lambda: normal(2, 3))
    simple("Flatten/default", nn.Flatten, lambda: normal(2, 3, 4))
    simple("Flatten/0_1", lambda: nn.Flatten(0, 1), lambda: normal(2, 3, 4))
    for layer in nn.LeakyReLU, nn.ELU, nn.Softplus:
        simple(f"{layer.__name__}/default", layer, x)
    simple("LeakyReLU/0.2", lambda: nn.LeakyReLU(0.2), x)
    simple("ELU/0.5", lambda: nn.ELU(0.5), x)
    simple("Softplus/2_3", lambda: nn.Softplus(2, 3), x)
    simple("PReLU/one", nn.PReLU, x)
    simple("PReLU/channels", lambda: nn.PReLU(3, 0.1), lambda: normal(2, 3, 4))
    simple("PReLU/rows", lambda: nn.PReLU(3), lambda: normal(4, 3))
    for dim in -1, 0:
        simple(f"LogSoftmax/{dim}", lambda: nn.LogSoftmax(dim), lambda: normal(3, 4, 5) * 4)
    simple("GroupNorm/3d", lambda: nn.GroupNorm(2, 6), lambda: normal(3, 6, 5) * 3 + 1)
    simple("GroupNorm/2d", lambda: nn.GroupNorm(2, 8), lambda: normal(4, 8))
    simple("GroupNorm/4d", lambda: nn.GroupNorm(1, 4, eps=0.1), lambda: normal(2, 4, 2, 3))
    simple("GroupNorm/not_affine", lambda: nn.GroupNorm(4, 4, affine=False), lambda: normal(2, 4, 7))
    simple("SwiGLU/default", lambda: SwiGLU(4, 6), lambda: normal(2, 3, 4))
    simple("SwiGLU/bias", lambda: SwiGLU(4, 6, True), lambda: normal(3, 4))

    def batch_norm(name, x, calls=1, evaluate=False, **options):
        def run(layer, x):
            for i in range(calls):
                y = layer(x * (i + 1))
            if evaluate:
                y = layer.eval()(x)
            if layer.running_mean is None:
                return {"y": y}
            return {"y": y, "running_mean": layer.running_mean, "running_var": layer.running_var,
                    "num_batches_tracked": layer.num_batches_tracked.to(x.dtype)}
        case(f"BatchNorm1d/{name}", lambda: nn.BatchNorm1d(3, **options), run, {"x": x})

    x, long = lambda: normal(5, 3) * 2 + 1, lambda: normal(4, 3, 5)
    batch_norm("2d", x)
    batch_norm("3d", long, calls=2)
    batch_norm("cumulative", x, calls=3, momentum=None)
    batch_norm("momentum", x, momentum=0.4, eps=0.1)
    batch_norm("eval", x, evaluate=True)
    batch_norm("eval_3d", long, calls=2, evaluate=True)
    batch_norm("not_affine", long, affine=False)
    batch_norm("no_statistics", x, evaluate=True, track_running_stats=False)


def recurrent():
    def recurrence(name, x, layer, states=0, **options):
        def run(model, x, h=None, c=None):
            y, end = model(x, (h, c) if c is not None else h)
            return {"y": y, "h_n": end[0], "c_n": end[1]} if layer is nn.LSTM else {"y": y, "h_n": end}
        layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        batch = () if len(x) == 2 else (x[0] if options.get("batch_first") else x[1],)
        given = {k: lambda: normal(layers, *batch, 4) for k in "hc"[:states]}
        case(f"{layer.__name__}/{name}", lambda: layer(3, 4, **options), run, {"x": lambda: normal(*x)} | given)

    for layer, states in (nn.LSTM, 2), (nn.GRU, 1):
        recurrence("default", (5, 2, 3), layer)
        recurrence("start", (5, 2, 3), layer, states)
        recurrence("unbatched", (5, 3), layer, states)
        recurrence("batch_first", (2, 5, 3), layer, states, batch_first=True)
        recurrence("no_bias", (3, 2, 3), layer, bias=False)
        recurrence("both_ways", (4, 2, 3), layer, states, bidirectional=True)
        recurrence("three_layers", (4, 2, 3), layer, states, num_layers=3)
        recurrence("all", (2, 4, 3), layer, states, num_layers=2, bidirectional=True, batch_first=True, dropout=0.3)
        recurrence("unbatched_both_ways", (4, 3), layer, num_layers=2, bidirectional=True)


def attention_parts():
    x = lambda: normal(2, 3, 4, 6)
    positions = torch.tensor([0, 1, 5, 1000])
    of_batch = torch.tensor([[[0, 1, 2, 3]], [[4, 5, 6, 7]]])
    for name, at, theta, interleaved in (("half", positions, 1e4, False), ("interleaved", positions, 1e4, True),
                                         ("theta", positions, 500.0, False), ("of_batch", of_batch, 1e4, False)):
        case(f"RotaryEmbedding/{name}", nn.Identity,
             lambda layer, x, positions: {"y": rotary(x, positions, theta, interleaved)}, {"x": x, "positions": at})
    for heads, offset in (8, 0), (6, 2), (1, 0):
        case(f"alibi_bias/{heads}_{offset}", nn.Identity,
             lambda layer, x: {"y": x + alibi(heads, 3, 5, offset).to(x.dtype)}, {"x": lambda: normal(heads, 3, 5)})
    B, T, S, C = 2, 4, 5, 8
    query, key = lambda: normal(B, T, C), lambda: normal(B, S, C)
    causal = torch.ones(T, T).tril().bool()

    def grouped(name, inputs, groups, weights=False, bias=True, dropout=0.0, is_causal=False):
        def run(layer, query, key=None, allowed=None):
            mask = causal if is_causal else None if allowed is None else allowed.bool()
            return layer(query, query if key is None else key, mask, weights)
        case(f"MultiHeadAttention/grouped_{name}", lambda: GroupedAttention(C, 4, groups, bias, dropout), run, inputs)

    some = (torch.arange(S) != 1).long()
    grouped("self", {"query": query}, 2, weights=True)
    grouped("causal", {"query": query}, 2, is_causal=True)
    grouped("one", {"query": query}, 1, bias=False, is_causal=True)
    grouped("cross", {"query": query, "key": key}, 2)
    grouped("mask", {"query": query, "key": key, "allowed": lambda: flags(0.6, T, S) | (1 - some)}, 1, weights=True)
    grouped("mask_no_weights", {"query": query, "key": key, "allowed": lambda: flags(0.6, T, S) | (1 - some)}, 2)
    grouped("dropout", {"query": query}, 2, dropout=0.3, is_causal=True)


def losses():
    def loss(name, make, x, target):
        case(name, make, lambda layer, x, target: {"loss": layer(x, target)}, {"x": x, "target": target})

    x, share = lambda: normal(3, 4), lambda: torch.rand((3, 4), generator=generator) * 0.98 + 0.01
    classes = torch.tensor([2, 0, 3])
    weights, rows = torch.tensor([0.5, 2, 1, 3]), torch.tensor([[0.5], [2], [1]])
    for layer in nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss, nn.KLDivLoss:
        for reduction in "mean", "sum", "none":
            loss(f"{layer.__name__}/{reduction}", lambda: layer(reduction=reduction), x, share)
    loss("SmoothL1Loss/beta", lambda: nn.SmoothL1Loss(beta=0.3), x, x)
    loss("HuberLoss/delta", lambda: nn.HuberLoss(delta=0.3), x, x)
    loss("KLDivLoss/log_target", lambda: nn.KLDivLoss(log_target=True), x, x)
    loss("CrossEntropyLoss/default", nn.CrossEntropyLoss, x, classes)
    loss("CrossEntropyLoss/probabilities", nn.CrossEntropyLoss, x, share)
    loss("CrossEntropyLoss/weight", lambda: nn.CrossEntropyLoss(weights, label_smoothing=0.1), x, classes)
    loss("NLLLoss/weight", lambda: nn.NLLLoss(weights, reduction="sum"), x, classes)
    loss("BCELoss/default", nn.BCELoss, share, share)
    loss("BCELoss/weight", lambda: nn.BCELoss(rows, reduction="sum"), share, share)
    loss("BCEWithLogitsLoss/default", nn.BCEWithLogitsLoss, x, share)
    loss("BCEWithLogitsLoss/weights", lambda: nn.BCEWithLogitsLoss(rows, pos_weight=weights), x, share)


if __name__ == "__main__":
    torch.set_num_threads(1)
    plain_layers()
    multi_head_attention()
    self_attention()
    transformer()
    more_plain_layers()
    recurrent()
    attention_parts()
    losses()
    print(f"{golden.write()} bytes: {golden.path}")
