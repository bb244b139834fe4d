"""The command line as a user meets it: in its own process, with exit codes and sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import wrssl
from wrssl.cli import main

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
ENVIRONMENT.pop("WRSSL_DATA", None)


def run(*arguments, cwd=None, **environment):
    command = [sys.executable, "-W", "error::UserWarning", "-m", "wrssl", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={**ENVIRONMENT, **environment}, timeout=240, check=False
    )


def run_here(monkeypatch, capsys, *arguments):
    """The same in this process, which saves the start-up for the many cases that end at once."""
    monkeypatch.setattr(sys, "argv", ["wrssl", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return subprocess.CompletedProcess(arguments, ended.value.code, printed.out, printed.err)


def sentence(done):
    """Bad input: exit code 2, one line on standard error, no traceback, nothing on standard output."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_help_version_and_methods():
    for done in (run("--help"), run()):
        assert done.returncode == 0
        assert "demo" in done.stdout
    assert run("--version").stdout.strip() == wrssl.__version__
    done = run("methods")
    assert done.returncode == 0
    weightings = ("none", "oracle", "wr-instance", "wr-cluster", "prior", "wr")
    for name in ("supervised", "pl", "pi", "mt", "vat", "entmin", *weightings):
        assert f"  {name} " in done.stdout


def test_help_does_not_import_torch():
    code = "import sys, wrssl.cli; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=False).returncode == 0


def test_fit_writes_a_run_directory_and_resume_reads_it(tmp_path):
    out = tmp_path / "RUN"
    arguments = ["--ood", "boundary", "--ratio", "0.25", "--method", "pl", "--weights", "wr-instance", "--steps", "8"]
    options = ["--method-option", "threshold=0.6", "--weight-option", "L=2", "--weight-option", "solver=cg"]
    done = run("fit", "--scenario", "moons", *arguments, *options, "--seed", "1", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "test accuracy" in done.stdout
    assert str(out) in done.stdout
    assert done.stderr == ""  # quiet where standard error is no terminal
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["optimizer_steps"] == 8
    config = json.loads((out / "config.json").read_text())
    assert config["weight_options"] == {"L": 2, "solver": "cg"}
    assert config["scenario"]["ratio"] == 0.25
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    again = run("fit", "--resume", str(out), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["test_accuracy"] == metrics["test_accuracy"]
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before


def test_outputs_name_no_time_and_no_path(tmp_path):
    texts = []
    for name in ("a", "b"):
        done = run("fit", "--scenario", "moons", "--steps", "4", "--out", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
        texts.append([(tmp_path / name / file).read_bytes() for file in ("verdicts.csv", "model.safetensors")])
    assert texts[0] == texts[1]
    assert str(tmp_path).encode() not in b"".join(texts[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--scenario"),
        (["--scenario", "moon"], "moons"),
        (["--scenario", "moons", "--ood", "fashion"], "faraway"),
        (["--scenario", "moons", "--ratio", "1.5"], "ratio"),
        (["--scenario", "moons", "--ratio", "nan"], "ratio"),
        (["--scenario", "moons", "--ratio", "half"], "--ratio"),
        (["--scenario", "moons", "--mode", "mix"], "replace"),
        (["--scenario", "moons", "--method", "vta"], "vat"),
        (["--scenario", "moons", "--weights", "best"], "wr-cluster"),
        (["--scenario", "moons", "--bn", "none"], "weighted"),
        (["--scenario", "moons", "--model", "lenet"], "mlp"),
        (["--scenario", "moons", "--steps", "0"], "steps"),
        (["--scenario", "moons", "--steps", "soon"], "auto"),
        (["--scenario", "moons", "--seed", "-1"], "seed"),
        (["--scenario", "moons", "--device", "abacus"], "cpu"),
        (["--scenario", "moons", "--lr", "-1"], "lr"),
        (["--scenario", "moons", "--weight-option", "K"], "NAME=VALUE"),
        (["--scenario", "moons", "--weight-option", "Q=3"], "its options are"),
        (["--scenario", "moons", "--weight-option", "K=many"], "'K' must be a whole number"),
        (["--scenario", "moons", "--method-option", "eps=wide"], "'eps' must be a number or null"),
        (["--scenario", "moons", "--no-such-option"], "no-such-option"),
        (["--scenario", "mnist"], "download"),
        (["--resume", "nowhere"], "leave out --out"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_bad_input_is_one_sentence_and_leaves_nothing(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WRSSL_DATA", str(tmp_path / "empty"))
    done = run_here(monkeypatch, capsys, "fit", *arguments, "--out", "RUN")
    assert words in sentence(done)
    assert not (tmp_path / "RUN").exists()


def test_a_run_that_does_not_exist_is_not_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "nowhere" in sentence(run_here(monkeypatch, capsys, "fit", "--resume", "nowhere"))
    assert not (tmp_path / "nowhere").exists()


def test_an_existing_folder_is_never_touched(tmp_path, monkeypatch, capsys):
    (tmp_path / "RUN").mkdir()
    (tmp_path / "RUN" / "thesis.txt").write_text("mine")
    begin = ("fit", "--scenario", "moons", "--steps", "2", "--out")
    done = run_here(monkeypatch, capsys, *begin, str(tmp_path / "RUN"))
    assert "not empty" in sentence(done)
    (tmp_path / "file").write_text("mine")
    assert "is a file" in sentence(run_here(monkeypatch, capsys, *begin, str(tmp_path / "file")))
    assert [p.name for p in (tmp_path / "RUN").iterdir()] == ["thesis.txt"]


def test_unknown_command():
    assert "wrssl --help" in sentence(run("train"))


def test_demo_in_small(tmp_path):
    code = (
        "import wrssl.demo as d, wrssl.demo_photos as p; from pathlib import Path; d.DIGIT_STEPS, d.MOON_STEPS = 3, 3; "
        "p.PACKAGE = 'wrssl_absent'; "
        "d.run_demo(Path('new'), 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "new" / "table.json").read_text())
    assert len(rows) == len({row["run"] for row in rows}) == 6
    assert all(row["run"] in done.stdout for row in rows)
    assert (tmp_path / "new" / "moons.png").read_bytes()[:4] == b"\x89PNG"
    assert "<html" in (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
