"""What a golden case of an op is, and how PyTorch computes it.

A case is named "op/sample".  Its tensors in the file:

    in0, in1, ...          inputs that are differentiated: float64 that float32 holds exactly, so
                           that one case serves both dtypes
    fixed0, ...            float inputs that are constants (the weights of classes)
    ids0, ...; mask0, ...  inputs of integers; of truth values, as 0 and 1
    out0, ...              outputs
    index0, ...            outputs of integers or truth values
    g0, ...                cotangents, one for each output
    grad0, ...             d <g, out> / d in
    v0, ...                cotangents of the gradients
    second0, ...; gg0, ... d <v, grad> / d in; the same / d g.  One that is not there is zero.

All random numbers of a case come from its name: a new case changes no other.
"""

import zlib

import torch


class Fixed:
    """Marks a float input as a constant."""

    def __init__(self, value):
        self.value = value


def short(x):
    """Rounded to multiples of 1/1024, which float32 holds, so that no last bit is the machine's."""
    return torch.round(x.double() * 1024) / 1024


# Inputs are functions of the case's generator.


def randn(*shape):
    return lambda generator: short(torch.randn(shape, generator=generator, dtype=torch.float64))


def uniform(low, high, *shape):
    """In [low, high), up to rounding: away from what is outside."""
    return lambda generator: short(
        low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    )


def distinct(*shape):
    """Randomly ordered values at least 1/8 apart: no ties, no zeros."""

    def draw(generator):
        count = torch.empty(shape).numel()
        order = torch.randperm(count, generator=generator)
        return ((order - count // 2) / 8 + 1 / 16).double().reshape(shape)

    return draw


def values(data):
    return lambda generator: torch.tensor(data, dtype=torch.float64)


def probabilities(*shape):
    """Along dimension 1, or the only one; short numbers, so their sum is only nearly 1."""

    def draw(generator):
        x = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.1
        return short(x / x.sum(dim=min(1, len(shape) - 1), keepdim=True))

    return draw


def ids(data, *shape):
    return lambda generator: torch.tensor(data, dtype=torch.int64).reshape(shape or (-1,))


def one_id(i):
    """0-d."""
    return lambda generator: torch.tensor(i, dtype=torch.int64)


def mask(data):
    return lambda generator: torch.tensor(data, dtype=torch.bool)


def as_list(x):
    return list(x) if isinstance(x, (tuple, list)) else [x]


class Cases:
    """Adds cases to a Golden file."""

    def __init__(self, golden):
        self.golden = golden
        self.names = []

    def add(self, name, f, *inputs, second=True, finite=True):
        """One case: f(*inputs), where f returns tensors, of floats, integers or truth values.
        Without `second`, no second gradients: where the first have a kink.  `finite`: so must the
        outputs be."""
        self.names.append(name)
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        arguments, leaves = self._inputs(name, inputs, generator)
        results = as_list(f(*arguments))
        outs = [y for y in results if y.is_floating_point()]
        self._add(name, "out", outs, finite)
        self._add(name, "index", [y.long() for y in results if not y.is_floating_point()])
        if not outs or not any(y.requires_grad for y in outs):
            return

        def random_like(x):
            y = short(torch.randn(x.shape, generator=generator, dtype=torch.float64))
            return y.to(x.dtype)

        gs = [random_like(y).requires_grad_() for y in outs]
        grads = gradients(outs, leaves, gs)
        self._add(name, "g", gs)
        self._add(name, "grad", grads)
        if not second:
            return
        vs = [random_like(x) for x in leaves]
        while cancels(vs, grads, gs):
            vs = [random_like(x) for x in leaves]
        self._add(name, "v", vs)
        seconds = gradients(grads, leaves + gs, vs)
        for kind, some in (("second", seconds[: len(leaves)]), ("gg", seconds[len(leaves) :])):
            for i, x in enumerate(some):
                if x.any():
                    self._add(name, kind, {i: x})

    def _inputs(self, name, inputs, generator):
        arguments, kinds = [], {"in": [], "fixed": [], "ids": [], "mask": []}
        for given in inputs:
            is_fixed = isinstance(given, Fixed)
            x = (given.value if is_fixed else given)(generator)
            arguments.append(x)
            if x.dtype == torch.bool:
                kinds["mask"].append(x.long())
            elif x.dtype == torch.int64:
                kinds["ids"].append(x)
            else:
                assert torch.allclose(x, x.float().double(), rtol=0, atol=0, equal_nan=True), name
                kinds["fixed" if is_fixed else "in"].append(x if is_fixed else x.requires_grad_())
        for kind, tensors in kinds.items():
            self._add(name, kind, tensors, finite=False)
        return arguments, kinds["in"]

    def _add(self, name, kind, tensors, finite=True):
        numbered = tensors if isinstance(tensors, dict) else dict(enumerate(tensors))
        for i, x in numbered.items():
            if finite and not torch.isfinite(x).all():
                raise ValueError(f"{name}/{kind}{i} is not finite: {x}")
            self.golden.add(f"{name}/{kind}{i}", x)


def cancels(vs, grads, gs):
    """Whether <v, grad> loses more than a digit to cancellation.  For a g of one element it is
    d / d g, times g, and no float32 would have it to 1e-5."""
    products = torch.cat([(v * d.double()).flatten() for v, d in zip(vs, grads)])
    return sum(g.numel() for g in gs) == 1 and 10 * products.sum().abs() < products.abs().sum()


def gradients(outputs, inputs, cotangents):
    """torch.autograd.grad under create_graph, with zeros for inputs that no output uses."""
    used = [(y, g) for y, g in zip(outputs, cotangents) if y.requires_grad]
    if not used:
        return [torch.zeros_like(x) for x in inputs]
    grads = torch.autograd.grad(
        *zip(*[(y,) for y, _ in used]),
        inputs,
        [g for _, g in used],
        create_graph=True,
        allow_unused=True,
    )
    return [torch.zeros_like(x) if d is None else d for x, d in zip(inputs, grads)]
