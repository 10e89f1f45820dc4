#!/bin/sh
# Package: tokenizers 0.23.3 (CPython 3.11, x86-64 Linux).
#
# One would expect that the bytes of "€" and a byte that is no UTF-8 decode to "€" and one replacement character, as a decoder of bytes in
# Python does it, and as tokenizers' own ByteLevel decoder does.
# The ByteFallback decoder takes a run of byte tokens as a whole: if any of them is wrong, each becomes a replacement character,
# those of the valid "€" as well.
#
# A user meets it who samples from a Llama-like model, or shows text while it is generated: one stray byte hides a character beside it that
# was whole a token ago.
#
# Output on 2026-11-29:
#   <0xE2> <0x82> <0xAC>: '€'
#   <0xE2> <0x82> <0xAC> <0xFF>: '����'
#   ByteLevel of the same four: '€�'
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tokenizers==0.23.3
"$work/venv/bin/python" - <<'PY'
from tokenizers import decoders

euro = ["<0xE2>", "<0x82>", "<0xAC>"]
fallback = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
whole, stray = fallback.decode(euro), fallback.decode([*euro, "<0xFF>"])
level = decoders.ByteLevel().decode(["â", "Ĥ", "¬", "ÿ"])
print(" ".join(euro) + f": {whole!r}\n" + " ".join(euro) + f" <0xFF>: {stray!r}\nByteLevel of the same four: {level!r}")
assert whole == "€" and stray == 4 * "\ufffd" and level == "€\ufffd"
PY
