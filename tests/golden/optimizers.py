#!/usr/bin/env python3
"""Optimizers, learning-rate schedules and gradient clipping in PyTorch, as optimizers.safetensors.

    /usr/bin/python3 tests/golden/optimizers.py

An optimizer's case trains two parameters, a (3, 5) and b (4,), for 20 steps.  "start/a" is what a
starts from; its gradient in step t is target/a[t] * a - pull/a[t], so that errors feed back;
"<case>/f64/a" is a after each step, (20, 3, 5).  b likewise, and f32.  Schedules are the rates of
20 steps.  The gradients that are clipped are "clip/gradient/<k>".  RMSprop, Adagrad, Lion and Muon
train for 50 steps, with the targets and pulls from the start again; Muon trains matrices, (5, 3) and
(2, 2), of the same numbers.  PyTorch 1.13 has neither Lion nor Muon: they are written here.

Needs PyTorch 1.13 (Debian: python3-torch) and the standard library; the same PyTorch writes the
same bytes.
"""
import math
from pathlib import Path

import torch
from golden import Golden
from torch import optim

STEPS = 20
DTYPES = {"f64": torch.float64, "f32": torch.float32}
golden = Golden(Path(__file__).with_suffix(".safetensors"),
                {"source": f"tests/golden/optimizers.py, PyTorch {torch.__version__}"})
draws = torch.Generator().manual_seed(11)
start, target, pull = {}, {}, {}
for key, sizes in dict(a=(3, 5), b=(4,)).items():
    start[key] = torch.randn(sizes, generator=draws)
    target[key] = torch.rand((STEPS, *sizes), generator=draws)
    pull[key] = torch.randn((STEPS, *sizes), generator=draws) * 2
    golden.add(f"start/{key}", start[key])
    golden.add(f"target/{key}", target[key])
    golden.add(f"pull/{key}", pull[key])


def case(name, make, change=lambda optimizer, t: None, without_b=(), steps=STEPS, shapes=None):
    """make(a, b) returns the optimizer, which change(optimizer, t) may alter before step t.  In the
    steps without_b, b has no gradient."""
    for label, dtype in DTYPES.items():
        shape = shapes or {k: v.shape for k, v in start.items()}
        parameters = {k: torch.nn.Parameter(v.to(dtype, copy=True).reshape(shape[k])) for k, v in start.items()}
        optimizer = make(*parameters.values())
        after = {k: [] for k in parameters}
        for t in range(steps):
            change(optimizer, t)
            for k, p in parameters.items():
                slope, constant = (x[k][t % STEPS].to(dtype).reshape(shape[k]) for x in (target, pull))
                p.grad = slope * p.detach() - constant
            if t in without_b:
                parameters["b"].grad = None
            optimizer.step()
            for k, p in parameters.items():
                after[k].append(p.detach().clone())
        for k in parameters:
            golden.add(f"{name}/{label}/{k}", torch.stack(after[k]))


def on_schedule(optimizer, t):
    for group in optimizer.param_groups:
        group["lr"] = nanogpt(t, 0.1, 0.01, 4, 16)


def optimizers():
    case("SGD/plain", lambda *p: optim.SGD(p, lr=0.1))
    case("SGD/weight_decay", lambda *p: optim.SGD(p, lr=0.1, weight_decay=0.3))
    case("SGD/momentum", lambda *p: optim.SGD(p, lr=0.05, momentum=0.9))
    case("SGD/momentum_weight_decay",
         lambda *p: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1))
    case("SGD/dampening", lambda *p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.4))
    case("SGD/nesterov", lambda *p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True))
    case("SGD/nesterov_weight_decay",
         lambda *p: optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1))
    case("SGD/groups", lambda a, b: optim.SGD([{"params": [a], "lr": 0.1, "weight_decay": 0.2},
                                              {"params": [b], "momentum": 0.5}], lr=0.03))
    case("SGD/missing_gradients", lambda *p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.2),
         without_b=(0, 1, 7))
    for name, kind in dict(Adam=optim.Adam, AdamW=optim.AdamW).items():
        case(f"{name}/defaults", lambda *p: kind(p))
        case(f"{name}/rate", lambda *p: kind(p, lr=0.1))
        case(f"{name}/betas", lambda *p: kind(p, lr=0.05, betas=(0.8, 0.95)))
        case(f"{name}/betas_0", lambda *p: kind(p, lr=0.05, betas=(0, 0)))
        case(f"{name}/eps", lambda *p: kind(p, lr=0.05, eps=0.1))
        case(f"{name}/weight_decay", lambda *p: kind(p, lr=0.05, weight_decay=0.3))
        case(f"{name}/groups", lambda a, b: kind([{"params": [a], "weight_decay": 0.2},
                                                  {"params": [b], "lr": 0.2, "betas": (0.5, 0.9),
                                                   "weight_decay": 0}], lr=0.03))
        case(f"{name}/missing_gradients", lambda *p: kind(p, lr=0.05), without_b=(0, 1, 7))
        case(f"{name}/schedule", lambda *p: kind(p, lr=1, weight_decay=0.1), on_schedule)
    case("AdamW/no_decay", lambda *p: optim.AdamW(p, lr=0.05, weight_decay=0))
    case("SGD/schedule", lambda *p: optim.SGD(p, lr=1, momentum=0.9), on_schedule)


class Formula(optim.Optimizer):
    """formula(p, g, m, **options) changes the parameter p and the Tensor m that is kept for it."""

    def __init__(self, parameters, formula, **options):
        super().__init__(parameters, options)
        self.formula = formula

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            options = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                if p.grad is not None:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    self.formula(p, p.grad, m, **options)


