"""What a panel of a figure shows, read back from its axes."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from wrssl_reproduction.catalogue import get_experiment
from wrssl_reproduction.catalogue.cells import PAPERS, PLAIN
from wrssl_reproduction.experiment import Panel
from wrssl_reproduction.panels import PRINTED, draw_dots, draw_lines, draw_printed, ordered, styles


def test_the_printed_numbers_stand_at_their_columns_in_the_color_of_their_curve():
    experiment = get_experiment("table-k")
    panel = experiment.panels[0]
    axis = Figure().subplots()
    found = {(curve, column): {0: 90.0, 1: 91.0} for curve in (PLAIN, PAPERS) for column in panel.columns}
    draw_lines(axis, panel, found)
    before = len(axis.get_lines())
    draw_printed(
        axis, panel, found, {(PAPERS, "5"): (94.7, 0.7), (PAPERS, "20"): (96.3, 0.5), ("unknown", "5"): (1, 1)}
    )
    (line,) = [line for line in axis.get_lines()[before:] if line.get_marker() == "D"]
    assert line.get_xydata().tolist() == [[5.0, 94.7], [20.0, 96.3]]
    assert line.get_color() == styles(ordered([PLAIN, PAPERS]))[PAPERS].color
    assert axis.get_legend_handles_labels()[1].count(PRINTED) == 1


def test_nothing_printed_nothing_drawn():
    panel = Panel("p", "a panel", ("1", "2"), "axis")
    axis = Figure().subplots()
    draw_printed(axis, panel, {(PLAIN, "1"): {0: 1.0}}, {})
    assert not axis.get_lines()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("VAT", "PL"), ["VAT", "PL"]),
        (("as printed", "learning rate 2e-3", "c", "d"), ["as printed", "learning\nrate 2e-3", "c", "d"]),
    ],
)
def test_long_names_are_broken_into_lines(columns, expected):
    axis = Figure().subplots()
    draw_dots(axis, Panel("p", "a panel", columns, "axis", kind="bars"), {(PLAIN, c): {0: 1.0} for c in columns})
    assert [text.get_text() for text in axis.get_xticklabels()] == expected
