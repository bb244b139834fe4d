"""``wrssl reproduce`` as a user meets it."""

from __future__ import annotations

import sys

import pytest

from wrssl.cli import main
from wrssl_reproduction.run import Outcome


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrssl", "reproduce", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr()


@pytest.fixture
def no_training(monkeypatch):
    """Each cell is done at once; those that keep a model fail."""

    def quick(cell, data_dir):
        if cell.keeps:
            raise ValueError("no model here")
        return Outcome({"test_accuracy": 0.5, "seconds": 1.0})

    from wrssl_reproduction import reproduce as module

    monkeypatch.setitem(module.reproduce.__kwdefaults__, "run", quick)
    monkeypatch.setattr("wrssl_reproduction.figure.draw_figure", lambda *arguments: None)


def test_dry_run_says_how_long_and_writes_nothing(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    code, printed = run(
        monkeypatch, capsys, "all", "--jobs", "2", "--out", str(out), "--data-dir", str(tmp_path), "--dry-run"
    )
    assert code == 0
    lines = printed.out.splitlines()
    assert "REDUCED" in lines[0]
    assert any(line.startswith("fig2: 82 runs, 31 to make, 51 skipped for want of data; about ") for line in lines)
    assert any(line.startswith("table-svhn: 42 runs, 0 to make, 42 skipped") for line in lines)
    assert any("train_32x32.mat is not in" in line for line in lines)
    assert lines[-1].startswith("in all 31 runs, about ")
    assert lines[-1].endswith("nothing was run")
    assert not out.exists()


def test_every_core_works_if_not_told_otherwise(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    code, printed = run(
        monkeypatch, capsys, "all", "--out", str(tmp_path / "out"), "--data-dir", str(tmp_path), "--dry-run"
    )
    assert code == 0
    assert " with 7 jobs on free cores " in printed.out


def test_only_some_experiments_of_all(tmp_path, monkeypatch, capsys):
    options = ("--out", str(tmp_path / "out"), "--data-dir", str(tmp_path), "--dry-run")
    code, printed = run(monkeypatch, capsys, "all", "--only", "fig4a", *options)
    assert code == 0
    lines = printed.out.splitlines()
    assert any(line.startswith("fig4a: 45 runs, 0 to make, 45 skipped for want of data") for line in lines)
    assert any(line.startswith("table-svhn: 42 runs, 0 to make, 42 left out") for line in lines)
    code, printed = run(monkeypatch, capsys, "fig4a", "--only", "fig4b", *options)
    assert code == 2
    assert "--only chooses among the experiments of all" in printed.err


def test_failed_cells_end_with_code_1_and_the_next_call_goes_on(tmp_path, monkeypatch, capsys, no_training):
    arguments = ("fig2", "--dataset", "moons", "--steps", "5", "--jobs", "1", "--out", str(tmp_path / "out"))
    code, printed = run(monkeypatch, capsys, *arguments)
    assert code == 1
    assert "18 of 31 runs are there, 18 of them new" in printed.out
    assert "failed: ValueError: no model here" in printed.err
    assert str(tmp_path / "out" / "table.md") in printed.out
    assert len((tmp_path / "out" / "failed.csv").read_text().splitlines()) == 14
    code, printed = run(monkeypatch, capsys, *arguments)
    assert code == 1
    assert "18 of 31 runs are there, 0 of them new" in printed.out


def test_skipped_cells_are_no_failure(tmp_path, monkeypatch, capsys, no_training):
    monkeypatch.chdir(tmp_path)
    code, printed = run(monkeypatch, capsys, "table-cifar100", "--data-dir", str(tmp_path))
    assert code == 0
    assert "0 of 66 runs are there" in printed.out
    assert "skipped 66: cifar-100-python.tar.gz is not in" in printed.out
    assert (tmp_path / "reproduce" / "table-cifar100" / "skipped.csv").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fig3",), "There is no experiment 'fig3'; choose one of fig2"),
        (("fig2", "--budget", "huge"), "budget must be one of paper, reduced, quick"),
        (("fig2", "--seeds", "0"), "seeds counts"),
        (("fig2", "--dataset", "imagenet"), "No experiment uses the data set 'imagenet'"),
        (("fig2", "--dataset", "moons", "--jobs", "0"), "jobs counts processes"),
    ],
)
def test_wrong_options_are_one_sentence(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, printed = run(monkeypatch, capsys, *arguments)
    assert code == 2
    assert words in printed.err
    assert len(printed.err.splitlines()) == 1
