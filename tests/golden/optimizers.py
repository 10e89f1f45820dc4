#!/usr/bin/env python3
"""PyTorch's numbers for the table of optimizers (optimizers/*.safetensors), and our calls.  script.py says how to call it.

table_optimizers.py says what a sample is.  An optimizer trains two parameters, a and b, for 20 or 50 steps.  "inputs/start/a"
is what a starts from; its gradient in step t is target/a[t % 20] * a - pull/a[t % 20], so that errors feed back;
"<sample>/f64/a" is a after each step, (20, 3, 5).  b likewise, and f32.  Schedules are the rates of 20 steps.  The
gradients that are clipped are "inputs/gradient/<k>".
"""

import functools

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


def draw_inputs(golden):
    draws = torch.Generator().manual_seed(11)
    for key, sizes in dict(a=(3, 5), b=(4,)).items():
        golden.add(f"inputs/start/{key}", torch.randn(sizes, generator=draws))
        golden.add(f"inputs/target/{key}", torch.rand((STEPS, *sizes), generator=draws))
        golden.add(f"inputs/pull/{key}", torch.randn((STEPS, *sizes), generator=draws) * 2)
    for k, sizes in enumerate(((3, 5), (4,), ())):
        golden.add(f"inputs/gradient/{k}", torch.randn(sizes, generator=draws) * (4 if k == 0 else 1))


@functools.lru_cache(maxsize=None)
def inputs():
    """As they are in the file, because versions of PyTorch may draw other last bits."""
    from safetensors_file import load_safetensors
    return load_safetensors(script.HERE / "optimizers" / "inputs.safetensors")[0]


def dtypes():
    return {"f64": torch.float64, "f32": torch.float32}.items()


def train(golden, name, kind, s, steps):
    for label, dtype in dtypes():
        shapes = dict(zip("ab", s.shapes))
        shaped = lambda x, k: x.to(dtype, copy=True).reshape(shapes[k])
        parameters = {k: torch.nn.Parameter(shaped(inputs()[f"inputs/start/{k}"], k)) for k in "ab"}
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
                slope, constant = (shaped(inputs()[f"inputs/{what}/{k}"][t % STEPS], k) for what in ("target", "pull"))
                p.grad = slope * p.detach() - constant
            if s.pauses and t in (0, 1, 7):
                b.grad = None
            optimizer.step()
            for k, p in parameters.items():
                after[k].append(p.detach().clone())
        for k in parameters:
            golden.add(f"{name}/{label}/{k}", torch.stack(after[k]))


def add_rates(golden, name, make):
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
    golden.add(f"{name}/rates", torch.tensor(rates, dtype=torch.float64))


def add_clipped(golden, name, clip):
    for label, dtype in dtypes():
        gradients = [inputs()[f"inputs/gradient/{k}"].to(dtype, copy=True) for k in range(3)]
        parameters = [torch.nn.Parameter(torch.zeros(g.shape, dtype=dtype)) for g in gradients]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        parameters.append(torch.nn.Parameter(torch.zeros(2, dtype=dtype)))  # has no gradient
        norm = clip(parameters)
        if norm is not None:
            golden.add(f"{name}/{label}/norm", norm)
        for k in range(3):
            golden.add(f"{name}/{label}/{k}", parameters[k].grad)


def rows():
    sources, names = script.Sources("optimizers.py", "table_optimizers.py"), vars(table_optimizers)
    row = lambda name, code, add, since=None: script.Row(name, sources.follow(f"[{code}, draw_inputs]"), add, since)
    yield row("inputs", "0", draw_inputs)
    for name, theirs, s, steps in OPTIMIZERS:
        full = f"{name}/{s.name}"
        rates = "nanogpt" if s.scheduled else None
        yield row(full, f"{theirs}, {s.options}, {s.pauses}, {rates}, {s.shapes}, {steps}",
                  lambda golden, full=full, f=theirs, s=s, steps=steps: train(golden, full, eval(f, names), s, steps), s.since)
    for table, letter, add in (SCHEDULES, "o", add_rates), (CLIPS, "p", add_clipped):
        for name, theirs, _ in table:
            f = f"lambda {letter}: {theirs}"
            yield row(name, f, lambda golden, name=name, f=f, add=add: add(golden, name, eval(f, names)))


if __name__ == "__main__":
    script.run("optimizers", {"optimizers.inc": calls()}, {"optimizers": list(rows())})
