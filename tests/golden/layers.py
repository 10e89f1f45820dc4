#!/usr/bin/env python3
"""PyTorch's numbers for the tables of layers (layers/*.safetensors, lm/*.safetensors), and our calls.  script.py says how to call it.

table_layers.py says what a sample is.  In its layer's file stand

    <sample>/init/<parameter>         as manual_seed(1337) and the layer's constructor leave it
    <sample>/given/<parameter>        what replaces it where it starts constant, so that it counts
    <sample>/in/<input>               inputs, integers among them
    <sample>/up/<output>              the gradient that backward starts from
    <sample>/f64/out/<output>         results in float64, and so on for f32
    <sample>/f64/grad/<parameter>
    <sample>/f64/grad_in/<input>

all float32 but the results.  Dropout draws from manual_seed(99), set before the call.  What is not drawn by a layer comes from a
generator that each sample seeds by its name, so a new sample changes no other's numbers.
"""
import copy

import script
import table_layers
import table_lm
from table import cpp_text, filled, seed_of, torch


def add_numbers(golden, s, names):
    generator = torch.Generator().manual_seed(seed_of(s.name))
    inputs = {k: x.draw(generator) for k, x in s.inputs.items()}
    for k, x in inputs.items():
        golden.add(f"{s.name}/in/{k}", x)
    if s.theirs is None:
        return
    draw = lambda like: torch.randn(like.shape, generator=generator)
    torch.manual_seed(1337)
    m = eval(s.theirs, names)
    with torch.no_grad():
        for k, p in m.named_parameters():
            golden.add(f"{s.name}/init/{k}", p)
            if p.numel() > 0 and (p == p.flatten()[0]).all():
                p.add_(draw(p) / 2)
                golden.add(f"{s.name}/given/{k}", p)
    up = {}
    for label, dtype in ("f64", torch.float64), ("f32", torch.float32):
        model = copy.deepcopy(m).to(dtype)
        values = {k: x.to(dtype, copy=True).requires_grad_() if x.is_floating_point() else
                  x.bool() if s.inputs[k].kind == "mask" else x for k, x in inputs.items()}
        torch.manual_seed(99)
        outputs = eval(call_of(s), names)(model, **values)
        total = 0
        for k, y in zip(s.outputs, flat(outputs)):
            golden.add(f"{s.name}/{label}/out/{k}", y)
            if k not in up:
                up[k] = draw(y)
                golden.add(f"{s.name}/up/{k}", up[k])
            total = total + (y * up[k].to(dtype)).sum()
        total.backward()
        for k, p in model.named_parameters():
            golden.add(f"{s.name}/{label}/grad/{k}", p.grad)
        for k, x in values.items():
            if x.requires_grad:
                golden.add(f"{s.name}/{label}/grad_in/{k}", x.grad)


def flat(outputs):
    """The Tensors in nested tuples, and in a dictionary, in their order."""
    if isinstance(outputs, dict):
        outputs = tuple(outputs.values())
    if isinstance(outputs, tuple):
        return [x for y in outputs for x in flat(y)]
    return [] if outputs is None else [outputs]


def our_calls(table):
    lines = [f"// Written by tests/golden/layers.py from {table.__name__}.py."]
    read = {"in": "const Tensor& {} = in[\"{}\"];", "ids": "const Indices {} = in.indices(\"{}\");",
            "mask": "const Mask {} = in.mask(\"{}\");"}
    for s in table.samples:
        inputs = " ".join(read[x.kind].format(k, k) for k, x in s.inputs.items())
        options = [f".{option} = true" for option, on in (("normal_start", s.normal_start), ("derivatives_only", s.theirs is None),
                                                          ("no_differences", not s.differences)) if on]
        lines.append(f'layer_call("{s.name}", "{" ".join(s.outputs)}", [] {{ return {filled(s.ours, s.values, cpp_text)}; }}, '
                     f"[]([[maybe_unused]] auto& m, LayerInputs& in) -> LayerOutputs {{ {inputs} return {s.our_call}; }}, "
                     f"{{{', '.join(options)}}}),")
    return "\n".join(lines) + "\n"


def call_of(s):
    return f"lambda m, {', '.join(s.inputs)}: {s.call}"


def rows(table):
    sources = script.Sources("table_layers.py", f"{table.__name__}.py", "formulas.py")
    for s in table.samples:
        code = sources.follow(f"[{s.theirs}, {call_of(s)}, {s.inputs}, {s.outputs}]")
        yield script.Row(s.name, code, lambda golden, s=s: add_numbers(golden, s, vars(table)), s.since)


if __name__ == "__main__":
    folders = {"layers": table_layers, "lm": table_lm}
    script.run("layers", {f"{folder}.inc": our_calls(table) for folder, table in folders.items()},
               {folder: list(rows(table)) for folder, table in folders.items()})
