"""The model and the recipe of nanoGPT's character example in PyTorch: what xgrad is compared with.

The names in the state dict, the order of all random draws and the updates are nanoGPT's
(https://github.com/karpathy/nanoGPT), so a seed gives one loss curve there, here and in xgrad.
Needs PyTorch 1.13 or newer and nothing else.  The masks of dropout are those of a PyTorch built
without MKL, such as Debian's python3-torch.
"""
import argparse
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass
class Config:
    vocab_size: int
    block_size: int = 64
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    dropout: float = 0.0
    bias: bool = False


class LayerNorm(nn.Module):
    """torch.nn.LayerNorm of PyTorch 1.13 has no `bias=False`."""

    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.n_embd))
        self.bias = nn.Parameter(torch.zeros(config.n_embd)) if config.bias else None

    def forward(self, x):
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head, self.dropout = config.n_head, config.dropout

    def forward(self, x):
        batch, length, width = x.shape
        heads = (batch, length, self.n_head, width // self.n_head)
        q, k, v = (part.view(heads).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=-1))
        dropout = self.dropout if self.training else 0.0
        if hasattr(functional, "scaled_dot_product_attention"):  # PyTorch 2
            y = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) / math.sqrt(width // self.n_head)
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            weights = functional.softmax(scores.masked_fill(future, -math.inf), dim=-1)
            y = functional.dropout(weights, dropout) @ v
        y = self.c_proj(y.transpose(1, 2).reshape(batch, length, width))
        return functional.dropout(y, dropout)


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(functional.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = LayerNorm(config)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config.vocab_size, config.n_embd),
            "wpe": nn.Embedding(config.block_size, config.n_embd),
            "drop": nn.Dropout(config.dropout),
            "h": nn.ModuleList(Block(config) for _ in range(config.n_layer)),
            "ln_f": LayerNorm(config),
        })
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        # All weights are drawn again, the tied one twice, and then the residual projections once more.
        self.apply(self._draw)
        for name, p in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(p, 0.0, 0.02 / math.sqrt(2 * config.n_layer))

    @staticmethod
    def _draw(module):
        if isinstance(module, (nn.Embedding, nn.Linear)):
            nn.init.normal_(module.weight, 0.0, 0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, idx):
        """Logits: idx (B, T) -> (B, T, V)."""
        t = self.transformer
        x = t.drop(t.wte(idx) + t.wpe(torch.arange(idx.shape[1])))
        for block in t.h:
            x = block(x)
        return self.lm_head(t.ln_f(x))

    def loss(self, idx, targets):
        return functional.cross_entropy(self(idx).flatten(0, 1), targets.flatten())

    def load(self, tensors):
        """Takes a state dict in which the tied weight comes once."""
        tensors = dict(tensors)
        tied = "transformer.wte.weight", "lm_head.weight"
        for name, other in (tied, tied[::-1]):
            if name in tensors:
                tensors.setdefault(other, tensors[name])
        self.load_state_dict(tensors)


# ---- the text ----


class Text:
    """A text as ids: a character's id is its place among the sorted characters; nine tenths are to train on."""

    def __init__(self, path, characters=None):
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        self.characters = characters or "".join(sorted(set(text)))
        place = {c: i for i, c in enumerate(self.characters)}
        if unknown := sorted(set(text) - set(place)):
            raise ValueError(f"{path}: has characters that the model does not know: {''.join(unknown)!r}")
        ids = torch.tensor([place[c] for c in text])
        cut = int(0.9 * len(ids))
        self.train, self.validation = ids[:cut], ids[cut:]


def random_batch(ids, block_size, batch_size):
    starts = torch.randint(len(ids) - block_size, (batch_size,))
    x = torch.stack([ids[i:i + block_size] for i in starts])
    y = torch.stack([ids[i + 1:i + 1 + block_size] for i in starts])
    return x, y


