"""What the README shows is so: its Python runs, its numbers come from rows of results, its links lead somewhere."""

from __future__ import annotations

import csv
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
PROSE = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)


def python(code: str, folder: Path) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_one_example():
    assert len(BLOCKS) == 1


def test_the_example_prints_what_its_comment_promises(tmp_path):
    (printed,) = (python(code, tmp_path) for code in BLOCKS)
    assert float(printed.split()[0]) > 0.9  # the accuracy, where guessing gives a tenth
    head, *rows = printed.partition(" ")[2].strip().splitlines()
    assert {"verdict", "weight", "ood_score"} <= set(head.split())
    assert len(rows) == 5
    assert all(set(row.split()) & {"keep", "doubt", "drop"} for row in rows)
    assert not list(tmp_path.iterdir())


RUNS = {
    "the 100 labels alone": ("any", "supervised", "none", "False"),
    "VAT on the pool as it is": ("fashion", "vat", "none", "False"),
    "`wrssl`'s default on the same pool": ("fashion", "vat", "wr", "False"),
    "control: VAT, clothes removed by hand": ("any", "vat", "clean", "False"),
    "control: labels and validation labels together, no pool": ("any", "supervised", "none", "True"),
}  # text: ood, method, weights, learns_validation
CELL = {"ratio": "0.5", "model": "lenet", "validation": "10000", "steps": "2000"}


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    """The rows of the table of results."""
    (table,) = re.findall(r"<!-- results:begin -->\n(.*?)<!-- results:end -->", TEXT, re.DOTALL)
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert rows[0] == ["run", "test accuracy, %"]
    return dict(rows[2:])


def test_the_table_has_these_runs(shown):
    assert list(shown) == list(RUNS)


@pytest.mark.parametrize("text", RUNS)
def test_a_number_is_that_of_its_rows(text, shown):
    with (ROOT / "docs" / "results" / "default" / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if CELL.items() <= row.items()]
    names = ("ood", "method", "weights", "learns_validation")
    found = [row for row in rows if tuple(row[name] for name in names) == RUNS[text]]
    assert sorted(row["seed"] for row in found) == ["0", "1", "2", "3", "4"]
    accuracies = [100 * float(row["test_accuracy"]) for row in found]
    assert shown[text] == f"{statistics.mean(accuracies):.2f} ± {statistics.stdev(accuracies):.2f}"


NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def test_it_counts_methods_and_weightings_right(tmp_path):
    (words,) = re.findall(r"\[(\w+) base methods and (\w+) weightings\]", PROSE)
    printed = python("import wrssl; print(len(wrssl.list_methods()), len(wrssl.list_weightings()))", tmp_path)
    assert [NUMBERS.index(word) for word in words] == [int(number) for number in printed.split()]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#\s]+)[^)]*\)", PROSE))))
def test_a_link_leads_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).is_file()
