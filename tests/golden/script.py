"""The frame of the scripts ops.py, layers.py and optimizers.py: rows of a table give PyTorch's numbers and our calls.

    python3 tests/golden/ops.py             writes our calls, and the numbers of rows that are new or changed
    python3 tests/golden/ops.py --check     says which files are not what the table says, and fails
    python3 tests/golden/ops.py --compare   says where this PyTorch's numbers differ from those in the files, and fails

Names of ops (or layers, or optimizers) after these leave the others out.  Only the numbers of a row need PyTorch, any from 1.13
to the newest.  The rows of an op have a file of their own, whose metadata hold a hash for each row, and the PyTorch that wrote
it.  The hash covers what the numbers follow from: the row's name, inputs, seed and PyTorch's text, and the functions that these
name in the files of the table.  Our call and comments do not count.  Rows whose hash is the same keep their bytes.  To write all
rows of a file anew, delete it first.

Where versions of PyTorch differ, the row says which wins: by a formula, or by `since`, the first version that may write it.
"""

import ast
import functools
import hashlib
import pathlib
import symtable
import sys
import textwrap
import warnings

from golden import Golden, differences

HERE = pathlib.Path(__file__).resolve().parent


class Row:
    """Its name, "softmax/last"; `code`, from which its numbers follow; and add(golden), which computes them."""

    def __init__(self, name, code, add, since=None):
        self.name, self.add, self.since = name, add, since
        assert " at 0x" not in code, f"{name}: an address decides no number"
        self.hash = hashlib.sha256(f"{name}\n{code}".encode()).hexdigest()[:16]


class Sources:
    """The functions, classes and constants of these files by name, without comments.  A later file's come first."""

    def __init__(self, *files):
        self.code = {}
        for file in files:
            text, found = (HERE / file).read_text(encoding="utf-8"), {}
            for node in statements(ast.parse(text)):
                for name in defined(node):
                    found[name] = found.get(name, "") + code_of(node, text.splitlines())
            self.code.update(found)
        self.code.pop("Input", None)  # decides no number: what it holds does

    def follow(self, code):
        """This Python code, and what it names in the files, and what that names, ..."""
        found, todo = {}, [code]
        while todo:
            for name in global_names(todo.pop()):
                if name in self.code and name not in found:
                    found[name] = self.code[name]
                    todo.append(found[name])
        return "\n".join([code] + [found[name] for name in sorted(found)])


def statements(tree):
    """Of a file, those in its conditions too."""
    for node in tree.body:
        yield node
        if isinstance(node, ast.If):
            yield from statements(node)


