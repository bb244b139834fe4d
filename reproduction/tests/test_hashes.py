"""Rows that were made stay valid: the hash of every cell is that of version 0.1.0, unless its weighting is revised."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wrssl.api import Weighting
from wrssl.registry import WEIGHTINGS
from wrssl_reproduction.budget import BUDGETS, QUICK, get_budget
from wrssl_reproduction.catalogue import NAMES, get_experiment
from wrssl_reproduction.cell import Cell, is_superseded
from wrssl_reproduction.reproduce import reproduce
from wrssl_reproduction.rows import RESULTS, SUPERSEDED, append_row, make_row, read_rows, set_aside

# By experiment, budget and number of seeds: how many cells, and the SHA-256 of their sorted hashes, one per line.
KNOWN = json.loads((Path(__file__).parent / "data" / "hashes.json").read_text())
COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "results"
CELL = Cell("mnist", "fashion", 0.5, "replace", "lenet", "vat", "wr-cluster", "weighted", 3, 2000, K=20)


def test_all_experiments_and_budgets_are_among_the_known_ones():
    assert set(KNOWN) == {f"{name} {budget} {seeds}" for name in NAMES for budget in BUDGETS for seeds in (1, 3, 5, 20)}


@pytest.mark.parametrize("key", KNOWN)
def test_the_hashes_are_those_of_0_1_0(key):
    name, budget, seeds = key.split()
    hashes = sorted(cell.config_hash for cell in get_experiment(name).cells(get_budget(budget, int(seeds))))
    assert [len(hashes), hashlib.sha256("\n".join(hashes).encode()).hexdigest()] == KNOWN[key]


@pytest.mark.parametrize("name", ["fig4a", "table-k"])
def test_committed_rows_are_found_by_their_cells(name):
    """Every row with the paper's budget is that of a cell of the catalogue."""
    rows = [row for row in read_rows(COMMITTED / name / RESULTS) if row["budget"] == "paper"]
    seeds = 1 + max(int(row["seed"]) for row in rows)
    cells = {cell.config_hash for cell in get_experiment(name).cells(get_budget("paper", seeds))}
    assert rows
    assert {row["config_hash"] for row in rows} <= cells


@pytest.fixture
def revise(monkeypatch):
    """Gives a weighting another revision, as a later version of the package would."""

    def change(name, revision):
        monkeypatch.setattr(WEIGHTINGS.get(name), "revision", revision, raising=False)

    return change


def test_a_revision_above_one_enters_the_hash(revise):
    first, other = CELL.config_hash, replace(CELL, weights="none", K=None).config_hash
    revise("wr-cluster", 1)
    assert CELL.config_hash == first
    revise("wr-cluster", 2)
    assert CELL.config_hash == f"{first}-r2"
    assert replace(CELL, weights="none", K=None).config_hash == other
    revise("wr-cluster", 3)
    assert len({first, f"{first}-r2", CELL.config_hash}) == 3


def test_a_registered_weighting_brings_its_own_revision():
    class Fake(Weighting):
        revision = 2

    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("fake")(Fake)
        digits = replace(CELL, weights="fake").config_hash
        assert digits.endswith("-r2")
        assert is_superseded("fake", digits.removesuffix("-r2"))
        assert not is_superseded("fake", digits)
    assert not is_superseded("fake", digits)  # nothing is said about a weighting that does not exist


def test_rows_of_an_older_revision_move_to_a_file_of_their_own(tmp_path, revise):
    path = tmp_path / RESULTS
    cells = [replace(CELL, seed=seed, weights=weights) for seed in range(2) for weights in ("wr-cluster", "wr")]
    for cell in cells:
        append_row(path, make_row("fig4a", cell, "paper", {"test_accuracy": 0.5}))
    before = path.read_bytes()
    set_aside(path)
    assert path.read_bytes() == before
    assert not path.with_name(SUPERSEDED).exists()
    revise("wr-cluster", 2)
    for _ in range(2):  # once more changes nothing
        set_aside(path)
        assert [row["weights"] for row in read_rows(path)] == ["wr", "wr"]
        assert [row["weights"] for row in read_rows(path.with_name(SUPERSEDED))] == ["wr-cluster"] * 2
    set_aside(tmp_path / "elsewhere" / RESULTS)  # no file, no error
    for cell in cells[::2]:
        append_row(path, make_row("fig4a", cell, "paper", {"test_accuracy": 0.9}))
    assert [row["test_accuracy"] for row in read_rows(path)] == ["0.5", "0.5", "0.9", "0.9"]


def test_reproduce_makes_the_runs_of_a_revised_weighting_again(
    tmp_path, fake_run, no_files_needed, revise, monkeypatch
):
    monkeypatch.setattr("wrssl_reproduction.figure.draw_figure", lambda *arguments: None)
    cells = get_experiment("fig4a").cells(QUICK)
    revised = sum(cell.weights == "wr-cluster" for cell in cells)
    reproduce("fig4a", out=tmp_path, run=fake_run)
    revise("wr-cluster", 2)
    again = reproduce("fig4a", out=tmp_path, run=fake_run)
    assert again.new == revised > 0
    assert {cell.weights for cell in fake_run.seen[len(cells) :]} == {"wr-cluster"}
    assert len(read_rows(tmp_path / RESULTS)) == len(cells)
    assert len(read_rows(tmp_path / SUPERSEDED)) == revised
    assert reproduce("fig4a", out=tmp_path, run=fake_run).new == 0


def test_the_grid_of_the_default_knows_revisions_too(revise, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1] / "programs")
    grid = importlib.import_module("default_grid")
    del sys.modules["default_grid"]
    cell = grid.Cell("mean", 0.5, "vat", "wr:refine=false", 0)
    assert grid.shared(cell) == cell
    revise("wr", 2)
    assert grid.shared(cell).weights == "wr@2:refine=false"
    assert grid.shared(grid.shared(cell)) == grid.shared(cell)
    assert grid.shared(replace(cell, weights="none")).weights == "none"
    assert grid.shared(replace(cell, weights="clean")).ood == "any"
