#!/bin/sh
# Packages: transformers 5.24.0, accelerate 1.15.0, torch 2.15.0, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that Trainer steps alike with 8 rows at once and with 2 rows accumulated 4 times: its documents divide the loss.
# Trainer leaves the division to a model whose forward takes **kwargs, as it hands it the count of the labels there.  GPT-2 divides by
# the count.  BERT, RoBERTa, T5 and BART, and the classifiers of GPT-2 and Llama, take it and give the mean of their 2 rows all the same:
# the gradients, and the loss that is logged, are 4 times too large, no warning.
#
# A user meets it who, for lack of memory, halves the batch and accumulates twice: clipping and Adam hide that each norm is doubled, and a
# loss that looks bad is lowered by a smaller rate.  It is known (huggingface/transformers, issue 47688), and still so in this version.
#
# Output on 2026-11-30 (the first step of SGD from the same weights with the same 8 rows; its length and the loss logged):
#   GPT-2: length x 1.00, loss 2.64 to 2.64
#   BERT, masked words: length x 4.00, loss 3.00 to 11.99
#   BERT, classes: length x 4.00, loss 1.10 to 4.38
#   T5: length x 4.00, loss 3.85 to 15.40
#   GPT-2, classes: length x 4.00, loss 1.07 to 4.29
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q transformers==5.24.0 accelerate==1.15.0 torch==2.15.0 numpy==2.4.6
cat > "$work/run.py" <<'PY'
import sys

import torch
import transformers as t

ids = [1, 2, 3, 4, 5, 6, 7, 8]
words, label = {"input_ids": ids, "labels": ids}, {"input_ids": ids, "labels": 1}
bert = dict(vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
bert |= dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=3)
gpt2 = dict(vocab_size=20, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, num_labels=3, pad_token_id=0)
t5 = dict(vocab_size=20, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, dropout_rate=0, decoder_start_token_id=0)
models = {
    "GPT-2": (t.GPT2LMHeadModel, t.GPT2Config(**gpt2), words),
    "BERT, masked words": (t.BertForMaskedLM, t.BertConfig(**bert), words),
    "BERT, classes": (t.BertForSequenceClassification, t.BertConfig(**bert), label),
    "T5": (t.T5ForConditionalGeneration, t.T5Config(**t5), words),
    "GPT-2, classes": (t.GPT2ForSequenceClassification, t.GPT2Config(**gpt2), label),
}


def one_step(kind, config, row, times):
    torch.manual_seed(0)
    model = kind(config)
    before = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    arguments = t.TrainingArguments(
        sys.argv[1], per_device_train_batch_size=8 // times, gradient_accumulation_steps=times, max_steps=1, max_grad_norm=0,
        lr_scheduler_type="constant", use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=1)
    sgd = torch.optim.SGD(model.parameters(), lr=1)
    trainer = t.Trainer(model, arguments, train_dataset=[row] * 8, optimizers=(sgd, None))
    trainer.train()
    after = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    return (after - before).norm().item(), float(trainer.state.log_history[0]["loss"])


for name, model in models.items():
    (length, loss), (length_4, loss_4) = one_step(*model, 1), one_step(*model, 4)
    print(f"found {name}: length x {length_4 / length:.2f}, loss {loss:.2f} to {loss_4:.2f}")
    factor = 1 if name == "GPT-2" else 4
    assert abs(length_4 / length - factor) < 0.01 and abs(loss_4 / loss - factor) < 0.01
PY
"$work/venv/bin/python" "$work/run.py" "$work/out" > "$work/printed" 2>&1 || { cat "$work/printed" >&2; exit 1; }
sed -n 's/^found //p' "$work/printed"
