#!/bin/sh
# Packages: datasets 5.2.0 (CPython 3.11, x86-64 Linux).
#
# One would expect interleave_datasets() to give the same examples of streams (IterableDataset) as of tables (Dataset): its documentation
# describes both in one text, by which all_exhausted gives max_length_datasets * nb_dataset examples, with all of each dataset.
# Streams end as soon as the last one that counts is known to be empty, in the middle of a turn.  Of two datasets of 4, tables give 8 examples
# and streams 7: the last of the second is lost.  Of three datasets of one example, streams give one.  With all_exhausted, datasets of 6, 3
# and 2 give 18 and 16.
# There is one process and one shard, so that the loss which the documentation allows per worker is not this one.
#
# A user meets it who mixes corpora for training and moves from tables to streams: an epoch is shorter, and short corpora disappear.
#
# Output on 2026-12-01:
#   first_exhausted [4, 4]: tables 8, streams 7
#   first_exhausted [1, 1, 1]: tables 3, streams 1
#   all_exhausted [6, 3, 2]: tables 18, streams 16
#   all_exhausted [2, 6]: tables 12, streams 12
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HF_HUB_OFFLINE=1 HF_HOME="$work/home"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q datasets==5.2.0
"$work/venv/bin/python" - <<'PY'
from datasets import Dataset, interleave_datasets

found = []
for strategy, sizes in ("first_exhausted", [4, 4]), ("first_exhausted", [1, 1, 1]), ("all_exhausted", [6, 3, 2]), ("all_exhausted", [2, 6]):
    tables = [Dataset.from_dict({"x": [100 * i + j for j in range(size)]}) for i, size in enumerate(sizes)]
    streams = [table.to_iterable_dataset() for table in tables]
    table, stream = ([example["x"] for example in interleave_datasets(sources, stopping_strategy=strategy)] for sources in (tables, streams))
    assert stream == table[: len(stream)]
    print(f"{strategy} {sizes}: tables {len(table)}, streams {len(stream)}")
    found.append((len(table), len(stream)))
assert found == [(8, 7), (3, 1), (18, 16), (12, 12)]
PY
