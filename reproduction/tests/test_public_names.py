"""The experiments use public names of ``wrssl`` only, and plug in by an entry point that exists."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "programs").glob("*.py"))


def too_deep(text):
    """Imports of ``wrssl`` beyond a room, and of names that begin with an underscore."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = modules = [alias.name for alias in node.names]
        else:
            continue
        found += [module for module in modules if module.startswith("wrssl.") and module.count(".") > 1]
        found += [name for name in names if name.startswith("wrssl.") and re.search(r"\._(?!_)", name)]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_goes_deeper_than_a_room(path):
    assert too_deep(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from wrssl.training.loop import Trainer", ["wrssl.training.loop"]),
        ("import wrssl.norm.layers", ["wrssl.norm.layers"]),
        ("from wrssl.models import _MODELS", ["wrssl.models._MODELS"]),
        ("from wrssl.training import Trainer\nimport wrssl\nfrom wrssl_bench.steps import images", []),
    ],
)
def test_a_deeper_import_would_be_found(line, found):
    assert too_deep(line) == found


def test_the_entry_point_is_a_function():
    tomllib = pytest.importorskip("tomllib")  # from Python 3.11 on
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (value,) = project["entry-points"]["wrssl.commands"].values()
    module, _, name = value.partition(":")
    assert callable(getattr(import_module(module), name))
