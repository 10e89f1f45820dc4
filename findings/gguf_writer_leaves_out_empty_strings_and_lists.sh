#!/bin/sh
# Packages: gguf 0.19.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that a written value can be read again, or that writing says no.
# add_string with "" and add_array with [] write nothing at all, without a word: the key is not in the file, as if it had never been set.
# 0, 0.0 and False are written, and so is "" within a list, so the test is not one of truth.
#
# A user meets it who converts a model whose separator, template or list of special tokens is empty: a reader takes its default, or
# looks for the key and fails.
#
# Output on 2026-11-29:
#   written: number, flag, strings; missing: string, list
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q gguf==0.19.0 numpy==2.4.6
"$work/venv/bin/python" - "$work/a.gguf" <<'PY'
import sys

from gguf import GGUFReader, GGUFWriter

writer = GGUFWriter(sys.argv[1], "llama")
writer.add_uint32("number", 0)
writer.add_bool("flag", False)
writer.add_array("strings", [""])
writer.add_string("string", "")
writer.add_array("list", [])
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
fields = GGUFReader(sys.argv[1]).fields
names = ["number", "flag", "strings", "string", "list"]
print("written: " + ", ".join(n for n in names if n in fields) + "; missing: " + ", ".join(n for n in names if n not in fields))
assert [n in fields for n in names] == [True, True, True, False, False]
PY
