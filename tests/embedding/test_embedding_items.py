"""From items to rows: what is embedded once, what cannot be read, what a user gets wrong."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from PIL import Image

import wrssl
from wrssl.api import DataError, OptionError
from wrssl.embedding import EMBEDDERS, Embedder, embed, embed_items, find_embedder, items, kind_of


def test_every_item_has_the_row_that_its_embedder_gives(tiles, pictures, cache):
    rows = embed(pictures, tiles)
    assert rows.dtype == np.float32
    assert rows.shape == (12, 48)
    expected = type(tiles)().rows(pictures)
    assert np.abs(rows - expected).max() <= 2.0**-11  # half precision of values below 1


def test_a_second_call_computes_nothing(tiles, pictures, cache):
    first = embed(pictures, tiles)
    asked = tiles.asked
    assert np.array_equal(embed(pictures, tiles), first)
    assert np.array_equal(embed(pictures[::-1], tiles), first[::-1])
    assert tiles.asked == asked == len(pictures)


def test_equal_items_are_embedded_once(tiles, pictures, cache):
    rows = embed([pictures[0], pictures[1], pictures[0].copy()], tiles)
    assert tiles.asked == 2
    assert np.array_equal(rows[0], rows[2])


def test_without_a_cache_nothing_is_written_and_the_numbers_are_the_same(tiles, pictures, cache):
    assert np.array_equal(embed(pictures, tiles, cache_dir=False), embed(pictures, tiles))
    shutil.rmtree(cache)
    embed(pictures, tiles, cache_dir=False)
    assert not cache.exists()


def test_only_new_items_are_embedded(tiles, pictures, cache):
    embed(pictures[:9], tiles)
    embed(pictures, tiles)
    assert tiles.asked == 12


def test_a_row_depends_on_the_content_and_not_on_the_name(tiles, photo_files, cache, tmp_path):
    rows = embed(photo_files, tiles)
    copies = [tmp_path / f"copy{k}" for k in range(len(photo_files))]
    for path, copy in zip(photo_files, copies, strict=True):
        shutil.copy(path, copy)
    assert np.array_equal(embed(copies, tiles), rows)
    assert tiles.asked == len(photo_files)
    shutil.copy(photo_files[1], copies[0])
    assert np.array_equal(embed(copies, tiles)[0], rows[1])


def test_files_pictures_and_arrays_of_one_picture_agree(tiles, photo_files, cache):
    path = photo_files[0]  # PNG
    picture = Image.open(path)
    one, two, three = (embed([item], tiles) for item in (str(path), picture, np.asarray(picture)))
    assert np.array_equal(one, two)
    assert np.array_equal(two, three)


def test_gray_arrays_are_pictures(tiles, cache):
    gray = np.arange(400, dtype=np.uint8).reshape(20, 20)
    assert np.array_equal(embed([gray], tiles), embed([np.repeat(gray[..., None], 3, 2)], tiles))


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (np.zeros((4, 4, 3)), "uint8 array"),
        (np.zeros((4, 4, 4), np.uint8), "uint8 array"),
        (np.zeros((0, 4, 3), np.uint8), "no pixels"),
        (5, "A picture is a path"),
    ],
)
def test_what_is_no_picture_is_one_sentence(tiles, cache, item, message):
    with pytest.raises(DataError, match=message):
        embed([item], tiles)


def test_files_that_cannot_be_read_are_named(tiles, photo_files, cache, tmp_path):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no image")
    found = embed_items([photo_files[0], bad, tmp_path / "missing.jpg", photo_files[1]], tiles, cache=cache)
    assert found.readable.tolist() == [True, False, False, True]
    assert found.rows[0].shape == (2, 48)
    assert "not an image" in found.reasons[1]
    assert "cannot be read" in found.reasons[2]
    with pytest.raises(DataError, match=r"2 of 3 items cannot be read \(first: number 0, not an image"):
        embed([bad, tmp_path / "missing.jpg", photo_files[0]], tiles)


def test_texts_are_embedded_by_their_letters(letters, cache):
    rows = embed(["abba", "", "zz"], letters)
    assert rows[0, :2].tolist() == [2, 2]
    assert rows[1].sum() == 0
    assert rows[2, 25] == 2


def test_a_text_embedder_refuses_pictures(letters, pictures, cache):
    with pytest.raises(DataError, match="takes texts, not ndarray"):
        embed(pictures[:1], letters)


def test_a_single_string_is_a_mistake(letters):
    with pytest.raises(DataError, match="list"):
        embed("text", letters)


def test_views_are_other_pictures_and_the_same_every_time(tiles, pictures, cache):
    rows = embed(pictures, tiles, views=2)
    assert rows.shape == (3, 12, 48)
    assert np.array_equal(rows[0], embed(pictures, tiles))
    apart = np.abs(rows[0] - rows[1]).max(1), np.abs(rows[1] - rows[2]).max(1)
    assert min(a.min() for a in apart) > 0.01
    assert np.array_equal(embed(pictures[::-1], tiles, views=2, cache_dir=False), rows[:, ::-1])


def test_texts_have_no_views(letters, cache):
    with pytest.raises(OptionError, match="Only pictures have views"):
        embed(["a"], letters, views=1)


def test_what_is_in_memory_is_hashed_once(tiles, pictures, cache, monkeypatch):
    """Only a file can change between its hash and its opening."""
    hashed, key_of = [], items.key_of
    for module in ("items", "pipeline"):  # both use it
        monkeypatch.setattr(f"wrssl.embedding.{module}.key_of", lambda data: hashed.append(1) or key_of(data))
    embed(pictures, tiles, views=2)
    assert len(hashed) == len(pictures)


def test_strings_that_name_files_are_images_others_are_texts(photo_files):
    assert kind_of([str(photo_files[0])]) == "image"
    assert kind_of(["what is my balance?"]) == "text"
    assert kind_of(photo_files) == "image"


def test_an_embedder_from_outside_is_found_by_its_name(tiles, pictures, cache):
    with EMBEDDERS.isolated():

        @wrssl.register_embedder("tiles")
        class Named(type(tiles)):
            pass

        assert "tiles" in wrssl.list_embedders()
        assert np.array_equal(wrssl.embed(pictures, "tiles"), embed(pictures, tiles))
    with pytest.raises(OptionError, match="no embedder 'tiles'"):
        find_embedder("tiles")


def test_joined_embedders_stand_side_by_side(tiles, pictures, cache):
    with EMBEDDERS.isolated():
        EMBEDDERS.register("tiles")(type(tiles))
        both = find_embedder("tiles+tiles")
    assert both.dim == 96
    rows = embed(pictures, both)
    assert np.allclose(np.linalg.norm(rows[:, :48], axis=1), 1, atol=1e-3)
    assert np.array_equal(rows[:, :48], rows[:, 48:])


def test_an_embedder_that_gives_the_wrong_shape_is_named(cache, pictures):
    class Wrong(Embedder):
        kind, dim, fingerprint = "image", 3, "wrong-1"

        def rows(self, items):
            return np.zeros((len(items), 4), np.float32)

    with pytest.raises(DataError, match=r"wrong-1 gave float32 of shape \(8, 4\) for 8 items"):
        embed(pictures, Wrong())


def test_a_file_that_changes_while_it_is_read_has_no_row(tiles, photo_files, cache, tmp_path):
    path = tmp_path / "moving.png"
    shutil.copy(photo_files[0], path)

    class Changing(type(tiles)):
        def rows(self, items):
            if path.exists() and os.path.getsize(path) == os.path.getsize(photo_files[0]):
                shutil.copy(photo_files[2], path)
            return super().rows(items)

    moving = Changing()
    moving.batch = 1
    found = embed_items([photo_files[4], path], moving, cache=cache)
    assert found.reasons == {1: "it changed while it was read"}


def test_a_file_that_goes_between_two_views_is_in_none_of_them(tiles, photo_files, tmp_path, cache):
    import shutil

    files = [shutil.copy(path, tmp_path / path.name) for path in photo_files[:4]]

    class Removing(type(tiles)):
        def rows(self, items):
            found = super().rows(items)
            if self.asked == 4 and files[1].exists():  # after the first view
                files[1].unlink()
            return found

    found = embed_items(files, Removing(), views=1, cache=cache)
    assert found.readable.tolist() == [True, False, True, True]
    assert [len(view) for view in found.rows] == [3, 3]
