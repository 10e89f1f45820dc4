"""The layers that PyTorch has not, or not as we have them, from their formulas."""
import math

import torch
import torch.nn.functional as F
from torch import nn


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


class GroupedAttention(nn.Module):
    """MultiHeadAttention whose keys and values have fewer heads."""

    def __init__(self, width, heads, groups, bias, dropout):
        super().__init__()
        self.out_proj = nn.Linear(width, width, bias=bias)
        rows = width + 2 * groups * (width // heads)
        self.in_proj_weight = nn.Parameter(torch.empty(rows, width))
        nn.init.xavier_uniform_(self.in_proj_weight)
        self.in_proj_bias = nn.Parameter(torch.zeros(rows)) if bias else None
        if bias:
            nn.init.zeros_(self.out_proj.bias)
        self.heads, self.groups, self.dropout = heads, groups, dropout

    def forward(self, query, key, allowed, weights_too):
        D, G = query.size(-1) // self.heads, self.groups
        widths = [query.size(-1), G * D, G * D]
        biases = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias.split(widths)
        q, k, v = (F.linear(x, w, b).unflatten(-1, (-1, D)).transpose(1, 2)
                   for x, w, b in zip((query, key, key), self.in_proj_weight.split(widths), biases))
        k, v = (x.repeat_interleave(self.heads // G, 1) for x in (k, v))
        scores = (q / math.sqrt(D)) @ k.transpose(-2, -1)
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -math.inf)
        weights = F.dropout(scores.softmax(-1), self.dropout)
        y = self.out_proj((weights @ v).transpose(1, 2).flatten(2))
        return {"y": y, "weights": weights.mean(1)} if weights_too else {"y": y}


class SwiGLU(nn.Module):
    def __init__(self, width, hidden, bias=False):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=bias)
        self.up_proj = nn.Linear(width, hidden, bias=bias)
        self.down_proj = nn.Linear(hidden, width, bias=bias)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def rotated(x, cos, sin, interleaved=False):
    """The first channels as complex numbers; the others stay."""
    R = 2 * cos.size(-1)
    x, rest = x.split([R, x.size(-1) - R], -1)
    pairs = x.unflatten(-1, (R // 2, 2)) if interleaved else x.unflatten(-1, (2, R // 2)).transpose(-1, -2)
    a, b = pairs.unbind(-1)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], -1 if interleaved else -2)
    return torch.cat([turned.flatten(-2), rest], -1)


def rotary(x, positions, theta, interleaved, R=None):
    R = R or x.size(-1)
    angles = positions.double()[..., None] * theta ** -(torch.arange(0, R, 2, dtype=torch.float64) / R)
    return rotated(x, angles.cos(), angles.sin(), interleaved)


def alibi(heads, queries, keys, offset):
    """As the paper's authors compute the slopes."""
    def slopes(n):
        if math.log2(n).is_integer():
            start = 2 ** (-2 ** -(math.log2(n) - 3))
            return [start * start ** i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return slopes(closest) + slopes(2 * closest)[0::2][:n - closest]

    distance = (torch.arange(queries)[:, None] + offset - torch.arange(keys)).abs()
    return torch.tensor(slopes(heads), dtype=torch.float64)[:, None, None] * -distance
