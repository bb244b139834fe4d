"""What the package never does: execute text or files, unpickle, start a shell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import wrssl

SOURCE = Path(wrssl.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
PLACES = (SOURCE, ROOT / "reproduction" / "src", ROOT / "benchmarks" / "src")
FILES = [path for place in PLACES for path in sorted(place.rglob("*.py"))]
CALLS = {"eval", "exec", "compile", "__import__", "input", "breakpoint"}
ATTRIBUTES = {
    "pickle.load", "pickle.loads", "pickle.Unpickler", "torch.load", "torch.jit.load", "torch.hub.load", "joblib.load",
    "yaml.load", "yaml.unsafe_load", "marshal.load", "marshal.loads", "shelve.open", "os.system", "os.popen",
    "dill.load", "cloudpickle.load", "pd.read_pickle", "pandas.read_pickle", "np.load", "numpy.load", "tempfile.mktemp",
    "scipy.io.loadmat", "pickle._Unpickler", "shutil.unpack_archive",
}  # fmt: skip
METHODS = {"extractall", "extract", "read_pickle"}  # of archives, and of pandas
DECLARED = {
    # the one reader that knows what a pickle is, in order to refuse it
    "data/readers/restricted_pickle.py": {"import pickle", "pickle._Unpickler"},
    "embedding/photos.py": {"torch.load"},  # with weights_only=True and a pinned hash, see tests/embedding
    "data/readers/cifar.py": {"read_pickle"},  # by that reader
}


def dotted(node):
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def dangers(text):
    """What in this source could execute something from outside."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {f"import {a.name}" for a in node.names if a.name in ("pickle", "marshal", "shelve", "dill")}
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{a.name}" for a in node.names if f"{node.module}.{a.name}" in ATTRIBUTES}
        if isinstance(node, ast.Attribute) and dotted(node) in ATTRIBUTES:
            found.add(dotted(node))
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS | {"read_pickle"}:
                found.add(node.func.id)
            if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                found.add(node.func.attr)
            found |= {"shell=" for k in node.keywords if k.arg == "shell" and getattr(k.value, "value", True)}
            found |= {"allow_pickle=" for k in node.keywords if k.arg == "allow_pickle"}
    return found


def name_of(path):
    return path.relative_to(SOURCE if SOURCE in path.parents else ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_from_outside_is_executed(path):
    assert dangers(path.read_text(encoding="utf-8")) == DECLARED.get(name_of(path), set())


@pytest.mark.parametrize(
    "line",
    [
        "eval(x)", "torch.load(p)", "import pickle", "from torch import load", "from pickle import loads",
        "f(shell=True)", "f(shell=s)", "archive.extractall()", "pd.read_pickle(p)", "np.load(p, allow_pickle=True)",
        "yaml.load(f)",
    ],
)  # fmt: skip
def test_the_search_finds_what_it_looks_for(line):
    assert dangers(line)


def test_the_search_lets_the_rest_pass():
    assert not dangers(
        "model.eval()\nf(shell=False)\njson.load(f)\nsubprocess.run([a])\nsafetensors.torch.load_file(p)"
    )
