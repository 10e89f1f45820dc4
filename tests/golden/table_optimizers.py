"""The table of optimizers, schedules of the rate and clipping of gradients: a line a sample.

    optimizer("SGD", "optim.SGD", S("momentum", dict(lr=0.05, momentum=0.9)), ...)

calls optim.SGD(p, lr=0.05, momentum=0.9) there and SGD(p, {.lr = 0.05, .momentum = 0.9}) here: options have PyTorch's
names and our struct's order.  SCHEDULES and CLIPS hold a name, PyTorch's expression and ours.  p are parameters.
PyTorch's schedule changes the rate of o, 0.3 at first, or is a function from the step to the rate.  Where PyTorch 1.13 has
no such optimizer or schedule, its text is a formula, or the sample says since which version PyTorch has it (since="2.9").

All are compared with PyTorch, optimizers in every step and in what each of them must satisfy besides: optim_test.cpp and
../optim/failed_step_test.cpp.  optimizers.py writes PyTorch's numbers and our calls.
"""

import math
from functools import partial
from math import inf

try:
    import torch
    from torch import nn, optim
    from torch.optim import lr_scheduler
except ImportError:  # the calls can be written without
    pass


class S:
    """A sample: a name, and options of all parameters, or of the first one and of the others.

    pauses     True: b has no gradient in steps 0, 1 and 7
    scheduled  True: the rate is warmup_cosine({0.1, 0.01, 4, 16})
    shapes     of a and b
    """

    def __init__(self, name, *options, pauses=False, scheduled=False, shapes=((3, 5), (4,)), since=None):
        self.name, self.options, self.pauses, self.scheduled = name, options, pauses, scheduled
        self.shapes, self.since = shapes, since


OPTIMIZERS = []


def optimizer(name, theirs, *samples, steps=50):
    OPTIMIZERS.extend((name, theirs, s, steps) for s in samples)


# ---- formulas ----


class Formula:
    """An optimizer of f(p, g, m, **options), which changes the parameter p and the Tensor m, at first zeros, that is kept
    for it."""

    def __init__(self, f, params, **options):
        self.f, self.kept = f, {}
        self.param_groups = params if isinstance(params[0], dict) else [dict(params=params, **options)]

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    m = self.kept.setdefault(p, torch.zeros_like(p))
                    with torch.no_grad():
                        self.f(p, p.grad, m, **{k: v for k, v in group.items() if k != "params"})


def lion(p, g, m, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
    """Chen et al., 2023, algorithm 2."""
    update = (betas[0] * m + (1 - betas[0]) * g).sign()
    p.sub_(lr * (update + weight_decay * p))
    m.mul_(betas[1]).add_((1 - betas[1]) * g)


def muon(p, g, m, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, eps=1e-7):
    """torch.optim.Muon of PyTorch 2.15, but in p's dtype where that rounds to bfloat16."""
    m.lerp_(g, 1 - momentum)
    x = g.lerp(m, momentum) if nesterov else m.clone()
    tall = x.size(0) > x.size(1)
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    p.mul_(1 - lr * weight_decay)
    p.sub_(lr * math.sqrt(max(1, p.size(0) / p.size(1))) * (x.T if tall else x))


def nanogpt(step, learning_rate, min_lr, warmup_iters, lr_decay_iters):
    if step < warmup_iters:
        return learning_rate * (step + 1) / (warmup_iters + 1)
    if step > lr_decay_iters:
        return min_lr
    way = (step - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * way)) * (learning_rate - min_lr)


# ---- samples ----

optimizer("SGD", "optim.SGD",
          S("plain", dict(lr=0.1)),
          S("weight_decay", dict(lr=0.1, weight_decay=0.3)),
          S("momentum", dict(lr=0.05, momentum=0.9)),
          S("momentum_weight_decay", dict(lr=0.05, momentum=0.9, weight_decay=0.1)),
          S("dampening", dict(lr=0.05, momentum=0.9, dampening=0.4)),
          S("dampening_weight_decay", dict(lr=0.05, momentum=0.9, dampening=0.5, weight_decay=0.1)),
          S("nesterov", dict(lr=0.05, momentum=0.9, nesterov=True)),
          S("nesterov_weight_decay", dict(lr=0.05, momentum=0.8, weight_decay=0.1, nesterov=True)),
          S("groups", dict(lr=0.1, weight_decay=0.2), dict(lr=0.03, momentum=0.5)),
          S("missing_gradients", dict(lr=0.05, momentum=0.9, dampening=0.2), pauses=True),
          S("schedule", dict(lr=1, momentum=0.9), scheduled=True), steps=20)
