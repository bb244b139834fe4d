"""The runner: resumes, reports failures and goes on, skips what has no data, shares runs between experiments."""

from __future__ import annotations

import csv
import os
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from wrssl.errors import DataError, OptionError, WRSSLError
from wrssl_reproduction import workers
from wrssl_reproduction.budget import get_budget
from wrssl_reproduction.catalogue import get_experiment
from wrssl_reproduction.cost import cell_seconds
from wrssl_reproduction.plan import prepare
from wrssl_reproduction.reproduce import reproduce
from wrssl_reproduction.rows import read_rows
from wrssl_reproduction.run import Outcome
from wrssl_reproduction.workers import Attempt, Display, attempts

MOONS = {"datasets": ("moons",)}
FIG4A, SVHN = 45, 42  # their runs with the quick budget, as in test_experiment_cells.py
THREE_RIVALS = 15  # of those of fig4a: in every of the five columns


def listed(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def quick_pictures(monkeypatch):
    """Pictures have tests of their own; here it counts that they are drawn, from which rows."""

    def draw(experiment, rows, traces, path):
        path.write_text(f"{len(rows)} rows, {len(traces)} traces")

    monkeypatch.setattr("wrssl_reproduction.figure.draw_figure", draw)


@pytest.fixture
def files_of_models(fake_run, monkeypatch):
    """The moons keep models, which the fake does not have."""
    real = type(fake_run).__call__

    def call(self, cell, data_dir):
        outcome = real(self, cell, data_dir)
        return Outcome(outcome.measured, {**outcome.files, "safetensors": b"model"})

    monkeypatch.setattr(type(fake_run), "__call__", call)
    monkeypatch.setattr("wrssl_reproduction.catalogue.fig2.kept_result", lambda row, folder: None)
    return fake_run


def test_every_cell_gets_its_row_and_nothing_is_run_twice(tmp_path, fake_run, no_files_needed, capsys):
    summary = reproduce("fig4a", out=tmp_path, run=fake_run)
    cells = get_experiment("fig4a").cells(get_budget("quick"))
    assert (summary.runs, summary.new, summary.failed, summary.skipped) == (FIG4A, FIG4A, {}, {})
    rows = read_rows(tmp_path / "results.csv")
    assert {row["config_hash"] for row in rows} == {cell.config_hash for cell in cells}
    assert {row["experiment"] for row in rows} == {"fig4a"}
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", ".results.csv.lock", "table.md", "figure.png"}
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == FIG4A
    assert lines[-1].startswith(f"{FIG4A}/{FIG4A}  0 s left  mnist ")
    before = (tmp_path / "results.csv").read_bytes(), (tmp_path / "table.md").read_text()
    (tmp_path / "table.md").unlink()
    (tmp_path / "figure.png").unlink()
    again = reproduce("fig4a", out=tmp_path, run=fake_run)
    assert (again.new, len(fake_run.seen)) == (0, FIG4A)
    assert ((tmp_path / "results.csv").read_bytes(), (tmp_path / "table.md").read_text()) == before
    assert (tmp_path / "figure.png").read_text() == f"{FIG4A} rows, 0 traces"


def test_a_stopped_grid_goes_on(tmp_path, fake_run, no_files_needed):
    fake_run.stops_after = 5
    with pytest.raises(KeyboardInterrupt, match=r"what is done is kept in .*, and the same command goes on"):
        reproduce("fig4a", out=tmp_path, run=fake_run)
    assert len(read_rows(tmp_path / "results.csv")) == 5
    fake_run.stops_after = None
    assert reproduce("fig4a", out=tmp_path, run=fake_run).new == FIG4A - 5
    assert len({cell.config_hash for cell in fake_run.seen}) == len(fake_run.seen) == FIG4A


def test_more_seeds_add_rows(tmp_path, fake_run, no_files_needed):
    reproduce("fig4a", seeds=1, out=tmp_path, run=fake_run)
    assert reproduce("fig4a", seeds=2, out=tmp_path, run=fake_run).new == FIG4A
    assert {row["seed"] for row in read_rows(tmp_path / "results.csv")} == {"0", "1"}
    assert "(2)" in (tmp_path / "table.md").read_text()


def test_a_failed_cell_is_reported_and_the_rest_goes_on(tmp_path, fake_run, no_files_needed, capsys):
    fake_run.fails = {"mwn": DataError("The moon is full; wait."), "ds3l": ValueError("two\nlines"), "l2rw": OSError()}
    summary = reproduce("fig4a", out=tmp_path, run=fake_run)
    assert (summary.new, len(summary.failed)) == (FIG4A - THREE_RIVALS, THREE_RIVALS)
    assert len(read_rows(tmp_path / "results.csv")) == FIG4A - THREE_RIVALS
    found = listed(tmp_path / "failed.csv")
    assert {row["reason"] for row in found} == {
        "The moon is full; wait.",
        "ValueError: two lines",
        "OSError: no message",
    }
    assert {row["config_hash"] for row in found} == set(summary.failed)
    assert all("MWN" in row["label"] for row in found if "moon" in row["reason"])
    assert "failed, The moon is full; wait." in capsys.readouterr().err
    fake_run.fails = {}
    assert reproduce("fig4a", out=tmp_path, run=fake_run).new == THREE_RIVALS
    assert not (tmp_path / "failed.csv").exists()


def test_cells_without_data_are_skipped_and_listed(tmp_path, fake_run):
    summary = reproduce("table-svhn", out=tmp_path / "out", data_dir=str(tmp_path), run=fake_run)
    assert (summary.runs, summary.new, len(summary.skipped), fake_run.seen) == (SVHN, 0, SVHN, [])
    ((sentence, number),) = summary.reasons()
    assert number == SVHN
    assert sentence.startswith("train_32x32.mat is not in ")
    assert {row["reason"] for row in listed(tmp_path / "out" / "skipped.csv")} == {sentence}
    assert "No run is there yet." in (tmp_path / "out" / "table.md").read_text()
    assert not (tmp_path / "out" / "figure.png").exists()


def test_rows_that_are_there_are_shown_without_their_data(tmp_path, fake_run, monkeypatch):
    with monkeypatch.context() as there:
        there.setattr("wrssl_reproduction.plan.missing_data", lambda cell, data_dir: None)
        reproduce("table-svhn", out=tmp_path / "out", run=fake_run)
    again = reproduce("table-svhn", out=tmp_path / "out", data_dir=str(tmp_path), run=fake_run)
    assert (again.new, again.skipped) == (0, {})


def test_only_some_data_sets(tmp_path, files_of_models):
    summary = reproduce("fig2", out=tmp_path, run=files_of_models, **MOONS)
    assert summary.runs == 31
    assert {cell.dataset for cell in files_of_models.seen} == {"moons"}
    with pytest.raises(OptionError, match="No experiment uses the data set 'imagenet'; choose from cifar10"):
        reproduce("fig2", out=tmp_path, datasets=("imagenet",))


def test_all_runs_what_is_shared_once_and_gives_each_experiment_its_rows(tmp_path, files_of_models, no_files_needed):
    summary = reproduce("all", out=tmp_path, run=files_of_models, datasets=("mnist",))
    hashes = [cell.config_hash for cell in files_of_models.seen]
    assert len(set(hashes)) == len(hashes) == summary.runs
    wanted = {
        name: [c for c in get_experiment(name).cells(get_budget("quick")) if c.dataset == "mnist"]
        for name in ("fig2", "fig4a", "fig4b", "fig5", "fig6", "table-k")
    }
    assert sum(map(len, wanted.values())) > summary.runs
    for name, cells in wanted.items():
        rows = {row["config_hash"]: row for row in read_rows(tmp_path / name / "results.csv")}
        assert set(rows) == {cell.config_hash for cell in cells}
        assert {row["experiment"] for row in rows.values()} == {name}
        assert all(rows[cell.config_hash]["label"].startswith(cell.labels[0].panel) for cell in cells)
        assert (tmp_path / name / "figure.png").is_file()
    assert len(list((tmp_path / "fig6" / "kept").glob("*.weights.csv"))) == 3
    assert (tmp_path / "fig6" / "figure.png").read_text() == "47 rows, 3 traces"


def test_rows_of_another_experiment_are_taken_over(tmp_path, fake_run, no_files_needed):
    reproduce("fig4a", out=tmp_path / "fig4a", run=fake_run)
    _, _, plan = prepare("all", out=tmp_path, datasets=("mnist",))
    known = {row["config_hash"] for row in read_rows(tmp_path / "fig4a" / "results.csv")}
    copied = {row["config_hash"] for _, row in plan.copies}
    assert copied
    assert copied <= known
    # Those whose weights are to be kept for fig6 are run again, since fig4a did not keep them.
    again = known & set(plan.todo)
    assert {place.cell.keeps for key in again for place in plan.places[key]} == {(), ("weights",)}


def test_only_some_experiments_of_all(tmp_path, fake_run, no_files_needed):
    reproduce("fig4a", out=tmp_path / "fig4a", run=fake_run)
    fig4a, fig4b = fake_run.seen[:], get_experiment("fig4b").cells(get_budget("quick"))
    summary = reproduce("all", out=tmp_path, run=fake_run, only=("fig4b",), datasets=("mnist",))
    made = {cell.config_hash for cell in fake_run.seen[len(fig4a) :]}
    assert made == {cell.config_hash for cell in fig4b} - {cell.config_hash for cell in fig4a}
    assert summary.new == len(made)
    assert summary.runs == len(fake_run.seen)  # nothing is said about runs that were left out
    assert {row["config_hash"] for row in read_rows(tmp_path / "fig4b" / "results.csv")} == {
        cell.config_hash for cell in fig4b
    }
    assert read_rows(tmp_path / "fig6" / "results.csv")  # what fig4a and fig6 share
    with pytest.raises(OptionError, match="There is no experiment 'fig3'"):
        prepare("all", out=tmp_path, only=("fig3",))
    with pytest.raises(OptionError, match="--only chooses among the experiments of all; 'fig4a' is one by itself"):
        prepare("fig4a", out=tmp_path, only=("fig4a",))


def test_rows_are_shown_where_the_catalogue_wants_them_now(tmp_path, fake_run, no_files_needed):
    reproduce("fig4a", out=tmp_path, run=fake_run)
    path = tmp_path / "results.csv"
    today = path.read_text()
    path.write_text(today.replace("fashion|UASD|", "an old panel|UASD|"))
    reproduce("fig4a", "paper", 1, out=tmp_path, steps=7, run=fake_run)
    assert "an old panel|UASD|50" in path.read_text()  # rows of another budget are left alone
    reproduce("fig4a", out=tmp_path, run=fake_run)
    assert path.read_text().startswith(today)


def test_a_run_whose_file_is_lost_is_made_again(tmp_path, fake_run, no_files_needed):
    reproduce("fig6", out=tmp_path, run=fake_run)
    lost = sorted((tmp_path / "kept").iterdir())[0]
    lost.unlink()
    before = len(read_rows(tmp_path / "results.csv"))
    assert reproduce("fig6", out=tmp_path, run=fake_run).new == 1
    assert fake_run.seen[-1].config_hash == lost.name.split(".")[0]
    assert lost.is_file()
    assert len(read_rows(tmp_path / "results.csv")) == before


def test_cells_come_seed_by_seed_and_equal_data_together(tmp_path, fake_run, no_files_needed):
    reproduce("fig4a", seeds=2, out=tmp_path, run=fake_run)
    seeds = [cell.seed for cell in fake_run.seen]
    assert seeds == sorted(seeds)
    data = [(cell.seed, cell.ood, cell.mode, cell.ratio, cell.clean, cell.learns_validation) for cell in fake_run.seen]
    changes = sum(a != b for a, b in pairwise(data))
    assert changes == len(set(data)) - 1


@pytest.mark.parametrize("jobs", [0, -2])
def test_a_wrong_number_of_jobs(tmp_path, fake_run, no_files_needed, jobs):
    with pytest.raises(OptionError, match="jobs counts processes"):
        reproduce("fig4a", out=tmp_path, jobs=jobs, run=fake_run)


def test_a_joblib_backend_can_be_named(fake_run, no_files_needed):
    cells = get_experiment("fig4a").cells(get_budget("quick"))[:6]
    found = list(attempts(cells, fake_run, None, 2, backend="threading"))
    assert {attempt.cell.config_hash for attempt in found} == {cell.config_hash for cell in cells}
    assert all(attempt.outcome is not None for attempt in found)


def test_what_is_timed_runs_by_itself_before_the_others(fake_run, monkeypatch):
    cells = [cell for cell in get_experiment("fig5").cells(get_budget("paper", 1)) if cell.dataset == "mnist"]
    timed = [cell for cell in cells if cell.alone]
    assert 0 < len(timed) < len(cells)
    begun = []

    def together(self, calls):
        begun.append(list(fake_run.seen))
        return (function(*arguments, **options) for function, arguments, options in calls)

    monkeypatch.setattr("joblib.Parallel.__call__", together)
    found = [attempt.cell for attempt in attempts(cells, fake_run, None, 2)]
    assert begun == [timed]  # one after the other in this process, all of them before the first worker starts
    assert found == timed + [cell for cell in cells if not cell.alone]
    assert list(attempts(timed, fake_run, None, 2)) != []
    assert len(begun) == 1  # no worker at all where everything is timed
    assert [attempt.cell for attempt in attempts(cells, fake_run, None, 1)] == cells  # one job: as they come


KEPT = []


def keep_more(cell, data_dir):
    """A run that leaves 200 MB behind, after a second since joblib looks at the memory at most once in one."""
    KEPT.append(bytearray(b"x") * (200 << 20))
    time.sleep(1.1)
    return Outcome({"test_accuracy": float(os.getpid())})


def test_workers_keep_their_data_and_are_not_started_anew_for_it(recwarn):
    pytest.importorskip("psutil", reason="joblib looks at the memory of its workers where psutil is installed")
    cells = get_experiment("fig4a").cells(get_budget("quick"))[:8]
    found = [attempt.outcome.measured["test_accuracy"] for attempt in attempts(cells, keep_more, None, 2)]
    assert len(found) == 8
    assert len(set(found)) <= 2
    assert not [warning for warning in recwarn if "worker stopped" in str(warning.message)]


def test_a_killed_worker_is_one_sentence(fake_run, monkeypatch):
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    def broken(*arguments, **options):
        raise TerminatedWorkerError("killed")

    monkeypatch.setattr("joblib.Parallel.__call__", broken)
    with pytest.raises(WRSSLError, match=r"worker process was ended from outside, .* fewer --jobs"):
        list(attempts(get_experiment("fig4a").cells(get_budget("quick"))[:2], fake_run, None, 2))


def test_the_bar_shows_cells_done_time_left_and_the_last_result(monkeypatch):
    told = []

    @contextmanager
    def bar(title, total, *, show, unit):
        told.append((title, show, unit, total))
        yield lambda count, info: told.append((count, info))

    monkeypatch.setattr("wrssl.progress.bar", bar)
    cells = get_experiment("fig4a").cells(get_budget("quick"))[:2]
    with Display(cells, 1, terminal=True) as shown:
        shown.show(Attempt(cells[0], Outcome({"test_accuracy": 0.9312})))
        assert 0 <= shown.seconds_left() < 60
    (title, show, unit, total), (count, info) = told
    assert (title, show, unit) == ("cells", True, "share")
    assert (count, total) == (cell_seconds(cells[0]), sum(map(cell_seconds, cells)))
    assert info.startswith("1/2  ")
    assert f" left  {cells[0]}: 93.12 %" in info


def test_time_left_counts_a_run_that_runs_alone_in_full(monkeypatch, capsys):
    """One timed run and four others of equal cost with two jobs: a third of the time is over after the first."""
    now = [100.0]
    monkeypatch.setattr(workers.time, "monotonic", lambda: now[0])
    other = get_experiment("fig4a").cells(get_budget("quick"))[0]
    cells = [replace(other, alone=True), *[other] * 4]
    shown, left = Display(cells, 2, terminal=False), []
    for cell, end in zip(cells, (110.0, 115.0, 120.0, 125.0, 130.0), strict=True):
        now[0] = end
        shown.show(Attempt(cell, Outcome({})))
        left.append(shown.seconds_left())
    assert left == pytest.approx([20.0, 15.0, 10.0, 5.0, 0.0], abs=1e-9)
    assert capsys.readouterr().err.splitlines()[-1].startswith("5/5  0 s left")
