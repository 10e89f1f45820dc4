"""The models of ports.py, and an optimizer that PyTorch lacks."""
import torch
import torch.nn.functional as F
from torch import nn


class Lion(torch.optim.Optimizer):
    """Chen et al., 2023, algorithm 2."""

    def __init__(self, params, lr, betas, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = m.lerp(p.grad, 1 - b1).sign()
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"])
                m.lerp_(p.grad, 1 - b2)


# ---- models ----

def heads(x, n):
    """(B, T, C) -> (B, n, T, C / n)"""
    return x.unflatten(-1, (n, x.size(-1) // n)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(-2)


class LSTM(nn.Module):
    def __init__(self, vocabulary=10, width=5, hidden=6):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, ids, state=None):
        y, state = self.lstm(self.embedding(ids), state)
        return self.head(y), state


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


class LinearAttention(nn.Module):
    """Katharopoulos et al., 2020, causal, by running sums."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, padding):
        q, k, v = (heads(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        k = k.masked_fill(padding[:, None, :, None], 0)
        state = torch.einsum("bhtd,bhte->bhtde", k, v).cumsum(2)
        y = torch.einsum("bhtd,bhtde->bhte", q, state)
        norm = (q * k.cumsum(2)).sum(-1, keepdim=True)
        return self.proj(merge(y / norm.clamp(min=1e-6)))


class SelectiveScan(nn.Module):
    """The heart of Mamba: Gu and Dao, 2023, section 3.2."""

    def __init__(self, width=6, states=4, rank=2):
        super().__init__()
        self.sizes = rank, states, states
        self.in_proj, self.out_proj = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, width, bias=False)
        self.x_proj, self.dt_proj = nn.Linear(width, sum(self.sizes), bias=False), nn.Linear(rank, width)
        self.A_log, self.D = nn.Parameter(torch.zeros(width, states)), nn.Parameter(torch.ones(width))

    def forward(self, u):
        x, z = self.in_proj(u).chunk(2, -1)
        x = F.silu(x)
        dt, B, C = self.x_proj(x).split(self.sizes, -1)
        dt = F.softplus(self.dt_proj(dt)).unsqueeze(-1)  # (B, T, width, 1)
        decay = torch.exp(dt * -torch.exp(self.A_log))
        drive = dt * B.unsqueeze(-2) * x.unsqueeze(-1)
        h, ys = torch.zeros_like(drive[:, 0]), []
        for a, b, c in zip(decay.unbind(1), drive.unbind(1), C.unbind(1)):
            h = a * h + b
            ys.append((h @ c.unsqueeze(-1)).squeeze(-1))
        return self.out_proj((torch.stack(ys, 1) + self.D * x) * F.silu(z))


class VAE(nn.Module):
    """Kingma and Welling, 2013."""

    def __init__(self, pixels=12, hidden=8, latent=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, pixels))

    def forward(self, x, noise):
        mean, log_variance = self.encoder(x).chunk(2, -1)
        return self.decoder(mean + torch.exp(log_variance / 2) * noise), mean, log_variance


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
