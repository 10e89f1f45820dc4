#!/usr/bin/env python3
"""PyTorch's numbers for the tables of samples of ops (ops/*.safetensors), and our calls.  script.py says how to call it.

table.py says what a sample is; table_*.py hold them.
"""

import script
import table_elementwise
import table_network
import table_reduce
import table_shape

TABLES = [table_elementwise, table_reduce, table_shape, table_network]

if __name__ == "__main__":
    script.run("ops", {f"{m.__name__.removeprefix('table_')}.inc": m.table.write_calls(f"{m.__name__}.py") for m in TABLES},
               {"ops": [row for m in TABLES for row in m.table.rows(f"{m.__name__}.py")]})
