"""Every method and every weighting has a page, with its measured cost, and the overview links it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from wrssl.registry import METHODS, WEIGHTINGS

PAGES = Path(__file__).resolve().parents[1] / "docs" / "methods"
UNITS = ("supervised", "none")  # what the others are measured in
# Those of the package: another distribution that was imported before registers methods of its own.
NAMES = [
    name
    for registry in (METHODS, WEIGHTINGS)
    for name in registry.names()
    if registry.get(name).__module__.split(".")[0] == "wrssl"
]
OVERVIEW = (PAGES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_there_is_a_page_with_a_measured_cost(name):
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}")
    assert f"({name}.md)" in OVERVIEW
    if name not in UNITS:
        (cost,) = re.findall(r"<!-- cost -->(.*?)<!-- end -->", text)
        (listed,) = re.findall(f"<!-- {name} -->(.*?)<!-- end -->", OVERVIEW)
        assert cost == listed
        assert float(cost) > 0.9


def test_the_names_are_those_that_a_new_process_lists():
    code = "import wrssl; print(*wrssl.list_methods(), *wrssl.list_weightings())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == NAMES


def test_there_is_no_page_about_nothing():
    assert {page.stem for page in PAGES.glob("*.md")} == {"README", *NAMES}
