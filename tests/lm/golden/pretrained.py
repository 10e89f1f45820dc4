#!/usr/bin/env python3
"""Writes pretrained/: small random models as HuggingFace's transformers saves them, and what they compute.

  tests/lm/golden/pretrained.py [NAME ...]      (needs torch, transformers 5 and safetensors: a virtual environment)

A folder has config.json, model.safetensors and expected.safetensors: ids (B, T), f32.logits, and in float64 logits, loss (the
mean of -log p of the next id) and grad.NAME of every weight; with a window also greedy, the likeliest ids after the first 4 of
the first row, (1, N).  With NAMEs, only these folders are written.  transformers computes RMSNorm, rotations and the loss in
float32 whatever the model's dtype, so for float64 they are written out here.
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE))
from golden import Golden  # noqa: E402


def rms_norm(self, x):
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def rotation(self, x, position_ids):
    rope, dim = self.config.rope_parameters, self.config.head_dim
    f = rope["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if rope["rope_type"] == "llama3":
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        turns = rope["original_max_position_embeddings"] * f / (2 * math.pi)
        smooth = ((turns - low) / (high - low)).clamp(0, 1)
        f = (1 - smooth) * f / rope["factor"] + smooth * f
    angle = (position_ids[..., None] * f).repeat(1, 1, 2)
    return angle.cos(), angle.sin()


def in_double(model):
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = rms_norm.__get__(module)
        if type(module).__name__.endswith("RotaryEmbedding"):
            module.forward = rotation.__get__(module)
    return model.double()


def write(name, model, length):
    folder = HERE / "pretrained" / name
    with torch.no_grad():
        for p in model.parameters():  # larger than the usual start, biases and norms too: nothing may hide
            p.add_(torch.randn_like(p) * 0.2)
    ids = torch.randint(0, model.config.vocab_size, (2, length))
    if sys.argv[1:] and name not in sys.argv[1:]:
        return  # after its draws
    model.eval().save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    golden = Golden(folder / "expected.safetensors")
    golden.add("ids", ids)
    with torch.no_grad():
        golden.add("f32.logits", model(ids).logits)
        if getattr(model.config, "sliding_window", None):
            golden.add("greedy", model.generate(ids[:1, :4], max_new_tokens=12, do_sample=False)[:, 4:])
    logits = in_double(model)(ids).logits
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    golden.add("logits", logits)
    golden.add("loss", loss)
    for key, p in model.named_parameters():
        golden.add("grad." + key, p.grad)
    print(f"{name}: loss {loss.item():.9f}, {golden.write()} bytes")


if __name__ == "__main__":
    torch.manual_seed(1)
    sizes = dict(vocab_size=11, hidden_size=8, intermediate_size=10, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16,
                 bos_token_id=None, eos_token_id=None)
    write("gpt2", GPT2LMHeadModel(GPT2Config(vocab_size=11, n_positions=16, n_embd=8, n_layer=2, n_head=2, n_inner=20, bos_token_id=None,
                                             eos_token_id=None)), 9)
    write("llama", LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=2, tie_word_embeddings=True, head_dim=8, rope_parameters={
        "rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 0.2, "high_freq_factor": 3.0,
        "original_max_position_embeddings": 24})), 9)
    write("qwen2", Qwen2ForCausalLM(Qwen2Config(**sizes, num_hidden_layers=1, head_dim=2)), 9)
    write("mistral", MistralForCausalLM(MistralConfig(**sizes, num_hidden_layers=2, head_dim=4, sliding_window=3)), 9)
    write("qwen3", Qwen3ForCausalLM(Qwen3Config(**sizes, num_hidden_layers=2, head_dim=6, attention_bias=True, tie_word_embeddings=True,
                                                use_sliding_window=True, sliding_window=5, max_window_layers=0)), 9)
