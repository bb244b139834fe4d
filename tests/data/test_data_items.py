"""Items: what counts as texts or paths, and scenarios that read nothing before somebody asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import wrssl
from wrssl.data import Embedded, Scenario, are_items, kind_of
from wrssl.errors import DataError, OptionError


@pytest.fixture
def files(tmp_path):
    """Six gray and six colored pictures, and one that cannot be read."""
    paths = []
    for k in range(12):
        paths.append(tmp_path / f"{k:02d}.png")
        Image.fromarray(np.full((20, 30, 3), (k * 20, 100, 200), dtype=np.uint8)).save(paths[-1])
    (tmp_path / "bad.png").write_text("no picture")
    return [*paths, tmp_path / "bad.png"]


def mean_and_length(items, part):
    """An embedding of texts for tests: two numbers per text; those that begin with ! cannot be read."""
    bad = {k: "begins with !" for k, item in enumerate(items) if item.startswith("!")}
    good = [item for item in items if not item.startswith("!")]
    rows = np.array([[len(item), sum(map(ord, item)) / 100] for item in good], np.float16).reshape(-1, 2)
    return Embedded([rows], np.array([k not in bad for k in range(len(items))]), bad)


@pytest.mark.parametrize(
    ("values", "yes"),
    [
        (["a", "b"], True),
        ((Path("a"), Path("b")), True),
        (np.array(["a", "b"]), True),
        (pd.Series(["a", "b"]), True),
        (pd.array(["a", "b"], dtype="string"), True),
        (np.array([["a"], ["b"]]), False),
        (pd.DataFrame({"a": ["x"]}), False),
        ("a text", False),
        (Path("a"), False),
        ([], False),
        ([1, 2], False),
        (np.zeros(3), False),
        (torch.zeros(3, 2), False),
    ],
)
def test_texts_and_paths_are_items(values, yes):
    assert are_items(values) == yes


def test_strings_that_name_no_file_are_texts(files):
    assert kind_of([str(files[0])]) == kind_of(files) == "image"
    assert kind_of(["what is this?"]) == kind_of(["a\nb"]) == kind_of(["x" * 10_000]) == "text"


def test_paths_are_decoded_when_their_rows_are_asked_for(files):
    y = [0, 0, 0, 1, 1, 1]
    scn = Scenario(
        labeled=(files[:6], y), unlabeled=files[6:], ids=[f"m{k}" for k in range(7)], is_ood=[0, 1] * 3 + [0]
    )
    assert "labeled" not in vars(scn)
    assert repr(scn) == "Scenario('own data', 6 labeled items, not read yet)"
    assert scn.input_shape == (3, 32, 32)
    assert scn.unlabeled.dtype == torch.uint8
    assert scn.unlabeled[2].unique().tolist() == [100, 160, 200]
    assert scn.ids == ["m0", "m1", "m2", "m3", "m4", "m5"]  # the seventh cannot be read
    assert [name for name, _ in scn.skipped] == ["m6"]
    assert "truth known" in repr(scn)


def test_texts_need_an_embedder(tmp_path):
    scn = Scenario(labeled=(["a", "bb", "ccc"], [0, 1, 1]), unlabeled=["d", "ee"])
    with pytest.raises(DataError, match="name an embedder, such as minilm"):
        scn.labeled  # noqa: B018


def test_what_is_embedded_stays_in_order_and_unreadable_items_are_left_out():
    scn = Scenario(
        labeled=(["a", "!", "ccc", "dddd"], ["x", "y", "y", "x"]),
        unlabeled=["e", "ff", "!g", "hhhh"],
        validation=(["i", "jj"], ["x", "y"]),
        ids=[5, 6, 7, 8],
        is_ood=[0, 0, 0, 1],
    )
    content = scn.as_items().embedded(mean_and_length)
    made = Scenario.of_content(scn.as_items(), content)
    assert made.labeled[0][:, 0].tolist() == [1, 3, 4]
    assert made.labeled[1].tolist() == [0, 1, 0]
    assert made.unlabeled[:, 0].tolist() == [1, 2, 4]
    assert list(made.ids) == [5, 6, 8]
    assert made.skipped == [("labeled:!", "begins with !"), ("7", "begins with !")]
    assert content.items.labeled == ["a", "ccc", "dddd"]
    assert content.items.pool == ["e", "ff", "hhhh"]
    assert content.is_ood.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"unlabeled": np.zeros((2, 3))}, "the unlabeled part does not; give lists of one kind"),
        ({"labeled": (["a", "b"], [0])}, "2 items and 1 labels"),
        ({"ids": [1]}, "1 ids for 2 pool items"),
        ({"is_ood": [0]}, "1 entries of is_ood for 2 pool items"),
        ({"unlabeled": ["a", 3]}, "holds int beside texts"),
        ({"unlabeled": ["a", Path("b")]}, "Texts and paths cannot be mixed"),
        ({"test": 3}, "must be a pair"),
    ],
)
def test_wrong_lists_are_one_sentence(given, message):
    with pytest.raises(DataError, match=message) as caught:
        Scenario(**{"labeled": (["a", "b"], [0, 1]), "unlabeled": ["c", "d"]} | given)
    assert str(caught.value).endswith(".")


@pytest.fixture
def text_folders(tmp_path):
    for name, words in (("animal", ("cat", "dog", "cow")), ("plant", ("oak", "fern", "rose"))):
        (tmp_path / "labeled" / name).mkdir(parents=True)
        for word in words:
            (tmp_path / "labeled" / name / f"{word}.txt").write_text(f" a {word}\n")
    (tmp_path / "pool" / "deep").mkdir(parents=True)
    for word in ("goat", "pine", "moss"):
        (tmp_path / "pool" / "deep" / f"{word}.txt").write_text(f"the {word}")
    (tmp_path / "pool" / "odd.txt").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "pool" / "a.png").write_bytes(b"")
    return tmp_path


def test_folders_of_text_files_are_texts(text_folders):
    scn = Scenario.from_folders(text_folders / "labeled", text_folders / "pool")
    assert scn.unread.kind == "text"
    assert scn.unread.name == "own texts"
    content = scn.as_items().embedded(mean_and_length)
    assert content.items.labeled == ["a cat", "a cow", "a dog", "a fern", "a oak", "a rose"]
    assert content.items.pool == ["the goat", "the moss", "the pine"]
    assert list(content.ids) == ["deep/goat.txt", "deep/moss.txt", "deep/pine.txt"]
    assert content.labeled[1].tolist() == ["animal"] * 3 + ["plant"] * 3
    assert dict(content.origin.skipped) == {
        "odd.txt": "not a text in UTF-8",
        "a.png": "not a text type that is read (.png)",
    }
    with pytest.raises(DataError, match="These folders hold texts"):
        scn.labeled  # noqa: B018


def test_half_precision_is_kept_where_all_parts_have_it():
    x, u = np.random.default_rng(0).normal(size=(6, 3)), np.random.default_rng(1).normal(size=(8, 3))
    y = [0, 1] * 3
    half = Scenario((x.astype(np.float16), y), u.astype(np.float16))
    assert half.unlabeled.dtype == half.labeled[0].dtype == torch.float16
    mixed = Scenario((x.astype(np.float32), y), u.astype(np.float16))
    assert mixed.unlabeled.dtype == mixed.labeled[0].dtype == torch.float32
    with pytest.raises(DataError, match="NaN or an infinite value, first in row 2"):
        Scenario((x.astype(np.float16), y), np.where(np.arange(8)[:, None] == 2, np.inf, u).astype(np.float16))


def test_rows_of_an_embedding_are_measured_by_their_spread():
    random = np.random.default_rng(0)
    u = random.normal(3, 2, size=(500, 16)).astype(np.float32)
    x, y = u[:4] + 1, [0, 1, 0, 1]
    scn = Scenario((x, y), u, rows="embedding")
    exact = u.astype(np.float64)
    spread = np.sqrt(np.square(exact - exact.mean(0)).sum(1).mean())
    assert scn.embedding.name == "own rows"
    assert np.allclose(scn.center.numpy(), exact.mean(0), atol=1e-6)
    assert abs(scn.spread / spread - 1) < 1e-9
    assert scn.vat_epsilon == pytest.approx(0.15 * spread)
    assert scn.noise == pytest.approx(0.15 * spread / 4)  # its length is 0.15 of the spread
    table = Scenario((x, y), u, rows="table")
    assert (table.embedding, table.vat_epsilon, table.noise) == (None, 0.5, 0.15)


def test_the_spread_keeps_its_digits_far_from_the_origin():
    u = 1e4 + np.random.default_rng(0).normal(size=(1000, 5)).astype(np.float32)
    scn = Scenario((u[:4] + 1, [0, 1, 0, 1]), u, rows="embedding")
    exact = u.astype(np.float64)
    assert scn.spread == pytest.approx(np.sqrt(np.square(exact - exact.mean(0)).sum(1).mean()), rel=1e-9)


def test_rows_is_one_of_two_words():
    with pytest.raises(OptionError, match='rows must be "table" or "embedding"'):
        Scenario((np.eye(2), [0, 1]), np.eye(2) + 1, rows="columns")
    with pytest.raises(DataError, match="An embedding has rows"):
        wrssl.Scenario((np.zeros((2, 1, 4, 4)), [0, 1]), np.ones((2, 1, 4, 4)), rows="embedding")
