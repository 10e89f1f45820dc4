"""The table of samples: one line a sample of an op, PyTorch's text and ours beside each other.

    table = Table(globals())
    table.op("softmax", "x.softmax({dim})", "softmax(x, {dim})",
             S("last", randn(2, 3, 4), dim=-1),
             S("long rows", randn(9, 2500), dim=-1, large=True))
    table.bad("softmax(zeros({2, 3}), 2)", "ValueError", "softmax", "dimension 2")

Both texts name the inputs of a sample by the same letters, in the order in which they are given: x, y, z, u, v are
Tensors that are differentiated; w, c constants (Fixed); i, j, k integers; m, n masks.  `{name}` stands for the
sample's value of that name.  PyTorch's text is an expression that sees PyTorch as torch, torch.nn.functional as F,
and the functions of the table's file: a formula where PyTorch has no such op, or decides otherwise than we do.

Every sample is compared with PyTorch's values and, unless PyTorch's text detaches them, gradients; then it runs through
everything that an op must satisfy (tests/autograd/ops/samples_test.cpp).  ops.py writes PyTorch's numbers to ops/*.safetensors and
our calls to generated/*.inc; this file needs no PyTorch for the latter.
"""

import math
import re
import zlib

from script import Row, Sources

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # the calls can be written without
    torch = F = None

inf = math.inf
LETTERS = {"in": "xyzuv", "fixed": "wc", "ids": "ijk", "mask": "mn"}


def short(x):
    """Rounded to multiples of 1/1024, which float32 holds, so that no last bit is the machine's."""
    return torch.round(x.double() * 1024) / 1024


class Input:
    """An input of a sample, of a kind that LETTERS names: draw(generator) makes it, a function within one that names it.  `ours`
    is our text of the same, which inputs of large samples need."""

    def __init__(self, draw, kind="in", ours=None):
        self.draw, self.kind, self.ours = draw, kind, ours

    def __repr__(self):
        """The kind, the function that made it, and the values that it was made of."""
        given = {k: cell.cell_contents for k, cell in zip(self.draw.__code__.co_freevars, self.draw.__closure__ or ())}
        return f"({self.kind!r}, {self.draw.__qualname__.split('.')[0]}, {dict(sorted(given.items()))})"


def sizes_text(shape):
    return "{" + ", ".join(map(str, shape)) + "}"


def randn(*shape):
    draw = lambda generator: short(torch.randn(shape, generator=generator, dtype=torch.float64))
    return Input(draw, ours=f"draws.randn({sizes_text(shape)})")


def uniform(low, high, *shape):
    """In [low, high), up to rounding: away from the ends."""
    draw = lambda generator: short(low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64))
    return Input(draw, ours=f"draws.uniform({low}, {high}, {sizes_text(shape)})")


