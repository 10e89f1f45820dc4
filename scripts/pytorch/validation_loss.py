#!/usr/bin/env python3
"""The loss of a checkpoint over a whole validation split, computed by PyTorch.

  scripts/pytorch/validation_loss.py --checkpoint runs/000/checkpoint.safetensors [--data TEXT]

Prints the first line that `xgrad eval --split val` prints.  Without --data the text is the one that config.json beside the checkpoint
names.  Exported models are read as well.
"""
import argparse
import json
import math
import os
import sys

import gpt
from safetensors_file import load_safetensors


def open_model(path):
    """The model of a checkpoint or an export, and its characters."""
    tensors, metadata = load_safetensors(path)
    if "user" in metadata:  # a checkpoint
        user = json.loads(metadata["user"])
        config, characters = user["config"], user["characters"]
    elif "config" in metadata and "characters" in metadata:
        config, characters = json.loads(metadata["config"]), metadata["characters"]
    else:
        sys.exit(f"{path}: its metadata has no 'config' or no 'characters'")
    model = gpt.GPT(gpt.Config(**{name: config[name] for name in gpt.Config.__dataclass_fields__}))
    model.load({name: x for name, x in tensors.items() if not name.startswith("optimizer.")})
    return model, characters


def trained_on(checkpoint):
    """The path of the text, if the run's folder knows it."""
    path = os.path.join(os.path.dirname(checkpoint), "config.json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    if config.get("val_data"):
        sys.exit(f"{path}: the run was validated on a text of its own, {config['val_data']}, which is not read here")
    return config.get("data")


def print_loss(a):
    model, characters = open_model(a.checkpoint)
    data = a.data or trained_on(a.checkpoint)
    if not data:
        sys.exit("--data TEXT is needed: there is no config.json that names one")
    loss = gpt.validation_loss(model, gpt.Text(data, characters).validation)
    print(f"val_loss {loss:.9g} (perplexity {math.exp(loss):.6g})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--data")
    a = parser.parse_args()
    try:
        print_loss(a)
    except (OSError, ValueError) as error:
        sys.exit(f"validation_loss: {error}")


if __name__ == "__main__":
    main()
