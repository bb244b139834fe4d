"""A run in an embedding: what is on the map, texts in place of pictures, and a page that stays safe and small."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from wrssl.data import Items
from wrssl.evaluate import render
from wrssl.evaluate.report import excerpts
from wrssl.evaluate.report.excerpts import LONGEST, excerpt
from wrssl.evaluate.report.map_chart import WIDTH, names, positions
from wrssl.evaluate.report.pool import order_by_weight, unpacked
from wrssl.evaluate.report.render import LARGEST
from wrssl.evaluate.report.resemblance import choose_labels

pytestmark = pytest.mark.usefixtures("global_rng_untouched")
NEW = ("embedding", "texts", "labeled", "neighbors", "map")
HOSTILE = "</script><img src=x onerror=\"document.title='broken'\"></style></span>{{ 7 * 7 }}'\u2028"


class Tags(HTMLParser):
    """Names of elements and attributes, visible text, and what the page gives to its script."""

    def __init__(self, html):
        super().__init__()
        self.found, self.attributes, self.text, self.titles, self.inside, self.data = set(), set(), "", [], None, None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.titles += [value for name, value in attrs if name == "title"]
        self.inside = dict(attrs).get("type", tag) if tag in ("script", "style") else tag

    def handle_data(self, data):
        if self.inside == "application/json":
            self.data, self.inside = json.loads(data), None
        elif self.inside not in ("script", "style"):
            self.text += data


@pytest.mark.parametrize("kind", ["image", "text", None])
def test_it_can_be_made_again_from_json_and_is_the_same_each_time(make_in_embedding, kind):
    run = make_in_embedding(kind=kind)
    page = run.collect()
    assert json.dumps(run.collect()) == json.dumps(page)
    stored = json.loads(json.dumps(page, allow_nan=False))
    assert stored == page
    assert render(stored) == render(page)


def test_a_page_that_knows_no_embedding_is_still_shown(data):
    assert all(data[name] is None for name in NEW)
    old = {name: value for name, value in data.items() if name not in NEW}
    assert render(old) == render(data)
    assert 'id="map"' not in render(old)


def test_the_embedding_and_the_reason_for_it_are_named(make_in_embedding):
    text = Tags(make_in_embedding().render()).text
    assert "seed 7 · embedding some-embedder" in text
    assert "some-embedder made a row of 12 numbers of each image. It was chosen <b>because</b>." in " ".join(
        text.split()
    )
    own = " ".join(Tags(make_in_embedding(kind=None).render()).text.split())
    assert "The run was made in an embedding, rows of 12 numbers. It was chosen" in own


def test_a_small_pool_is_on_the_map_as_a_whole(make_in_embedding):
    run = make_in_embedding()
    page = run.collect()
    assert sorted(page["map"]["members"]) == list(range(150))
    assert page["map"]["labels"] == page["labeled"]["size"] == 18
    text = " ".join(Tags(render(page)).text.split())
    assert "All 150 members are on the map. All 18 labels are on it." in text


def test_of_a_large_pool_and_many_labels_a_part_is_on_the_map(make_in_embedding):
    run = make_in_embedding(2400, labels=250, dim=4)
    page = run.collect()
    members, shown = page["map"]["members"], page["shown"]["members"]
    assert len(set(members)) == len(members) == 1500
    assert members[: len(shown)] == shown
    weight, score = (run.verdicts[name].to_numpy() for name in ("weight", "ood_score"))
    others = [member for member in order_by_weight(weight, score).tolist() if member not in set(shown)]
    place = np.array([others.index(member) for member in members[len(shown) :]])
    assert (place[0], place[-1]) == (0, len(others) - 1)
    assert set(np.diff(place)) <= {2, 3}  # 1,400 others, 500 of them
    assert page["map"]["labels"] == 500
    on_map = run.scenario.labeled[1].numpy()[page["labeled"]["rows"][:500]]
    assert np.bincount(on_map).tolist() in ([167, 166, 167], [166, 167, 167], [167, 167, 166])
    text = " ".join(Tags(render(page)).text.split())
    assert "1,500 of 2,400 members are on the map: those that are shown below, and others at even distances" in text
    assert "500 of 750 labels are on it" in text


def test_a_class_has_the_share_of_the_map_that_it_has_of_the_labels():
    y = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [1800, 180, 20]))
    rows = choose_labels(y)
    assert len(set(rows.tolist())) == 500
    np.testing.assert_allclose(np.bincount(y[rows]), [450, 45, 5], atol=1)


def test_what_the_page_does_not_list_is_not_on_the_map(make_in_embedding, monkeypatch):
    from wrssl.evaluate.report import pool

    monkeypatch.setattr(pool, "BUDGET", 100)
    page = make_in_embedding(1300).collect()
    assert not page["members"]["complete"]
    assert page["map"]["members"] == page["shown"]["members"]
    rows = Tags(render(page)).data["map"]["rows"]
    assert np.array(sorted(page["shown"]["members"]))[rows].tolist() == page["map"]["members"]


def test_every_point_is_drawn_once_in_the_color_of_its_verdict(make_in_embedding):
    run = make_in_embedding()
    page = run.collect()
    html = render(page)
    at = positions(page["map"])
    assert at.x.min() >= 0
    assert at.x.max() <= WIDTH
    assert 0 <= at.y.min() <= at.y.max() <= at.height
    verdict = run.verdicts["verdict"].to_numpy()[page["map"]["members"]]
    for word in ("keep", "doubt", "drop"):
        (path,) = re.findall(rf'<path d="([^"]*)" class="points {word}">', html)
        drawn = [tuple(map(float, point.split())) for point in re.findall(r"M([\d. ]+)h", path)]
        chosen = verdict == word
        assert drawn == list(zip(at.x[:150][chosen], at.y[:150][chosen], strict=True))
    (labels,) = re.findall(r'<g class="labeled">(.*?)</g>', html)
    assert labels.count("<path") == 18
    assert all(name in html for name in ("cat</text>", "dog</text>", "&lt;b&gt;bird&lt;/b&gt;</text>"))


def test_names_of_classes_do_not_cover_each_other():
    x, y = np.array([300.0, 304, 300, 30]), np.array([300.0, 300, 100, 300])
    found = names(x, y, ["first", "second", "x" * 90, "edge"])
    assert [text for text, *_ in found] == ["first", f"{'x' * 12}…{'x' * 11}", "edge"]
    assert [anchor for _, _, anchor, _ in found] == ["middle", "middle", "start"]
    assert all(place[1] < 300 for _, place, _, _ in found)
    near = names(np.array([300.0, 300]), np.array([300.0, 316]), ["one", "two"])
    assert [narrow for *_, narrow in near] == [True, False]  # letters are larger on a phone


def test_a_word_that_is_no_known_verdict_is_shown_like_the_others(make_in_embedding):
    run = make_in_embedding()
    verdicts = run.verdicts.copy()
    verdicts.loc[::7, "verdict"] = "unknown"
    page = run.but(verdicts=verdicts).collect()
    assert page["pool"]["verdicts"] == {
        word: int((verdicts["verdict"] == word).sum()) for word in ("keep", "doubt", "drop", "unknown")
    }
    assert (np.array(list(page["pool"]["verdicts"]))[unpacked(page["members"]["verdict"])] == verdicts["verdict"]).all()
    html = render(page)
    assert 'class="points other"' in html
    assert '<option value="3">unknown</option>' in html


def test_texts_stand_where_pictures_would(make_in_embedding):
    page = make_in_embedding(kind="text").collect()
    assert page["sheet"] is None
    assert page["texts"]["members"] == [f"text {member}" for member in page["shown"]["members"]]
    assert page["texts"]["labeled"] == [f"label {row}" for row in page["labeled"]["rows"]]
    text = " ".join(Tags(render(page)).text.split())
    assert f"text {page['shown']['members'][0]} " in text
    assert "The texts of a cluster run from" in text
    assert "picture" not in text


def test_rows_of_ones_own_have_labels_beside_them_and_no_pictures(make_in_embedding):
    page = make_in_embedding(kind=None).collect()
    assert page["sheet"] is None
    assert page["texts"] is None
    html = render(page)
    assert "Nearest labels" in html
    assert 'id="view"' not in html


def test_hostile_texts_names_and_files_are_text(make_in_embedding):
    items = Items("text", [HOSTILE] * 18, [f"{HOSTILE} {k}" for k in range(150)])
    html = make_in_embedding(items=items, classes=[HOSTILE + str(k) for k in range(3)]).render()
    tags = Tags(html)
    assert "img" not in tags.found
    assert "onerror" not in tags.attributes
    shown = HOSTILE.replace("\u2028", "").strip()
    assert sum(title.startswith(shown) for title in tags.titles) >= 48
    assert f"{shown} 0" in tags.text
    assert tags.data["texts"]["labeled"] == [" ".join(HOSTILE.split())] * 18
    files = [f"{HOSTILE}.png"] * 168
    html = make_in_embedding(items=Items("image", files[:18], files[18:]), ids=files[18:]).render()
    assert "img" not in Tags(html).found
    assert "168 pictures could not be opened any more and are gray." in Tags(html).text


@pytest.mark.parametrize("part", ["embedding", "texts"])
def test_every_stored_text_is_escaped(make_in_embedding, part):
    changed = copy.deepcopy(make_in_embedding(kind="text").collect())
    if part == "embedding":
        changed["embedding"] |= {"name": HOSTILE, "why": HOSTILE, "kind": HOSTILE}
    else:
        changed["texts"] = {name: [HOSTILE] * len(texts) for name, texts in changed["texts"].items()}
    tags = Tags(render(changed))
    assert "img" not in tags.found
    assert "onerror" not in tags.attributes


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        (" two\n\n lines\tof  it ", "two lines of it"),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * (LONGEST - 1) + "…"),
        ("a" + " " * 2000 + "b", "a…"),
        ("", ""),
        ("bytes\udcff", "bytes\\udcff"),
    ],
)
def test_an_excerpt_is_one_line_of_bounded_length(text, shown):
    assert excerpt(text) == shown


def test_many_long_texts_become_shorter(monkeypatch):
    texts = [["<" * 10_000] * 100, ["&" * 10_000] * 50]
    monkeypatch.setattr(excerpts, "BUDGET", 150 * 6 * 70)
    assert {len(text) for group in excerpts.excerpts(texts) for text in group} == {60}
    monkeypatch.setattr(excerpts, "BUDGET", 0)
    assert {len(text) for group in excerpts.excerpts(texts) for text in group} == {30}


@pytest.mark.parametrize("kind", ["image", "text"])
def test_the_page_stays_small_whatever_was_embedded(make_in_embedding, kind):
    """The largest of everything at once, with more labels than have a picture."""
    size, classes, labels = 1500, 300, 8
    random = np.random.default_rng(0)
    if kind == "image":
        pool, known = (list(random.integers(0, 256, (n, 80, 80, 3), dtype=np.uint8)) for n in (size, classes * labels))
    else:
        pool, known = ["<" * 5000] * size, ["<" * 5000] * classes * labels
    run = make_in_embedding(
        size,
        labels=labels,
        items=Items(kind, known, pool),
        ids=[f"{k}{'<' * 200}" for k in range(size)],
        classes=[f"{'<' * 200}{k}" for k in range(classes)],
        clusters=100,
    )
    page = run.collect()
    assert page["labeled"]["pictured"] == 1000
    assert 1_000_000 < len(render(page).encode()) <= LARGEST
