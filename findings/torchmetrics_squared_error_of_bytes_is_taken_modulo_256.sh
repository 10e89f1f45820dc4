#!/bin/sh
# Packages: torchmetrics 1.9.0, torch 2.15.0 (CPython 3.11, x86-64 Linux).
#
# One would expect that the mean squared error of two images is the same for bytes as for the floats of the same values, as their
# PeakSignalNoiseRatio is in the same package, which is made of that error.
# MeanSquaredError subtracts and squares in the type that it is given, so bytes wrap at 256 twice before the sum.  A black image
# against one of 16 has error 0, a perfect one; against 200 it has 64 instead of 40000.  MeanAbsoluteError wraps once: black against 200 is
# 56, and the other way round it is 200.  Nothing warns, and the result is a float.  The documentation asks for tensors of predictions and
# of targets, and names no type.
#
# A user meets it who compares decoded images, quantized weights or byte tokens with their reconstruction.
#
# Output on 2026-12-01:
#   0 and 16: squared 0 (as floats 256), absolute 240 (16), PSNR 24.05 dB (24.05)
#   0 and 200: squared 64 (as floats 40000), absolute 56 (200), PSNR 2.11 dB (2.11)
#   200 and 0: squared 64 (as floats 40000), absolute 200 (200), PSNR 2.11 dB (2.11)
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q torchmetrics==1.9.0 torch==2.15.0 numpy==2.4.6
"$work/venv/bin/python" - 2>"$work/errors" <<'PY' || { cat "$work/errors" >&2; exit 1; }
import torch
from torchmetrics import MeanAbsoluteError, MeanSquaredError
from torchmetrics.image import PeakSignalNoiseRatio

for a, b, squared, absolute in ((0, 16, 0, 240), (0, 200, 64, 56), (200, 0, 64, 200)):
    first, second = torch.full((1, 1, 8, 8), a, dtype=torch.uint8), torch.full((1, 1, 8, 8), b, dtype=torch.uint8)
    of_bytes, of_floats = [], []
    for metric in (MeanSquaredError, MeanAbsoluteError, lambda: PeakSignalNoiseRatio(data_range=255.0)):
        of_bytes.append(metric()(first, second).item())
        of_floats.append(metric()(first.float(), second.float()).item())
    print(
        f"{a} and {b}: squared {of_bytes[0]:g} (as floats {of_floats[0]:g}), absolute {of_bytes[1]:g} ({of_floats[1]:g}), "
        f"PSNR {of_bytes[2]:.2f} dB ({of_floats[2]:.2f})"
    )
    assert of_bytes[:2] == [squared, absolute] and of_floats[:2] == [(a - b) ** 2, abs(a - b)]
    assert abs(of_bytes[2] - of_floats[2]) < 0.01
PY
