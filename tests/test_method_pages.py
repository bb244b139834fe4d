"""Every method and every weighting has a page, with its measured cost, and the overview links it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wrssl.methods import METHODS
from wrssl.weighting import WEIGHTINGS

PAGES = Path(__file__).resolve().parents[1] / "docs" / "methods"
UNITS = ("supervised", "none")  # what the others are measured in
NAMES = [*METHODS.names(), *WEIGHTINGS.names()]
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


def test_there_is_no_page_about_nothing():
    assert {page.stem for page in PAGES.glob("*.md")} == {"README", *NAMES}
