#!/usr/bin/env python3
"""Writes llama_tokenizer.json: tokenizers of Llama 2's kind, and the ids and texts that HuggingFace's tokenizers give.

  tests/lm/golden/llama_tokenizer.py      (needs tokenizers 0.23)

"vocabularies" are shared by "cases", whose "tokenizer" is a tokenizer.json without vocab and merges.
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers.models import BPE

HERE = pathlib.Path(__file__).resolve().parent
TEXT = "it is the day of the days. the mid day, today\nété cats  sat on the mat   (on it) that is in a text, so the"
PIECES = ["the", " day", "Day", "mid", "it", "<s>", "</s>", "<unk>", "<0x41>", " ", "  ", "▁", "\n", "\t", "\u00a0", "é", "e\u0301", "中", "文",
          "😀", "é中", "z", "_", "9", ".", "\u3000x", "\u200d", "\u24b6", "A", "q", "\0", "of the", "¬"]
NAMES = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def learn(split, joined):
    t = Tokenizer(BPE())
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False) if split == "bytes" else (
        pre_tokenizers.Metaspace() if split == "words" else None)
    if split in ("bytes", "kept"):
        t.normalizer = None
    alphabet = pre_tokenizers.ByteLevel.alphabet() if split == "bytes" else []
    t.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=340 if split == "bytes" else 70, initial_alphabet=alphabet, show_progress=False))
    model = json.loads(t.to_str())["model"]
    names = joined + sorted(model["vocab"], key=model["vocab"].get)
    return {"vocab": {name: i for i, name in enumerate(names)}, "merges": model["merges"]}


vocabularies = [learn("words", NAMES + BYTES), learn("whole", NAMES + BYTES[:200]), learn("whole", NAMES), learn("bytes", []),
                learn("kept", NAMES + BYTES), {"vocab": {c: i for i, c in enumerate(sorted(set(TEXT)))}, "merges": []}]
cases = []


def case(vocabulary, normalizer=None, pre_tokenizer=None, strip=True, added=(), **model):
    v = vocabularies[vocabulary]
    t = Tokenizer(BPE(vocab=v["vocab"], merges=[tuple(m) for m in v["merges"]], **model))
    if normalizer is not None:
        t.normalizer = normalizer
    if pre_tokenizer is not None:
        t.pre_tokenizer = pre_tokenizer
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()] + ([decoders.Strip(" ", 1, 0)] if strip else [])
    t.decoder = {3: decoders.ByteLevel(), 4: decoders.Sequence(back[1:3]), 5: decoders.Fuse()}.get(vocabulary, decoders.Sequence(back))
    if vocabulary != 5:
        t.add_special_tokens(NAMES)
    t.add_tokens(list(added))
    stored = json.loads(t.to_str())
    del stored["model"]["vocab"], stored["model"]["merges"]
    draw = random.Random(len(cases))
    texts = []
    for _ in range(14):
        text = "".join(draw.choices(PIECES, k=draw.randint(1, 14)))
        t.encode_special_tokens = True
        plain = t.encode(text).ids
        t.encode_special_tokens = False
        ids = t.encode(text).ids
        texts.append({"text": text, "plain": plain, "ids": ids, "decoded": t.decode(ids, skip_special_tokens=False)})
    cases.append({"vocabulary": vocabulary, "tokenizer": stored, "texts": texts})


def spaces(*first):
    return normalizers.Sequence([*first, normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])


def metaspace(scheme, split=False):
    return pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)


flags = [AddedToken("Day", lstrip=True), AddedToken("mid", rstrip=True, normalized=False), AddedToken("it", single_word=True, normalized=False),
         AddedToken("A", single_word=True, special=True), AddedToken("\n", lstrip=True, rstrip=True, normalized=False), AddedToken("😀"),
         AddedToken("é中", normalized=False, single_word=True, lstrip=True)]
llama = dict(unk_token="<unk>", byte_fallback=True, fuse_unk=True)
case(0, spaces(), **llama)
case(0, spaces(), added=flags, **llama)
case(0, spaces(normalizers.NFC()), added=flags, **llama)
case(0, normalizers.Replace(" ", "▁"), strip=False, added=flags, **llama)
for scheme in ("first", "always", "never"):
    case(0, None, metaspace(scheme), strip=scheme != "never", added=flags, **llama)
case(1, spaces(), unk_token="<unk>", byte_fallback=True, fuse_unk=True)
case(1, None, metaspace("first"), unk_token="<unk>", byte_fallback=True, fuse_unk=False, ignore_merges=True)
case(1, None, metaspace("always", True), byte_fallback=True)
case(2, spaces(), added=flags, unk_token="<unk>", fuse_unk=True)
case(2, None, metaspace("always"), unk_token="<unk>", fuse_unk=False)
case(2, spaces())
case(3, None, pre_tokenizers.ByteLevel(add_prefix_space=False), added=flags)
case(4, added=flags, **llama)
case(4, added=flags, unk_token="<unk>")
case(5)
path = HERE / "llama_tokenizer.json"
path.write_text(json.dumps({"vocabularies": vocabularies, "cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")
print(f"{len(cases)} tokenizers, {sum(len(c['texts']) for c in cases)} texts, {path.stat().st_size} bytes")
