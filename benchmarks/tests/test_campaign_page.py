"""The page of the campaign says what its files say."""

from __future__ import annotations

import csv
from collections import Counter

import pytest


@pytest.fixture(scope="module")
def campaign(program):
    return program("benchmarks/programs/campaign_page.py")


def test_the_committed_page_is_what_the_committed_files_give(campaign):
    page = campaign.FOLDER / campaign.PAGE
    assert page.read_text(encoding="utf-8") == campaign.page(campaign.FOLDER)


def test_it_counts_what_stands_in_the_files(campaign, tmp_path):
    (tmp_path / "kills.csv").write_text(
        "weights,method,phase,outcome\nwr,vat,saving,identical\nwr,vat,saving,lost\nuasd,pl,training,corrupt\n"
    )
    (tmp_path / "soak.csv").write_text(
        "step,resident_bytes,handles,seconds\n10,1000000,7,1\n20,900000,7,2\n100,1010000,8,10\n"
    )
    (tmp_path / "properties.csv").write_text("property,cases,failed,seconds\na.py::x,200,0,1.5\na.py::y,1,1,0.6\n")
    (tmp_path / "coverage.csv").write_text("file,statements,ran,percent\nnorm/a.py,30,30,100.0\napi.py,10,5,50.0\n")
    text = campaign.page(tmp_path)
    for words in (
        "3 kills: 1 identical, 1 lost, 1 corrupt", "| `wr` on `vat` | 2 | 0 | 1 |", "(+1.00 %), +1 open files",
        "100.0 ms each", "2 properties and tests, 201 cases, 1 failed", "87.5 % of 40 lines",
        "| norm | 30 | 30 | 100.0 |",
    ):  # fmt: skip
        assert words in text, words


def test_what_was_not_run_is_said(campaign, tmp_path):
    assert campaign.page(tmp_path).count("Not run yet.") == 4


def test_the_page_of_the_mutants_has_the_numbers_of_its_rows(campaign):
    """Counted once more here: the program that writes it needs a tool that the tests do not install."""
    folder = campaign.FOLDER
    with (folder / "mutants.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["operator"] != "none"]
    text, every = (folder / "mutants.md").read_text(encoding="utf-8"), Counter(row["outcome"] for row in rows)
    assert set(every) <= {"killed", "timeout", "survived"}
    killed, late = every["killed"] + every["timeout"], every["timeout"]
    assert f"**{100 * killed / len(rows):.1f} % of {len(rows)} mutants are killed**, {late} of them because" in text
    for name in {row["file"] for row in rows}:
        counts = Counter(row["outcome"] for row in rows if row["file"] == name)
        total, late = counts.total(), counts["timeout"]
        killed = counts["killed"] + late
        start = f"| {name.removeprefix('src/wrssl/')} | {total} | {killed} | {late} | {counts['survived']} |"
        assert f"{start} {100 * killed / total:.1f} % |" in text
    survivors = text.partition("## Survivors")[2]
    assert survivors.count("\n| ") - 1 == every["survived"]
    assert "not looked at" not in survivors