@torch.no_grad()
def validation_loss(model, ids, most=None):
    """The mean loss over all non-overlapping blocks, or over the first ones."""
    mode, size = model.training, model.config.block_size
    model.eval()
    n = min((len(ids) - 1) // size, most or len(ids))
    x, y = ids[:n * size].view(n, size), ids[1:n * size + 1].view(n, size)
    total = sum(model.loss(x[i:i + 16], y[i:i + 16]).item() * len(x[i:i + 16]) for i in range(0, n, 16))
    model.train(mode)
    return total / n


# ---- the recipe ----

LAST_BLOCKS = 2048  # at most, of the validation after the last step
NANO = dict(block_size=64, batch_size=12, n_layer=4, n_head=4, n_embd=128, dropout=0.0, bias=False,
            learning_rate=1e-3, min_lr=1e-4, warmup_iters=100, lr_decay_iters=2000, max_iters=2000,
            gradient_accumulation_steps=1, weight_decay=0.1, beta1=0.9, beta2=0.99, grad_clip=1.0,
            eval_interval=250, eval_iters=20)
PRESETS = {"nano": NANO,
           "baby": {**NANO, "block_size": 256, "batch_size": 64, "n_layer": 6, "n_head": 6, "n_embd": 384,
                    "dropout": 0.2, "lr_decay_iters": 5000, "max_iters": 5000, "eval_iters": 200},
           "micro": {**NANO, "block_size": 16, "batch_size": 16, "n_layer": 1, "n_embd": 16, "learning_rate": 1e-2,
                     "min_lr": 1e-3, "warmup_iters": 0, "lr_decay_iters": 1000, "max_iters": 1000}}


def add_recipe(parser):
    """The flags of `xgrad train`.  Those for evaluation are taken and have no effect."""
    def boolean(word):
        return {"true": True, "false": False}[word.lower()]

    parser.add_argument("--preset", choices=PRESETS, default="nano")
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    for name, value in NANO.items():
        more = dict(type=boolean, nargs="?", const=True) if name == "bias" else dict(type=type(value))
        parser.add_argument("--" + name.replace("_", "-"), **more)


def fill_recipe(args):
    """Gives the flags that were not given the preset's value; min_lr is a tenth of learning_rate, and the schedule follows max_iters."""
    if args.min_lr is None and args.learning_rate is not None:
        args.min_lr = float(f"{args.learning_rate / 10:.15g}")
    steps = PRESETS[args.preset]["max_iters"] if args.max_iters is None else args.max_iters
    if args.lr_decay_iters is None:
        args.lr_decay_iters = steps
    if args.warmup_iters is None:
        args.warmup_iters = min(PRESETS[args.preset]["warmup_iters"], steps // 20, args.lr_decay_iters)
    for name, value in PRESETS[args.preset].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


def parse_recipe(words):
    """The recipe that words such as ["--n-layer", "2"] ask for."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_recipe(parser)
    return fill_recipe(parser.parse_args(words))


def learning_rate(step, a):
    """Rises over warmup_iters, then half a cosine wave down to min_lr at lr_decay_iters."""
    if step < a.warmup_iters:
        return a.learning_rate * (step + 1) / (a.warmup_iters + 1)
    if step >= a.lr_decay_iters:
        return a.min_lr
    way = (step - a.warmup_iters) / (a.lr_decay_iters - a.warmup_iters)
    return a.min_lr + 0.5 * (1.0 + math.cos(math.pi * way)) * (a.learning_rate - a.min_lr)


class Training:
    """Draws the weights from the recipe's seed; each step() draws its batches and masks after them."""

    def __init__(self, a, text):
        torch.manual_seed(a.seed)
        self.a, self.ids, self.steps = a, text.train, 0
        self.model = GPT(Config(len(text.characters), a.block_size, a.n_layer, a.n_head, a.n_embd, a.dropout, a.bias))
        matrices = [p for p in self.model.parameters() if p.dim() >= 2]
        vectors = [p for p in self.model.parameters() if p.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": a.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=a.learning_rate, betas=(a.beta1, a.beta2), **({"fused": True} if getattr(a, "fused", False) else {}))

    def step(self):
        """Makes a step; returns its loss, its learning rate and the gradient's norm before clipping."""
        a, n = self.a, self.a.gradient_accumulation_steps
        rate = learning_rate(self.steps, a)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss = 0.0
        for _ in range(n):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bfloat16"):
                part = self.model.loss(*random_batch(self.ids, a.block_size, a.batch_size)) / n
            loss += part.item()
            part.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), a.grad_clip or math.inf)
        self.optimizer.step()
        self.steps += 1
        return loss, rate, norm.item()
