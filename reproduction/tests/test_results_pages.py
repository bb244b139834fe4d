"""No number in docs/results that is not in a committed results.csv.

A folder that ``wrssl reproduce`` wrote is checked in three ways: its table.md, and the part of its README.md between
the marks, are what the rows give now; and every decimal number in the words around them occurs in the table. Pages
beside the folders may quote numbers of any of the tables.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wrssl_reproduction.catalogue import get_experiment
from wrssl_reproduction.cell import Label
from wrssl_reproduction.rows import COLUMNS, RESULTS, append_row, make_row, read_rows
from wrssl_reproduction.tables import BEGIN, END, PAGE, TABLE, table_text, with_table, write_outputs

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "results"
# Made by programs of their own, with other columns.
OF_PROGRAMS = {"campaign", "default", "engine", "methods", "performance", "scale"}
MARKED = f"{BEGIN}.*?{END}"
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\.\d)")


def decimals(text: str) -> set[str]:
    """The decimal numbers of a text, without signs; what stands in code is no result."""
    return set(DECIMAL.findall(re.sub(r"```.*?```|`[^`\n]*`", " ", text, flags=re.DOTALL)))


def table_of(folder: Path) -> str:
    """What the rows of a folder give."""
    rows = read_rows(folder / RESULTS)
    (name,) = {row["experiment"] for row in rows}
    return table_text(get_experiment(name), rows)


def problems(folder: Path) -> list[str]:
    """What in a folder is not backed by its rows."""
    table, found = table_of(folder), []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path.name == TABLE and text != table:
            found.append(f"{path.name} is not what its rows give; run wrssl reproduce again")
        if path.name == PAGE and (not re.search(MARKED, text, re.DOTALL) or with_table(text, table) != text):
            found.append(f"{path.name} does not hold the table between its marks; run wrssl reproduce again")
        words = re.sub(MARKED, "", text, flags=re.DOTALL)
        if path.name != TABLE:
            found += [
                f"{path.name} says {n}, which is not in the table" for n in sorted(decimals(words) - decimals(table))
            ]
    return found


def has_rows_of_ours(folder: Path) -> bool:
    with (folder / RESULTS).open(encoding="utf-8") as file:
        return file.readline().strip().split(",") == list(COLUMNS)


OURS = sorted(path.parent for path in FOLDER.rglob(RESULTS) if has_rows_of_ours(path.parent))


def test_every_folder_is_checked_here_or_made_by_a_program_of_its_own():
    folders = {path.parent.relative_to(FOLDER).parts[0] for path in FOLDER.rglob("*.*") if path.parent != FOLDER}
    assert folders - {folder.relative_to(FOLDER).parts[0] for folder in OURS} <= OF_PROGRAMS


def test_every_number_is_in_results_csv():
    assert {folder.name: found for folder in OURS if (found := problems(folder))} == {}


def test_pages_beside_the_folders_quote_the_tables():
    known = set().union(*(decimals(table_of(folder)) for folder in OURS))
    for page in set(FOLDER.glob("*.md")) - {FOLDER / "claims.md"}:  # that one is compared as a whole elsewhere
        assert decimals(page.read_text(encoding="utf-8")) <= known, page.name


@pytest.fixture
def folder(tmp_path):
    """One row, its table, and a page that quotes it."""
    experiment = get_experiment("table-k")
    cell = next(c for c in experiment.make(_quick()) if Label("vat", "WR-SSL (paper)", "20") in c.labels)
    append_row(tmp_path / RESULTS, make_row("table-k", cell, "quick", {"test_accuracy": 0.9512, "seconds": 1.0}))
    page = f"# K\n\nWe get 95.12 where the paper has 96.3 (`0.77` is code).\n\n{BEGIN}\n{END}\n"
    (tmp_path / PAGE).write_text(page, encoding="utf-8")
    write_outputs(experiment, tmp_path)
    return tmp_path


def _quick():
    from wrssl_reproduction.budget import QUICK

    return QUICK


def test_a_page_that_says_what_the_rows_say_passes(folder):
    assert problems(folder) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (PAGE, "We get 95.12", "We get 95.92", "says 95.92, which is not in the table"),
        (PAGE, " 95.12 (1)", " 96.12 (1)", "does not hold the table"),
        (TABLE, "95.12", "96.12", "is not what its rows give"),
        (RESULTS, "0.9512", "0.9612", "is not what its rows give"),
        (PAGE, END, "", "does not hold the table"),
    ],
)
def test_a_changed_number_is_found(folder, name, old, new, words):
    text = (folder / name).read_text(encoding="utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    assert any(words in problem for problem in problems(folder))


def test_decimals():
    text = "97.1 ± 0.5, −3.2 of 5; version 2.13.0, `0.9`, abc1.5 and 7.\n```\n8.8\n```"
    assert decimals(text) == {"97.1", "0.5", "3.2"}
