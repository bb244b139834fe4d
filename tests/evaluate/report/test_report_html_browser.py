"""The page in a real browser: Debian's Chromium, driven by Selenium, without a window."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from wrssl.evaluate import render
from wrssl.evaluate.report import pool

EXPORTS = ["export-kept", "export-csv", "export-rest"]
CONTROLS = ["threshold", *EXPORTS, "search", "side", "verdict", "label", "sort", "view", "more"]
WORDS = ("keep", "doubt", "drop")


@pytest.fixture
def opened(browser, data):
    """The page of the run, wide and light."""
    browser.media(prefers_color_scheme="light")
    browser.width(1280)
    browser.open(render(data))
    return browser


def in_order(table, key="weight", down=False):
    """Rows as the page sorts them: by what is stored, then the highest ood_score first, then as in the pool."""
    stored = {name: np.rint(table[name] * 1e4) for name in ("ood_score", "confidence")}
    stored["weight"] = np.searchsorted(np.arange(10_001) / 10_000, table["weight"], side="right") - 1
    values = -stored[key] if down else stored[key]
    return table.iloc[np.lexsort((np.arange(len(table)), -stored["ood_score"], values))]


def shown_names(table):
    """As text shows them: one space for several, and no bytes that are no characters."""
    return [name.replace("\udcff", "\\udcff") for name in table["id"]]


def test_no_error_no_request_and_names_do_nothing(opened):
    said, asked = opened.logs()
    assert said == []
    assert {address.split(":")[0] for address in asked} <= {"file", "data"}
    assert [address for address in asked if address.startswith("file:")] == [opened.driver.current_url]
    assert "broken" not in opened.driver.title
    opened.put("search", "script>")
    assert opened.ids() == ["<script>alert(1)</script>.png", "</script><script>document.title='broken'</script>"]
    assert opened.js("return document.querySelectorAll('#members script, #members img').length") == 0
    assert "broken" not in opened.driver.title
    assert opened.logs()[0] == []


def test_arrow_keys_move_the_threshold(opened, run):
    from selenium.webdriver.common.keys import Keys

    slider = opened.driver.find_element("id", "threshold")
    for key, threshold in ((Keys.ARROW_RIGHT, 0.51), (Keys.ARROW_LEFT, 0.5), (Keys.END, 1.0), (Keys.HOME, 0.0)):
        slider.send_keys(key)
        kept = int((run.verdicts["weight"] >= threshold).sum())
        assert opened.text("threshold-value") == f"{threshold:.2f}"
        assert opened.text("kept").startswith(f"{kept} of 150 pool members are kept ({100 * kept / 150:.1f} %)")
        assert slider.get_attribute("aria-valuetext").startswith(f"{threshold:.2f}: {kept} of 150")


@pytest.mark.parametrize("threshold", [0.0, 0.29, 0.57, 0.58, 1.0])
def test_the_gallery_follows_the_threshold(opened, run, threshold):
    opened.put("threshold", threshold)
    table = in_order(run.verdicts)
    first = table.iloc[:60]
    assert opened.ids() == shown_names(first)
    out = opened.js("return [...document.querySelectorAll('#members .tile')].map((e) => e.classList.contains('out'))")
    assert out == (first["weight"] < threshold).tolist()
    opened.put("side", "kept")
    assert opened.ids() == shown_names(table[table["weight"] >= threshold].iloc[:60])
    opened.put("side", "out")
    assert opened.ids() == shown_names(table[table["weight"] < threshold].iloc[:60])


def test_tiles_show_their_own_picture_and_numbers(opened, run, data):
    from PIL import Image

    opened.put("search", "image-00012")
    (row,) = np.flatnonzero(run.verdicts["id"] == "folder 0/image-00012.png")
    cell = data["shown"]["members"].index(row)
    weight, word = opened.js(
        "return ['.weight', '.word'].map((s) => document.querySelector('#members .tile ' + s).textContent)"
    )
    assert weight == f"{np.floor(run.verdicts['weight'][row] * 100 + 1e-9) / 100:.2f}"
    assert word == run.verdicts["verdict"][row]
    assert (
        opened.js("return document.querySelector('#members .picture').className")
        == f"picture c{cell % 32} r{cell // 32}"
    )
    seen = Image.open(io.BytesIO(opened.photograph("#members .picture")))
    small = np.asarray(seen.convert("L").resize((8, 8), Image.Resampling.BOX), dtype=float)
    truth = run.scenario.unlabeled[row, 0].numpy().astype(float)
    assert np.corrcoef(small.ravel(), truth.ravel())[0, 1] > 0.9


def test_search_ignores_case_and_says_when_nothing_matches(opened):
    opened.put("search", "IMAGE-0001")
    assert opened.text("matching") == "10 of 10 matching members"
    assert {name[:-5] for name in opened.ids()} == {"folder 0/image-0001"}
    opened.put("search", 'a "quoted", comma')
    assert opened.text("matching") == "1 of 1 matching members"
    opened.put("search", "no such id")
    assert opened.ids() == []
    assert opened.text("matching").startswith("No members match")


def test_filters_by_class_and_verdict(opened, run):
    table = in_order(run.verdicts)
    for word in range(3):
        for label in range(3):
            opened.put("verdict", word)
            opened.put("label", label)
            right = (table["verdict"] == WORDS[word]) & (table["pseudo_label"] == run.classes[label])
            assert opened.ids() == shown_names(table[right].iloc[:60])


@pytest.mark.parametrize("key", ["weight", "ood_score", "confidence"])
@pytest.mark.parametrize("down", [False, True])
def test_sorting(opened, run, key, down):
    opened.put("sort", key + ("-down" if down else ""))
    assert opened.ids() == shown_names(in_order(run.verdicts, key, down).iloc[:60])


def test_more_members_come_on_demand(opened):
    for expected, hidden in ((60, False), (120, False), (150, True)):
        assert len(opened.ids()) == expected
        assert opened.text("matching") == f"{expected} of 150 matching members"
        assert opened.js("return document.getElementById('more').hidden") == hidden
        opened.js("document.getElementById('more').click()")


@pytest.mark.parametrize("threshold", [0.29, 0.5])
def test_exported_lists_are_those_of_the_whole_pool(browser, make, threshold):
    """Filters and search do not touch them, and names with commas, quotes and umlauts arrive as they are."""
    run = make(ids=[f'n"{k}", ä\U0001d518\u2028' if k % 7 == 0 else f"f/{k}" for k in range(150)])
    browser.width(1280)
    browser.open(run.render())
    browser.put("search", "f/1")
    browser.put("threshold", threshold)
    kept = run.verdicts["weight"] >= threshold
    name = f"{threshold:.2f}"
    assert browser.download("export-kept", f"kept-{name}.txt") == "".join(f"{i}\n" for i in run.verdicts["id"][kept])
    assert browser.download("export-rest", f"rest-{name}.txt") == "".join(f"{i}\n" for i in run.verdicts["id"][~kept])
    rows = list(csv.DictReader(io.StringIO(browser.download("export-csv", f"kept-{name}.csv"), newline="")))
    assert [row["id"] for row in rows] == run.verdicts["id"][kept].tolist()
    assert [row["verdict"] for row in rows] == run.verdicts["verdict"][kept].tolist()
    np.testing.assert_allclose([float(row["weight"]) for row in rows], run.verdicts["weight"][kept], atol=1.01e-4)
    assert browser.logs()[0] == []


def test_names_with_line_breaks_are_exported_as_csv_only(browser, make):
    run = make(ids=["two\nlines", *map(str, range(149))])
    browser.open(run.render())
    browser.put("threshold", 0)
    disabled = browser.js("return arguments[0].map((name) => document.getElementById(name).disabled)", EXPORTS)
    assert disabled == [True, False, True]
    rows = list(csv.DictReader(io.StringIO(browser.download("export-csv", "kept-0.00.csv"), newline="")))
    assert [row["id"] for row in rows] == run.verdicts["id"].tolist()


def test_a_pool_that_is_too_large_for_the_page(browser, make, monkeypatch):
    monkeypatch.setattr(pool, "BUDGET", 100)
    run = make(size=1300)
    browser.open(run.render())
    kept = int((run.verdicts["weight"] >= 0.5).sum())
    assert browser.text("kept").startswith(f"{kept} of 1,300 pool members are kept")
    assert browser.text("matching") == "60 of 1,000 matching members in this page"
    assert browser.ids() == shown_names(in_order(run.verdicts).iloc[:60])
    assert browser.js("return [...document.querySelectorAll('.exports button')].every((b) => b.disabled)")
    assert "verdicts.csv" in browser.text("export-note")
    assert browser.logs()[0] == []


def test_members_without_a_picture_can_be_found(browser, make):
    run = make(size=1300)
    browser.width(1280)
    browser.open(run.render())
    assert browser.text("matching") == "60 of 1,000 matching members"
    browser.js("document.getElementById('pictured').click()")
    assert browser.text("matching") == "60 of 1,300 matching members"
    without = sorted(set(range(1300)) - set(run.collect()["shown"]["members"]))[0]
    browser.put("search", run.verdicts["id"][without])
    assert browser.ids() == [run.verdicts["id"][without]]
    assert browser.js("return document.querySelector('#members .blank').textContent") == "no picture"


def test_a_table_of_members(browser, make):
    run = make(shape=(5,))
    browser.open(run.render())
    table = in_order(run.verdicts)
    rows = browser.js(
        "const texts = (row) => [...row.children].map((cell) => cell.textContent);"
        "return [...document.querySelectorAll('#members tbody tr')].map(texts)"
    )
    assert [row[0] for row in rows] == shown_names(table.iloc[:60])
    place = next(k for k in range(60) if table["id"].iloc[k].startswith("folder"))
    expected = table.iloc[place]
    assert rows[place] == [
        expected["id"],
        f"{np.floor(expected['weight'] * 100 + 1e-9) / 100:.2f}",
        "yes" if expected["weight"] >= 0.5 else "no",
        rows[place][3],
        expected["verdict"],
        expected["pseudo_label"],
        rows[place][6],
        str(expected["cluster"]),
        "does not belong" if expected["is_ood"] else "belongs",
    ]
    assert float(rows[place][3]) == pytest.approx(expected["ood_score"], abs=0.0051)
    assert float(rows[place][6]) == pytest.approx(expected["confidence"], abs=0.0051)


def test_images_have_a_table_too(opened):
    opened.put("view", "table")
    assert opened.js("return document.querySelectorAll('#members tbody tr').length") == 60
    assert opened.js("return document.querySelectorAll('#members .picture.small').length") == 60


@pytest.mark.parametrize("shape", [(1, 8, 8), (5,)])
def test_a_phone_shows_it_without_scrolling_sideways(browser, make, shape):
    browser.width(375)
    browser.open(make(shape=shape).render())
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for view in ("pictures", "table") if len(shape) == 3 else ("table",):
        if len(shape) == 3:
            browser.put("view", view)
        assert browser.js("return [document.documentElement.scrollWidth, innerWidth]") == [375, 375]
    outside = browser.js(
        "const wide = (e) => e.getBoundingClientRect().right > 375.5 && !e.closest('.scroll');"
        "return [...document.querySelectorAll('main *')].filter(wide).map((e) => e.outerHTML)"
    )
    assert outside == []


def test_dark_mode_has_its_own_colors(opened):
    code = (
        "const s = (q) => getComputedStyle(document.querySelector(q));"
        "return [s('body').backgroundColor, s('body').color, s('.chart .field').fill, s('button').backgroundColor]"
    )
    light = opened.js(code)
    opened.media(prefers_color_scheme="dark")
    dark = opened.js(code)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    opened.media(prefers_color_scheme="light")
    assert opened.js(code) == light


def test_the_keyboard_reaches_every_control_and_shows_where_it_is(opened):
    from selenium.webdriver.common.keys import Keys

    reached = []
    for _ in range(120):
        opened.driver.switch_to.active_element.send_keys(Keys.TAB)
        name, tag, outline = opened.js(
            "const e = document.activeElement; return [e.id, e.tagName, getComputedStyle(e).outlineStyle]"
        )
        if tag == "BODY":
            break
        assert outline != "none", (tag, name)
        reached.append(name or tag)
    wanted = set(CONTROLS)
    assert wanted <= set(reached)
    assert "SUMMARY" in reached
    names = opened.js(
        "return [...document.querySelectorAll('input, select, button')].filter((e) =>"
        "!(e.labels && e.labels.length) && !e.textContent.trim()).map((e) => e.id)"
    )
    assert names == []  # every control says what it is


def test_enter_in_the_search_field_stays_on_the_page(opened):
    from selenium.webdriver.common.keys import Keys

    before = opened.driver.current_url
    opened.driver.find_element("id", "search").send_keys("image-00012", Keys.ENTER)
    assert opened.driver.current_url == before
    assert len(opened.ids()) == 1
    assert opened.logs()[0] == []


def test_reduced_motion_is_respected(opened):
    code = "return getComputedStyle(document.documentElement).scrollBehavior"
    opened.media(prefers_reduced_motion="no-preference")
    assert opened.js(code) == "smooth"
    opened.media(prefers_reduced_motion="reduce")
    assert opened.js(code) == "auto"
    opened.media()


def test_on_paper_there_are_no_controls(opened):
    code = "return ['controls', 'members'].map((i) => getComputedStyle(document.getElementById(i)).display)"
    assert opened.js(code) == ["block", "block"]
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert opened.js(code) == ["none", "block"]
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("shape", [(1, 8, 8), (5,)])
def test_without_a_script_the_static_part_is_there(browser, make, shape):
    run = make(shape=shape)
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(run.render())
        assert browser.ids() == shown_names(in_order(run.verdicts).iloc[:48])
        assert not browser.driver.find_element("id", "controls").is_displayed()
        assert "JavaScript" in browser.driver.find_element("tag name", "noscript").text
        assert browser.js("return document.querySelectorAll('svg.chart').length") == 5
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
