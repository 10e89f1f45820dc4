#!/bin/sh
# Package: tokenizers 0.23.3 (CPython 3.11, x86-64 Linux).
#
# One would expect that the Lowercase normalizer gives what str.lower() gives in Python and to_lowercase() in Rust, in which it is written.
# Both write a capital sigma that ends a word as "ς".  The normalizer maps one character at a time, and knows of no end of a word:
# it writes "σ".  Greek text that was lower-cased beforehand has therefore other tokens than the same text left to the normalizer.
#
# A user meets it who lower-cases a Greek corpus in Python, trains a vocabulary on it, and then lets the tokenizer lower-case.
#
# Output on 2026-11-29:
#   str.lower: οδος, Lowercase: οδοσ, BertNormalizer: οδοσ
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tokenizers==0.23.3
"$work/venv/bin/python" - <<'PY'
from tokenizers import normalizers

word = "ΟΔΟΣ"
lower = normalizers.Lowercase().normalize_str(word)
bert = normalizers.BertNormalizer(lowercase=True).normalize_str(word)
print(f"str.lower: {word.lower()}, Lowercase: {lower}, BertNormalizer: {bert}")
assert word.lower() == "οδος" and lower == bert == "οδοσ"
PY
