"""Runs of version 0.1.0 are read, judged with, reported and resumed.

``tests/data/run-of-0.1.0`` was made by that version with its defaults (vat, wr, three models): ``finished`` from digits
as image files of 6 × 6 pixels, without its states and its page; ``unfinished`` from the moons, stopped in step 2 of 40.
``expected.npz`` holds what 0.1.0 said: ``pool_…`` on the pool, the others on the new ``inputs`` (digits of the three
classes, then another digit and noise), ``resumed_…`` at the end of the second run without a stop.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import wrssl
from wrssl.api import DataError
from wrssl.cli import main
from wrssl.runs import StateWarning
from wrssl.training import resume_run

KEPT = Path(__file__).resolve().parents[1] / "data" / "run-of-0.1.0"
FINISHED, UNFINISHED = KEPT / "finished", KEPT / "unfinished"
CLOSE = {"rtol": 0, "atol": 1e-5}  # another processor has other kernels, which add up in another order


@pytest.fixture(scope="module")
def expected():
    with np.load(KEPT / "expected.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.fixture
def copy(tmp_path):
    """A copy of a kept run, which a test may change."""

    def make(folder):
        return Path(shutil.copytree(folder, tmp_path / folder.name))

    return make


def run(monkeypatch, capsys, *arguments):
    """Exit code, standard output and standard error of the program."""
    monkeypatch.setattr(sys, "argv", ["wrssl", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_kept_run_is_one_of_that_version():
    for folder in (FINISHED, UNFINISHED):
        assert json.loads((folder / "config.json").read_text("utf-8"))["wrssl"] == "0.1.0"


def test_it_predicts_what_it_predicted(expected):
    result = wrssl.load(FINISHED)
    probabilities = result.predict_proba(expected["inputs"])
    np.testing.assert_allclose(probabilities, expected["probabilities"], **CLOSE)
    np.testing.assert_array_equal(result.predict(expected["inputs"]), expected["labels"])


def test_it_judges_new_samples_as_it_did(expected):
    table = wrssl.load(FINISHED).judge(expected["inputs"])
    np.testing.assert_array_equal(table["verdict"], expected["verdict"])
    np.testing.assert_allclose(table["ood_score"], expected["ood_score"], **CLOSE)
    assert set(table["verdict"]) == {"keep", "doubt", "drop"}


def test_verdicts_weights_and_metrics_are_read_as_they_were(expected):
    result = wrssl.load(FINISHED)
    for name in ("id", "weight", "ood_score", "verdict", "pseudo_label", "confidence"):
        np.testing.assert_array_equal(result.verdicts[name], expected[f"pool_{name}"])
    np.testing.assert_array_equal(result.weights, expected["pool_weight"])
    assert result.metrics == json.loads((FINISHED / "metrics.json").read_text("utf-8"))
    assert result.metrics["test_accuracy"] == 0.9
    assert result.config == json.loads((FINISHED / "config.json").read_text("utf-8"))
    assert result.history["step"].tolist() == list(range(3, 61, 3))
    assert [name for name, _ in result.skipped] == ["text.png"]
    assert result.classes.tolist() == ["one", "two", "zero"]


def test_to_read_and_resume_a_finished_run_changes_nothing(copy):
    folder = copy(FINISHED)
    before = contents(folder)
    np.testing.assert_array_equal(resume_run(folder).weights, wrssl.load(folder).weights)
    assert contents(folder) == before == contents(FINISHED)


def test_it_is_saved_again_and_read_back(expected, tmp_path):
    wrssl.load(FINISHED).save(tmp_path / "again")
    again = wrssl.load(tmp_path / "again")
    assert again.judge(expected["inputs"]).equals(wrssl.load(FINISHED).judge(expected["inputs"]))
    assert again.verdicts.equals(wrssl.load(FINISHED).verdicts)


def test_wrssl_predict_gives_the_same_table(expected, tmp_path, monkeypatch, capsys):
    images = tmp_path / "new"
    images.mkdir()
    for number, pixels in enumerate(expected["inputs"]):
        Image.fromarray(pixels[0]).save(images / f"{number:02d}.png")
    code, out, err = run(monkeypatch, capsys, "predict", FINISHED, images)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [Path(row["id"]).name for row in rows] == [f"{number:02d}.png" for number in range(len(rows))]
    assert [row["label"] for row in rows] == expected["labels"].tolist()
    assert [row["verdict"] for row in rows] == expected["verdict"].tolist()
    for name, values in (("confidence", expected["probabilities"].max(1)), ("ood_score", expected["ood_score"])):
        np.testing.assert_allclose([float(row[name]) for row in rows], values, **CLOSE)


def test_wrssl_report_writes_its_page_again(copy, expected, monkeypatch, capsys):
    folder = copy(FINISHED)
    code, out, err = run(monkeypatch, capsys, "report", folder)
    assert (code, err) == (0, "")
    assert out == f"report: {folder / 'report.html'}\n"
    page = (folder / "report.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    words = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert "The model is right on 90.0 % of 60 test examples" in words
    assert "40 keep, 13 doubt, 13 drop" in words
    assert "wrssl 0.1.0" in words
    assert all(name in page for name in expected["pool_id"][expected["pool_verdict"] == "drop"])
    (folder / "report.html").unlink()
    assert contents(folder) == contents(FINISHED)


def test_an_unfinished_run_is_not_loaded(copy):
    with pytest.raises(DataError, match=r"is not finished; finish it with: wrssl fit --resume"):
        wrssl.load(copy(UNFINISHED))


def test_an_unfinished_run_goes_on_to_the_same_end_and_says_that_the_version_is_another(copy, expected):
    with pytest.warns(StateWarning, match="begun with") as said:
        result = resume_run(copy(UNFINISHED))
    (sentence,) = [str(each.message) for each in said if "wrssl 0.1.0" in str(each.message)]
    assert re.search(rf"begun with wrssl 0\.1\.0 and goes on with {re.escape(wrssl.__version__)}, so that", sentence)
    assert "\n" not in sentence
    assert result.metrics["optimizer_steps"] == 40
    assert result.history["step"].tolist() == list(range(2, 41, 2))
    moons = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
    # 39 steps on another processor: rounding grows with them.
    np.testing.assert_allclose(result.weights, expected["resumed_weights"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(
        result.predict_proba(moons.test[0][:50]), expected["resumed_probabilities"], rtol=0, atol=1e-3
    )


@pytest.mark.filterwarnings("always")  # the program prints them
def test_wrssl_fit_resume_goes_on_with_one_note(copy, monkeypatch, capsys):
    folder = copy(UNFINISHED)
    code, out, err = run(monkeypatch, capsys, "fit", "--resume", folder)
    assert code == 0
    notes = [line for line in err.splitlines() if line.startswith("note: ") and "begun with wrssl 0.1.0" in line]
    assert len(notes) == 1
    assert "Traceback" not in out + err
    assert wrssl.load(folder).metrics["optimizer_steps"] == 40


@pytest.mark.filterwarnings("always")
def test_a_state_that_does_not_fit_its_settings_is_one_sentence(copy, monkeypatch, capsys):
    folder = copy(UNFINISHED)
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text("utf-8")), "lr": 0.1}), encoding="utf-8")
    code, _, err = run(monkeypatch, capsys, "fit", "--resume", folder)
    assert code == 2
    (line,) = [line for line in err.splitlines() if line.startswith("wrssl: ")]
    assert re.search(r"begun with lr=0\.1, not with .*; give the same settings, or another run directory\.$", line)
