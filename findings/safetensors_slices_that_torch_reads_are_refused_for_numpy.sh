#!/bin/sh
# Packages: safetensors 0.8.0, torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that a slice of a file means the same for framework="pt" and framework="np", and for numpy what it means in numpy:
# its bounds may be negative, or beyond the rows.
# With "pt" the slices below are read.  With "np" an end beyond the rows, a negative one, and all rows of a tensor that has none
# are refused, by a SafetensorError or an OverflowError; x[2:1], which is empty, ends in the interpreter's SystemError.
#
# A user meets it who reads a part of a file per process, rows[k * n : (k + 1) * n]: the last part, which is shorter, is refused only
# where there is no PyTorch.
#
# Output on 2026-11-30:
#   [2:4]: pt (1, 4), np SafetensorError
#   [-2:]: pt (2, 4), np OverflowError
#   [:-1]: pt (2, 4), np OverflowError
#   [2:1]: pt (0, 4), np SystemError
#   [:] of no rows: pt (0, 4), np SafetensorError
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torch==2.15.0 safetensors==0.8.0 numpy==2.4.6
(cd "$work" && "$work/venv/bin/python" -) 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import torch
from safetensors import safe_open
from safetensors.torch import save_file

save_file({"x": torch.arange(12.0).reshape(3, 4), "none": torch.zeros(0, 4)}, "x.safetensors")
said = []
for text, name, part in [("[2:4]", "x", slice(2, 4)), ("[-2:]", "x", slice(-2, None)), ("[:-1]", "x", slice(None, -1)),
                         ("[2:1]", "x", slice(2, 1)), ("[:] of no rows", "none", slice(None))]:
    shapes = []
    for framework in ("pt", "np"):
        with safe_open("x.safetensors", framework) as file:
            try:
                shapes.append(tuple(file.get_slice(name)[part].shape))
            except Exception as error:
                shapes.append(type(error).__name__)
    print(f"{text}: pt {shapes[0]}, np {shapes[1]}")
    said.append(shapes[1])
    assert isinstance(shapes[0], tuple)
assert said == ["SafetensorError", "OverflowError", "OverflowError", "SystemError", "SafetensorError"]
PY
