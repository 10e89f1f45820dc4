"""Golden values: tensors written as a safetensors file, with the standard library and torch only.

    golden = Golden("ops.safetensors")
    golden.add("add/broadcast/out", tensor)
    golden.write()

The same tensors give the same bytes: names sorted, data contiguous, nothing of the day or the
machine in the header.
"""

import json
import struct

import torch

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64"}


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
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{name}: {tensor.dtype} is none of {', '.join(map(str, DTYPES))}")
        self.tensors[name] = tensor.detach().clone(memory_format=torch.contiguous_format)

    def write(self):
        """Writes the file and returns its size in bytes."""
        header, parts, offset = {}, [], 0
        if self.metadata:
            header["__metadata__"] = dict(sorted(self.metadata.items()))
        for name, tensor in sorted(self.tensors.items()):
            data = little_endian(tensor)
            header[name] = {
                "dtype": DTYPES[tensor.dtype],
                "shape": list(tensor.shape),
                "data_offsets": [offset, offset + len(data)],
            }
            parts.append(data)
            offset += len(data)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)  # the data begins at a multiple of eight bytes
        with open(self.path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
        return 8 + len(text) + offset


def little_endian(tensor):
    code = {torch.float64: "d", torch.float32: "f", torch.int64: "q"}[tensor.dtype]
    values = tensor.flatten().tolist()
    return struct.pack(f"<{len(values)}{code}", *values)
