"""The table of the layers of language models.  table_layers.py says what a line is."""
import functools

import table_layers
from table import F, torch
from table_layers import S, drawn_ids, ids, normal

if torch:
    from formulas import GPT, MLP, CausalSelfAttention, TransformerBlock

samples = []
layer = functools.partial(table_layers.layer, table=samples)

x = normal(2, 5, 8)
for name, p, bias in ("bias", 0.0, True), ("no_bias", 0.0, False), ("dropout", 0.2, True):
    options = {"p": p, "bias": bias, "x": x}
    layer("CausalSelfAttention", S(name, "CausalSelfAttention(8, 2, {p}, {bias})", "lm::CausalSelfAttention(8, 2, {p}, {bias})", **options))
    layer("MLP", S(name, "MLP(8, {p}, {bias})", "lm::MLP(8, {p}, {bias})", **options))
    layer("TransformerBlock", S(name, "TransformerBlock(8, 2, {p}, {bias})", "lm::TransformerBlock(8, 2, {p}, {bias})", **options))
x = normal(2, 3, 4)
layer("Norm", S("layer", None, "lm::Norm({.n_embd = 4})", x=x), S("rms", None, "lm::Norm(small_llama())", x=x))
layer("MLP", S("llama", None, "lm::MLP(small_llama())", x=x))
layer("CausalSelfAttention", S("llama", None, "lm::CausalSelfAttention(small_llama())", x=x))
layer("TransformerBlock", S("llama", None, "lm::TransformerBlock(small_llama())", x=x),
      ours="rotated(m, x)")
ids_of_text, targets = drawn_ids(11, 2, 6), drawn_ids(11, 2, 6, without=(1, 2))
logits = {"ids": ids_of_text, "outputs": "logits"}
loss = {"call": "F.cross_entropy(m(ids).flatten(0, 1), targets.flatten())", "our_call": "m.loss(ids, targets)", "ids": ids_of_text,
        "targets": targets, "outputs": "loss"}
small = ".block_size = 6, .vocab_size = 11, .n_layer = 2, .n_head = 2, .n_embd = 8"
layer("GPT",
      S("logits", "GPT(11, 6, 2, 2, 8, 0.0, True)", "lm::GPT({{small}})", small=small, **logits),
      S("last_logits", "GPT(11, 8, 1, 4, 8, 0.3, False).eval()",
        "evaluated(lm::GPT({.block_size = 8, .vocab_size = 11, .n_layer = 1, .n_head = 4, .n_embd = 8, .dropout = 0.3, .bias = false}))",
        call="m(ids)[:, -1]", our_call="m.last_logits(ids)", **logits),
      S("loss", "GPT(11, 6, 2, 2, 8, 0.0, True)", "lm::GPT({{small}})", small=small, **loss),
      S("loss_dropout", "GPT(11, 6, 2, 2, 8, 0.2, False)", "lm::GPT({{small}, .dropout = 0.2, .bias = false})", small=small, **loss),
      S("llama", None, "lm::GPT(small_llama())", our_call="m.loss(ids, targets)", ids=ids([[0, 3, 1], [2, 2, 0]]),
        targets=ids([[3, 1, -100], [2, 0, 1]])),
      call="m(ids)", normal_start=True)
