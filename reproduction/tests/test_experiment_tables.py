"""Tables and figures say what results.csv says, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from wrssl_reproduction.budget import get_budget
from wrssl_reproduction.catalogue import NAMES, get_experiment
from wrssl_reproduction.catalogue.cells import CLEAN, LEARNER, PAPERS, PLAIN, SUPERVISED
from wrssl_reproduction.cell import Label, read_labels
from wrssl_reproduction.experiment import Panel
from wrssl_reproduction.panels import KNOWN, styles
from wrssl_reproduction.rows import COLUMNS, RESULTS, append_row, make_row
from wrssl_reproduction.statistics import Stat, protocols, values
from wrssl_reproduction.tables import BEGIN, END, table_text, with_table, write_outputs


def rows_of(name, seeds=3, budget="quick", steps=None, datasets=None):
    """Rows with random numbers for every cell of an experiment."""
    rng = np.random.default_rng(7)
    rows = []
    for cell in get_experiment(name).cells(get_budget(budget, seeds, steps)):
        measured = {
            "test_accuracy": float(rng.uniform(0.5, 1)), "mean_seconds_per_step": float(rng.uniform(0.01, 0.1)),
            "seconds_per_step": 9.0, "mean_weight_id": float(rng.uniform()), "mean_weight_ood": 0.25, "seconds": 3600.0,
            "commit": "abc1234", "torch": "2.5", "machine": "cpu",
        }  # fmt: skip
        if datasets is None or cell.dataset in datasets:
            rows.append(make_row(name, cell, budget, measured))
    return rows


def line_of(text, curve):
    """The cells of the first table line of this curve."""
    (line, *_) = [line for line in text.splitlines() if line.startswith(f"| {curve} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def at(rows, panel, curve, column):
    """The rows that stand at this place, by seed."""
    place = "|".join((panel, curve, column))
    return {row["seed"]: row for row in rows if place in row["label"].split("; ")}


def accuracies(rows, panel, curve, column):
    return [100 * float(row["test_accuracy"]) for row in at(rows, panel, curve, column).values()]


@pytest.mark.parametrize("curve", [PLAIN, PAPERS, CLEAN])
def test_the_numbers_are_numpys(curve):
    rows = rows_of("fig4a")
    found = accuracies(rows, "fashion", curve, "50")
    assert len(found) == 3
    cells = line_of(table_text(get_experiment("fig4a"), rows), curve)
    assert cells[2] == f"{np.mean(found):.2f} ± {np.std(found, ddof=1):.2f} (3)"
    without = [row for row in rows if f"fashion|{curve}|25" not in row["label"].split("; ")]
    assert line_of(table_text(get_experiment("fig4a"), without), curve) == [cells[0], "–", *cells[2:]]


def test_one_seed_has_no_spread_and_supervised_stands_in_every_column():
    rows = rows_of("fig4a", seeds=1)
    text = table_text(get_experiment("fig4a"), rows)
    (found,) = accuracies(rows, "fashion", SUPERVISED, "*")
    assert line_of(text, SUPERVISED) == [f"{found:.2f} (1)"] * 5
    assert "±" not in "".join(line_of(text, PLAIN))
    (other,) = accuracies(rows, "fashion", LEARNER, "*")
    assert line_of(text, LEARNER) == [f"{other:.2f} (1)"] * 5


def test_printed_numbers_stand_beside():
    rows = rows_of("table-k")
    cells = line_of(table_text(get_experiment("table-k"), rows), PAPERS)
    assert [cell.split("; ")[1] for cell in cells] == [
        "paper 94.7 ± 0.7", "paper 95.3 ± 0.4", "paper 96.3 ± 0.5", "paper 95.6 ± 0.5",
    ]  # fmt: skip
    svhn = get_experiment("table-svhn").printed
    assert svhn[Label("svhn", PAPERS, "75")] == (94.9, 1.3)
    assert svhn[Label("svhn", PLAIN, "25")] == (94.1, 0.5)
    cifar = get_experiment("table-cifar100").printed
    assert cifar[Label("mt", PAPERS, "25")] == (62.1, 0.5)
    assert cifar[Label("pi", "DS3L", "75")] == (57.4, 1.3)
    assert len(get_experiment("table-k").printed) == 8
    assert (len(svhn), len(cifar)) == (21, 24)


def test_claims_are_paired_by_seed():
    rows = rows_of("fig4a")
    d = np.subtract(*(accuracies(rows, "fashion", curve, "50") for curve in (PAPERS, PLAIN)))
    text = table_text(get_experiment("fig4a"), rows)
    assert f"| almost 18 points | {np.mean(d):+.2f} ± {np.std(d, ddof=1) / np.sqrt(3):.2f} (3), `quick` |" in text
    without = [row for row in rows if row["seed"] != "1" or PAPERS not in row["label"]]
    d = [d[0], d[2]]
    assert f"{np.mean(d):+.2f} ± {np.std(d, ddof=1) / np.sqrt(2):.2f} (2)" in table_text(
        get_experiment("fig4a"), without
    )
    nothing = [row for row in rows if PLAIN not in row["label"]]
    assert "| almost 18 points | – | untested |" in table_text(get_experiment("fig4a"), nothing)


def test_times_are_relative_to_the_base_of_the_same_seed():
    rows = rows_of("fig5")
    seconds = {
        curve: [float(row["mean_seconds_per_step"]) for row in at(rows, "time-mnist", curve, "step").values()]
        for curve in (PLAIN, "L2RW")
    }
    ratios = np.divide(seconds["L2RW"], seconds[PLAIN])
    text = table_text(get_experiment("fig5"), rows)
    assert line_of(text, "L2RW") == [f"{ratios.mean():.2f} ± {ratios.std(ddof=1):.2f} (3)"]
    assert line_of(text, PLAIN) == ["1.00 ± 0.00 (3)"]
    assert f"| almost 3 × | {ratios.mean():.2f} ± {ratios.std(ddof=1):.2f} (3) ×, `quick` |" in text


def test_weights_at_the_end():
    rows = rows_of("fig6")
    found = [float(row["mean_weight_id"]) for row in rows if f"weights|{PAPERS}|ID" in row["label"]]
    cells = line_of(table_text(get_experiment("fig6"), rows), PAPERS)
    assert cells == [f"{np.mean(found):.3f} ± {np.std(found, ddof=1):.3f} (3)", "0.250 ± 0.000 (3)"]


def test_the_budget_is_named_and_protocols_are_not_mixed():
    quick, paper = rows_of("fig4a"), rows_of("fig4a", budget="paper")
    assert table_text(get_experiment("fig4a"), quick).count("REDUCED") == 2
    assert "REDUCED" not in table_text(get_experiment("fig4a"), paper)
    both = table_text(get_experiment("fig4a"), quick + paper)
    assert both.index("Budget `paper`: 2,000 steps") < both.index("Budget `quick` (REDUCED): 200 steps")
    panel = get_experiment("fig4a").panels[0]
    longer = rows_of("fig4a", steps=900)
    assert protocols(quick + longer + paper, panel) == [("paper", 2000), ("quick", 900), ("quick", 200)]
    assert values(quick + paper, panel, ("quick", 200)) == values(quick, panel, ("quick", 200))
    assert "2.5" in both
    assert "abc1234" in both


def test_the_order_of_rows_does_not_matter():
    rows = rows_of("fig2")
    assert table_text(get_experiment("fig2"), rows) == table_text(get_experiment("fig2"), rows[::-1])


def test_curves_that_the_catalogue_no_longer_names_are_shown_last(tmp_path):
    rows = rows_of("fig4a", seeds=1)
    rows[-1]["label"] = "fashion|A forgotten one|50"
    text = table_text(get_experiment("fig4a"), rows)
    curves = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ") and "(1)" in line]
    assert curves[0] == SUPERVISED
    assert "A forgotten one" in curves
    assert curves.index("A forgotten one") > curves.index(CLEAN)
    for row in rows:
        append_row(tmp_path / RESULTS, row)
    write_outputs(get_experiment("fig4a"), tmp_path)


def test_statistics():
    stat = Stat.of([1.0, 2.0, 6.0])
    assert (stat.mean, stat.n) == (3.0, 3)
    assert stat.std == pytest.approx(np.std([1, 2, 6], ddof=1))
    assert stat.error == pytest.approx(np.std([1, 2, 6], ddof=1) / 3**0.5)
    assert Stat.of([4.0]) == Stat(4.0, None, 1)
    assert Stat.of([4.0]).error is None
    row = dict.fromkeys(COLUMNS, "") | {"label": "p|a|x", "budget": "quick", "steps": "1", "seed": "0"}
    assert values([row], Panel("p", "", ("x",), ""), ("quick", 1)) == {}  # a run without a number is not a zero


def test_columns_with_more_steps_stand_in_the_same_table():
    rows = rows_of("table-k", seeds=2)
    panel = get_experiment("table-k").panel("published")
    shown = [row for row in rows if any(label.panel == "published" for label in read_labels(row["label"]))]
    assert {int(row["steps"]) for row in shown} == {200, 800, 1000}
    assert protocols(rows, panel) == [("quick", 200)]
    found = values(rows, panel, ("quick", 200))
    assert {column for curve, column in found if curve == PLAIN} == set(panel.columns)
    assert values(rows, panel, ("quick", 800)) == {}


@pytest.mark.parametrize("name", ["fig2", "fig4b", "fig5", "fig6"])  # every kind of panel
def test_tables_and_figures(tmp_path, name):
    for row in rows_of(name, seeds=1)[:60]:
        append_row(tmp_path / RESULTS, row)
    experiment = get_experiment(name)
    write_outputs(experiment, tmp_path)
    picture = (tmp_path / "figure.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000
    assert (tmp_path / "table.md").read_text().startswith(f"# {name}: {experiment.title}\n")


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_has_a_table_in_which_every_curve_has_a_line(name):
    experiment, rows = get_experiment(name), rows_of(name, seeds=1)
    text = table_text(experiment, rows)
    for panel in experiment.panels:
        part = text.split(f"## {panel.title}\n")[1].split("\n## ")[0]
        labels = [read_labels(row["label"]) for row in rows]
        curves = {label.curve for each in labels for label in each if label.panel == panel.key}
        assert curves
        assert all(f"\n| {curve} |" in part for curve in curves)


def test_a_page_with_marks_gets_the_table(tmp_path):
    append_row(tmp_path / RESULTS, rows_of("table-k")[0])
    (tmp_path / "README.md").write_text(f"# Mine\n\nwords\n\n{BEGIN}\nstale words\n{END}\n\nmore words\n")
    write_outputs(replace(get_experiment("table-k"), panels=(), claims=()), tmp_path)
    page, table = (tmp_path / "README.md").read_text(), (tmp_path / "table.md").read_text()
    assert page.startswith("# Mine\n\nwords\n\n")
    assert page.endswith(f"{END}\n\nmore words\n")
    assert "stale words" not in page
    assert table.split("\n", 1)[1].strip() in page
    assert with_table(page, table) == page
    assert len(re.findall("^# ", page, re.MULTILINE)) == 1


def test_curves_differ_without_color():
    looks = styles([*KNOWN, "one", "another"])
    assert looks["one"] != looks["another"]
    for name in NAMES:
        for panel in get_experiment(name).panels:
            cells = get_experiment(name).cells(get_budget("paper", 1))
            curves = list({label.curve for cell in cells for label in cell.labels if label.panel == panel.key})
            marks = [(s.marker, s.line, s.filled, s.color) for s in styles(curves).values()]
            assert len(set(marks)) == len(marks), (name, panel.key)
    added = styles(["SSL-BN", "SSL-BN, added"])
    assert added["SSL-BN, added"] == replace(added["SSL-BN"], line=":", filled=False)
