"""The page about migration: old names are gone, new ones exist, its example gives the numbers that it states."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wrssl
from wrssl import api, judging
from wrssl.api import OptionError, Weighting
from wrssl.registry import WEIGHTINGS
from wrssl.runs import Result

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "migration-0.2.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "**" not in line]
CLASSES = {
    "Weighting": api.Weighting,
    "PredictionWeighting": api.PredictionWeighting,
    "PoolJudge": judging.PoolJudge,
    "Method": api.Method,
    "Views": api.Views,
    "Callback": wrssl.Callback,
    "Result": Result,
}
CONTRACT = rf"`({'|'.join(CLASSES)})\.(\w+)"
OLD = [found for old, _ in ROWS for found in re.findall(CONTRACT, old)]
NEW = [found for _, new in ROWS for found in re.findall(CONTRACT, new)]
(BEFORE,) = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
(AFTER,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def has(name, attribute):
    if name == "Result":  # its attributes are set when one is made
        return re.search(rf"\bself\.{attribute}\b", Path(sys.modules[Result.__module__].__file__).read_text("utf-8"))
    return hasattr(CLASSES[name], attribute)


def test_the_table_is_read():
    assert len(OLD) > 12
    assert len(NEW) > 12


@pytest.mark.parametrize(("name", "attribute"), OLD)
def test_an_old_name_is_gone(name, attribute):
    assert not has(name, attribute)


@pytest.mark.parametrize(("name", "attribute"), NEW)
def test_a_new_name_exists(name, attribute):
    assert has(name, attribute)


@pytest.mark.parametrize("module", sorted(set(re.findall(r"`(wrssl\.[a-z_.]+)`", "\n".join(old for old, _ in ROWS)))))
def test_an_old_module_is_gone(module):
    with pytest.raises(ImportError):
        importlib.import_module(module)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`@?(wrssl\.[a-z_.]+)", "\n".join(new for _, new in ROWS)))))
def test_a_new_place_exists(name):
    try:
        importlib.import_module(name)
    except ImportError:
        place, attribute = name.rsplit(".", 1)
        assert hasattr(importlib.import_module(place), attribute)


def test_the_two_versions_of_the_example_differ_in_the_contract_only():
    old, new = (set(code.splitlines()) for code in (BEFORE, AFTER))
    changed = [line.strip() for line in old - new if line.strip()]
    assert 0 < len(changed) <= 8
    assert {line for line in changed if line.startswith("def ")} == {
        "def estimator(self, step):",
        "def weights(self, index):",
        "def factors(self, index):",
    }


def test_the_example_gives_the_numbers_on_the_page(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", AFTER],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stated = map(float, re.search(r"test accuracy ([\d.]+), mean weight ([\d.]+)\.", PAGE).groups())
    assert [float(word) for word in done.stdout.split()] == pytest.approx(list(stated), abs=0.02)


def test_a_weighting_of_0_1_0_is_refused_with_a_sentence_that_names_the_page():
    class Old(Weighting):
        summary = "as it was written for 0.1.0"

        def weights(self, index):
            return index.float()

    with WEIGHTINGS.isolated():
        wrssl.register_weighting("old")(Old)
        scenario = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
        with pytest.raises(OptionError, match=r"'old' does not define batch; .*docs/migration-0\.2\.md"):
            wrssl.fit(scenario, weights="old", steps=1)


@pytest.mark.parametrize("gone", ["weights", "factors", "presence", "estimator", "begin_step", "admission", "judged"])
def test_the_table_says_what_takes_the_place_of_each_hook_that_is_gone(gone):
    assert ("Weighting", gone) in OLD
