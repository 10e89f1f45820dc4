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
from safetensors_file import save_safetensors  # noqa: E402


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