def defined(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    return [x.id for target in getattr(node, "targets", []) for x in ast.walk(target) if isinstance(x, ast.Name)]


def code_of(node, lines):
    kept = dict(enumerate(lines[node.lineno - 1 : node.end_lineno]))
    for inner in ast.walk(node):
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(inner) is not None:
            for n in range(inner.body[0].lineno, inner.body[0].end_lineno + 1):
                del kept[n - node.lineno]
    return textwrap.dedent("".join(f"{line}\n" for line in kept.values() if line.strip() and not line.lstrip().startswith("#")))


@functools.lru_cache(maxsize=None)
def global_names(code):
    names, tables = set(), [symtable.symtable(code, "table", "exec")]
    for table in tables:
        names.update(s.get_name() for s in table.get_symbols() if s.is_global() or table.get_type() == "module")
        tables += table.get_children()
    return sorted(names)


class Numbers:
    """A file of numbers, and the rows that it should hold."""

    def __init__(self, path, rows):
        self.path, self.rows = path, rows
        self.golden = Golden.read(path) if path.exists() else Golden(path)
        self.metadata = self.golden.metadata
        self.removed = sorted(self.metadata.keys() - {row.name for row in rows})
        self.old = [row for row in rows if self.metadata.get(row.name, "").split(" ")[0] != row.hash or not self.of(row)]

    def of(self, row):
        return {name: x for name, x in self.golden.tensors.items() if name.startswith(f"{row.name}/")}

    def write(self, version):
        """`version`: PyTorch's, for rows that are old."""
        written = Golden(self.path)
        for row in self.rows:
            if row in self.old:
                row.add(written)
                written.metadata[row.name] = f"{row.hash} PyTorch {version}"
            else:
                written.tensors.update(self.of(row))
                written.metadata[row.name] = self.metadata[row.name]
        self.path.parent.mkdir(exist_ok=True)
        written.write()
        print(f"{len(self.old)} of {len(self.rows)} rows are new: {shown(self.path)}")


def shown(path):
    return path.relative_to(HERE.parents[1])


def pytorch():
    """Its version.  Whatever its build, it draws the same numbers then."""
    try:
        import torch
    except ImportError:
        sys.exit("the numbers of rows that are new or changed need PyTorch, 1.13 or newer (scripts/setup --pytorch)")
    torch.set_num_threads(1)
    if torch.backends.mkl.is_available():
        # PyTorch 1.13 with MKL draws other masks of dropout.  Here each version draws those of one without MKL.
        draw = lambda x, p=0.5, generator=None: x.copy_(torch.rand(x.shape, dtype=torch.float64, generator=generator) < p)
        pytorch.library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytorch.library.impl("bernoulli_.float", draw, "CPU")
    return torch.__version__.split("+")[0]


def too_old(version, row):
    numbers = lambda text: [int(x) for x in text.split(".")[:2]]
    return row.since is not None and numbers(version) < numbers(row.since)


def run(script, calls, tables):
    """`calls`: the text of each file in generated/.  `tables`: the rows of each folder of numbers."""
    options, names = ([x for x in sys.argv[1:] if x.startswith("-") == is_option] for is_option in (True, False))
    if options not in ([], ["--check"], ["--compare"]):
        sys.exit(__doc__)
    rows_of, strays = {}, []
    for folder, rows in tables.items():
        if not rows:
            sys.exit(f"the table of tests/golden/{folder} has no rows")
        for row in rows:
            rows_of.setdefault(HERE / folder / f"{row.name.split('/')[0]}.safetensors", []).append(row)
        strays += [path for path in sorted((HERE / folder).glob("*")) if path not in rows_of and not names]
    unknown = set(names) - {path.stem for path in rows_of}
    if unknown:
        sys.exit(f"no row of the table is of {', '.join(sorted(unknown))}")
    files = [Numbers(path, rows) for path, rows in rows_of.items() if not names or path.stem in names]
    changed = [f for f in files if f.old or f.removed]
    texts = {HERE / "generated" / file: text for file, text in calls.items()}
    old_calls = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if options == ["--check"]:
        check(f"python3 tests/golden/{script}.py", old_calls, changed, strays)
    elif options == ["--compare"]:
        compare(files)
    else:
        write({path: texts[path] for path in old_calls}, changed, strays)


def check(command, old_calls, changed, strays):
    found = [f"{shown(path)} is not what the table says: {command} writes it, without PyTorch" for path in old_calls]
    for f in changed:
        for rows, has in ([row.name for row in f.old], "has no numbers, or old ones, for"), (f.removed, "has numbers for no row of the table:"):
            more = f" and {len(rows) - 1} more" if rows[1:] else ""
            found += [f"{shown(f.path)} {has} {rows[0]}{more}: {command} writes it"] if rows else []
    found += [f"{shown(path)} is of no row of the table: {command} removes it" for path in strays]
    found[10:] = [f"{len(found) - 10} more files are not what the table says"] if found[10:] else []
    sys.exit("\n".join(found) or None)


def compare(files):
    version, found = pytorch(), []
    for f in files:
        for row in f.rows:
            if not too_old(version, row):
                row.add(golden := Golden(f.path))
                found += differences(golden.tensors, f.of(row))
    if found:
        sys.exit("\n".join(found))
    print(f"no difference from PyTorch {version}")


def write(calls, changed, strays):
    for path, text in calls.items():
        path.write_text(text, encoding="utf-8")
        print(f"our calls: {shown(path)}")
    old = [row for f in changed for row in f.old]
    version = pytorch() if old else None
    for row in old:
        if too_old(version, row):
            sys.exit(f"{row.name} needs PyTorch {row.since} or newer, and this is {version}")
    for f in changed:
        f.write(version)
    for path in strays:
        path.unlink()
        print(f"removed, because it is of no row of the table: {shown(path)}")
