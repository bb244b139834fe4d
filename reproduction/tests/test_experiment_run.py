"""Cells that are really run: short ones on embedded data, and CIFAR-100 and SVHN from small files in their format."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.io import savemat

import wrssl
from wrssl.errors import DataError, DivergenceError
from wrssl.evaluate import is_ood
from wrssl_reproduction.budget import QUICK
from wrssl_reproduction.catalogue import get_experiment
from wrssl_reproduction.cell import ANY, Cell
from wrssl_reproduction.reproduce import reproduce
from wrssl_reproduction.rows import COLUMNS, make_row, read_rows
from wrssl_reproduction.run import Recipe, load_recipe, missing_data, run_cell
from wrssl_reproduction.workers import attempt

MOONS = Cell(
    "moons", "faraway", 0.5, "replace", "mlp", "vat", "wr-cluster", "weighted", 1, 10, K=5, L=2, roles="halves"
)


@pytest.mark.parametrize("more", [{}, {"outer_loss": "error"}, {"solver": "neumann-published", "alpha": "lr"}])
def test_a_cell_is_what_fit_returns(more):
    outcome = run_cell(replace(MOONS, **more))
    scenario = wrssl.load_scenario("moons", "faraway", 0.5, seed=1)
    result = wrssl.fit(
        scenario, "mlp", "vat", "wr-cluster", "weighted", 10, 1, weight_options={"K": 5, "L": 2, **more}, threads=1,
        progress=False,
    )  # fmt: skip
    for name in ("test_accuracy", "val_accuracy", "ood_auroc", "ood_fpr95", "weight_auroc", "mean_weight_id"):
        assert outcome.measured[name] == result.metrics[name]
    assert (outcome.measured["n_labels"], outcome.measured["n_validation"]) == (20, 400)
    assert outcome.measured["mean_seconds_per_step"] > 0
    row = make_row("fig2", MOONS, "quick", outcome.measured)
    assert set(row) == set(COLUMNS)
    assert row["test_accuracy"] == f"{result.metrics['test_accuracy']:.6g}"


@pytest.mark.parametrize("more", [{"outer_loss": "error"}, {"solver": "neumann-published", "alpha": "lr"}])
def test_what_drives_the_weights_moves_them(more):
    papers, other = (run_cell(replace(MOONS, **changes)).measured for changes in ({}, more))
    assert papers["mean_weight_id"] != other["mean_weight_id"]


@pytest.mark.parametrize("weights", ["wr-cluster", "ds3l"])
def test_watching_changes_nothing(weights):
    cell = replace(
        MOONS, weights=weights, K=None if weights == "ds3l" else 5, L=None if weights == "ds3l" else 1, P=None
    )
    plain, watched = run_cell(cell), run_cell(replace(cell, keeps=("weights",)))
    same = ("test_accuracy", "val_accuracy", "weight_auroc", "ood_auroc", "mean_weight_id", "mean_weight_ood")
    assert {name: plain.measured[name] for name in same} == {name: watched.measured[name] for name in same}
    header, *looks = watched.files["weights.csv"].decode().splitlines()
    assert header == "step,mean_weight_id,mean_weight_ood,val_accuracy"
    assert [int(look.split(",")[0]) for look in looks] == [0, *range(1, 11)]
    assert looks[0] == "0,1,1,"
    assert looks[-1] != looks[0]
    if weights == "wr-cluster":  # a network that weighs is asked anew at the end, a table is not
        end = [float(value) for value in looks[-1].split(",")[1:3]]
        assert end == pytest.approx([watched.measured["mean_weight_id"], watched.measured["mean_weight_ood"]], rel=1e-5)


def test_weights_of_a_pool_without_foreign_members_are_no_curve():
    with pytest.raises(DataError, match="both own and foreign members"):
        run_cell(replace(MOONS, ratio=0.0, keeps=("weights",)))


def test_the_learner_has_half_of_the_validation_labels():
    own = load_recipe(Recipe.of(MOONS), None)
    learner = load_recipe(Recipe.of(replace(MOONS, learns_validation=True)), None)
    assert (len(learner.labeled[1]), len(learner.validation[1])) == (20 + 200, 200)
    assert torch.equal(learner.labeled[0][:20], own.labeled[0])
    parts = torch.cat([learner.labeled[0][20:], learner.validation[0]])
    assert sorted(map(tuple, parts.tolist())) == sorted(map(tuple, own.validation[0].tolist()))
    assert torch.equal(learner.test[0], own.test[0])
    assert (learner.noise, learner.vat_epsilon) == (own.noise, own.vat_epsilon)
    cell = replace(
        MOONS, method="supervised", weights="none", bn="batch", K=None, L=None, learns_validation=True, ood=ANY
    )
    measured = run_cell(cell).measured
    assert (measured["n_labels"], measured["n_validation"]) == (220, 200)


def test_recipes():
    assert Recipe.of(replace(MOONS, ood=ANY)).ood == "faraway"
    assert Recipe.of(replace(MOONS, ood=ANY)) == Recipe.of(replace(MOONS, method="pl", steps=3))
    few = load_recipe(Recipe.of(replace(MOONS, n_labels=6, n_validation=25, clean=True)), None)
    assert (len(few.labeled[1]), len(few.validation[1]), len(few.unlabeled)) == (6, 25, 507)  # 14 labels fewer
    small = load_recipe(Recipe.of(replace(MOONS, n_unlabeled=100)), None)
    assert (len(small.unlabeled), int(is_ood(small).sum())) == (100, 50)


def test_a_run_that_breaks_down_says_which(monkeypatch):
    def breaks(*arguments, **options):
        raise DivergenceError("The loss is not finite.")

    monkeypatch.setattr("wrssl.fit", breaks)
    with pytest.raises(DivergenceError, match=r"moons faraway 50 % · mlp · vat .* broke down: The loss is not finite"):
        run_cell(MOONS)


def test_missing_data(tmp_path):
    assert missing_data(MOONS, str(tmp_path)) is None
    assert "train_32x32.mat is not in" in missing_data(replace(MOONS, dataset="svhn", ood="classes"), str(tmp_path))
    for ood in ("fashion", ANY):
        assert "images-idx3" in missing_data(replace(MOONS, dataset="mnist", ood=ood), str(tmp_path))


def write_svhn(folder):
    rng = np.random.default_rng(0)
    for part, number in (("train", 400), ("test", 50)):
        content = {"X": rng.integers(0, 256, (32, 32, 3, number), dtype=np.uint8), "y": np.arange(number)[:, None] % 10}
        savemat(folder / f"{part}_32x32.mat", content)


def write_cifar100(folder):
    rng = np.random.default_rng(0)
    (folder / "cifar-100-python").mkdir()
    for part, number in (("train", 600), ("test", 100)):
        images = rng.integers(0, 256, (number, 3072), dtype=np.uint8)
        content = {b"data": images, b"fine_labels": (np.arange(number) % 100).tolist()}
        (folder / "cifar-100-python" / part).write_bytes(pickle.dumps(content, protocol=2))


@pytest.mark.parametrize(
    ("name", "write", "per_class"), [("table-svhn", write_svhn, 20), ("table-cifar100", write_cifar100, 100)]
)
def test_tables_without_data_here_work_where_their_files_are(tmp_path, monkeypatch, name, write, per_class):
    """Three weightings of each table for two steps; the paper's numbers stand beside in the table."""
    write(tmp_path)
    experiment = get_experiment(name)
    dataset = experiment.cells(QUICK)[0].dataset

    def few(budget):
        chosen = [c for c in experiment.cells(budget) if (c.weights, c.mode) in (("none", "add"), ("uasd", "replace"))]
        return [replace(cell, n_labels=per_class, n_validation=10) for cell in chosen[:2]]

    monkeypatch.setattr("wrssl_reproduction.plan.get_experiments", lambda *_: [replace(experiment, make=few)])
    summary = reproduce(name, steps=2, out=tmp_path / "out", data_dir=str(tmp_path))
    assert (summary.new, summary.failed, summary.skipped) == (2, {}, {})
    rows = read_rows(tmp_path / "out" / "results.csv")
    assert {(row["dataset"], row["model"], row["n_labels"]) for row in rows} == {(dataset, "small_cnn", str(per_class))}
    assert "paper 9" in (text := (tmp_path / "out" / "table.md").read_text()) or "paper 6" in text


def test_a_cell_can_be_sent_to_another_process():
    work, cell = pickle.loads(pickle.dumps((partial(attempt, run_cell, None), replace(MOONS, steps=1))))
    tried = pickle.loads(pickle.dumps(work(cell)))
    assert tried.error == ""
    assert tried.outcome.measured["n_labels"] == 20


def test_pictures_of_boundaries(tmp_path, monkeypatch):
    experiment = get_experiment("fig2")

    def few(budget):
        return [c for c in experiment.cells(budget) if c.keeps and c.ood in ("faraway", ANY)][:3]

    monkeypatch.setattr("wrssl_reproduction.plan.get_experiments", lambda *_: [replace(experiment, make=few)])
    summary = reproduce("fig2", steps=3, out=tmp_path)
    assert (summary.new, summary.failed) == (3, {})
    picture = tmp_path / "boundaries-faraway.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()
    assert reproduce("fig2", steps=3, out=tmp_path).new == 0
    assert picture.is_file()
