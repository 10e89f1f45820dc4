#!/usr/bin/env python3
"""scripts/pytorch/from_nanogpt.py: a checkpoint as nanoGPT saves it has the same loss in xgrad.

  from_nanogpt.py CHAR_TRANSFORMER      (needs PyTorch)
"""
import os
import pickle
import subprocess
import sys
import tempfile

import torch

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts/pytorch")
sys.path.insert(0, SCRIPTS)
import gpt  # noqa: E402

program = os.path.abspath(sys.argv[1])
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
text = "the cat, \"e\u0301\" \u4e2d\U0001F600\n" * 40
with open("text", "w", encoding="utf-8") as file:
    file.write(text)


def convert(*words):
    return subprocess.run([sys.executable, os.path.join(SCRIPTS, "from_nanogpt.py"), "ckpt.pt", *words], capture_output=True, text=True)


def run(*words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


for bias, prefix, backwards in ((False, "", False), (True, "_orig_mod.", False), (False, "module.", True)):
    characters = sorted(set(text), reverse=backwards)
    sizes = dict(vocab_size=len(characters), block_size=16, n_layer=2, n_head=2, n_embd=16)
    model = gpt.GPT(gpt.Config(**sizes, dropout=0.0, bias=bias))
    for p in model.parameters():
        p.data += 0.1 * torch.randn_like(p)
    state = {prefix + name: x for name, x in model.state_dict().items()}
    state[prefix + "transformer.h.0.attn.bias"] = torch.ones(1, 1, 16, 16).tril()
    torch.save({"model": state, "model_args": {**sizes, "bias": bias}, "iter_num": 3}, "ckpt.pt")
    with open("meta.pkl", "wb") as file:
        pickle.dump({"vocab_size": len(characters), "itos": dict(enumerate(characters))}, file)
    out = f"{bias}{backwards}.safetensors"
    done = convert("--meta", "meta.pkl", "--out", out)
    assert done.returncode == 0, done.stderr
    ids = torch.tensor([characters.index(c) for c in text])
    expected = gpt.validation_loss(model, ids)
    run("train", "--init-from", out, "--data", "text", "--max-iters", "0", "--out", out + ".run", "-q")
    names = [out, out + ".run"]
    if not backwards:  # as GPT-2's folder, with the characters as tokens
        names.append(f"gpt2{bias}")
        run("export", out + ".run", "--out", f"exported{bias}")
        done = convert("--tokenizer", f"exported{bias}/tokenizer.json", "--out", names[-1])
        assert done.returncode == 0, done.stderr
    for name in names:
        loss = float(run("eval", name, "--data", "text").split()[1])
        assert abs(loss - expected) < 2e-6, (name, loss, expected)


class Code:
    def __reduce__(self):
        return os.mkdir, ("ran",)


def refused(says, *words):
    done = convert(*words)
    assert done.returncode == 1 and says in done.stderr, done.stderr
    assert not os.path.exists("ran") and not os.path.exists("new.safetensors")


refused("it exists already", "--out", out)
refused("name a .safetensors file", "--out", "new.pt")
with open("meta.pkl", "wb") as file:
    pickle.dump({"itos": Code()}, file)
refused("and not characters alone", "--meta", "meta.pkl", "--out", "new.safetensors")
torch.save({"model": {}, "model_args": Code()}, "ckpt.pt")
refused("does not read it as weights", "--out", "new.safetensors")
