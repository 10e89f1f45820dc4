#!/usr/bin/env python3
"""PyTorch's numbers for the table of optimizers (optimizers.safetensors), and our calls.  script.py says how to call it.

table_optimizers.py says what a sample is.  An optimizer trains two parameters, a and b, for 20 or 50 steps.  "start/a"
is what a starts from; its gradient in step t is target/a[t % 20] * a - pull/a[t % 20], so that errors feed back;
"<sample>/f64/a" is a after each step, (20, 3, 5).  b likewise, and f32.  Schedules are the rates of 20 steps.  The
gradients that are clipped are "clip/gradient/<k>".

Needs PyTorch 1.13 (Debian: python3-torch); the same PyTorch writes the same bytes.
"""

import script
import table_optimizers
from table import cpp_text, torch
from table_optimizers import CLIPS, OPTIMIZERS, SCHEDULES, nanogpt

STEPS = 20


def calls():
    def braces(options):
        return "{" + ", ".join(f".{k} = {cpp_text(v)}" for k, v in options.items()) + "}"

    lines = ["// Written by tests/golden/optimizers.py from table_optimizers.py.", "static const OptimizerSample samples[] = {"]
    for ours, _, s, _ in OPTIMIZERS:
        first, *others = map(braces, s.options)
        given = f"{{{{{{p[0]}}, {first}}}, {{others(p), {others[0]}}}}}" if others else f"p, {first}"
        more = "".join(f", .{flag} = true" for flag in ("pauses", "scheduled") if getattr(s, flag))
        lines.append(f'{{.name = "{ours}/{s.name}", .make = MAKE({ours}({given})){more}}},')
    for kind, macro, rows in ("Schedule", "RATE", SCHEDULES), ("Clip", "CLIP", CLIPS):
        lines += ["};", f"static const {kind}Sample {kind.lower()}s[] = {{"]
        lines += [f'{{"{name}", {macro}({ours})}},' for name, _, ours in rows]
    return "\n".join(lines + ["};", ""])


class Numbers:
    """PyTorch's numbers, in a Golden."""

    def __init__(self, golden):
        self.golden = golden
        self.dtypes = {"f64": torch.float64, "f32": torch.float32}
        draws = torch.Generator().manual_seed(11)
        self.start, self.target, self.pull = {}, {}, {}
        for key, sizes in dict(a=(3, 5), b=(4,)).items():
            self.start[key] = torch.randn(sizes, generator=draws)
            self.target[key] = torch.rand((STEPS, *sizes), generator=draws)
            self.pull[key] = torch.randn((STEPS, *sizes), generator=draws) * 2
            golden.add(f"start/{key}", self.start[key])
            golden.add(f"target/{key}", self.target[key])
            golden.add(f"pull/{key}", self.pull[key])
        self.gradients = [torch.randn(sizes, generator=draws) for sizes in ((3, 5), (4,), ())]
        self.gradients[0] *= 4
        for k, gradient in enumerate(self.gradients):
            golden.add(f"clip/gradient/{k}", gradient)

    def add_optimizer(self, name, kind, s, steps):
        for label, dtype in self.dtypes.items():
            shapes = dict(zip("ab", s.shapes))
            shaped = lambda x, k: x.to(dtype, copy=True).reshape(shapes[k])
            parameters = {k: torch.nn.Parameter(shaped(x, k)) for k, x in self.start.items()}
            a, b = parameters.values()
            if len(s.options) == 1:
                optimizer = kind([a, b], **s.options[0])
            else:
                optimizer = kind([dict(params=[p], **options) for p, options in zip((a, b), s.options)])
            after = {k: [] for k in parameters}
            for t in range(steps):
                for group in optimizer.param_groups if s.scheduled else []:
                    group["lr"] = nanogpt(t, 0.1, 0.01, 4, 16)
                for k, p in parameters.items():
                    slope, constant = (shaped(x[k][t % STEPS], k) for x in (self.target, self.pull))
                    p.grad = slope * p.detach() - constant
                if s.pauses and t in (0, 1, 7):
                    b.grad = None
                optimizer.step()
                for k, p in parameters.items():
                    after[k].append(p.detach().clone())
            for k in parameters:
                self.golden.add(f"{name}/{label}/{k}", torch.stack(after[k]))

    def add_schedule(self, name, make):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
        schedule = make(optimizer)
        rates = []
        for t in range(STEPS):
            if callable(schedule):
                rates.append(schedule(t))
            else:
                rates.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                schedule.step()
        self.golden.add(name, torch.tensor(rates, dtype=torch.float64))

    def add_clip(self, name, clip):
        for label, dtype in self.dtypes.items():
            parameters = [torch.nn.Parameter(torch.zeros(g.shape, dtype=dtype)) for g in self.gradients]
            for parameter, gradient in zip(parameters, self.gradients):
                parameter.grad = gradient.to(dtype, copy=True)
            parameters.append(torch.nn.Parameter(torch.zeros(2, dtype=dtype)))  # has no gradient
            norm = clip(parameters)
            if norm is not None:
                self.golden.add(f"{name}/{label}/norm", norm)
            for k in range(len(self.gradients)):
                self.golden.add(f"{name}/{label}/{k}", parameters[k].grad)


def add_numbers(golden):
    numbers, names = Numbers(golden), vars(table_optimizers)
    for name, theirs, s, steps in OPTIMIZERS:
        numbers.add_optimizer(f"{name}/{s.name}", eval(theirs, names), s, steps)
    for name, theirs, _ in SCHEDULES:
        numbers.add_schedule(name, eval(f"lambda o: {theirs}", names))
    for name, theirs, _ in CLIPS:
        numbers.add_clip(name, eval(f"lambda p: {theirs}", names))


if __name__ == "__main__":
    script.run("optimizers", ["optimizers.py", "table_optimizers.py"], {"optimizers.inc": calls()}, add_numbers)
