"""Tensors in files by nothing but the rules of the safetensors format.

A file is 8 bytes with the length of its header, little-endian; the header, JSON that gives each tensor's dtype, shape
and place, with "__metadata__" for a map of strings to strings; then the values, row-major, without holes.
"""
import ctypes
import json
import math
import os
import struct

import torch

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
          "BOOL": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def bytes_of(x):
    """The values of a tensor as they are in memory."""
    x = x.detach().contiguous()
    return ctypes.string_at(x.data_ptr(), x.numel() * x.element_size()) if x.numel() else b""


def save_safetensors(tensors, path, metadata=None):
    """Writes a state dict: tensors by name.  Of several names of one tensor the first is written, so that a tied
    weight is stored once."""
    kept, seen = {}, set()
    for name, x in tensors.items():
        key = (x.data_ptr(), x.shape, x.stride(), x.dtype)
        if x.numel() == 0 or key not in seen:
            kept[name] = x
        seen.add(key)
    # Wide values first: then each begins at a multiple of its width.
    order = sorted(kept.items(), key=lambda item: -item[1].element_size())
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, x in order:
        size = x.numel() * x.element_size()
        header[name] = {"dtype": NAMES[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, x in order:
            file.write(bytes_of(x))
    os.replace(path + ".part", path)


def load_safetensors(path):
    """Returns the tensors by name and the metadata."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length, = struct.unpack("<Q", file.read(8).ljust(8, b"\xff"))
        if length > size - 8:
            raise ValueError(f"{path}: not a safetensors file: it has {size} bytes, its header {length}")
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
        size = torch.empty(0, dtype=dtype).element_size() * math.prod(shape)
        if not 0 <= begin <= end <= len(data) or end - begin != size:
            raise ValueError(f"{path}: tensor {name!r} has {size} bytes, but its place is {begin} to {end} of {len(data)}")
        tensors[name] = torch.empty(shape, dtype=dtype)
        if begin < end:
            ctypes.memmove(tensors[name].data_ptr(), data[begin:end], end - begin)
    return tensors, metadata
