"""docs/scale.md says what docs/results/scale/results.csv gives, and its formulas hold where nothing is timed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results" / "scale" / "results.csv"


@pytest.fixture(scope="module")
def scale(program):
    return program("benchmarks/programs/scale_page.py")


@pytest.fixture(scope="module")
def measured(scale):
    return scale.read(RESULTS)


def test_every_number_between_the_marks_is_made_of_the_rows(scale, measured):
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    (between,) = re.findall(f"{scale.BEGIN}\n(.*?)\n{scale.END}", page, re.DOTALL)
    assert between == scale.tables(*measured), "run benchmarks/programs/scale.py --page"


def test_a_changed_row_is_seen(scale, measured):
    rows, large = measured
    changed = {key: dict(row) for key, row in rows.items()}
    changed["wr", 10**7]["peak_mib"] *= 2
    assert scale.tables(changed, large) != scale.tables(rows, large)


def test_all_sizes_and_weightings_are_there(scale, measured):
    assert set(measured[0]) == {(weights, 10**k) for weights in scale.HELD for k in (4, 5, 6, 7)}


@pytest.mark.parametrize("weights", ["none", "wr-instance", "wr-cluster", "prior", "wr"])
def test_what_is_counted_is_what_was_measured(scale, measured, weights):
    """Bytes and reads do not depend on what else a machine does; times do."""
    rows, model = measured[0], scale.Model(measured[0])
    assert model.peak(weights, 10**7) == pytest.approx(rows[weights, 10**7]["peak_mib"], rel=0.1)
    assert model.reads(weights, 10**6) == pytest.approx(rows[weights, 10**6]["setup_reads"], abs=1e-3)
    assert rows[weights, 10**6]["step_reads"] == 100
    for size in (10**5, 10**6):
        assert model.state(weights, size) == pytest.approx(rows[weights, size]["state_bytes"], abs=2000)


def test_ten_million_members_fit_into_a_gigabyte(measured):
    for (_, size), row in measured[0].items():
        if size == 10**7:
            assert row["start_mib"] + row["peak_mib"] < 1024


def test_the_page_is_filled_and_drawn(scale, tmp_path):
    page = tmp_path / "scale.md"
    page.write_text(f"before\n{scale.BEGIN}\nold\n{scale.END}\nafter\n", encoding="utf-8")
    scale.write_page(RESULTS, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert (tmp_path / scale.PICTURE).stat().st_size > 10_000
