"""The page about the architecture describes the walk of a default fit as the tracing program finds it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
TITLE = "## The walk of one default fit"
MOST = 25  # files in the table


@pytest.fixture(scope="module")
def traced():
    """What the program finds; in a process of its own, since it watches every call."""
    command = [sys.executable, str(ROOT / "tools" / "trace_fit.py"), "--json"]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def section():
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(TITLE) :].split("\n## ")[0]


@pytest.fixture(scope="module")
def rows(section):
    """(file, what enters, what leaves, helpers) of every row of the table."""
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def files_in(text):
    return re.findall(r"`([\w/]+\.py)`", text)


def test_the_table_has_the_files_that_direct_a_default_fit_in_the_order_of_their_first_call(traced, rows):
    assert [files_in(row[0]) for row in rows] == [[file] for file in traced["walk"]]


def test_the_table_names_every_helper_beside_the_file_that_it_works_for(traced, rows):
    assert {files_in(row[0])[0]: sorted(files_in(row[3])) for row in rows} == {
        file: sorted(helpers) for file, helpers in traced["walk"].items()
    }


def test_every_row_says_what_enters_and_what_leaves(rows):
    assert all(len(row) == 4 and row[1] and row[2] for row in rows)


def test_the_walk_is_short(traced):
    assert 10 <= len(traced["walk"]) <= MOST


def test_the_page_counts_the_files(traced, section):
    """Those that direct, those that help, those of the ground floor, and all of them."""
    directing, helping = len(traced["walk"]), sum(map(len, traced["walk"].values()))
    ground = len(traced["ground"])
    words = (
        f"{directing} files direct, {helping} help, {ground} belong to the ground floor: {directing + helping + ground}"
    )
    assert words in " ".join(section.split())


def test_nothing_that_ran_is_left_out(traced, program):
    """Every file whose functions ran directs, helps, or is one of the contracts below all rooms."""
    ground = program("tools/trace_fit.py").GROUND
    assert {file.removesuffix(".py") for file in traced["ground"]} <= set(ground)
    listed = [*traced["walk"], *(file for helpers in traced["walk"].values() for file in helpers)]
    assert len(listed) == len(set(listed))
    assert set(listed).isdisjoint(traced["ground"])
    assert {"training/loop.py", "weighting/wr.py", "methods/vat.py", "runs/result.py", "models/build.py"} <= set(listed)


def test_a_file_that_is_handed_on_by_its_package_is_found(program):
    found = program("tools/trace_fit.py")
    assert found.home_of("wrssl.models", "split") == "models/split.py"
    assert found.home_of("wrssl.hypergrad", "LOSSES") == "hypergrad/logit_losses.py"
    assert found.home_of("wrssl.training.loop", "Trainer") == "training/loop.py"