def lion(p, g, m, lr, betas=(0.9, 0.99), weight_decay=0.0):
    """Chen et al., 2023, algorithm 2."""
    update = (betas[0] * m + (1 - betas[0]) * g).sign()
    p.sub_(lr * (update + weight_decay * p))
    m.mul_(betas[1]).add_((1 - betas[1]) * g)


def muon(p, g, m, lr, momentum=0.95, nesterov=True, weight_decay=0.1, eps=1e-7):
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


def more_optimizers():
    def add(name, make, **more):
        case(name, make, steps=50, **more)

    b_rests = dict(without_b=(0, 1, 7))
    add("RMSprop/plain", lambda *p: optim.RMSprop(p))
    add("RMSprop/options", lambda *p: optim.RMSprop(p, 0.03, alpha=0.9, eps=1e-3, weight_decay=0.1), **b_rests)
    add("RMSprop/momentum", lambda *p: optim.RMSprop(p, 0.02, momentum=0.8, weight_decay=0.1), **b_rests)
    add("Adagrad/plain", lambda *p: optim.Adagrad(p))
    add("Adagrad/options", lambda *p: optim.Adagrad(
        p, 0.2, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-3), **b_rests)
    add("Lion/plain", lambda *p: Formula(p, lion, lr=1e-4))
    add("Lion/options", lambda *p: Formula(p, lion, lr=0.02, betas=(0.8, 0.95), weight_decay=0.3), **b_rests)
    matrices = dict(shapes=dict(a=(5, 3), b=(2, 2)))
    add("Muon/plain", lambda *p: Formula(p, muon, lr=1e-3), **matrices)
    add("Muon/wide", lambda *p: Formula(p, muon, lr=0.05), shapes=dict(a=(3, 5), b=(1, 4)))
    add("Muon/options", lambda *p: Formula(
        p, muon, lr=0.03, momentum=0.8, nesterov=False, weight_decay=0.5, eps=1e-2), **matrices, **b_rests)


def nanogpt(step, learning_rate, min_lr, warmup_iters, lr_decay_iters):
    if step < warmup_iters:
        return learning_rate * (step + 1) / (warmup_iters + 1)
    if step > lr_decay_iters:
        return min_lr
    way = (step - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * way)) * (learning_rate - min_lr)


def schedules():
    def rates(make):
        optimizer = optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
        scheduler = make(optimizer)
        for _ in range(STEPS):
            yield optimizer.param_groups[0]["lr"]
            optimizer.step()
            scheduler.step()

    def add(name, values):
        golden.add(name, torch.tensor(list(values), dtype=torch.float64))

    add("constant/0.3", rates(lambda o: optim.lr_scheduler.ConstantLR(o, factor=1)))
    add("step_decay/7", rates(lambda o: optim.lr_scheduler.StepLR(o, 7)))
    add("step_decay/3", rates(lambda o: optim.lr_scheduler.StepLR(o, 3, gamma=0.7)))
    add("step_decay/1", rates(lambda o: optim.lr_scheduler.StepLR(o, 1, gamma=0.9)))
    add("exponential/0.9", rates(lambda o: optim.lr_scheduler.ExponentialLR(o, 0.9)))
    add("exponential/1.1", rates(lambda o: optim.lr_scheduler.ExponentialLR(o, 1.1)))
    add("warmup_cosine/5_15", (nanogpt(t, 0.3, 0.03, 5, 15) for t in range(STEPS)))
    add("warmup_cosine/0_19", (nanogpt(t, 0.3, 0, 0, 19) for t in range(STEPS)))
    add("warmup_cosine/19_100", (nanogpt(t, 0.3, 0.03, 19, 100) for t in range(STEPS)))
    add("warmup_cosine/100_2000", (nanogpt(10 * t + 7, 1e-3, 1e-4, 100, 2000) for t in range(STEPS)))


def clipping():
    gradients = [torch.randn(sizes, generator=draws) for sizes in ((3, 5), (4,), ())]
    gradients[0] *= 4
    for k, gradient in enumerate(gradients):
        golden.add(f"clip/gradient/{k}", gradient)

    def add(name, clip):
        for label, dtype in DTYPES.items():
            parameters = [torch.nn.Parameter(torch.zeros(g.shape, dtype=dtype)) for g in gradients]
            for parameter, gradient in zip(parameters, gradients):
                parameter.grad = gradient.to(dtype, copy=True)
            parameters.append(torch.nn.Parameter(torch.zeros(2, dtype=dtype)))  # has no gradient
            norm = clip(parameters)
            if norm is not None:
                golden.add(f"{name}/{label}/norm", norm)
            for k in range(len(gradients)):
                golden.add(f"{name}/{label}/{k}", parameters[k].grad)

    for norm_type in 2.0, 1.0, 3.0, math.inf, 0.5:
        for max_norm in 1.0, 1000.0, 0.0:
            add(f"clip_grad_norm/{norm_type:g}_{max_norm:g}",
                lambda p: torch.nn.utils.clip_grad_norm_(p, max_norm, norm_type))
    for limit in 1.0, 0.25, 0.0:
        add(f"clip_grad_value/{limit:g}", lambda p: torch.nn.utils.clip_grad_value_(p, limit))


if __name__ == "__main__":
    torch.set_num_threads(1)
    optimizers()
    schedules()
    clipping()
    more_optimizers()
    print(f"{golden.write()} bytes: {golden.path}")
