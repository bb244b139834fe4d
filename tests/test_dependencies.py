"""What the package needs: each base dependency is imported and has its reason; nothing else is imported."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULE = {"scikit-learn": "sklearn", "pillow": "PIL"}  # where the module is not called like the package
WITH_OTHERS = {"threadpoolctl", "markupsafe"}  # of scikit-learn, of jinja2
# Of extras, and of Python on Windows.
OPTIONAL = {"distributed", "lightning_fabric", "msvcrt", "onnx", "onnxruntime", "tokenizers", "transformers", "timm"}
DISTRIBUTIONS = {  # folder: what it may import beside its own base dependencies
    "reproduction": {"wrssl", "wrssl_reproduction", "distributed"},  # the last one of its extra
    "benchmarks": {"wrssl", "wrssl_bench"},
}


def listed(pyproject: Path) -> set[str]:
    (block,) = re.findall(r"^dependencies = \[(.*?)\]$", pyproject.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return set(re.findall(r'"([\w-]+)[^"]*"', block))


def imported(folder: Path) -> set[str]:
    """The packages that the files of a folder import, inside functions too, without those of Python."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found.add((node.module or "").split(".")[0])
            elif isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
    return found - set(sys.stdlib_module_names)


BASE = listed(ROOT / "pyproject.toml")
BASE_MODULES = {MODULE.get(name, name) for name in BASE}


def test_the_package_imports_its_base_dependencies_and_nothing_else():
    found = imported(ROOT / "src" / "wrssl") - {"wrssl"} - WITH_OTHERS - OPTIONAL
    assert found == BASE_MODULES


def test_every_base_dependency_has_its_reason():
    text = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    section = text.split("## Base dependencies")[1].split("\n## ")[0]
    reasons = dict(re.findall(r"^\| ([\w-]+) \| (.+) \|$", section, re.MULTILINE))
    assert set(reasons) - {"package"} == BASE
    assert all(len(reason) > 10 for name, reason in reasons.items() if name in BASE)


@pytest.mark.parametrize("folder", DISTRIBUTIONS)
def test_a_distribution_imports_what_it_or_the_package_needs(folder):
    own = {MODULE.get(name, name) for name in listed(ROOT / folder / "pyproject.toml")}
    found = imported(ROOT / folder / "src")
    assert found - BASE_MODULES - DISTRIBUTIONS[folder] <= own
    assert own <= found
