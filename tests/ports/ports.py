#!/usr/bin/env python3
"""Models as PyTorch's users write them, and what they compute, as ports.safetensors.

    python3 tests/ports/ports.py [FILE]

The models are in models.py; beside it is each of them in C++.  A port has a name and writes

    <port>/start/<name>          its state dict before anything ran
    <port>/in/<input>            inputs, integers among them
    <port>/f64/out/<output>      what it returns in float64, `loss` or `losses` among it; so for f32, of some
    <port>/f64/grad/<name>       after loss.backward()
    <port>/f64/trained/<name>    its state dict after training, where it takes steps

all float32 but the results.  Numbers are drawn by Python, seeded by the port's name: PyTorch 1.13 and 2 write the same to 1e-14;
Adafactor needs 2.5.
"""
import copy
import math
import random
import zlib
from pathlib import Path
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(str(Path(__file__).resolve().parents[1] / "golden"))
from golden import Golden  # noqa: E402
from models import EncoderDecoder, MixtureOfExperts, WGAN  # noqa: E402

golden = Golden(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".safetensors"),
                {"source": f"tests/ports/ports.py, PyTorch {torch.__version__}"})
draws = random.Random()


def normal(*sizes):
    return torch.tensor([draws.gauss(0, 1) for _ in range(math.prod(sizes))]).reshape(sizes)


def integers(low, high, *sizes):
    return torch.tensor([draws.randrange(low, high) for _ in range(math.prod(sizes))]).reshape(sizes)


def port(name, model, run, inputs, f32=False):
    """run(model, **inputs) returns a dict of outputs.  With `loss` among them, that runs backward; else run() has trained."""
    draws.seed(zlib.crc32(name.encode()))
    inputs = {key: value() for key, value in inputs.items()}
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if value.dim() > 1:
                value.copy_(normal(*value.shape) / math.sqrt(value.size(-1)))
            else:
                value.copy_(normal(*value.shape) / 4 + (1 if key.endswith("weight") else 0))
            golden.add(f"{name}/start/{key}", value)
    for key, value in inputs.items():
        golden.add(f"{name}/in/{key}", value)
    for label, dtype in [("f64", torch.float64), ("f32", torch.float32)][: 1 + f32]:
        m = copy.deepcopy(model).to(dtype)
        outputs = run(m, **{k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()})
        for key, value in outputs.items():
            golden.add(f"{name}/{label}/out/{key}", value)
        if "loss" in outputs:
            outputs["loss"].backward()
            for key, value in m.named_parameters():
                golden.add(f"{name}/{label}/grad/{key}", value.grad)
        else:
            for key, value in m.state_dict().items():
                golden.add(f"{name}/{label}/trained/{key}", value.to(dtype))


# ---- the ports ----

def moe():
    def run(model, x, target):
        y, balance = model(x)
        return {"y": y, "balance": balance, "loss": F.mse_loss(y, target) + 0.01 * balance}
    port("moe", MixtureOfExperts(), run, {"x": lambda: normal(10, 6), "target": lambda: normal(10, 6)})


def gradient_penalty(critic, real, fake, u):
    between = torch.lerp(real, fake, u).requires_grad_()
    g, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (g.norm(2, dim=1) - 1).square().mean()


def wgan():
    def run(model, real, z, u):  # six rounds: one step of the critic each, of the generator every third
        generator, critic = model.generator, model.critic
        optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.9))
        optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-2, betas=(0.5, 0.9))
        losses = []
        for i in range(len(z)):
            fake = generator(z[i]).detach()
            loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake, u[i])
            optimizer_c.zero_grad()
            loss.backward()
            optimizer_c.step()
            losses.append(loss)
            if i % 3 == 2:
                loss = -critic(generator(z[i])).mean()
                optimizer_g.zero_grad()
                loss.backward()
                optimizer_g.step()
                losses.append(loss)
        return {"losses": torch.stack(losses)}
    port("wgan", WGAN(), run, {"real": lambda: normal(7, 4) + 2, "z": lambda: normal(6, 7, 3), "u": lambda: normal(6, 7, 1).sigmoid()})


def encoder_decoder():
    def run(model, source, target):
        logits, weights = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1)
        return {"logits": logits, "weights": weights, "loss": loss}

    def padded(width, lengths):
        drawn = integers(1, 9, len(lengths), width)
        for row, length in zip(drawn, lengths):
            row[length:] = 0
        return drawn
    port("encoder_decoder", EncoderDecoder(), run, {"source": lambda: padded(5, (5, 3)), "target": lambda: padded(6, (4, 6))}, f32=True)


def adafactor():
    def run(model, x, target):
        optimizer = torch.optim.Adafactor(model.parameters(), lr=0.05, weight_decay=0.3)
        losses = []
        for _ in range(6):
            loss = F.cross_entropy(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return {"losses": torch.stack(losses)}
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
    port("adafactor", model, run, {"x": lambda: normal(8, 4), "target": lambda: integers(0, 3, 8)})


if __name__ == "__main__":
    torch.set_num_threads(1)
    for add in (moe, wgan, encoder_decoder, adafactor):
        add()
    print(f"{golden.write()} bytes: {golden.path}")
