"""One version: that of the package, which its metadata reads, and which everything beside it repeats."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wrssl

ROOT = Path(__file__).resolve().parents[1]


def found(path, pattern):
    (value,) = re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return value


def test_the_metadata_of_the_package_takes_its_version_from_the_source():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in project
    assert found("pyproject.toml", r'^\[tool\.hatch\.version\]\npath = "(.*)"$') == "src/wrssl/__init__.py"
    assert not re.search(r"^version = ", project, re.MULTILINE)
    assert found("src/wrssl/__init__.py", r'^__version__ = "(.*)"$') == wrssl.__version__


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("reproduction/pyproject.toml", r'^version = "(.*)"$'),
        ("benchmarks/pyproject.toml", r'^version = "(.*)"$'),
        ("CITATION.cff", r"^version: (.*)$"),
    ],
)
def test_what_is_beside_the_package_has_its_version(path, pattern):
    assert found(path, pattern) == wrssl.__version__


@pytest.mark.parametrize("distribution", ["reproduction", "benchmarks"])
def test_the_distributions_need_the_package_of_their_own_minor_version(distribution):
    minor = ".".join(wrssl.__version__.split(".")[:2])
    assert found(f"{distribution}/pyproject.toml", r'^dependencies = \["wrssl>=([\d.]+)"') == minor


def test_the_newest_entry_of_the_changelog_is_this_version():
    entries = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert entries[0] == wrssl.__version__
