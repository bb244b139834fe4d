"""Tests use public doors: few import inside a room that they do not test, none patches a private name of another."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "wrssl"
FOLDERS = [ROOT / "tests", ROOT / "reproduction" / "tests", ROOT / "benchmarks" / "tests"]
FILES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
ROOMS = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
MOST = 20  # files that import inside another room
PATCHES = {"setattr", "delattr", "patch", "object", "setitem"}  # of monkeypatch and of unittest.mock


def room_tested(path: Path) -> str | None:
    """The room that a test file tests, None for the tests of everything."""
    parts = path.relative_to(ROOT).parts
    folder = parts[1] if parts[0] == "tests" and len(parts) > 2 else ""
    return folder if folder in ROOMS else None


@cache
def public_names(module: str) -> frozenset[str]:
    return frozenset(importlib.import_module(module).__all__)


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(name in the file, full name) of everything that comes from the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wrssl":
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "wrssl":
                    yield alias.asname or "wrssl", alias.name


def is_inside(name: str) -> bool:
    """Whether a full name, of a module or of something in it, lies deeper than the public names of its room."""
    parts = name.split(".")
    if len(parts) < 3 or parts[1] not in ROOMS:  # the facade, and modules that are no rooms
        return False
    return len(parts) > 3 or (parts[2] not in public_names(".".join(parts[:2])))


def room_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def imported_inside_others(source: str, mine: str | None) -> set[str]:
    """Full names that a test file imports from inside of a room that it does not test."""
    return {name for _, name in imports(ast.parse(source)) if is_inside(name) and room_of(name) != mine}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def private_patches(source: str, mine: str | None) -> list[str]:
    """Calls that replace a private name of a room that the file does not test, or of something unknown."""
    tree = ast.parse(source)
    known = dict(imports(tree))
    foreign = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    } - set(known)
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in PATCHES:
            continue
        first, *rest = node.args
        if isinstance(first, ast.Constant) and isinstance(first.value, str):  # a path of names
            path = first.value
            if path.split(".")[0] == "wrssl" and any(map(is_private, path.split("."))) and room_of(path) != mine:
                found.append(ast.unparse(node))
            continue
        name = rest[0].value if rest and isinstance(rest[0], ast.Constant) else ""
        if not any(map(is_private, [*ast.unparse(first).split("."), str(name)])):
            continue
        root = next((each.id for each in ast.walk(first) if isinstance(each, ast.Name)), "")
        if root in foreign or (mine is not None and room_of(known.get(root, "")) == mine):
            continue
        found.append(ast.unparse(node))
    return found


def test_few_test_files_import_inside_a_room_that_they_do_not_test():
    found = {
        path.relative_to(ROOT).as_posix(): sorted(names)
        for path in FILES
        if (names := imported_inside_others(path.read_text("utf-8"), room_tested(path)))
    }
    assert len(found) <= MOST, found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_test_patches_a_private_name_of_another_room(path):
    assert private_patches(path.read_text("utf-8"), room_tested(path)) == []


def test_what_lies_inside_a_room_is_told_from_its_public_names():
    source = (
        "import wrssl\nfrom wrssl.api import Pass\nfrom wrssl.models import split\n"
        "from wrssl.training.loop import Trainer\n"
        "def later():\n    from wrssl.data import images\n    import wrssl.norm.table as table\n"
        "    from wrssl.training import Trainer, callbacks\n"
    )
    everything = {"wrssl.training.loop.Trainer", "wrssl.data.images", "wrssl.norm.table", "wrssl.training.callbacks"}
    assert imported_inside_others(source, None) == everything
    assert imported_inside_others(source, "training") == {"wrssl.data.images", "wrssl.norm.table"}


PATCHED = """
import os
from unittest import mock
from wrssl.training import loop
from wrssl.registry import METHODS
def test(monkeypatch, trainer):
    monkeypatch.setattr({})
"""


@pytest.mark.parametrize(
    ("arguments", "mine", "allowed"),
    [
        ("loop, '_private', 1", "training", True),
        ("loop, '_private', 1", "data", False),
        ("loop, 'SAVE_EVERY', 1", "data", True),
        ("loop._private, 'name', 1", "data", False),
        ("METHODS, '_entries', {}", "training", False),
        ("METHODS, '_entries', {}", None, False),
        ("trainer, '_advance', None", "training", False),
        ("'wrssl.training.loop._private', 1", "data", False),
        ("'wrssl.training.loop._private', 1", "training", True),
        ("'wrssl.training.loop.Trainer', 1", "data", True),
        ("os, '_exit', None", "data", True),
        ("trainer, '__call__', None", "data", True),
    ],
)
def test_a_patch_of_a_private_name_is_found(arguments, mine, allowed):
    found = private_patches(PATCHED.replace("{}", arguments, 1), mine)
    assert (found == []) == allowed


def test_the_folders_of_tests_are_those_of_rooms():
    assert {room_tested(path) for path in FILES} - {None} >= {"training", "data", "weighting", "evaluate", "norm"}
    assert room_tested(ROOT / "tests" / "evaluate" / "report" / "test_x.py") == "evaluate"
    assert room_tested(ROOT / "tests" / "trust" / "test_x.py") is None
    assert room_tested(ROOT / "reproduction" / "tests" / "test_x.py") is None
