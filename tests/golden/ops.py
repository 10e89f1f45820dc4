#!/usr/bin/env python3
"""Writes PyTorch's numbers for the tables of samples (ops.safetensors) and our calls (generated/*.inc).

    /usr/bin/python3 tests/golden/ops.py            writes both
    python3 tests/golden/ops.py --check-calls       fails if calls or numbers are not of these tables; needs no PyTorch
    python3 tests/golden/ops.py --compare           says where this PyTorch's numbers differ from those in the file

The file's numbers are PyTorch 1.13's (Debian: python3-torch; what it draws for dropout is that of builds without MKL):
the same PyTorch writes the same bytes.  table.py says what a sample is; table_*.py hold them.
"""

import hashlib
import json
import pathlib
import sys

import table_elementwise
import table_network
import table_reduce
import table_shape

HERE = pathlib.Path(__file__).resolve().parent
TABLES = [table_elementwise, table_reduce, table_shape, table_network]


def calls_file(module):
    return HERE / "generated" / (module.__name__.removeprefix("table_") + ".inc")


def calls(module):
    return module.table.write_calls(module.__name__ + ".py")


def tables_digest():
    """Of the tables' texts but for lines of comments: the numbers in the file are of these."""
    lines = []
    for module in TABLES:
        lines += pathlib.Path(module.__file__).read_text(encoding="utf-8").splitlines()
    return hashlib.sha256("\n".join(x for x in lines if x.strip() and not x.lstrip().startswith("#")).encode()).hexdigest()


def stored_digest():
    with open(HERE / "ops.safetensors", "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"].get("tables")


def numbers():
    import torch
    from golden import Golden

    torch.set_num_threads(1)
    golden = Golden(HERE / "ops.safetensors", {"source": f"tests/golden/ops.py, PyTorch {torch.__version__}",
                                                 "tables": tables_digest()})
    for module in TABLES:
        module.table.write_numbers(golden)
    return golden


def compare():
    ours = numbers().tensors
    from safetensors_file import load_safetensors  # golden.py knows its folder

    stored, _ = load_safetensors(str(HERE / "ops.safetensors"))
    differ = []
    for name, x in ours.items():
        y = stored.get(name)
        if y is None or x.shape != y.shape or x.dtype != y.dtype:
            differ.append(f"{name}: not in the file, or of another shape or dtype")
        elif x.numel() > 0 and not (x == y).logical_or((x != x) & (y != y)).all():
            error = (x.double() - y.double()).abs().max() / y.double().abs().max()
            if not error <= 1e-12:
                differ.append(f"{name}: {error:.1e}")
    differ += [f"{name}: in no table" for name in stored.keys() - ours.keys()]
    print("\n".join(differ) or "no difference above 1e-12")
    sys.exit(1 if differ else 0)


def main(arguments):
    if arguments == ["--check-calls"]:
        old = [calls_file(m).name for m in TABLES if calls_file(m).read_text() != calls(m)]
        if stored_digest() != tables_digest():
            old.append("ops.safetensors")
        sys.exit(f"not of these tables: {', '.join(old)}; run tests/golden/ops.py" if old else None)
    if arguments == ["--compare"]:
        return compare()
    if arguments:
        sys.exit(__doc__)
    for module in TABLES:
        calls_file(module).write_text(calls(module))
    golden = numbers()
    ops = {name.split("/")[0] for module in TABLES for name, *_ in module.table.samples}
    count = sum(len(module.table.samples) for module in TABLES)
    print(f"{count} samples of {len(ops)} ops, {golden.write()} bytes: {golden.path}")


if __name__ == "__main__":
    main(sys.argv[1:])
