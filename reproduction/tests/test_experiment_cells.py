"""The catalogue: every experiment is a list of valid cells, each once, and a cell is known by a hash that stays."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace

import pytest

import wrssl
from wrssl.data import list_scenarios
from wrssl.errors import OptionError
from wrssl.models import list_models
from wrssl.registry import WEIGHTINGS
from wrssl_reproduction.budget import PAPER, QUICK, REDUCED, get_budget
from wrssl_reproduction.catalogue import ALL, NAMES, get_experiment, get_experiments
from wrssl_reproduction.catalogue.cells import LEARNER, OPTIONS, ORACLE, PAPERS, PLAIN, SUPERVISED, make_cell
from wrssl_reproduction.cell import ANY, EVERYWHERE, Cell, Label, label_text, merged, read_labels
from wrssl_reproduction.cost import cell_seconds, in_words, wall_seconds
from wrssl_reproduction.experiment import ACCURACY, TIME
from wrssl_reproduction.published_code import PSEUDO_LABELS
from wrssl_reproduction.run import OPTIONS as WEIGHT_OPTIONS

COUNTS = {  # runs with the paper's five seeds, and with the quick budget's one
    "fig2": (410, 82), "fig4a": (210, 45), "fig4b": (235, 50), "fig4c": (400, 88), "fig4d": (400, 88),
    "fig5": (320, 50), "fig6": (235, 47), "table-k": (200, 52), "table-svhn": (185, 42), "table-cifar100": (300, 66),
}  # fmt: skip
CELL = Cell("mnist", "fashion", 0.5, "replace", "lenet", "vat", "wr-cluster", "weighted", 3, 2000, K=20)


def test_the_names_are_those_of_the_command_line():
    assert NAMES == (
        "fig2", "fig4a", "fig4b", "fig4c", "fig4d", "fig5", "fig6", "table-k", "table-svhn", "table-cifar100",
    )  # fmt: skip
    assert [each.name for each in get_experiments(ALL)] == list(NAMES)
    with pytest.raises(OptionError, match=r"no experiment 'fig3'; choose one of fig2, .* or all"):
        get_experiment("fig3")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [PAPER, REDUCED, QUICK], ids=lambda budget: budget.name)
def test_every_cell_is_valid_and_there_once(name, budget):
    experiment = get_experiment(name)
    cells = experiment.cells(budget)
    if budget is not REDUCED:
        assert len(cells) == COUNTS[name][budget is QUICK]
    assert len({cell.config_hash for cell in cells}) == len(cells)
    panels = {panel.key: panel for panel in experiment.panels}
    assert len(panels) == len(experiment.panels)
    for cell in cells:
        assert cell.ood in (*list_scenarios()[cell.dataset], ANY)
        assert cell.model in list_models()
        assert cell.method in wrssl.list_methods()
        assert cell.compat is None or PSEUDO_LABELS[cell.compat] in wrssl.list_methods()
        assert cell.weights in wrssl.list_weightings()
        assert cell.bn in ("batch", "frozen", "weighted")
        assert cell.mode in ("replace", "add")
        assert 0 <= cell.seed < budget.seeds
        assert cell.roles == budget.roles
        options = {key: getattr(cell, key) for key in WEIGHT_OPTIONS if getattr(cell, key) is not None}
        WEIGHTINGS.create(cell.weights, options)  # raises for an option that the weighting does not have
        assert cell.labels
        for label in cell.labels:
            assert label.column in (*panels[label.panel].columns, EVERYWHERE)
            assert not set("|;") & set("".join(label))
        assert cell_seconds(cell) > 0


@pytest.mark.parametrize("name", NAMES)
def test_every_table_of_accuracies_has_its_controls(name):
    experiment = get_experiment(name)
    for panel in experiment.panels:
        if panel.value != ACCURACY:
            continue
        cells = [cell for cell in experiment.cells(PAPER) if any(label.panel == panel.key for label in cell.labels)]
        shown = {label.curve for cell in cells for label in cell.labels if label.panel == panel.key}
        assert {SUPERVISED, LEARNER, ORACLE} <= shown, panel.key
        assert any(cell.clean for cell in cells), panel.key
        if panel.key not in ("rate", "published"):
            assert any(cell.mode == "add" and cell.ratio == 0.5 for cell in cells), panel.key
        for curve in {label.curve for label in experiment.printed if label.panel == panel.key}:
            assert curve in shown


@pytest.mark.parametrize("name", NAMES)
def test_printed_numbers_and_claims_are_about_cells_that_are_run(name):
    experiment = get_experiment(name)
    places = {label for cell in experiment.cells(PAPER) for label in cell.labels}
    columns = {panel.key: panel.columns for panel in experiment.panels}
    for wanted in (*experiment.printed, *(c.better for c in experiment.claims), *(c.worse for c in experiment.claims)):
        if wanted is not None:
            assert wanted in places or wanted._replace(column=EVERYWHERE) in places, wanted
            assert wanted.column in columns[wanted.panel]


def test_the_papers_protocol_to_the_letter():
    cells = get_experiment("fig4a").cells(PAPER)
    assert Counter(cell.steps for cell in cells) == {2000: 210}
    assert {cell.model for cell in cells} == {"lenet"}
    assert {cell.n_validation for cell in cells} == {None}  # the data set's 10,000
    assert {cell.roles for cell in cells} == {"paper"}
    others = [cell for cell in cells if cell.outer_loss == "error"]  # the one curve that is not the paper's
    assert {label for cell in others for label in cell.labels} == {
        Label("fashion", "WR-SSL (paper), weights by expected error", "50")
    }
    assert {cell.outer_loss for cell in cells} == {None, "error"}
    ours = next(cell for cell in cells if cell.weights == "wr-cluster")
    assert (ours.J, ours.P, ours.K, ours.L, ours.l1, ours.scope, ours.solver) == (3, 5, 20, 5, 1e-7, "head", "neumann")
    assert {cell.bn for cell in cells if cell.weights in ("none", "uasd", "ds3l", "l2rw", "mwn")} == {"batch"}
    assert {cell.bn for cell in cells if cell.weights in ("wr-cluster", "wr", "oracle")} == {"weighted"}
    assert {cell.ratio for cell in cells} == {0.0, 0.25, 0.5, 0.75}
    for name in ("fig4c", "table-svhn", "table-cifar100"):
        cells = get_experiment(name).cells(PAPER)
        assert {(cell.model, cell.steps) for cell in cells} == {("wrn-28-2", 500_000)}
    assert {cell.model for cell in get_experiment("fig4b").cells(PAPER)} == {"lenet-nobn"}
    sizes = {cell.n_validation for cell in get_experiment("fig6").cells(PAPER)}
    assert sizes == {None, 25, 50, 100, 500, 1000, 2000, 5000}
    assert {c.K for c in get_experiment("table-k").cells(PAPER) if c.weights == "wr-cluster"} == {5, 10, 20, 30}


def test_pseudo_label_on_photos_takes_the_rate_of_supervised_training_where_steps_are_few():
    for budget, rate in ((PAPER, None), (REDUCED, 3e-3), (QUICK, 3e-3)):
        cells = get_experiment("fig4d").cells(budget)
        assert {cell.lr for cell in cells if cell.method == "pl"} == {rate}
        assert {cell.lr for cell in cells if cell.method == "supervised"} == {None}
        assert {cell.lr for cell in get_experiment("fig4c").cells(budget)} == {None}


def judged(experiment):
    """The places that the claims compare."""
    return {place for claim in experiment.claims for place in (claim.better, claim.worse)}


@pytest.mark.parametrize("name", ["fig4c", "fig4d"])
def test_every_claim_about_photos_can_be_judged_with_the_reduced_budget(name):
    experiment = get_experiment(name)
    cells = [cell for cell in experiment.cells(REDUCED) if any(label.panel == "frozen" for label in cell.labels)]
    assert {cell.bn for cell in cells if cell.weights in ("uasd", "ds3l", "l2rw", "mwn")} == {"frozen"}
    places = {label for cell in experiment.cells(REDUCED) for label in cell.labels}
    assert judged(experiment) <= places


def test_what_is_only_timed_is_short():
    experiment = get_experiment("fig5")
    timed = {panel.key for panel in experiment.panels if panel.value == TIME}
    for cell in experiment.cells(PAPER):
        panels = {label.panel for label in cell.labels}
        assert cell.steps == (200 if panels <= timed else PAPER.settings[cell.dataset].steps)
        assert cell.alone == (panels <= timed)  # nothing else runs beside it
        assert panels <= timed or not panels & timed  # times are not taken from runs that were made for accuracy
    assert {cell.steps for cell in experiment.cells(QUICK)} == {200, 20}


def test_the_ablations_differ_in_what_they_leave_out():
    cells = {
        (label.curve, label.column): cell
        for cell in get_experiment("fig6").cells(QUICK)
        for label in cell.labels
        if label.panel == "ablation"
    }
    whole = cells["all of it", "VAT"]
    changed = {
        curve: {
            f.name: getattr(cells[curve, "VAT"], f.name)
            for f in fields(Cell)
            if getattr(cells[curve, "VAT"], f.name) != getattr(whole, f.name) and f.name not in ("labels", "keeps")
        }
        for curve in ("−WBN", "−CRW", "−L1", "−both")
    }
    assert changed == {
        "−WBN": {"bn": "batch"},
        "−CRW": {"weights": "wr-instance", "K": None},
        "−L1": {"l1": 0.0},
        "−both": {"weights": "wr-instance", "K": None, "l1": 0.0},
    }


def test_the_hash_is_stable_and_covers_everything_that_determines_numbers():
    assert CELL.config_hash == "4dddd0040d90349d"  # if this changes, every row in the world is made again
    assert replace(CELL, ratio=1).config_hash == replace(CELL, ratio=1.0).config_hash
    shown = replace(CELL, labels=(Label("a", "b", "c"),), keeps=("model",), alone=True)
    assert shown.config_hash == CELL.config_hash
    others = {
        "dataset": "digits", "ood": "mean", "ratio": 0.25, "mode": "add", "model": "lenet-nobn", "method": "pl",
        "weights": "wr", "bn": "frozen", "seed": 4, "steps": 1, "n_labels": 50, "n_validation": 25, "K": 5, "J": 1,
        "P": 0, "L": 1, "scope": "network", "solver": "cg", "clean": True, "learns_validation": True,
        "roles": "halves", "lr": 0.1, "l1": 0.0, "compat": "wrssl",
        "outer_loss": "error", "n_unlabeled": 500, "alpha": "lr", "purity": 0.9, "plain_beta": 10.0,
    }  # fmt: skip
    assert {*others, "labels", "keeps", "alone"} == {f.name for f in fields(Cell)}
    hashes = {replace(CELL, **{name: value}).config_hash for name, value in others.items()}
    assert len(hashes | {CELL.config_hash}) == len(others) + 1


def test_equal_runs_are_merged_with_all_their_labels():
    a, b, c = (Label(panel, "x", "1") for panel in "abc")
    cells = [
        replace(CELL, labels=(a, b)),
        replace(CELL, seed=1, labels=(a,)),
        replace(CELL, labels=(b, c), keeps=("model",)),
    ]
    found = merged(cells)
    assert [cell.seed for cell in found] == [3, 1]
    assert (found[0].labels, found[0].keeps) == ((a, b, c), ("model",))
    assert read_labels(label_text(found[0].labels)) == found[0].labels
    assert read_labels("") == ()


def test_what_does_not_depend_on_the_foreign_rows_is_run_once():
    make = {"method": "vat", "budget": QUICK, "dataset": "mnist", "seed": 0}
    assert make_cell(ood="mean", clean=True, **make) == make_cell(ood="fashion", clean=True, **make)
    assert make_cell(ood="mean", ratio=0.0, **make) == make_cell(ood="emnist", ratio=0.0, **make)
    assert make_cell(ood="mean", **make) != make_cell(ood="emnist", **make)
    make["method"] = "supervised"
    assert make_cell(ood="mean", ratio=0.25, mode="add", **make) == make_cell(ood="fashion", bn="frozen", **make)
    plain = make_cell(QUICK, "mnist", 0, method="pl", ood="mean", weights="wr", batch_norm=False, bn="frozen")
    assert (plain.model, plain.bn, plain.K) == ("lenet-nobn", "batch", OPTIONS["wr"]["K"])


def test_budgets():
    assert get_budget("quick", 3, 7).seeds == 3
    assert {setting.steps for setting in get_budget("quick", steps=7).settings.values()} == {7}
    assert get_budget("paper") == PAPER
    assert "REDUCED" in QUICK.note
    assert "REDUCED" in REDUCED.note
    assert "REDUCED" not in PAPER.note
    for arguments, words in (
        (("fast",), "one of paper, reduced, quick"),
        (("quick", 0), "at least 1"),
        (("quick", 1, 0), "steps"),
    ):
        with pytest.raises(OptionError, match=words):
            get_budget(*arguments)


def test_quick_fits_into_an_hour_on_two_cores():
    cells = merged(cell for experiment in get_experiments(ALL) for cell in experiment.cells(QUICK))
    assert wall_seconds(cells, 2) < 0.85 * 3600
    assert {"fashion", "emnist", "mean", "mixed", "faraway", "boundary", "classes"} <= {cell.ood for cell in cells}


@pytest.mark.parametrize("experiment", get_experiments(ALL), ids=lambda experiment: experiment.name)
def test_quick_fills_every_column_of_every_table(experiment):
    labels = {label for cell in experiment.cells(QUICK) for label in cell.labels}
    assert {label.panel for label in labels} == {panel.key for panel in experiment.panels}
    for panel in experiment.panels:
        for column in panel.columns:
            shown = {label.curve for label in labels if label.panel == panel.key and label.column == column}
            assert shown & {PLAIN, PAPERS, "SSL-BN", "whole network"}, (panel.key, column)


@pytest.mark.parametrize("name", ["fig4a", "fig4b", "fig4c", "fig4d", "table-svhn", "table-cifar100"])
def test_quick_has_every_method_at_every_share_and_a_verdict_on_every_claim(name):
    experiment = get_experiment(name)
    labels = {label for cell in experiment.cells(QUICK) for label in cell.labels}
    for panel in experiment.panels:
        curves = {label.curve for label in labels if label.panel == panel.key}
        everywhere = {label.curve for label in labels if label.panel == panel.key and label.column == EVERYWHERE}
        expected = {(curve, column) for curve in curves - everywhere for column in panel.columns}
        in_columns = [label for label in labels if label.panel == panel.key and label.column != EVERYWHERE]
        assert {(label.curve, label.column) for label in in_columns} == expected
    assert judged(experiment) <= labels


def test_quick_judges_every_takeaway():
    experiment = get_experiment("fig2")
    labels = {label for cell in experiment.cells(QUICK) for label in cell.labels}
    assert judged(experiment) <= labels


def test_without_foreign_rows_oracle_and_clean_are_the_plain_run():
    (cell,) = [
        cell for cell in get_experiment("fig4a").cells(QUICK) if Label("fashion", ORACLE, "0") in cell.labels
    ]  # fmt: skip
    assert cell.labels == tuple(Label("fashion", curve, "0") for curve in (PLAIN, ORACLE, "clean pool"))
    assert (cell.weights, cell.ratio, cell.clean) == ("none", 0, False)


@pytest.mark.parametrize("name", ["fig4a", "fig4b", "fig4c", "fig4d", "table-svhn", "table-cifar100"])
def test_quick_has_every_share_of_foreign_images_for_every_curve(name):
    experiment = get_experiment(name)
    labels = {label for cell in experiment.cells(QUICK) for label in cell.labels if label.panel != "rate"}
    for panel, curve in {(label.panel, label.curve) for label in labels if label.column != EVERYWHERE}:
        shares = {label.column for label in labels if (label.panel, label.curve) == (panel, curve)}
        assert {"25", "50", "75"} <= shares


def test_costs():
    cell = make_cell(QUICK, "mnist", 0, method="vat", ood="fashion", weights="wr-cluster")
    network, often = replace(cell, scope="network"), replace(cell, scope="network", L=1)
    assert cell_seconds(cell) < cell_seconds(network) < cell_seconds(often)
    assert wall_seconds([cell] * 8, 2) == pytest.approx(4 * cell_seconds(cell))
    assert wall_seconds([cell], 2) == cell_seconds(cell)
    alone = replace(cell, alone=True)
    assert alone.config_hash == cell.config_hash
    assert merged([cell, alone]) == merged([alone, cell]) == [alone]
    assert wall_seconds([cell] * 8 + [alone] * 2, 2) == pytest.approx(6 * cell_seconds(cell))
    assert [in_words(s) for s in (5, 600, 7200, 1e6)] == ["5 s", "10 min", "2.0 h", "12 days"]
