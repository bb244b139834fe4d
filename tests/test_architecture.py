"""The structure of the package: rooms depend downward only, the truth has one door, plug-ins are small files."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import wrssl
from wrssl import registry

SOURCE = Path(wrssl.__file__).parent
FLOORS = [  # from the ground up; a room may import from its own floor and below
    {"api", "config", "errors", "judging", "registry", "progress", "compiling", "worker"},
    {"hypergrad", "norm", "fast", "parallel", "data", "models"},
    {"methods", "weighting", "priors", "embedding"},
    {"training", "evaluate", "runs"},
    {"auditing", "estimator", "demo", "demo_photos"},
    {"cli", "__main__", "__init__"},
]
FACADE = "__init__"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST = 120  # lines of a file that holds a registered method or weighting


def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def floor(name: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if name in rooms)


@cache
def names_imported(path: Path) -> frozenset[tuple[str, str]]:
    """(module, name) of everything that a file imports, inside functions too; the name is "" for a whole module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place(path)} has a relative import"
            found |= {(node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
    return frozenset(found)


def rooms_imported(path: Path) -> set[str]:
    """The rooms that a file imports from, and the facade where it imports that."""
    found = set()
    for module, name in names_imported(path):
        first, *rest = module.split(".")
        if first == "wrssl":
            is_room = not rest and any(name in rooms for rooms in FLOORS)
            found.add(rest[0] if rest else name if is_room else FACADE)
    return found


def dependencies() -> dict[str, set[str]]:
    """Room by room, what it imports from other rooms; the version number is a look upward that all may take."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        others = rooms_imported(path) - {room(path)}
        if ("wrssl", "__version__") in names_imported(path) and all(
            name == "__version__" for module, name in names_imported(path) if module == "wrssl"
        ):
            others.discard(FACADE)
        found.setdefault(room(path), set()).update(others)
    return found


def test_every_room_has_a_floor():
    assert {room(path) for path in FILES} <= set.union(*FLOORS)


@pytest.mark.parametrize("path", FILES, ids=place)
def test_dependencies_point_downward(path):
    mine = floor(room(path))
    upward = {other for other in rooms_imported(path) if other != FACADE and floor(other) > mine}
    assert not upward, f"{place(path)} imports from {upward}, which stand above it"


def test_only_what_stands_above_training_imports_the_facade():
    users = {name for name, others in dependencies().items() if FACADE in others}
    assert users == {"cli", "demo"}


def test_no_two_rooms_depend_on_each_other():
    below = dependencies()

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            for other in below.get(waiting.pop(), set()) - found:
                found.add(other)
                waiting.append(other)
        return found

    assert {name for name in below if name in reached(name)} == set()


def test_a_room_above_a_chosen_one_is_found(tmp_path):
    file = tmp_path / "some.py"
    file.write_text("from wrssl.cli.app import main\nfrom wrssl import data\nimport wrssl.norm\nimport torch\n")
    assert rooms_imported(file) == {"cli", "data", "norm"}


def test_the_package_knows_nothing_of_the_distributions_beside_it():
    assert not [path.name for path in FILES if re.search(r"(from|import) wrssl_", path.read_text(encoding="utf-8"))]


def test_fast_kernels_have_one_door():
    """``accelerate`` is all that others know of them, and building a network is where it is called."""
    users = {(place(path), name) for path in FILES for module, name in names_imported(path) if "wrssl.fast" in module}
    assert {user for user in users if not user[0].startswith("fast/")} == {("training/building.py", "accelerate")}


def test_truth_is_read_in_one_place():
    readers = {place(path) for path in FILES if "_is_ood" in path.read_text(encoding="utf-8")}
    assert readers == {"data/scenario.py", "evaluate/truth.py"}


def test_training_asks_for_the_truth_only_to_judge_and_for_the_oracle():
    users = {
        place(path)
        for path in FILES
        for module, name in names_imported(path)
        if name == "is_ood" and room(path) != "evaluate"
    }
    assert users == {"training/building.py", "training/judge.py"}


@pytest.mark.parametrize("wants", [False, True])
def test_a_weighting_is_shown_the_truth_only_where_it_declares_that_it_wants_it(wants):
    from wrssl.api import BatchWeights, Weighting

    seen = []

    class Curious(Weighting):
        summary = "keeps what it is shown"
        wants_truth = wants

        def setup(self, pool):
            seen.append(pool.truth)
            self.weight = 1.0 - pool.truth.float() if wants else None

        def batch(self, index):
            return BatchWeights(self.weight[index] if wants else (index >= 0).float())

    with registry.WEIGHTINGS.isolated():
        wrssl.register_weighting("curious")(Curious)
        scenario = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
        result = wrssl.fit(scenario, weights="curious", steps=1, progress=False)
    (truth,) = seen
    if wants:
        assert truth.tolist() == result.verdicts["is_ood"].tolist()
    else:
        assert truth is None


@pytest.mark.parametrize("name", wrssl.__all__)
def test_every_public_name_exists_and_is_documented(name):
    assert getattr(wrssl, name).__doc__
    assert name in dir(wrssl)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute"):
        wrssl.magic  # noqa: B018


REGISTERED = [
    (kind, name)
    for kind in (registry.METHODS, registry.WEIGHTINGS)
    for name in kind.names()
    if kind.get(name).__module__.startswith("wrssl.")
]


@pytest.mark.parametrize(("kind", "name"), REGISTERED, ids=[name for _, name in REGISTERED])
def test_a_registered_method_or_weighting_is_a_small_file_with_a_line_about_itself(kind, name):
    entry = kind.get(name)
    lines = Path(inspect.getfile(entry)).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST
    assert entry.__doc__
    assert entry.summary
