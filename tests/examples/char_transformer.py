"""Tests of the demonstration: char_transformer.py TEST PROGRAM, where TEST is the name of a function below."""
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden/char_transformer.log"  # scripts/pytorch/char_transformer.py --steps 50 --every 1
program = sys.argv[2:]


def run(*words, code=0, **environment):
    done = subprocess.run([*program, *words], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == code, f"{words}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def losses():
    """Each of the first 50 losses is PyTorch's, to 1e-5."""
    def read(text):
        return {int(step): float(loss) for step, loss in re.findall(r"^step (\d+) loss (\S+)$", text, re.MULTILINE)}

    expected, printed = read(GOLDEN.read_text()), read(run("--steps", "50", "--every", "1").stdout)
    assert sorted(expected) == list(range(50)) and sorted(printed) == list(range(50)), (expected, printed)
    worst = max(abs(expected[i] - printed[i]) for i in range(50))
    assert worst <= 1e-5, f"a loss differs by {worst}"


def going_on():
    """A run that Ctrl-C stopped goes on, on one thread, to the bytes of an uninterrupted run, and then only samples."""
    flags = ["--steps", "60", "--every", "1", "--out"]
    whole = run(*flags, "whole").stdout
    with subprocess.Popen([*program, *flags, "parts"], stdout=subprocess.PIPE, text=True) as process:
        first = ""
        while "step 5 " not in first:
            line = process.stdout.readline()
            assert line, f"the program ended early:\n{first}"
            first += line
        process.send_signal(signal.SIGINT)
        first += process.stdout.read()
    assert process.returncode == 130, process.returncode
    first, message = first[:first.rindex("\n", 0, -1) + 1], first[first.rindex("\n", 0, -1) + 1:]
    assert message == f"{len(first.splitlines())} steps are in parts; the same command continues\n", message
    assert first + run(*flags, "parts", OMP_NUM_THREADS="1").stdout == whole, "the losses or the sample differ"
    assert Path("parts").read_bytes() == Path("whole").read_bytes(), "the checkpoints differ"
    assert run(*flags, "parts").stdout == whole[whole.index("validation loss"):], "another sample"


def sample():
    """500 characters of the text's vocabulary follow the validation loss, also if characters have several bytes."""
    text = "Größe, 春眠不覺曉 and 🙂.\n" * 50
    Path("text").write_text(text)
    printed = run("text", "--steps", "2", "--every", "0").stdout
    first, _, sampled = printed.partition("\n")
    assert re.fullmatch(r"validation loss \d\.\d{6}", first), first
    assert len(sampled) == 501 and set(sampled) <= set(text) and len(set(sampled)) > 10, sampled


def errors():
    """Bad input ends the program with a message, before it trains or writes anything."""
    def refused(words, message):
        done = run(*words, code=1)
        assert done.stdout == "", f"{words} printed\n{done.stdout}"
        assert re.fullmatch(f"char_transformer: {message}\n", done.stderr), f"{words}: {done.stderr}"

    text = "A text of its own, with a Z and a z.\n" * 20
    files = {"text": text.encode(), "empty": b"", "short": b"x" * 640, "latin": "é".encode("latin-1") * 700,
             "utf16": text.encode("utf-16"), "surrogate": b"\xed\xa0\x80" * 700, "overlong": b"\xc0\x80" * 700,
             "cut": b"x" * 700 + b"\xc3", "continuation": b"\x80" * 700, "other": b"not a checkpoint" * 9}
    for name, content in files.items():
        Path(name).write_bytes(content)
    Path("folder").mkdir()

    for word in ["--what", "--help", "-", "--step"]:
        refused([word, "3"], f"{word} 3: use --steps N, --every N, --seed N, --out FILE")
    for value in ["abc", "-5", "1.5", "", "1e3", "12x", " 7", "99999999999999999999999"]:
        refused(["--steps", value], f"--steps {re.escape(value)}: use --steps N, .*")
    for flag in ["--steps", "--every", "--seed", "--out"]:
        refused(["text", flag], f"{flag} : use --steps N, .*")
    refused(["text", "short"], "short : use --steps N, .*")
    refused([""], ".*No such file.*")
    refused(["missing"], "missing: .*No such file.*")
    refused(["folder"], "folder: .*")
    for name in ["empty", "short"]:
        refused([name], "the text is too short: its last tenth must be longer than a block")
    for name in ["latin", "utf16", "surrogate", "overlong", "cut", "continuation"]:
        refused([name], "the text is not UTF-8")
    refused(["text", "--out", "text"], "text: .*not a safetensors file.*")
    refused(["--out", "other"], "other: .*not a safetensors file.*")
    refused(["--out", "folder"], "folder: .*")
    refused(["--out", "no/folder"], "no/folder: cannot be written: No such file.*")

    run("--steps", "1", "--out", "verses")
    Path("mixed").write_text("".join(sorted(text)))
    run("text", "--steps", "1", "--out", "kept")
    files |= {name: Path(name).read_bytes() for name in ["verses", "kept"]}
    refused(["text", "--out", "verses"], "verses: (.|\n)*wte.weight(.|\n)*")
    refused(["mixed", "--out", "kept"], "kept: is of another text, seed or size; name another with --out")
    refused(["text", "--seed", "7", "--out", "kept"], "kept: is of another text, seed or size; .*")
    for name, content in files.items():
        assert Path(name).read_bytes() == content, f"{name} was changed"
    Path("least").write_text("xy" * 320 + "z")
    run("least", "--steps", "0", "--out", "least.safetensors")


def gradcheck():
    """The layer is right, and the op of the wrong one is named."""
    printed = run().stdout
    assert re.search(r"^CausalSelfAttention\n(.*\n)+gradcheck: all \d+ elements agree", printed), printed
    assert re.search(r"^WrongAttention\n(.*\n)+.*, wrong_softmax: its backward is wrong", printed, re.MULTILINE), printed


with tempfile.TemporaryDirectory() as folder:
    program[-1] = os.path.abspath(program[-1])
    os.chdir(folder)
    globals()[sys.argv[1]]()
    os.chdir("/")
