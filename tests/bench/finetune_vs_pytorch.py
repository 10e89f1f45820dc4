#!/usr/bin/env python3
"""A fine-tuning step of a Llama of SmolLM2-135M's sizes, with random weights, beside transformers', in turn on the same machine.

  tests/bench/finetune_vs_pytorch.py --python PYTHON --data TEXT [--dtype bfloat16] [--lora RANK] [--steps N] [--rounds R] [--layers N]

PYTHON has torch 2 and transformers, and for --lora peft.  Batches are 4 x 128 tokens.  Theirs runs eager and compiled, with fused
AdamW, with --dtype bfloat16 each under autocast as well, on one and on two threads: the fastest counts, and is named.  Prints, for
each round, milliseconds a step (median after the first two), peak memory, and the ratios of ours to theirs; then their medians.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
B, T = 4, 128


def make(folder, layers):
    """A model's folder; its tokenizer is there already, and has fewer tokens than the table."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    LlamaForCausalLM(LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=layers, num_attention_heads=9, num_key_value_heads=3,
        max_position_embeddings=2048, rope_theta=100000, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None)).save_pretrained(folder)


def theirs(folder, steps, lora, compiled, autocast):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).train()
    if lora:
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(r=lora, lora_alpha=lora, target_modules="all-linear", task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)

    def loss_of(x, y):
        logits = model(x, use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())

    f = torch.compile(loss_of) if compiled else loss_of
    times = []
    for _ in range(steps):
        ids = torch.randint(0, 1000, (B, T + 1))
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = f(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        times.append(1000 * (time.perf_counter() - begin))
    print(json.dumps(times))


def run(command, env):
    """Runs a command; returns its output and its peak memory in MiB."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            errors.seek(0)
            sys.exit(f"failed: {' '.join(map(str, command))}\n{out}{errors.read()}")
    return out, usage.ru_maxrss / 1024


def ours(a, folder, env):
    with tempfile.TemporaryDirectory() as out:
        command = [a.binary, "train", "--init-from", folder, "--data", a.data, "--out", out + "/run", "--block-size", T, "--batch-size", B,
                   "--max-iters", a.steps, "--eval-interval", 1000, "--eval-iters", 1, "--sample-tokens", 0, "-q", "--learning-rate", 1e-4,
                   "--dtype", a.dtype, *(["--lora-rank", a.lora] if a.lora else [])]
        _, memory = run(list(map(str, command)), env)
        with open(out + "/run/metrics.jsonl", encoding="utf-8") as file:
            return statistics.median([json.loads(line)["ms"] for line in file][2:]), memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/xgrad"))
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--lora", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--layers", type=int, default=30, help="fewer, for a smaller machine")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--theirs", nargs=3, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.make:
        return make(a.make, a.layers)
    if a.theirs:
        folder, compiled, autocast = a.theirs
        return theirs(folder, a.steps, a.lora, compiled == "compiled", autocast == "autocast")
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}  # it may name slower kernels
    me = [a.python, __file__, "--python", a.python, "--data", a.data, "--steps", str(a.steps), "--lora", str(a.lora), "--layers", str(a.layers)]
    forms = [(c, p) for c in ("eager", "compiled") for p in (["float32", "autocast"] if a.dtype == "bfloat16" else ["float32"])]
    ratios = []
    with tempfile.TemporaryDirectory() as work:
        folder = work + "/model"
        run([a.binary, "train", "--preset", "micro", "--tokens", "bpe", "--data", a.data, "--max-iters", "0", "--out", work + "/run", "-q"], env)
        run([a.binary, "export", work + "/run", "--out", work + "/tokens/"], env)
        run([*me, "--make", folder], env)
        shutil.copy(work + "/tokens/tokenizer.json", folder)
        for number in range(a.rounds):
            ms, mb = ours(a, folder, env)
            print(f"round {number}: xgrad {a.dtype} {ms:.0f} ms {mb:.0f} MiB", end="", flush=True)
            found = []
            for form in forms:
                for threads in (1, 2):
                    out, memory = run([*me, "--theirs", folder, *form], {**env, "OMP_NUM_THREADS": str(threads)})
                    found.append((statistics.median(json.loads(out)[2:]), memory, " ".join(form)))
            best, memory, form = min(found)
            least = min(m for _, m, _ in found)
            ratios.append((ms / best, mb / least))
            print(f"   PyTorch {form} {best:.0f} ms {memory:.0f} MiB (least {least:.0f}): time {ms / best:.2f}, memory {mb / least:.2f}", flush=True)
    print(f"median ratio: time {statistics.median(r[0] for r in ratios):.2f}, memory {statistics.median(r[1] for r in ratios):.2f}")


main()
