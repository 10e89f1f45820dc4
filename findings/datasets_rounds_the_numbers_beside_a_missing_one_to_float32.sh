#!/bin/sh
# Packages: datasets 5.2.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that a column of int64 gives its numbers, or says that it can't for want of one of them.
# In the NumPy format a missing number turns its whole batch into float32, which has 24 bits: 123456789 comes back as 123456792.  The same
# row alone, or in a batch without a missing number, is exact, so that the value depends on the size of the batches and on the order of the
# rows.  pandas's float64, for the same column, is exact up to 2 to the power 53.  A map that fills the gap
# writes the rounded numbers back as int64.
#
# A user meets it who has an optional number in a data set, such as a document's id, its time in seconds or its offset in a file, and joins,
# sorts or seeks by it.  That float64 comes as float32 in this format is known (huggingface/datasets, issue 5517); these are no floats.
#
# Output on 2026-12-01:
#   column of int64: [123456789, 987654321, 5, None]
#   row 0: 123456789, batches of 2: [123456789, 987654321] [5.0, nan]
#   batch of 4: [123456792.0, 987654336.0, 5.0, nan] float32, pandas [123456789.0, 987654321.0, 5.0, nan] float64
#   after a map that fills the gap: [123456792, 987654336, 5, -1]
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q datasets==5.2.0 numpy==2.4.6
HF_HOME="$work/home" HF_DATASETS_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1 "$work/venv/bin/python" - <<'PY'
import datasets
import numpy as np

features = datasets.Features({"id": datasets.Value("int64"), "text": datasets.Value("string")})
rows = datasets.Dataset.from_dict({"id": [123456789, 987654321, 5, None], "text": ["a", "b", "c", "d"]}, features=features)
plain, of_numpy, of_pandas = rows[:]["id"], rows.with_format("numpy"), rows.with_format("pandas")
print("column of int64:", plain)
pairs = [batch["id"].tolist() for batch in of_numpy.iter(batch_size=2)]
print(f"row 0: {of_numpy[0]['id']}, batches of 2:", *pairs)
four, pandas = of_numpy[:]["id"], of_pandas[:]["id"]
print(f"batch of 4: {four.tolist()} {four.dtype}, pandas {pandas.tolist()} {pandas.dtype}")
filled = of_numpy.map(lambda batch: {"id": np.nan_to_num(batch["id"], nan=-1).astype("int64")}, batched=True)
print("after a map that fills the gap:", filled.with_format(None)[:]["id"])
assert plain[:2] == pairs[0] == pandas.tolist()[:2] == [123456789, 987654321] and of_numpy[0]["id"] == 123456789
assert four.tolist()[:2] == [123456792, 987654336] and four.dtype == "float32"
assert filled.with_format(None)[:]["id"] == [123456792, 987654336, 5, -1]
PY
