#!/usr/bin/env python3
"""The loss of a checkpoint over a whole validation split, computed by PyTorch.

  scripts/pytorch/validation_loss.py --checkpoint runs/000/checkpoint.safetensors [--data TEXT]

Prints what `char_transformer eval` prints.  Without --data the text is the one that the model was trained on.  Exported
models are read as well.
"""
import argparse
import json
import sys

import gpt
from safetensors_file import load_safetensors


def open_model(path):
    """The model of a checkpoint or an export, its characters and its configuration."""
    tensors, metadata = load_safetensors(path)
    if "config" not in metadata or "characters" not in metadata:
        sys.exit(f"{path}: its metadata has no 'config' or no 'characters'")
    config = json.loads(metadata["config"])
    model = gpt.GPT(gpt.Config(**{name: config[name] for name in gpt.Config.__dataclass_fields__}))
    model.load({name: x for name, x in tensors.items() if not name.startswith("optimizer.")})
    return model, metadata["characters"], config


def print_loss(a):
    model, characters, config = open_model(a.checkpoint)
    data = a.data or config.get("data")
    if not data:
        sys.exit("--data TEXT is needed: the model was trained on the embedded corpus, which `char_transformer corpus` "
                 "prints")
    print(f"val_loss {gpt.validation_loss(model, gpt.Text(data, characters).validation):.9g}")


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
