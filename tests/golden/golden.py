"""Golden values: tensors in a safetensors file.

    golden = Golden("ports.safetensors")
    golden.add("add/broadcast/out", tensor)
    golden.write()

The same tensors give the same bytes: names sorted, nothing of the day or the machine in the header.  Only add() needs PyTorch.
"""

import json
import math
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "pytorch"))
WIDTHS = {"F64": 8, "F32": 4, "I64": 8}


class Golden:
    """Tensors by name, to be written to `path`, as (dtype, shape, bytes).  `metadata` maps strings to strings."""

    def __init__(self, path, metadata=None):
        self.path, self.metadata, self.tensors = path, dict(metadata or {}), {}

    @classmethod
    def read(cls, path):
        golden = cls(path)
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            data = file.read()
        golden.metadata = header.pop("__metadata__", {})
        golden.tensors = {name: (x["dtype"], x["shape"], data[slice(*x["data_offsets"])]) for name, x in header.items()}
        return golden

    def add(self, name, tensor):
        """Keeps a copy of a float64, float32 or int64 tensor; a name may be used once."""
        from safetensors_file import NAMES, bytes_of
        if name in self.tensors or name == "__metadata__":
            raise ValueError(f"the name {name!r} is taken")
        dtype = NAMES.get(tensor.dtype)
        if dtype not in WIDTHS:
            raise TypeError(f"{name}: {tensor.dtype} is neither float64 nor float32 nor int64")
        self.tensors[name] = dtype, list(tensor.shape), bytes_of(tensor)

    def write(self):
        """Writes the file and returns its size in bytes."""
        header, at = {}, 0
        if self.metadata:
            header["__metadata__"] = dict(sorted(self.metadata.items()))
        # Wide values first: then each begins at a multiple of its width.
        order = sorted(sorted(self.tensors.items()), key=lambda item: -WIDTHS[item[1][0]])
        for name, (dtype, shape, data) in order:
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        part = f"{self.path}.part"
        with open(part, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + b"".join(data for _, (_, _, data) in order))
        os.replace(part, self.path)
        return os.path.getsize(self.path)


def differences(ours, stored):
    """Where tensors differ from those of the same names by more than the tests allow, relative to the largest magnitude: 1e-12 in
    float64, 1e-5 in float32."""
    found = [f"{name}: only in one of both" for name in sorted(ours.keys() ^ stored.keys())]
    for name in sorted(ours.keys() & stored.keys()):
        dtype, shape, _ = ours[name]
        if (dtype, shape) != stored[name][:2]:
            found.append(f"{name}: {dtype} {shape} here, {stored[name][:2]} in the file")
            continue
        x, y = (memoryview(data).cast({"F64": "d", "F32": "f", "I64": "q"}[dtype]).tolist() for _, _, data in (ours[name], stored[name]))
        largest = max((abs(b) for b in y if math.isfinite(b)), default=0)
        limit = largest * {"F64": 1e-12, "F32": 1e-5, "I64": 0}[dtype]
        for a, b in zip(x, y):
            if not (a == b or abs(a - b) <= limit or math.isnan(a) and math.isnan(b)):
                found.append(f"{name}: {a} here, {b} in the file")
                break
    return found
