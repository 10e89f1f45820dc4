#!/bin/sh
# Packages: tokenizers 0.23.3, regex 2026.11.19 (CPython 3.11, x86-64 Linux).
#
# One would expect that "\p{N}{1,3}+" takes at most three digits: a + after a count makes it possessive in Perl, Java, PCRE2, and in
# Python's regex.  In tokenizers the + repeats the count, so a number of any length is one piece.  "a++" is possessive
# in both: only the count is read otherwise.
#
# A user meets it who copies a pattern with possessive counts, as published ones have for speed, into a Split pre-tokenizer: the file is
# accepted, and the ids of long numbers differ.
#
# Output on 2026-11-29:
#   tokenizers: ['1234567'], regex: ['123', '456', '7']
#   "a++a|a" on "aaa": tokenizers ['a', 'a', 'a'], regex ['a', 'a', 'a']
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tokenizers==0.23.3 regex==2026.11.19
"$work/venv/bin/python" - <<'PY'
import regex
from tokenizers import Regex, pre_tokenizers


def pieces(pattern, text):
    return [piece for piece, _ in pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)]


count = r"\p{N}{1,3}+"
split, found = pieces(count, "1234567"), regex.findall(count, "1234567")
print(f"tokenizers: {split}, regex: {found}")
plain = pieces("a++a|a", "aaa"), regex.findall("a++a|a", "aaa")
print(f'"a++a|a" on "aaa": tokenizers {plain[0]}, regex {plain[1]}')
assert split == ["1234567"] and found == ["123", "456", "7"] and plain == (["a", "a", "a"], ["a", "a", "a"])
PY
