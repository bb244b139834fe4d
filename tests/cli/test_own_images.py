"""From two folders to a model, verdicts and a page, as a person with nothing to write would go."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

import wrssl
from wrssl.cli import main
from wrssl.registry import METHODS


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Bright and dark images, twelve labelled each; the pool holds both, stripes, and two broken files."""
    monkeypatch.setenv("WRSSL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)

    def draw(path, level):
        path.parent.mkdir(parents=True, exist_ok=True)
        stripes = level is None
        pixels = np.tile([0, 255], (8, 4)) if stripes else random.normal(level, 20, (8, 8)).clip(0, 255)
        Image.fromarray(pixels.astype(np.uint8)).save(path)

    for number in range(12):
        for name, level in (("dark", 60), ("light", 190)):
            draw(tmp_path / "labeled" / name / f"{number}.png", level)
    for number in range(40):
        draw(tmp_path / "pool" / "part" / f"{number:02d}.png", (60, 190, None)[number % 3])
    (tmp_path / "pool" / "empty.jpg").write_bytes(b"")
    (tmp_path / "pool" / "part" / "text.png").write_text("no image")
    return tmp_path


PLUGIN = """
import os, signal
import wrssl
from wrssl.methods import PseudoLabel

@wrssl.register_method("interrupted")
class Interrupted(PseudoLabel):
    summary = "Pseudo-Label, and Ctrl-C during the step that the environment names"

    def after_step(self, net, step):
        if str(step) == os.environ.get("CTRL_C"):
            signal.raise_signal(signal.SIGINT)
"""


@pytest.fixture
def interrupted(folders, monkeypatch):
    """``interrupted(step)``: from now on Ctrl-C is pressed during this step, or never with None."""
    (folders / "interrupted.py").write_text(PLUGIN)

    def press(step):
        monkeypatch.delenv("CTRL_C", raising=False)
        if step is not None:
            monkeypatch.setenv("CTRL_C", str(step))

    with METHODS.isolated():
        yield press


OWN = ("--labeled", "labeled", "--unlabeled", "pool", "--image-size", "8")


def table_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrssl", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


def test_fit_predict_and_report(folders, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, "fit", *OWN, "--steps", "30", "--out", "RUN")
    assert code == 0, err
    assert "skipped files: 2" in out
    assert "run directory: RUN" in out
    names = {p.name for p in (folders / "RUN").iterdir()}
    assert names == {
        "config.json", "metrics.json", "history.csv", "verdicts.csv", "skipped.csv", "model.safetensors", "report.html",
        "state",
    }  # fmt: skip
    rows = table_of((folders / "RUN" / "verdicts.csv").read_text(encoding="utf-8"))
    assert [row["id"] for row in rows] == [f"part/{n:02d}.png" for n in range(40)]
    skipped = table_of((folders / "RUN" / "skipped.csv").read_text(encoding="utf-8"))
    assert {row["id"] for row in skipped} == {"empty.jpg", "part/text.png"}
    assert all(row["reason"] for row in skipped)
    for file in ("verdicts.csv", "model.safetensors"):
        assert str(folders).encode() not in (folders / "RUN" / file).read_bytes()

    code, out, err = run(monkeypatch, capsys, "predict", "RUN", "pool/part/00.png", "labeled", "pool/empty.jpg")
    assert code == 0, err
    table = table_of(out)
    assert list(table[0]) == ["id", "label", "confidence", "ood_score", "verdict"]
    assert len(table) == 25
    assert table[0]["id"] == "pool/part/00.png"
    assert "skipped: pool/empty.jpg" in err
    labels = [row["label"] for row in table[1:]]
    assert np.mean([label == ("dark" if n < 12 else "light") for n, label in enumerate(labels)]) > 0.9

    page = (folders / "RUN" / "report.html").read_text(encoding="utf-8")
    (folders / "RUN" / "report.html").unlink()
    code, out, _ = run(monkeypatch, capsys, "report", "RUN")
    assert code == 0
    assert (folders / "RUN" / "report.html").read_text(encoding="utf-8") == page
    code, _, _ = run(monkeypatch, capsys, "report", "RUN", "--out", "copy.html")
    assert code == 0
    assert (folders / "copy.html").read_text(encoding="utf-8") == page


def test_a_run_without_a_name_gets_one_and_never_overwrites(folders, monkeypatch, capsys):
    for name in ("wrssl-run", "wrssl-run-2"):
        code, out, err = run(monkeypatch, capsys, "fit", *OWN, "--steps", "2", "--weights", "none")
        assert code == 0, err
        assert out.endswith(f"run directory: {name}\n")


def test_an_audit_of_folders(folders, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, "audit", *OWN, "--steps", "5", "--repeats", "2", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["answer"] in ("helps", "hurts", "neutral")
    assert found["ci_low"] <= found["difference"] <= found["ci_high"]
    assert {"foreign_share", "advice"} <= set(found)
    assert {p.name for p in folders.iterdir()} == {"labeled", "pool", "cache"}  # and no run directory
    code, out, _ = run(monkeypatch, capsys, "audit", *OWN, "--steps", "2", "--repeats", "2")
    assert code == 0
    assert len(out.splitlines()) == 1


def test_a_stopped_run_goes_on_from_its_folder_alone(folders, interrupted, monkeypatch, capsys):
    plugin = ("--plugin", "interrupted.py")
    command = ("fit", *OWN, "--steps", "20", "--method", "interrupted", *plugin)
    code, *_ = run(monkeypatch, capsys, *command, "--out", "whole")
    assert code == 0
    interrupted(9)
    code, _, err = run(monkeypatch, capsys, *command, "--out", "parts")
    assert code == 130
    assert "Stopped after step 10 of 20; go on: wrssl fit --resume parts" in err
    interrupted(None)
    code, _, err = run(monkeypatch, capsys, "fit", "--resume", "parts", *plugin)
    assert code == 0, err
    for file in ("verdicts.csv", "model.safetensors"):
        assert (folders / "parts" / file).read_bytes() == (folders / "whole" / file).read_bytes()
    assert wrssl.load("parts").metrics["optimizer_steps"] == 20


def test_changed_images_do_not_go_on(folders, interrupted, monkeypatch, capsys):
    interrupted(0)
    command = ("fit", *OWN, "--steps", "20", "--method", "interrupted", "--plugin", "interrupted.py", "--out", "RUN")
    assert run(monkeypatch, capsys, *command)[0] == 130
    (folders / "pool" / "part" / "00.png").unlink()
    code, _, err = run(monkeypatch, capsys, "fit", "--resume", "RUN")
    assert code == 2
    assert "have changed" in err
    assert len([line for line in err.splitlines() if not line.startswith("note:")]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "--labeled", "labeled"], "--unlabeled"),
        (["fit", *OWN, "--scenario", "moons"], "not both"),
        (["fit", "--labeled", "nowhere", "--unlabeled", "pool"], "nowhere"),
        (["fit", *OWN, "--validation", "1.5"], "share"),
        (["fit", *OWN, "--image-size", "0"], "image_size"),
        (["fit", *OWN, "--false-drop-rate", "2"], "false_drop_rate"),
        (["audit"], "wrssl audit --scenario"),
        (["audit", *OWN, "--repeats", "1"], "repeats"),
        (["audit", *OWN, "--steps", "soon"], "steps"),
        (["audit", *OWN, "--steps", "0"], "steps"),
        (["predict", "nowhere", "pool"], "nowhere"),
        (["report", "nowhere"], "nowhere"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_bad_input_is_one_sentence(arguments, words, folders, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, *arguments)
    assert code == 2
    lines = [line for line in err.splitlines() if not line.startswith("note:")]
    assert len(lines) == 1
    assert words in lines[0]
    assert out == ""


def test_predict_says_what_it_cannot_do(folders, monkeypatch, capsys):
    assert run(monkeypatch, capsys, "fit", *OWN, "--steps", "2", "--weights", "none", "--out", "RUN")[0] == 0
    (folders / "nothing").mkdir()
    assert "no image file" in run(monkeypatch, capsys, "predict", "RUN", "nothing")[2]
    assert "could be read" in run(monkeypatch, capsys, "predict", "RUN", "pool/empty.jpg")[2]
    shutil.copy("labeled/dark/0.png", "taken.csv")
    assert "exists already" in run(monkeypatch, capsys, "predict", "RUN", "labeled", "--out", "taken.csv")[2]
    code, out, _ = run(monkeypatch, capsys, "predict", "RUN", "labeled", "--json")
    assert code == 0
    assert len(json.loads(out)["rows"]) == 24
    assert run(monkeypatch, capsys, "fit", "--scenario", "moons", "--steps", "2", "--out", "MOONS")[0] == 0
    assert "not trained on files" in run(monkeypatch, capsys, "predict", "MOONS", "labeled")[2]
