"""Charts: valid SVG, marks where the numbers are, and a description in words."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from wrssl.evaluate.report.charts import (
    Line,
    Scale,
    heat,
    histogram,
    lines,
    reliability_diagram,
    tag,
    ticks,
    written,
)


def parsed(svg):
    return ElementTree.fromstring(svg)


@settings(deadline=None)
@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6))
def test_ticks_are_round_and_enclose_the_values(low, width):
    places = ticks(low, low + width)
    assert places[0] <= low + 1e-6 * width
    assert places[-1] >= low + width - 1e-6 * width
    assert 2 <= len(places) <= 9
    step = places[1] - places[0]
    assert f"{step:.0e}"[0] in "125"
    assert len({written(place, places) for place in places}) == len(places)


@pytest.mark.parametrize("value", [0.0, 3.0, -2e-7, 1e9])
@pytest.mark.parametrize("width", [0.0, 1e-15])
def test_one_value_still_has_an_axis(value, width):
    places = ticks(value, value + width)
    assert places[0] <= value <= places[-1]
    assert places[0] < places[-1]
    assert lines("Loss", [Line("x", 1, [(0, value)])])


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(0.25, [0, 0.25, 0.5], "0.25"), (1000, [0, 1000], "1,000"), (0.5, [0, 0.5], "0.5"), (2e-6, [0, 2e-6], "2e-06")],
)
def test_numbers_at_ticks_are_not_rounded_away(value, places, text):
    assert written(value, places) == text


def test_attributes_and_texts_are_escaped():
    made = tag("text", "</svg><script>", x='"><script>')
    assert "<script>" not in made
    assert parsed(made).text == "</svg><script>"
    assert parsed(made).get("x") == '"><script>'
    assert tag("g", Markup("<a></a>")) == "<g><a></a></g>"


def test_a_curve_goes_through_its_points():
    svg = lines("Loss", [Line("labeled", 1, [(0, 0.0), (50, 1.0), (100, 0.5)])])
    path = parsed(svg).find("path").get("d")
    (x0, y0), (x1, y1), (x2, y2) = (tuple(map(float, p.split())) for p in re.split("[ML]", path)[1:])
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert y0 - y1 == pytest.approx(2 * (y0 - y2), abs=0.21)
    assert y1 < y2 < y0
    assert "labeled from 0 to 0.5" in svg


def test_gaps_are_gaps_and_nothing_is_drawn_from_nothing():
    svg = lines("Loss", [Line("x", 1, [(0, 1.0), (1, None), (2, 3.0)]), Line("y", 2, [(0, None)])])
    assert parsed(svg).find("path").get("d").count("M") == 2
    assert "color-2" not in svg
    assert lines("Loss", [Line("x", 1, [(0, None)])]) == ""


def test_the_chosen_step_is_marked():
    svg = lines("Accuracy", [Line("x", 1, [(0, 0.0), (100, 1.0)])], mark=25)
    mark = next(e for e in parsed(svg).iter("line") if e.get("class") == "mark")
    ends = [float(e.get("cx")) for e in parsed(svg).iter("circle")]
    left = float(parsed(svg).find("path").get("d").split()[0][1:])
    assert float(mark.get("x1")) == pytest.approx(left + 0.25 * (ends[0] - left), abs=0.11)


def test_fields_of_the_heat_map_are_as_strong_as_their_share():
    snapshots = [{"step": 0, "mean": 0.0, "counts": [10, 0]}, {"step": 5, "mean": 0.75, "counts": [1, 9]}]
    svg = heat("Weights", snapshots)
    fields = [e for e in parsed(svg).iter("rect") if e.get("class") == "field"]
    strengths = [float(e.get("fill-opacity")) for e in fields]
    assert strengths == pytest.approx([1.0, 0.08 + 0.92 * 0.1**0.5, 0.08 + 0.92 * 0.9**0.5], abs=0.006)
    assert float(fields[1].get("y")) > float(fields[2].get("y"))  # low weights at the bottom
    assert "10.0% of the members are in the lowest bin and 90.0% in the highest" in svg
    assert heat("Weights", []) == ""


def test_bars_stand_on_each_other():
    svg = histogram("Weights", {"keep": [0, 4], "drop": [8, 4]})
    bars = {e.get("class"): [] for e in parsed(svg).iter("rect")}
    for e in parsed(svg).iter("rect"):
        bars[e.get("class")].append((float(e.get("y")), float(e.get("height"))))
    (_, full), (top, half) = bars["bar drop"]
    (base, quarter) = bars["bar keep"][0]
    assert full == pytest.approx(2 * half, abs=0.02)
    assert quarter == pytest.approx(half, abs=0.02)
    assert top + half == pytest.approx(base, abs=0.02)


def test_the_reliability_diagram_shows_accuracy_and_confidence():
    bins = [{"count": 0, "confidence": None, "accuracy": None}, {"count": 8, "confidence": 0.9, "accuracy": 0.5}]
    svg = reliability_diagram("Calibration", bins)
    bar = next(e for e in parsed(svg).iter("rect"))
    dash = next(e for e in parsed(svg).iter("line") if e.get("class") == "dash")
    bottom = float(bar.get("y")) + float(bar.get("height"))
    y = Scale(0, 1, bottom, bottom - 2 * float(bar.get("height")))
    assert float(dash.get("y1")) == pytest.approx(y(0.9), abs=0.02)
    assert "8 rows at confidence 0.90 with accuracy 0.50" in svg
