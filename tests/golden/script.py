"""The frame of the scripts ops.py, layers.py and optimizers.py: a table gives PyTorch's numbers and our calls.

    /usr/bin/python3 tests/golden/ops.py            writes both
    python3 tests/golden/ops.py --check-calls       fails if calls or numbers are not of the table; needs no PyTorch
    python3 tests/golden/ops.py --compare           says where this PyTorch's numbers differ from those in the file
"""

import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def run(name, sources, calls, add_numbers):
    """`sources`: files that the numbers follow from.  `calls`: the text of each file in generated/.  add_numbers(golden)
    computes PyTorch's numbers for the file `name`.safetensors, which also holds a hash of the sources without comments."""
    lines = [line for source in sources for line in (HERE / source).read_text(encoding="utf-8").splitlines()]
    code = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    table = hashlib.sha256(code.encode()).hexdigest()
    path = HERE / f"{name}.safetensors"
    if sys.argv[1:] == ["--check-calls"]:
        old = [file for file, text in calls.items() if (HERE / "generated" / file).read_text() != text]
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        if header["__metadata__"].get("table") != table:
            old.append(path.name)
        sys.exit(f"not of this table: {', '.join(old)}; run tests/golden/{name}.py" if old else None)
    if sys.argv[1:] not in ([], ["--compare"]):
        sys.exit(__doc__)
    import torch
    from golden import Golden, differences

    torch.set_num_threads(1)
    golden = Golden(path, {"source": f"tests/golden/{name}.py, PyTorch {torch.__version__}", "table": table})
    add_numbers(golden)
    if sys.argv[1:] == ["--compare"]:
        found = differences(golden.tensors, path)
        print("\n".join(found) or "no difference above 1e-12")
        sys.exit(1 if found else 0)
    for file, text in calls.items():
        (HERE / "generated" / file).write_text(text)
    print(f"{len(golden.tensors)} tensors, {golden.write()} bytes: {path}")
