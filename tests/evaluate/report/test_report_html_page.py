"""The page: everything escaped, nothing from outside, never too large, and its numbers those of the run."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

import wrssl
from wrssl.evaluate import render
from wrssl.evaluate.report.render import LARGEST

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, the text of each script and style, and the visible text."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.raw, self.texts, self.open = [], {}, [], []
        self.feed(html)
        assert self.open == [], "every element that was opened is closed"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.raw.setdefault(self.open[-1], []).append(data)
        else:
            self.texts.append(data)

    def having(self, tag, **wanted):
        return [a for t, a in self.elements if t == tag and all(a.get(k) == v for k, v in wanted.items())]

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))


@pytest.fixture(scope="module")
def html(data):
    return render(data)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_the_page_follows_from_the_stored_dictionary_alone(data, html):
    assert render(json.loads(json.dumps(data))) == html


def test_it_can_be_written_as_utf_8_whatever_bytes_a_file_name_holds(page, html):
    assert html.encode("utf-8").decode("utf-8") == html
    assert "bytes\\udcff.png" in html
    assert page.having("meta", charset="utf-8")


def test_there_is_one_script_and_one_style_and_both_are_the_allowed_ones(page):
    policy = page.having("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    data_block, script = page.raw["script"]
    (style,) = page.raw["style"]
    for name, content in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert [a.get("type") for a in page.having("script")] == ["application/json", None]
    json.loads(data_block)


def test_nothing_comes_from_outside_and_nothing_runs_from_attributes(page):
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name != "style"
            if name in ("src", "href", "action", "data", "poster", "srcset"):
                assert value.startswith(("#", "data:")), (tag, value)
    assert not re.search(r"(url\((?!data:)|@import|https?://)", "".join(page.raw["style"] + page.raw["script"]))
    assert "eval(" not in page.raw["script"][1]
    assert "innerHTML" not in page.raw["script"][1]


def test_names_are_text(page, run):
    assert not page.having("img")
    assert not [attributes for attributes in page.having("i") if "swatch" not in attributes.get("class", "")]
    for text in ("cats & <dogs>", "<b>bird</b>", "<i>broken</i>.jpg", "It is no <image>.", "A note with <markup>."):
        assert text in page.text, text
    assert "own <data>" in page.text
    assert run.verdicts["weight"][0] == 0  # so the worst name is among the first members, which need no script
    assert "<script>alert(1)</script>.png" in [a["title"] for a in page.having("span", **{"class": "id"})]


def test_a_name_is_no_template(make):
    html = make(ids=["{{ 7 * 7 }}", *map(str, range(149))]).render()
    assert "{{ 7 * 7 }}" in html


def test_it_stays_small_whatever_is_in_it(make):
    """The largest of everything at once: noise, long names, many classes, files and notes."""
    size = 1500
    names = [f"{k}{'<' * 1200}" for k in range(size)]
    run = make(size=size, shape=(3, 48, 48), ids=names, clusters=100, classes=[f"{'<' * 200}{k}" for k in range(300)])
    run.scenario.skipped = [("<" * 3000, "<" * 3000)] * 5000
    run.scenario.notes = ["<" * 3000] * 5000
    data = run.collect()
    assert not data["members"]["complete"]
    assert sum(map(len, names)) * len("\\u003c") > LARGEST  # so the names alone would have been too much
    assert 1_000_000 < len(render(data).encode()) <= LARGEST


def test_numbers_of_the_run_are_in_the_page(page, run, data):
    text = page.text
    for number in (
        "81.2 %", "0.9375", "12.5 ms", "3.25 s", f"{data['judged']['right']} of 90 are right", "2.13.0", "0.1.0",
        f"{100 * data['judged']['ece']:.2f} %", "seed 7", f"Mean weight {run.verdicts['weight'].mean():.3f}",
    ):  # fmt: skip
        assert number in text, number
    for row in data["batch_norm"]["layers"]:
        assert f"{row['mean_plain']:.3f} {row['mean_weighted']:.3f} {row['mean_halves']:.3f}" in text
    for row in data["clusters"]["rows"]:
        assert f"Cluster {row['cluster']} {row['size']} members" in text
        assert (
            f"{row['keep']} keep, {row['doubt']} doubt, {row['drop']} drop; truly do not belong: {row['foreign']}"
            in text
        )
    matrix = data["judged"]["matrix"]
    fields = [m for row in matrix for m in row]
    shown = re.findall(r'<td class="(?:hit|miss) s\d">(\d+|·)</td>', render(data))
    assert [0 if field == "·" else int(field) for field in shown] == fields


def test_the_script_gets_what_the_dictionary_holds(page, data):
    embedded = json.loads(page.raw["script"][0])
    assert embedded["members"] == data["members"]
    assert embedded["keptAt"] == data["pool"]["kept_at"]
    assert embedded["cells"] == data["shown"]["members"]


@pytest.mark.parametrize(
    ("changes", "words", "absent"),
    [
        ({"test": False}, "There is no test set. These labels took part in choosing", "test set ."),
        ({"test": False, "validation": False}, "trained on these very rows", "validation set ."),
        ({"clusters": None}, "member by member", "Clusters"),
        ({"shape": (5,)}, "Predicted", "have a picture"),
        ({"shape": (2, 8, 8)}, "The images have 2 channels; the first is shown", "Clusters of"),
        ({"shape": (5, 8, 8)}, "The images have 5 channels; the first three are shown as", "the first is shown"),
        ({"truth": False}, "Cluster 0", "truly do not belong"),
        ({"classes": [f"class {k}" for k in range(40)]}, "40 classes, too many for a matrix", "Columns: predicted"),
    ],
)
def test_what_is_missing_is_said_or_left_out(make, changes, words, absent):
    text = Page(make(**changes).render()).text
    assert words in text
    assert absent not in text


def test_a_run_without_numbers_is_still_a_page(run):
    bare = run.but(history=run.history[:0], metrics={}, config={}, weight_history=[])
    text = Page(bare.render()).text
    assert "No evaluation was stored" in text
    assert "No weights were recorded" in text
    assert "There is no validation set, so there is no curve" in text


def test_equal_weights_are_called_equal(run):
    even = run.but(verdicts=run.verdicts.assign(weight=1.0))
    assert "All weights are 1.00: this weighting does not tell members apart." in Page(even.render()).text


def test_chosen_models_are_compared(run):
    candidates = {
        "weighted": {"val_accuracy": 0.5, "val_loss": 1.5},
        "plain": {"val_accuracy": 0.75, "val_loss": 0.125},
    }
    text = Page(run.but(metrics={**run.metrics, "chosen": "plain", "candidates": candidates}).render()).text
    assert "plain 75.00 % 0.1250 yes" in text
    assert "The curves are those of the returned model (plain)" in text


@pytest.mark.parametrize("broken", [{"format": 0}, {}, None])
def test_a_dictionary_of_another_version_is_refused(data, broken):
    changed = broken if broken is None else {**data, **broken} if broken else {}
    with pytest.raises(wrssl.WRSSLError, match="another version"):
        render(changed)


def test_pictures_that_are_no_pictures_are_refused(data):
    changed = copy.deepcopy(data)
    changed["sheet"]["uri"] = "data:image/png;base64,AAAA);} body{display:none}"
    with pytest.raises(wrssl.WRSSLError, match="damaged"):
        render(changed)


def channel(value):
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def luminance(color):
    red, green, blue = (channel(int(color[k : k + 2], 16) / 255) for k in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_can_be_read(page, mode):
    """WCAG AA: 4.5 for text, 3 for graphics."""
    blocks = re.findall(r":root \{(.*?)\}", page.raw["style"][0], re.S)
    colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", blocks[0]))
    if mode == "dark":
        dark = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", blocks[1]))
        assert set(dark) == set(colors)
        colors = dark

    def contrast(one, other):
        high, low = sorted((luminance(colors[one]), luminance(colors[other])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for text in ("ink", "dim", "accent", "keep", "doubt", "drop"):
        for ground in ("paper", "card"):
            assert contrast(text, ground) >= 4.5, (text, ground)
    assert contrast("accent-ink", "accent") >= 4.5
    for graphic in ("color-1", "color-2", "color-3", "color-4", "strong-line"):
        assert contrast(graphic, "paper") >= 3, graphic
