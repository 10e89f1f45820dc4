#!/usr/bin/env python3
"""Writes a nanoGPT checkpoint as a safetensors file, from which `xgrad train --init-from` begins, and which its other commands read.

  scripts/pytorch/from_nanogpt.py out-shakespeare-char/ckpt.pt --meta data/shakespeare_char/meta.pkl --out model.safetensors

--meta brings nanoGPT's characters along; without it `train --init-from` takes those of its --data.  A model of GPT-2's tokens needs --tokenizer, a
tokenizer.json with them, and becomes the folder --out, for transformers too.  Pickles can run code: these two are read without running any, which
needs PyTorch 2 for most checkpoints.
"""
import argparse
import json
import os
import pickle
import shutil
import sys

import torch

from safetensors_file import save_safetensors


class Plain(pickle.Unpickler):
    """Reads dicts, lists, strings and numbers, and refuses the rest."""

    def find_class(self, module, name):
        raise ValueError(f"it holds a {module}.{name}, and not characters alone")


def read_checkpoint(path):
    """The weights under nanoGPT's own names, and the sizes."""
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # a file of another kind has errors of many kinds
        sys.exit(f"{path}: PyTorch {torch.__version__} does not read it as weights and numbers alone: {error}")
    if not isinstance(checkpoint, dict) or not {"model", "model_args"} <= set(checkpoint):
        sys.exit(f"{path}: not a checkpoint of nanoGPT: it has no 'model' with 'model_args'")
    tensors = {}
    for name, x in checkpoint["model"].items():
        for prefix in ("_orig_mod.", "module."):  # of torch.compile and DistributedDataParallel
            name = name.removeprefix(prefix)
        if not name.endswith(".attn.bias"):  # a causal mask, a buffer
            tensors[name] = x.contiguous().clone()
    tensors.pop("lm_head.weight", None)  # tied to transformer.wte.weight
    args = checkpoint["model_args"]
    sizes = {key: args[key] for key in ("block_size", "vocab_size", "n_layer", "n_head", "n_embd")}
    return tensors, {**sizes, "bias": args.get("bias", True)}, checkpoint.get("config", {}).get("dataset", "NAME")


def read_characters(path):
    with open(path, "rb") as file:
        itos = Plain(file).load()["itos"]
    return [itos[i] for i in range(len(itos))]


def write_folder(folder, tensors, sizes, tokenizer):
    """Writes GPT-2's folder: its linear layers are stored (in, out), and all have biases."""
    gpt2 = {}
    for name, x in tensors.items():
        gpt2[name] = x.t().contiguous() if ".h." in name and x.dim() == 2 else x
        if name.endswith(".weight") and (".h." in name or ".ln_f." in name):
            bias = name.removesuffix("weight") + "bias"
            gpt2.setdefault(bias, torch.zeros(x.shape[0]))
    with open(tokenizer, encoding="utf-8") as file:
        ends = {token["content"]: token["id"] for token in json.load(file).get("added_tokens", [])}
    end = "<|endoftext|>"
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu", "vocab_size": sizes["vocab_size"],
              "n_positions": sizes["block_size"], "n_layer": sizes["n_layer"], "n_head": sizes["n_head"], "n_embd": sizes["n_embd"],
              "bos_token_id": None, "eos_token_id": ends.get(end)}
    texts = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **({"eos_token": end} if end in ends else {})}
    os.makedirs(folder)
    for name, content in (("config.json", config), ("tokenizer_config.json", texts)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
    shutil.copyfile(tokenizer, os.path.join(folder, "tokenizer.json"))
    save_safetensors(gpt2, os.path.join(folder, "model.safetensors"), {"format": "pt"})


def convert(a):
    tensors, sizes, dataset = read_checkpoint(a.checkpoint)
    if a.tokenizer:
        return write_folder(a.out, tensors, sizes, a.tokenizer)
    metadata = {"format": "pt", "config": json.dumps(sizes)}
    if a.meta:
        characters = read_characters(a.meta)
        if len(characters) != sizes["vocab_size"]:
            sys.exit(f"{a.meta}: has {len(characters)} characters, and the model {sizes['vocab_size']}: it is of another text")
        order = sorted(range(len(characters)), key=characters.__getitem__)  # nanoGPT's own, usually
        tensors["transformer.wte.weight"] = tensors["transformer.wte.weight"][order]
        metadata["characters"] = "".join(characters[i] for i in order)
    elif sizes["vocab_size"] >= 50257:
        sys.exit(f"{a.checkpoint}: its ids are GPT-2's tokens: --tokenizer FILE names GPT-2's tokenizer.json")
    else:
        print(f"without characters: --meta data/{dataset}/meta.pkl brings them along", file=sys.stderr)
    save_safetensors(tensors, a.out, metadata)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="nanoGPT's ckpt.pt")
    parser.add_argument("--meta", help="nanoGPT's meta.pkl")
    parser.add_argument("--tokenizer", help="a tokenizer.json")
    parser.add_argument("--out", required=True, help="FILE.safetensors, or with --tokenizer a new folder")
    a = parser.parse_args()
    if os.path.exists(a.out):
        sys.exit(f"{a.out}: it exists already")
    if not a.tokenizer and not a.out.endswith(".safetensors"):
        sys.exit(f"--out {a.out}: name a .safetensors file")
    try:
        convert(a)
    except (OSError, ValueError, LookupError, TypeError, pickle.UnpicklingError) as error:
        sys.exit(f"from_nanogpt: {error}")


if __name__ == "__main__":
    main()
