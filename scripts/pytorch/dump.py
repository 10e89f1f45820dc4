"""Writes the values of all ops of a run of PyTorch to a file, the reference of xgrad's compare(): docs/write_a_layer.md.

    from dump import dump

    y = dump("block.safetensors", block, x)      # calls block(x); also several inputs, and options by name
"""
import contextlib

import torch
from safetensors_file import save_safetensors
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


def dump(path, module, *inputs, **options):
    """Calls the module, writes its state, its inputs and the value of each op, and returns the result."""
    record, hooks = _Record(), []
    for name, x in module.state_dict(keep_vars=True).items():
        record.add(f"state {name}", x)
    for i, x in [*enumerate(inputs), *options.items()]:
        record.add(f"input {i}", x)
    for name, part in module.named_modules():
        hooks.append(part.register_forward_pre_hook(lambda *_, name=name: record.scopes.append(name)))
        hooks.append(part.register_forward_hook(lambda *_: [record.scopes.pop(), None][1]))
    try:
        with record, torch.enable_grad(), _plain_attention():  # without a graph PyTorch uses larger ops
            result = module(*inputs, **options)
    finally:
        for hook in hooks:
            hook.remove()
    record.sources["results"] = record.names_of(result)
    save_safetensors(record.values, path, {name: "\n".join(names) for name, names in record.sources.items()})
    return result


def _plain_attention():
    """Attention as its composition, where PyTorch has a choice, so that scores and weights are ops of their own."""
    kinds = getattr(torch.nn, "attention", None)
    return kinds.sdpa_kernel(kinds.SDPBackend.MATH) if kinds else contextlib.nullcontext()


class _Record(TorchDispatchMode):
    """Values by their names: "state NAME", "input NUMBER" or "000012 SCOPE OP"; and of each op the names of its inputs."""

    def __init__(self):
        super().__init__()
        self.values, self.sources, self.scopes, self.names, self.alive = {}, {}, [""], {}, []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        sources = self.names_of((args, kwargs))
        y = op(*args, **(kwargs or {}))
        for x in tree_flatten(y)[0]:
            name = f"{len(self.values):06} {self.scopes[-1]} {op._schema.name.split('::')[-1].strip('_')}"
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                self.add(name, x)
                self.sources[name] = sources
        return y

    def add(self, name, x):
        if not isinstance(x, torch.Tensor) or x.is_complex():
            return
        kind = x.dtype if x.dtype == torch.float64 else torch.float32 if x.is_floating_point() else torch.int64
        self.values[name] = x.detach().to(kind, copy=True)
        self.names[_place(x)] = name
        self.alive.append(x)  # No other tensor gets its memory.

    def names_of(self, tree):
        places = [_place(x) for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]
        return [self.names[place] for place in places if place in self.names]


def _place(x):
    return x.data_ptr(), x.shape, x.stride(), x.dtype
