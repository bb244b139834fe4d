"""The map in a real browser: what the pointer is at, on a desk and on a phone."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.data import Items
from wrssl.evaluate import render

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\">"
POINT = """
const picture = document.getElementById('map-picture'), box = picture.getBoundingClientRect();
const scale = box.width / picture.viewBox.baseVal.width;
const place = {clientX: box.left + arguments[0] * scale, clientY: box.top + arguments[1] * scale, bubbles: true};
picture.dispatchEvent(new PointerEvent(arguments[2], place));
return document.getElementById('pointed').innerText;
"""
MARKS = """
const numbers = (mark) => arguments[1].map((name) => Number(mark.getAttribute(name)));
return [...document.querySelectorAll('.marks ' + arguments[0])].map(numbers);
"""
NEAR = """
const listed = (tile) => tile.querySelector('.near').textContent.replaceAll(/\\s/g, '');
return [...document.querySelectorAll('#members .tile')].slice(0, 48).map(listed);
"""


class Map:
    """A page with a map, and where its points are."""

    def __init__(self, browser, page, width=1280):
        browser.media(prefers_color_scheme="light")
        browser.width(width)
        browser.open(render(page))
        self.browser, self.page = browser, page
        self.at = browser.js("return JSON.parse(document.getElementById('data').textContent).map")
        self.members = len(self.at["rows"])

    def point(self, number, event="pointermove"):
        """What is said about a point; members come first."""
        return self.browser.js(POINT, self.at["x"][number], self.at["y"][number], event)

    def alone(self, numbers):
        """The one of these points that is farthest from every other point."""
        places = np.stack([self.at["x"], self.at["y"]], axis=1)
        apart = np.linalg.norm(places[:, None] - places[None], axis=2) + np.diag(np.full(len(places), 1e9))
        return max(numbers, key=lambda number: apart[number].min())


@pytest.fixture
def pictured(browser, make_in_embedding):
    return make_in_embedding(), Map(browser, make_in_embedding().collect())


def test_pointing_at_a_member_says_what_it_is(pictured):
    run, shown = pictured
    for word in ("drop", "doubt", "keep"):
        members = shown.page["map"]["members"]
        number = shown.alone([k for k, member in enumerate(members) if run.verdicts["verdict"][member] == word])
        row, said = run.verdicts.iloc[members[number]], shown.point(number)
        weight = np.floor(row["weight"] * 100 + 1e-9) / 100
        assert f"{word} · ood_score {row['ood_score']:.2f} · weight {weight:.2f}" in said
        assert f"predicted {row['pseudo_label']} ({row['confidence']:.2f})" in said
        assert row["id"].replace("\udcff", "\\udcff") in said
        cell = shown.page["shown"]["members"].index(members[number])
        picture = shown.browser.js("return document.querySelector('#pointed .picture').className")
        assert picture == f"picture c{cell % 32} r{cell // 32} large"
    assert shown.browser.logs()[0] == []


def test_lines_lead_to_the_nearest_labels_that_are_listed_beside_the_map(pictured):
    run, shown = pictured
    number = shown.alone(range(shown.members))
    shown.point(number)
    pool, labeled = (rows.double().numpy() for rows in (run.scenario.unlabeled, run.scenario.labeled[0]))
    u, v = (
        (rows - pool.mean(0)) / np.linalg.norm(rows - pool.mean(0), axis=1, keepdims=True) for rows in (pool, labeled)
    )
    cosine = v @ u[shown.page["map"]["members"][number]]
    nearest = np.argsort(-cosine)[:3]
    place = [shown.members + shown.page["labeled"]["rows"].index(row) for row in nearest.tolist()]
    assert shown.browser.js(MARKS, "line", ["x2", "y2"]) == [[shown.at["x"][k], shown.at["y"][k]] for k in place]
    listed = shown.browser.js("return [...document.querySelectorAll('#pointed .near li')].map((e) => e.title)")
    classes = run.scenario.classes[run.scenario.labeled[1].numpy()[nearest]]
    assert listed == [f"{name}, cosine {cosine[row]:.2f}" for name, row in zip(classes, nearest, strict=True)]
    cells = shown.browser.js("return [...document.querySelectorAll('#pointed .near .picture')].map((e) => e.className)")
    assert cells == [f"picture c{k % 32} r{k // 32}" for k in place]  # all 150 members come first here too


def test_pointing_at_a_label_shows_the_others_of_its_class(pictured):
    run, shown = pictured
    number = shown.alone(range(shown.members, shown.members + 18))
    y = run.scenario.labeled[1].numpy()[shown.page["labeled"]["rows"]]
    code = y[number - shown.members]
    assert shown.point(number).strip() == f"labeled {run.classes[code]}"
    others = [shown.members + k for k in np.flatnonzero(y == code).tolist() if shown.members + k != number]
    assert shown.browser.js(MARKS, ".same", ["cx", "cy"]) == [[shown.at["x"][k], shown.at["y"][k]] for k in others]


def test_where_there_is_no_point_nothing_changes(pictured):
    _, shown = pictured
    before = shown.browser.text("pointed")
    assert "Point at a dot" in before
    assert shown.browser.js(POINT, -500, -500, "pointermove") == before


def test_hostile_texts_are_text_in_the_browser_too(browser, make_in_embedding):
    items = Items("text", [f"{HOSTILE} label"] * 18, [f"{HOSTILE} {k}" for k in range(150)])
    shown = Map(browser, make_in_embedding(items=items, kind="text").collect())
    number = shown.alone(range(shown.members))
    said = shown.point(number)
    assert f"{HOSTILE} {shown.page['map']['members'][number]}" in said
    assert f"{HOSTILE} label" in said
    tile = browser.js("return document.querySelector('#members .tile .quote').title")
    assert tile == f"{HOSTILE} {shown.page['shown']['members'][0]}"
    assert browser.js("return document.querySelectorAll('img').length") == 0
    assert "broken" not in browser.driver.title
    said, asked = browser.logs()
    assert said == []
    assert {address.split(":")[0] for address in asked} <= {"file", "data"}


def test_texts_can_be_searched_for(browser, make_in_embedding):
    Map(browser, make_in_embedding(kind="text", ids=[f"id-{k}" for k in range(150)]).collect())
    browser.put("search", "TEXT 14")
    assert sorted(browser.ids()) == sorted(f"id-{k}" for k in (14, *range(140, 150)))


@pytest.mark.parametrize("kind", ["image", "text", None])
def test_a_finger_on_a_phone_and_no_scrolling_sideways(browser, make_in_embedding, kind):
    shown = Map(browser, make_in_embedding(kind=kind).collect(), width=375)
    said = shown.point(shown.alone(range(shown.members)), "pointerdown")
    assert "ood_score" in said
    map_bottom, panel_top = browser.js(
        "const box = (id) => document.getElementById(id).getBoundingClientRect();"
        "return [box('map-picture').bottom, box('pointed').top]"
    )
    assert 0 < panel_top - map_bottom < 40
    for view in ("pictures", "table") if kind else ("table",):
        if kind:
            browser.put("view", view)
        assert browser.js("return [document.documentElement.scrollWidth, innerWidth]") == [375, 375]
    browser.width(1280)


def test_dots_have_the_colors_of_the_verdicts_in_both_modes(pictured):
    _, shown = pictured
    code = (
        "const color = (q, n) => getComputedStyle(document.querySelector(q))[n];"
        "return ['keep', 'doubt', 'drop'].map((w) => [color('.points.' + w, 'stroke'), color('.swatch.' + w, 'color')])"
    )
    light = shown.browser.js(code)
    shown.browser.media(prefers_color_scheme="dark")
    dark = shown.browser.js(code)
    shown.browser.media(prefers_color_scheme="light")
    assert all(dot == swatch for dot, swatch in light + dark)
    assert len({dot for dot, _ in light + dark}) == 6


def test_the_nearest_labels_stand_beside_each_member_with_and_without_a_script(browser, make_in_embedding):
    page = make_in_embedding().collect()
    shown = Map(browser, page)
    with_script = shown.browser.js(NEAR)
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(render(page))
        assert browser.js(NEAR) == with_script
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert len(with_script) == 48
    assert all(any(name in text for name in page["classes"]) for text in with_script)
