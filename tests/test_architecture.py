"""The shape of the house: dependencies point downward, files stay small, names are where users expect them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import wrssl

SOURCE = Path(wrssl.__file__).parent
FLOORS = [  # from the ground up; a room may import from its own floor and below
    {"api", "config", "errors", "judging", "registry", "progress", "compiling", "worker"},
    {"hypergrad", "norm", "data", "models", "fast", "parallel"},
    {"methods", "weighting", "priors"},
    {"training", "evaluate"},
    {"auditing", "estimator"},
    {"cli", "demo", "__main__", "__init__"},
]
FILES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def floor(name: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if name in rooms)


def imported(path: Path) -> set[str]:
    """Rooms that a file imports, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "wrssl":
            names.add([*node.module.split("."), "__init__"][1])
        elif isinstance(node, ast.Import):
            names |= {[*a.name.split("."), "__init__"][1] for a in node.names if a.name.split(".")[0] == "wrssl"}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_dependencies_point_downward(path):
    mine = floor(room(path))
    for other in imported(path):
        if other == "__init__":  # the version, and the facade for those who stand above it
            continue
        assert floor(other) <= mine, f"{path.name} ({room(path)}) imports {other}"


def test_the_package_knows_nothing_of_the_distributions_beside_it():
    assert not [path.name for path in FILES if re.search(r"(from|import) wrssl_", path.read_text(encoding="utf-8"))]


def test_truth_is_read_in_one_place():
    readers = [p for p in FILES if "_is_ood" in p.read_text(encoding="utf-8")]
    assert {str(p.relative_to(SOURCE).as_posix()) for p in readers} == {"data/scenario.py", "evaluate/truth.py"}


def test_training_asks_for_the_truth_only_to_judge_and_for_the_oracle():
    users = {
        p.name
        for p in FILES
        if room(p) in ("training", "methods", "weighting", "hypergrad", "norm") and "evaluate.truth" in p.read_text()
    }
    assert users == {"judge.py", "candidate.py"}


@pytest.mark.parametrize("name", wrssl.__all__)
def test_every_public_name_exists_and_is_documented(name):
    assert getattr(wrssl, name).__doc__
    assert name in dir(wrssl)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute"):
        wrssl.magic  # noqa: B018


@pytest.mark.parametrize("folder", ["methods", "weighting"])
def test_a_method_and_a_weighting_are_small_files(folder):
    for path in (SOURCE / folder).glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 125, path.name