def distinct(*shape):
    """Randomly ordered values at least 1/8 apart: no ties, no zeros."""

    def draw(generator):
        count = torch.empty(shape).numel()
        order = torch.randperm(count, generator=generator)
        return ((order - count // 2) / 8 + 1 / 16).double().reshape(shape)

    return Input(draw)


def positive(*shape):
    return uniform(0.25, 3, *shape)


def away_from_zero(*shape):
    """Of either sign."""

    def draw(generator):
        x = uniform(-2, 2, *shape).draw(generator)
        return torch.where(x < 0, x - 0.25, x + 0.25)

    return Input(draw)


def probabilities(*shape):
    """Along dimension 1, or the only one; short numbers, so their sum is only nearly 1."""

    def draw(generator):
        x = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.1
        return short(x / x.sum(dim=min(1, len(shape) - 1), keepdim=True))

    return Input(draw)


def values(data):
    return Input(lambda generator: torch.tensor(data, dtype=torch.float64))


def ids(data, *shape):
    return Input(lambda generator: torch.tensor(data, dtype=torch.int64).reshape(shape or (-1,)), "ids")


def one_id(i):
    """0-d."""
    return Input(lambda generator: torch.tensor(i, dtype=torch.int64), "ids")


def mask(data):
    return Input(lambda generator: torch.tensor(data, dtype=torch.bool), "mask")


def Fixed(x):
    """The same input as a constant."""
    return Input(x.draw, "fixed")


class S:
    """A sample: a name, inputs, and values for the texts.

    theirs, ours  texts of this sample in place of its op's
    seed          manual_seed(seed) is called before both
    second        False: no second gradients, and no differences: the sample stands on a kink
    differences   False: PyTorch's numbers only, because differences are infinite there, or cancel
    finite        False: outputs may be infinite or not a number
    large         inputs are not stored, for both draw the same, and of outputs and gradients only digests; no second
                  gradients
    loose         tolerance of float32 in place of 1e-5, relative to the largest magnitude
    since         the first PyTorch whose numbers win ("2.4"): others do not write this row
    """

    def __init__(self, name, *inputs, theirs=None, ours=None, seed=None, second=True, differences=None, finite=True,
                 large=False, loose=None, since=None, **values):
        self.name, self.inputs, self.theirs, self.ours, self.seed = name, inputs, theirs, ours, seed
        self.second = second and not large
        self.differences = second if differences is None else differences
        self.finite, self.large, self.loose, self.since, self.values = finite, large, loose, since, values


def python_text(value):
    return value if isinstance(value, str) else repr(value)


def cpp_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "{" + ", ".join(map(cpp_text, value)) + "}"
    if value is None:
        return "{}"
    return str(value)


def filled(text, values, as_text):
    return re.sub(r"\{(\w+)\}", lambda at: as_text(values[at[1]]) if at[1] in values else at[0], text)


class Table:
    """The samples and the bad calls of a group of ops; `names` is what PyTorch's texts see."""

    def __init__(self, names):
        self.names, self.samples, self.bads = names, [], []

    def op(self, name, theirs, ours, *samples):
        for s in samples:
            self.samples.append((
                f"{name}/{s.name}",
                filled(s.theirs or theirs, s.values, python_text),
                filled(s.ours or ours, s.values, cpp_text),
                s,
            ))

    def bad(self, ours, error, *fragments):
        """A call that throws this error, whose message holds every fragment."""
        assert all(ours != text for text, _, _ in self.bads), f"{ours} stands twice: one would not run"
        self.bads.append((ours, error, fragments))

    def write_calls(self, source):
        """Our calls, as C++."""
        lines = [f"// Written by tests/golden/ops.py from {source}.", "static const OpCall calls[] = {"]
        before = None
        for name, _, ours, s in self.samples:
            ours = ours if s.seed is None else f"(manual_seed({s.seed}), {ours})"
            call = "nullptr" if ours == before else f"CALL({ours})"
            before = ours
            fields = [f'"{name}"', call]
            if s.large or s.loose or not s.differences:
                fields.append("true" if s.differences else "false")
            if s.large or s.loose:
                fields.append(str(s.loose or 1e-5))
            if s.large:
                drawn = ", ".join(x.ours for x in s.inputs)
                draw = f"[](Draws& draws) {{ return std::vector<Tensor>{{{drawn}}}; }}"
                fields += [str(seed_of(name)), draw]
            lines.append("{" + ", ".join(fields) + "},")
        lines += ["};", "static const BadCall bad_calls[] = {"]
        for ours, error, fragments in self.bads:
            quoted = ", ".join(quote(f) for f in fragments)
            lines.append(f"{{{quote(ours)}, BadCall::{error}, [] {{ (void)({ours}); }}, {{{quoted}}}}},")
        return "\n".join(lines + ["};", ""])

    def rows(self, source):
        """The rows for script.py.  The names in a file of numbers, after the sample's:

        in0, ...; fixed0, ...  inputs: float64 that float32 holds exactly, so that one sample serves both dtypes
        ids0, ...; mask0, ...  integers; truth values as 0 and 1
        out0, ...              outputs
        index0, ...            outputs of integers or truth values
        g0, ...                cotangents, one for each output
        grad0, ...             d <g, out> / d in
        v0, ...                cotangents of the gradients
        second0, ...; gg0, ... d <v, grad> / d in; the same / d g.  One that is not there is zero.

        All random numbers of a sample come from its name: a new one changes no other."""
        sources = Sources("table.py", source)
        for name, theirs, _, s in self.samples:
            f = f"lambda x, y, z, u, v, w, c, i, j, k, m, n: {theirs}"
            code = sources.follow(f"[{f}, {list(s.inputs)}, {s.seed}, {s.second}, {s.finite}, {s.large}]")
            yield Row(name, code, lambda golden, name=name, f=f, s=s: Numbers(golden, name, s).add(eval(f, self.names)), s.since)


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def seed_of(name):
    return zlib.crc32(name.encode())


def digest(x):
    """The largest magnitude, a mean with weights that differ from line to line, and at most 62 elements at even
    distances."""
    flat = x.detach().double().flatten()
    weights = (torch.arange(flat.numel(), dtype=torch.float64) * 467 % 1009 + 1) / 1010
    some = flat[:: max(1, -(-flat.numel() // 62))]
    return torch.cat([flat.abs().max().reshape(1), (flat * weights).mean().reshape(1), some])


class Numbers:
    """Adds the numbers of one sample to a Golden."""

    def __init__(self, golden, name, sample):
        self.golden, self.name, self.sample = golden, name, sample
        self.generator = torch.Generator().manual_seed(seed_of(name))

    def add(self, f):
        s = self.sample
        arguments, leaves = self.inputs()
        if s.seed is not None:
            torch.manual_seed(s.seed)
        result = f(*arguments)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        outs = [y for y in results if y.is_floating_point()]
        self.store("out", outs, s.finite, s.large)
        self.store("index", [y.long() for y in results if not y.is_floating_point()])
        if not outs or not any(y.requires_grad for y in outs):
            return
        gs = [self.random_like(y).requires_grad_() for y in outs]
        grads = gradients(outs, leaves, gs)
        if not s.large:
            self.store("g", gs)
        self.store("grad", grads, s.finite, s.large)
        if not s.second:
            return
        vs = [self.random_like(x) for x in leaves]
        while cancels(vs, grads, gs):
            vs = [self.random_like(x) for x in leaves]
        self.store("v", vs)
        seconds = gradients(grads, leaves + gs, vs)
        for kind, some in (("second", seconds[: len(leaves)]), ("gg", seconds[len(leaves) :])):
            for i, x in enumerate(some):
                if x.any():
                    self.store(kind, {i: x})

    def random_like(self, x):
        return short(torch.randn(x.shape, generator=self.generator, dtype=torch.float64)).to(x.dtype)

    def inputs(self):
        """The arguments x, y, ..., None where the sample has none; and those that are differentiated."""
        by_kind = {kind: [] for kind in LETTERS}
        for given in self.sample.inputs:
            x = given.draw(self.generator)
            if x.is_floating_point():
                exact = torch.allclose(x, x.float().double(), rtol=0, atol=0, equal_nan=True)
                assert exact, f"{self.name}: an input that float32 does not hold"
            by_kind[given.kind].append(x.requires_grad_() if given.kind == "in" else x)
        if not self.sample.large:
            for kind, tensors in by_kind.items():
                self.store(kind, [x.long() for x in tensors] if kind == "mask" else tensors, finite=False)
        arguments = []
        for kind, letters in LETTERS.items():
            arguments += by_kind[kind] + [None] * (len(letters) - len(by_kind[kind]))
        return arguments, by_kind["in"]

    def store(self, kind, tensors, finite=True, as_digest=False):
        for i, x in (tensors if isinstance(tensors, dict) else dict(enumerate(tensors))).items():
            if finite and not torch.isfinite(x).all():
                raise ValueError(f"{self.name}/{kind}{i} is not finite: {x}")
            self.golden.add(f"{self.name}/{kind}{i}", digest(x) if as_digest else x)


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
    grads = torch.autograd.grad(*zip(*[(y,) for y, _ in used]), inputs, [g for _, g in used], create_graph=True,
                                allow_unused=True)
    return [torch.zeros_like(x) if d is None else d for x, d in zip(inputs, grads)]
