"""What the documentation names exists: attributes of the packages, files, tests, anchors of the pages."""

from __future__ import annotations

import importlib
import re
import subprocess
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "wrssl"
# Records of a version: what a release changed, and mutants of files that may have moved since.
RECORDS = ("CHANGELOG.md", "docs/results/campaign/mutants.md")
FENCE = re.compile(r"^```\w*\n.*?^```$", re.DOTALL | re.MULTILINE)
PACKAGES = r"\b(?:wrssl|wrssl_reproduction|wrssl_bench)(?:\.[A-Za-z_]\w*)+"
PLACES = r"(?:src|tests|examples|benchmarks|reproduction|tools)/[\w./{},-]*[\w}]"


def documents() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split() or [path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")]
    return [ROOT / name for name in sorted(names) if not name.startswith(RECORDS) and "migration" not in name]


DOCUMENTS = documents()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, an attribute of one, or a group of entry points."""
    if name in entry_points().groups:
        return True
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def unfolded(path: str) -> list[str]:
    """``a/{b,c}.py`` as ``a/b.py`` and ``a/c.py``."""
    match = re.search(r"\{([^{}]*)\}", path)
    if match is None:
        return [path]
    return [
        each for word in match[1].split(",") for each in unfolded(path[: match.start()] + word + path[match.end() :])
    ]


def spans(text: str) -> list[str]:
    """The code within sentences and tables."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def missing_names(text: str) -> set[str]:
    return {name for name in re.findall(PACKAGES, text) if not resolves(name)}


def missing_paths(text: str, page: Path) -> set[str]:
    """Paths from the root of the project, wherever they stand; within code also files of a room or of the tests."""
    found = set(re.findall(rf"(?<![\w./]){PLACES}", text))
    for span in spans(text):
        found |= set(re.findall(r"(?<![\w./])(?:\w+/)+[\w{},]+\.py\b", span))
    starts = (ROOT, SOURCE, ROOT / "tests", page.parent)
    return {
        path for path in found if not all(any((start / each).exists() for start in starts) for each in unfolded(path))
    }


def missing_tests(text: str) -> set[str]:
    """Tests named as ``file.py::test``; ``::test`` alone is in the file that was named last."""
    missing, file = set(), None
    for name, test in re.findall(r"([\w/]+\.py)?::(test_\w+)", text):
        file = name or file
        assert file is not None, test
        places = [ROOT / file, ROOT / "tests" / file, *ROOT.glob(f"tests/*/{file}")]
        code = next((place.read_text(encoding="utf-8") for place in places if place.is_file()), "")
        if not re.search(rf"^def {test}\(", code, re.MULTILINE):
            missing.add(f"{file}::{test}")
    return missing


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_every_name_of_the_packages_exists(page):
    assert missing_names(page.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_every_file_exists(page):
    assert missing_paths(page.read_text(encoding="utf-8"), page) == set()


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_every_test_exists(page):
    assert missing_tests(page.read_text(encoding="utf-8")) == set()


def test_the_pages_name_something():
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCUMENTS)
    assert len(re.findall(PACKAGES, text)) > 50
    assert len(re.findall(PLACES, text)) > 30
    assert len(re.findall(r"::test_\w+", text)) > 40


@pytest.mark.parametrize(
    ("find", "right", "wrong"),
    [
        (missing_names, "`wrssl.training.Trainer.stop`", "wrssl.training.result.Result"),
        (missing_names, "::: wrssl_bench.report.Key", "wrssl_bench.naive"),
        (
            missing_tests,
            "`norm/test_edges.py::test_running_variance_never_negative`",
            "norm/test_edges.py::test_nothing",
        ),
        (missing_tests, "`test_edges.py::test_running_variance_never_negative`", "test_none.py::test_nothing"),
    ],
)
def test_a_name_that_is_gone_is_found(find, right, wrong):
    assert find(right) == set()
    assert len(find(wrong)) == 1


@pytest.mark.parametrize(
    "path", ["`src/wrssl/weighting/{prior,gone}.py`", "`training/thinned.py`", "python examples/no.py"]
)
def test_a_file_that_is_gone_is_found(path):
    assert len(missing_paths(path, ROOT / "README.md")) == 1
    assert missing_paths("`src/wrssl/weighting/{prior,wr}.py` `training/order.py`", ROOT / "README.md") == set()
