"""The models of ports.py."""
import torch
import torch.nn.functional as F
from torch import nn


class MixtureOfExperts(nn.Module):
    """Shazeer et al., 2017; the balance is that of Fedus et al., 2021."""

    def __init__(self, width=6, hidden=8, experts=4, k=2):
        super().__init__()
        self.router, self.k = nn.Linear(width, experts, bias=False), k
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
                                     for _ in range(experts))

    def forward(self, x):
        p = self.router(x).softmax(-1)
        weights, chosen = p.topk(self.k)
        weights = weights / weights.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            mask = chosen == e
            rows = mask.any(-1)
            y = y.index_add(0, rows.nonzero().squeeze(-1), weights[mask].unsqueeze(-1) * expert(x[rows]))
        load = F.one_hot(chosen, len(self.experts)).to(x.dtype).sum(1).mean(0)
        return y, len(self.experts) * (load * p.mean(0)).sum()


class WGAN(nn.Module):
    """Gulrajani et al., 2017."""

    def __init__(self, features=4, latent=3, hidden=8):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, features))
        self.critic = nn.Sequential(nn.Linear(features, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2),
                                    nn.Linear(hidden, 1))


class EncoderDecoder(nn.Module):
    """Vaswani et al., 2017, norms first; a layer of each."""

    def __init__(self, vocabulary=9, width=8, heads=2, positions=6):
        super().__init__()
        norm = lambda: nn.LayerNorm(width)
        attention = lambda: nn.MultiheadAttention(width, heads, batch_first=True)
        mlp = lambda: nn.Sequential(norm(), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.encoder = nn.ModuleDict({"norm": norm(), "attention": attention(), "mlp": mlp()})
        self.decoder = nn.ModuleDict({"norm": norm(), "attention": attention(), "cross_norm": norm(), "cross": attention(), "mlp": mlp()})
        self.norm = norm()

    def embed(self, ids):
        return self.tokens(ids) + self.positions(torch.arange(ids.size(1)))

    def forward(self, source, target):
        padding = source == 0
        x, e = self.embed(source), self.encoder
        h = e.norm(x)
        x = x + e.attention(h, h, h, key_padding_mask=padding, need_weights=False)[0]
        memory = x + e.mlp(x)
        y, d = self.embed(target), self.decoder
        h, T = d.norm(y), target.size(1)
        future = torch.ones(T, T).triu(1).bool()
        y = y + d.attention(h, h, h, attn_mask=future, need_weights=False)[0]
        read, weights = d.cross(d.cross_norm(y), memory, memory, key_padding_mask=padding)
        y = y + read
        return self.norm(y + d.mlp(y)) @ self.tokens.weight.T, weights
