#!/usr/bin/env python3
"""script.py notices each file that is not what its table says, and writes without PyTorch all but new numbers.

    python3 tests/golden/script_test.py FOLDER       (FOLDER becomes a copy of tests/golden, where files are changed)
"""
import pathlib
import shutil
import subprocess
import sys

from golden import Golden
from script import Row, run, too_old

HERE, COPY = pathlib.Path(__file__).resolve().parent, pathlib.Path(sys.argv[1]).resolve() / "tests" / "golden"


def called(script, *arguments):
    done = subprocess.run([sys.executable, "-B", COPY / f"{script}.py", *arguments], capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def changed(file, before, after):
    text = (COPY / file).read_bytes()
    assert text.count(before.encode()) == 1, f"{file} has {before} {text.count(before.encode())} times"
    (COPY / file).write_bytes(text.replace(before.encode(), after.encode()))


def noticed(script, *sentences, written=()):
    """--check says no more than these sentences; then the script writes these files alone, and can do no more without PyTorch."""
    code, lines = called(script, "--check")
    assert code == (1 if sentences else 0) and len(lines) == len(sentences), lines
    for line, sentence in zip(lines, sentences):
        assert line.startswith(f"tests/golden/{sentence}: python3 tests/golden/{script}.py "), line
    before = {path: path.read_bytes() for path in COPY.rglob("*") if path.is_file()}
    code, lines = called(script)
    missing = any(" has no numbers, " in sentence for sentence in sentences)
    assert code == missing and ("need PyTorch" in lines[-1] if missing else True), lines
    after = {path: path.read_bytes() for path in COPY.rglob("*") if path.is_file()}
    differ = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert differ == {COPY / path for path in written}, differ
    print(script, *sentences or ["nothing is old"], sep="\n  ")
    copy()


def copy():
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(HERE, COPY, ignore=shutil.ignore_patterns("pretrained", "weights", "__pycache__"))
    (COPY / "torch.py").write_text("raise ImportError\n")


copy()
for script in "ops", "layers", "optimizers":
    noticed(script)
calls = "generated/network.inc is not what the table says"
changed("table_network.py", 'f"{name}(zeros({{2, 3}}), 2)", "ValueError", name, "2"', 'f"{name}(zeros({{2, 3}}), 2)", "ValueError", name, "dimension"')
noticed("ops", calls, written=["generated/network.inc"])
changed("table_network.py", 'op("dropout", "F.dropout(x, {p})", "dropout(x, {p})"', 'op("dropout", "F.dropout(x, {p})", "dropout((x), {p})"')
noticed("ops", calls, written=["generated/network.inc"])
changed("table_network.py", 'S("size 1", randn(3, 1), dim=1), S("no rows"', 'S("size 1", randn(3, 1), dim=0), S("no rows"')
noticed("ops", calls, *(f"ops/{op}.safetensors has no numbers, or old ones, for {op}/size 1" for op in ("softmax", "log_softmax")),
        written=["generated/network.inc"])
changed("table_network.py", '    """A line of only -inf gives zeros; PyTorch\'s, NaN."""\n', "    # A comment.\n")
noticed("ops")
changed("table_elementwise.py", "clamp(x / 6 + 0.5, 0, 1)", "clamp(x / 6 + 0.5, 0, 2)")
noticed("ops", "ops/hardsigmoid.safetensors has no numbers, or old ones, for hardsigmoid/3-d and 6 more")
changed("table_optimizers.py", 'S("rate", dict(lr=0.1)),', "")
noticed("optimizers", "generated/optimizers.inc is not what the table says",
        *(f"optimizers/{name}.safetensors has numbers for no row of the table: {name}/rate" for name in ("Adam", "AdamW")),
        written=["generated/optimizers.inc", "optimizers/Adam.safetensors", "optimizers/AdamW.safetensors"])
(COPY / "layers" / "Linear.safetensors").unlink()
noticed("layers", "layers/Linear.safetensors has no numbers, or old ones, for Linear/bias and 4 more")
shutil.rmtree(COPY / "lm")
noticed("layers", *(f"lm/{layer}.safetensors has no numbers, or old ones, for {layer}/{row} and {more} more" for layer, row, more in (
    ("CausalSelfAttention", "bias", 3), ("MLP", "bias", 3), ("TransformerBlock", "bias", 3), ("Norm", "layer", 1), ("GPT", "logits", 4))))
old = Golden.read(COPY / "layers" / "Flatten.safetensors")
old.metadata["Flatten/default"] = "0123456789abcdef PyTorch 2.4.0"
old.tensors = {name: x for name, x in old.tensors.items() if not name.startswith("Flatten/0_1/")}
old.write()
noticed("layers", "layers/Flatten.safetensors has no numbers, or old ones, for Flatten/default and 1 more")
shutil.copy(COPY / "layers" / "Linear.safetensors", COPY / "layers" / "Line.safetensors")
noticed("layers", "layers/Line.safetensors is of no row of the table", written=["layers/Line.safetensors"])

assert called("ops", "softmux") == (1, ["no row of the table is of softmux"])
assert called("ops", "--chek")[0] == 1
assert [too_old(version, Row("RMSNorm/bias", "", None, "2.4")) for version in ("1.13.0a0", "2.3.1", "2.4.0", "2.15.0")] == [True, True, False, False]
try:
    run("ops", {}, {"ops": []})
    raise AssertionError("a table without rows passes")
except SystemExit as stop:
    assert stop.code == "the table of tests/golden/ops has no rows"
