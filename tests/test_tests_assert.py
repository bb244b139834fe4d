"""Every test can fail: it asserts something, itself or through a function of the tests that does."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "tests", ROOT / "reproduction" / "tests", ROOT / "benchmarks" / "tests"]
CHECKS = {"raises", "warns", "fail", "gradcheck", "gradgradcheck"}  # and every name that begins with "assert"
BY_OTHERS = {  # these assert in code that is not in these folders
    "test_it_passes_as_scikit_learns_own_semi_supervised_classifiers_do": "scikit-learn's own check raises",
    "test_the_global_generators_are_left_alone": "the fixture looks at the generators afterwards",
}


def functions(path: Path) -> Iterable[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef))


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def asserts(function: ast.FunctionDef, helpers: Collection[str]) -> bool:
    names = (called(node) for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(isinstance(node, ast.Assert) for node in ast.walk(function)) or any(
        name.startswith("assert") or name in CHECKS or name in helpers for name in names
    )


def without_assertion(files: Iterable[Path]) -> set[str]:
    every = [function for path in files for function in functions(path)]
    tests = [function for function in every if function.name.startswith("test_")]
    others = [function for function in every if not function.name.startswith("test_")]
    helpers: set[str] = set()
    while found := {each.name for each in others if each.name not in helpers and asserts(each, helpers)}:
        helpers |= found
    return {test.name for test in tests if not asserts(test, helpers)}


def test_every_test_asserts_something():
    assert without_assertion(sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))) == set(BY_OTHERS)


def test_a_test_without_assertion_is_found(tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(
        "def look(x):\n    assert x\n\ndef through(x):\n    look(x)\n\n"
        "def test_direct():\n    assert True\n\ndef test_indirect():\n    through(1)\n\n"
        "def test_nothing():\n    print(1)\n"
    )
    assert without_assertion([file]) == {"test_nothing"}
