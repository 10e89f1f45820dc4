#!/usr/bin/env python3
"""PyTorch's numbers for the tables of samples of ops (ops.safetensors), and our calls.  script.py says how to call it.

The file's numbers are PyTorch 1.13's (Debian: python3-torch; what it draws for dropout is that of builds without MKL):
the same PyTorch writes the same bytes.  table.py says what a sample is; table_*.py hold them.
"""

import script
import table_elementwise
import table_network
import table_reduce
import table_shape

TABLES = [table_elementwise, table_reduce, table_shape, table_network]


def add_numbers(golden):
    for module in TABLES:
        module.table.write_numbers(golden)


if __name__ == "__main__":
    script.run("ops", ["table.py"] + [f"{m.__name__}.py" for m in TABLES],
               {f"{m.__name__.removeprefix('table_')}.inc": m.table.write_calls(f"{m.__name__}.py") for m in TABLES}, add_numbers)
