"""Golden values: tensors in a safetensors file.

    golden = Golden("ops.safetensors")
    golden.add("add/broadcast/out", tensor)
    golden.write()

The same tensors give the same bytes: names sorted, nothing of the day or the machine in the header.
"""

import os
import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "pytorch"))
from safetensors_file import load_safetensors, save_safetensors  # noqa: E402


class Golden:
    """Tensors by name, to be written to `path`.  `metadata` maps strings to strings."""

    def __init__(self, path, metadata=None):
        self.path = path
        self.metadata = dict(metadata or {})
        self.tensors = {}

    def add(self, name, tensor):
        """Keeps a copy of a float64, float32 or int64 tensor; a name may be used once."""
        if name in self.tensors or name == "__metadata__":
            raise ValueError(f"the name {name!r} is taken")
        if tensor.dtype not in (torch.float64, torch.float32, torch.int64):
            raise TypeError(f"{name}: {tensor.dtype} is neither float64 nor float32 nor int64")
        self.tensors[name] = tensor.detach().clone(memory_format=torch.contiguous_format)

    def write(self):
        """Writes the file and returns its size in bytes."""
        save_safetensors(dict(sorted(self.tensors.items())), str(self.path), dict(sorted(self.metadata.items())))
        return os.path.getsize(self.path)


def differences(tensors, path):
    """Where these Tensors differ from those of the same names in a file by more than 1e-12 of the largest magnitude."""
    stored, _ = load_safetensors(str(path))
    found = [f"{name}: in no table" for name in stored.keys() - tensors.keys()]
    for name, x in tensors.items():
        y = stored.get(name)
        if y is None or x.shape != y.shape or x.dtype != y.dtype:
            found.append(f"{name}: not in the file, or of another shape or dtype")
        elif not ((x == y) | ((x != x) & (y != y))).all():
            error = (x.double() - y.double()).abs().max() / y.double().abs().max()
            if not error <= 1e-12:
                found.append(f"{name}: {error:.1e}")
    return sorted(found)
