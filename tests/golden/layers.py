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
import math
import zlib
from pathlib import Path

import torch
import torch.nn.functional as F
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


# ---- the layers that it has not, from their formulas ----

class LayerNorm(nn.Module):
    """nanoGPT's, whose bias can be left out."""

    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class RMSNorm(nn.Module):
    def __init__(self, sizes, eps=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(sizes))
        self.eps = eps

    def forward(self, x):
        dims = tuple(range(-self.weight.dim(), 0))
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        return x / torch.sqrt((x * x).mean(dims, keepdim=True) + eps) * self.weight


class SelfAttention(nn.Module):
    """One head, as in the formula softmax(Q K^T / sqrt(d_k)) V."""

    def __init__(self, width, d_k=None, d_v=None, output_projection=True):
        super().__init__()
        d_k, d_v = d_k or width, d_v or width
        self.W_q, self.W_k = nn.Linear(width, d_k, bias=False), nn.Linear(width, d_k, bias=False)
        self.W_v = nn.Linear(width, d_v, bias=False)
        self.W_o = nn.Linear(d_v, width, bias=False) if output_projection else None

    def forward(self, x, allowed=None):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -math.inf)
        weights = scores.softmax(-1)
        y = weights @ v
        return {"y": y if self.W_o is None else self.W_o(y), "weights": weights}


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


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, dropout, bias):
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)
        self.heads, self.dropout = heads, dropout

    def forward(self, x):
        B, T, C = x.shape
        heads = self.c_attn(x).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(C // self.heads)
        weights = (scores + torch.full((T, T), -math.inf, dtype=x.dtype).triu(1)).softmax(-1)
        y = F.dropout(weights, self.dropout, self.training) @ v
        return F.dropout(self.c_proj(y.transpose(1, 2).reshape(B, T, C)), self.dropout, self.training)


class MLP(nn.Module):
    def __init__(self, width, dropout, bias):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.c_proj = nn.Linear(4 * width, width, bias=bias)
        self.dropout = dropout

    def forward(self, x):
        return F.dropout(self.c_proj(F.gelu(self.c_fc(x))), self.dropout, self.training)


class TransformerBlock(nn.Module):
    def __init__(self, width, heads, dropout, bias):
        super().__init__()
        self.ln_1 = LayerNorm(width, bias)
        self.attn = CausalSelfAttention(width, heads, dropout, bias)
        self.ln_2 = LayerNorm(width, bias)
        self.mlp = MLP(width, dropout, bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """nanoGPT's language model: its names, and its order of draws."""

    def __init__(self, vocabulary, block, layers, heads, width, dropout, bias):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width),
            "wpe": nn.Embedding(block, width),
            "h": nn.ModuleList(TransformerBlock(width, heads, dropout, bias) for _ in range(layers)),
            "ln_f": LayerNorm(width, bias)})
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.dropout = dropout
        for module in self.modules():  # the tied weight is drawn twice, as wte's and as lm_head's
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        for name, parameter in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers))

    def forward(self, ids):
        t = self.transformer
        x = F.dropout(t.wte(ids) + t.wpe(torch.arange(ids.size(1))), self.dropout, self.training)
        for block in t.h:
            x = block(x)
        return self.lm_head(t.ln_f(x))


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


if __name__ == "__main__":
    torch.set_num_threads(1)
    plain_layers()
    multi_head_attention()
    self_attention()
    transformer()
    print(f"{golden.write()} bytes: {golden.path}")