for name in "Adam", "AdamW":
    optimizer(name, f"optim.{name}",
              S("defaults", dict()),
              S("rate", dict(lr=0.1)),
              S("betas", dict(lr=0.05, betas=(0.8, 0.95))),
              S("betas_0", dict(lr=0.05, betas=(0.0, 0.0))),
              S("eps", dict(lr=0.05, eps=0.1)),
              S("weight_decay", dict(lr=0.05, weight_decay=0.3)),
              S("groups", dict(lr=0.03, weight_decay=0.2), dict(lr=0.2, betas=(0.5, 0.9), weight_decay=0)),
              S("missing_gradients", dict(lr=0.05), pauses=True),
              S("schedule", dict(lr=1, weight_decay=0.1), scheduled=True), steps=20)
optimizer("AdamW", "optim.AdamW",
          S("no_decay", dict(lr=0.05, weight_decay=0)),
          S("options", dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.3), pauses=True), steps=20)
optimizer("RMSprop", "optim.RMSprop",
          S("plain", dict()),
          S("options", dict(lr=0.03, alpha=0.9, eps=1e-3, weight_decay=0.1), pauses=True),
          S("momentum", dict(lr=0.02, weight_decay=0.1, momentum=0.8), pauses=True))
optimizer("Adagrad", "optim.Adagrad",
          S("plain", dict()),
          S("options", dict(lr=0.2, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-3), pauses=True))
optimizer("Lion", "partial(Formula, lion)",
          S("plain", dict()),
          S("options", dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.3), pauses=True))
optimizer("Muon", "partial(Formula, muon)",
          S("plain", dict(), shapes=((5, 3), (2, 2))),
          S("wide", dict(lr=0.05), shapes=((3, 5), (1, 4))),
          S("options", dict(lr=0.03, weight_decay=0.5, momentum=0.8, nesterov=False, eps=1e-2), pauses=True, shapes=((5, 3), (2, 2))))

SCHEDULES = [
    ("constant/0.3", "lr_scheduler.ConstantLR(o, factor=1)", "constant(0.3)"),
    ("step_decay/7", "lr_scheduler.StepLR(o, 7)", "step_decay(0.3, 7)"),
    ("step_decay/3", "lr_scheduler.StepLR(o, 3, gamma=0.7)", "step_decay(0.3, 3, 0.7)"),
    ("step_decay/1", "lr_scheduler.StepLR(o, 1, gamma=0.9)", "step_decay(0.3, 1, 0.9)"),
    ("exponential/0.9", "lr_scheduler.ExponentialLR(o, 0.9)", "exponential(0.3, 0.9)"),
    ("exponential/1.1", "lr_scheduler.ExponentialLR(o, 1.1)", "exponential(0.3, 1.1)"),
    ("warmup_cosine/5_15", "lambda t: nanogpt(t, 0.3, 0.03, 5, 15)", "warmup_cosine({0.3, 0.03, 5, 15})"),
    ("warmup_cosine/0_19", "lambda t: nanogpt(t, 0.3, 0, 0, 19)", "warmup_cosine({0.3, 0, 0, 19})"),
    ("warmup_cosine/19_100", "lambda t: nanogpt(t, 0.3, 0.03, 19, 100)", "warmup_cosine({0.3, 0.03, 19, 100})"),
    ("warmup_cosine/100_2000", "lambda t: nanogpt(10 * t + 7, 1e-3, 1e-4, 100, 2000)",
     "[](std::size_t t) { return warmup_cosine({1e-3, 1e-4, 100, 2000})(10 * t + 7); }"),
]

CLIPS = [
    (f"clip_grad_norm/{norm_type}_{most}", f"nn.utils.clip_grad_norm_(p, {most}, {norm_type})",
     f"clip_grad_norm_(p, {most}, {{.norm_type = {norm_type}}})")
    for norm_type in (2, 1, 3, inf, 0.5) for most in (1, 1000, 0)
] + [
    (f"clip_grad_value/{most}", f"nn.utils.clip_grad_value_(p, {most})", f"clip_grad_value_(p, {most}), 0.0")
    for most in (1, 0.25, 0)
]
