#!/usr/bin/env python3
"""scripts/pytorch/dump.py writes what golden/weights/run.safetensors has, which tests of load_reference() read.

  dump.py      (needs the PyTorch that wrote it: Debian's)
"""
import os
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../golden"))
import weights  # noqa: E402
from dump import dump  # noqa: E402
from safetensors_file import load_safetensors, save_safetensors  # noqa: E402


def dumped(module, *inputs, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.safetensors")
        y = dump(path, module, *inputs, **options)
        assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
        return y, *load_safetensors(path)


expected, expected_sources = load_safetensors(os.path.join(HERE, "../golden/weights/run.safetensors"))
block = weights.Block().eval()
block.load_state_dict({name[6:]: x for name, x in expected.items() if name.startswith("state ")})
y, values, sources = dumped(block, expected["input 0"])
assert sources == expected_sources, sources
assert values.keys() == expected.keys()
for name, x in expected.items():
    assert torch.allclose(values[name], x, rtol=1e-5, atol=1e-6), name
assert torch.equal(y, values[sources["results"]])


class Scaled(torch.nn.Embedding):
    def forward(self, ids, scale):
        return super().forward(ids) * scale, None


# Indices and options by name are inputs, too; a value of float16 is a float32 in the file.
ids, scale = torch.tensor([1, 0, 1]), torch.tensor([2.0], dtype=torch.float64)
y, values, sources = dumped(Scaled(2, 3).half(), ids, scale=scale)
assert values["input 0"].tolist() == [1, 0, 1] and values["input scale"].item() == 2, values
assert values["state weight"].dtype == torch.float32 and sources["000003  embedding"] == "state weight\ninput 0", sources
assert sources["results"] == "000004  mul" and sources["000004  mul"] == "000003  embedding\ninput scale", sources

# A view has its own values in the file (safetensors 0.8.0 writes other ones from numpy); a tied weight is there once.
x = torch.arange(9.0).view(3, 3)
views = {"x": x, "transposed": x.t(), "columns": x[:, 1:], "rows": x[::2], "expanded": x[0].expand(3, 3), "one": x[1, 1]}
with tempfile.TemporaryDirectory() as folder:
    save_safetensors({**views, "tied": x.view(3, 3)}, os.path.join(folder, "views"))
    saved, _ = load_safetensors(os.path.join(folder, "views"))
assert saved.keys() == views.keys(), saved.keys()
for name, view in views.items():
    assert torch.equal(saved[name], view), (name, saved[name])
