"""results.csv: the columns that were promised, and rows that survive crashes and other processes."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from wrssl.errors import DataError
from wrssl_reproduction.budget import QUICK
from wrssl_reproduction.catalogue.cells import make_cell
from wrssl_reproduction.cell import Label
from wrssl_reproduction.rows import COLUMNS, RESULTS, again, append_row, commit, make_row, provenance, read_rows

PROMISED = (
    "experiment, dataset, ood, ratio, mode, model, method, weights, bn, seed, steps, n_labels, n_validation, K, J, P, "
    "L, scope, solver, test_accuracy, val_accuracy, ood_auroc, ood_fpr95, weight_auroc, seconds_per_step, config_hash, "
    "commit"
)


def row(seed: int = 0, **measured):
    cell = make_cell(QUICK, "mnist", seed, Label("p", "a, b", "50"), method="vat", ood="fashion", weights="wr-cluster")
    return make_row("fig4a", cell, "quick", {"test_accuracy": 0.123456789, "ood_auroc": float("nan"), **measured})


def test_the_promised_columns_come_first():
    assert list(COLUMNS[:27]) == PROMISED.split(", ")
    assert len(set(COLUMNS)) == len(COLUMNS)


def test_a_row_as_text():
    made = row(n_labels=100, val_accuracy=None, commit="abc")
    assert set(made) == set(COLUMNS)
    wanted = {
        "experiment": "fig4a", "ratio": "0.5", "K": "20", "l1": "1e-07", "test_accuracy": "0.123457", "ood_auroc": "",
        "val_accuracy": "", "n_labels": "100", "n_validation": "1000", "clean": "False", "budget": "quick",
        "label": "p|a, b|50", "commit": "abc", "lr": "",
    }  # fmt: skip
    assert {name: made[name] for name in wanted} == wanted
    other = make_cell(QUICK, "mnist", 0, Label("q", "c", "1"), method="vat", ood="fashion", weights="wr-cluster")
    copied = again(made, "fig6", other, "paper")
    assert (copied["experiment"], copied["label"], copied["budget"]) == ("fig6", "q|c|1", "paper")
    assert copied["test_accuracy"] == made["test_accuracy"]
    assert copied["config_hash"] == made["config_hash"] == other.config_hash


def test_rows_are_added_once(tmp_path):
    path = tmp_path / "new" / RESULTS
    assert read_rows(path) == []
    assert append_row(path, row(0))
    assert append_row(path, row(1))
    assert not append_row(path, row(0, test_accuracy=0.9))
    assert [(each["seed"], each["test_accuracy"]) for each in read_rows(path)] == [("0", "0.123457"), ("1", "0.123457")]
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize("cut", [3, 40, 1])
def test_a_torn_line_is_not_a_row_and_spoils_no_other(tmp_path, cut):
    path = tmp_path / RESULTS
    append_row(path, row(0))
    append_row(path, row(1))
    path.write_bytes(path.read_bytes()[:-cut])  # 1: only the end of the line is missing, so the row is whole
    there = ["0"] if cut > 1 else ["0", "1"]
    if cut > 3:
        assert [each["seed"] for each in read_rows(path)] == there
    append_row(path, row(2))
    seeds = [each["seed"] for each in read_rows(path)]
    assert seeds[0] == "0"
    assert seeds[-1] == "2"
    assert len(path.read_text().splitlines()) == 4


def test_repeated_lines_count_once_and_other_columns_are_refused(tmp_path):
    path = tmp_path / RESULTS
    append_row(path, row(0))
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    assert len(read_rows(path)) == 1
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"results.csv has other columns .* another --out"):
        read_rows(path)


CHILD = """
import sys
from pathlib import Path
from wrssl_reproduction.rows import append_row
from wrssl_reproduction.rows import COLUMNS
folder = Path(sys.argv[1])
(folder / "ready").touch()
for seed in range(40):
    append_row(folder / "results.csv", {name: f"{name} {seed}, \u00fc" for name in COLUMNS})
"""


def test_two_processes_write_one_file(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)])
    while not (tmp_path / "ready").exists() and child.poll() is None:
        time.sleep(0.01)
    for seed in range(20, 60):  # half of these are the child's too
        append_row(tmp_path / RESULTS, {name: f"{name} {seed}, ü" for name in COLUMNS})
    assert child.wait(timeout=120) == 0
    with (tmp_path / RESULTS).open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    assert {len(line) for line in lines} == {len(COLUMNS)}
    seeds = [line[COLUMNS.index("seed")] for line in lines[1:]]
    assert sorted(seeds) == sorted(f"seed {seed}, ü" for seed in range(60))


def test_no_other_process_writes_between_reading_the_rows_and_adding_one(tmp_path, monkeypatch):
    looks, second = [], threading.Event()

    def look(path):
        looks.append(path)
        found = read_rows(path)
        if len(looks) == 1:
            second.wait(0.8)  # without the lock the other one reads now, and finds nothing either
        second.set()
        return found

    monkeypatch.setattr("wrssl_reproduction.rows.read_rows", look)
    with ThreadPoolExecutor(2) as pool:
        added = list(pool.map(lambda _: append_row(tmp_path / RESULTS, row(0)), range(2)))
    assert sorted(added) == [False, True]
    assert len((tmp_path / RESULTS).read_text().splitlines()) == 2


def test_provenance_names_the_code_and_not_the_machine():
    facts = provenance()
    assert set(facts) == {"commit", "torch", "machine"}
    assert facts["commit"] == commit() != ""
    assert os.uname().nodename not in facts["machine"]
