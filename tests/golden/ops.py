#!/usr/bin/env python3
"""Golden values of every op of the catalogue, from PyTorch: writes ops.safetensors beside it.

    /usr/bin/python3 tests/golden/ops.py

Needs only PyTorch 1.13 (Debian: python3-torch; what it draws for dropout is that of builds without
MKL) and the standard library.  cases.py says what a case is, the modules cases_*.py which there
are.  The same PyTorch writes the same bytes.
"""

import os

import torch

import cases_elementwise
import cases_network
import cases_reduce
import cases_shape
from cases import Cases
from golden import Golden


def main():
    torch.set_num_threads(1)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.safetensors")
    golden = Golden(path, {"source": f"tests/golden/ops.py, PyTorch {torch.__version__}"})
    cases = Cases(golden)
    for module in (cases_elementwise, cases_reduce, cases_shape, cases_network):
        module.add(cases)
    size = golden.write()
    ops = {name.split("/")[0] for name in cases.names}
    print(f"{len(cases.names)} cases of {len(ops)} ops, {size} bytes: {path}")


if __name__ == "__main__":
    main()
