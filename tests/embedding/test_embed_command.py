"""``wrssl embed`` and ``wrssl cache`` from the command line."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from wrssl.cli import main
from wrssl.embedding import EMBEDDERS


@pytest.fixture
def run(monkeypatch, capsys, cache, tiles, letters):
    """The command line with two small embedders, ``tiles`` and ``letters``."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["wrssl", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out, shown.err

    with EMBEDDERS.isolated():
        EMBEDDERS.register("tiles")(type(tiles))
        EMBEDDERS.register("letters")(type(letters))
        yield call


def test_a_folder_of_photographs_becomes_a_file_of_rows(run, photo_files, tmp_path):
    out = tmp_path / "rows.npz"
    code, said, _ = run("embed", photo_files[0].parent, "--embedder", "tiles", "--out", out)
    assert code == 0
    assert said == f"10 rows of 48 values in {out}; 10 were computed, the rest was known\n"
    with np.load(out) as found:
        assert found["X"].shape == (10, 48)
        assert [name.rsplit("/", 1)[1] for name in found["ids"]] == sorted(path.name for path in photo_files)
        assert str(found["embedder"]) == "tiles-1"
    code, said, _ = run("embed", *photo_files, "--embedder", "tiles", "--views", 1, "--out", tmp_path / "again.npz")
    assert "10 were computed" in said  # the views only
    with np.load(tmp_path / "again.npz") as again:
        assert again["X"].shape == (2, 10, 48)


def test_lines_of_a_text_file_are_items(run, tmp_path):
    (tmp_path / "a.txt").write_text("aa\nb\n")
    code, _, _ = run("embed", tmp_path / "a.txt", "--embedder", "letters", "--out", tmp_path / "t.npz")
    assert code == 0
    with np.load(tmp_path / "t.npz") as found:
        assert found["X"][:, :2].tolist() == [[2, 0], [0, 1]]
        assert found["ids"].tolist() == [f"{tmp_path / 'a.txt'}:1", f"{tmp_path / 'a.txt'}:2"]


def test_files_that_cannot_be_read_are_said_and_left_out(run, photo_files, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.png").write_bytes(b"x")
    code, said, error = run(
        "embed", tmp_path / "in", photo_files[0], "--embedder", "tiles", "--out", tmp_path / "r.npz"
    )
    assert code == 0
    assert "1 rows of 48" in said
    assert "bad.png: not an image" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere"),
        (["empty"], "no image file"),
        (["a.txt", "b.png"], "cannot be embedded together"),
        (["latin.txt"], "not text in UTF-8"),
        (["b.png", "--embedder", "lite9"], "no embedder 'lite9'"),
    ],
)
def test_mistakes_are_one_sentence_and_write_nothing(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.png").write_bytes(b"x")
    (tmp_path / "latin.txt").write_bytes(b"gr\xf6sser")
    code, said, error = run("embed", *arguments, "--out", "rows.npz")
    assert (code, said) == (2, "")
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "rows.npz").exists()


def test_nothing_is_overwritten(run, tmp_path, photo_files):
    (tmp_path / "r.npz").write_bytes(b"mine")
    code, _, error = run("embed", photo_files[0], "--embedder", "tiles", "--out", tmp_path / "r.npz")
    assert code == 2
    assert "exists already" in error
    assert (tmp_path / "r.npz").read_bytes() == b"mine"


def test_a_disk_that_refuses_leaves_no_half_file(run, photo_files, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    code, said, error = run("embed", photo_files[0], "--embedder", "tiles", "--out", tmp_path / "r.npz")
    assert (code, said) == (2, "")
    assert "cannot be stored (No space left on device); make room" in error
    assert not list(tmp_path.glob("*r.npz*"))


def test_the_cache_is_listed_and_cleared_and_other_files_stay(run, photo_files, tmp_path, cache):
    run("embed", *photo_files, "--embedder", "tiles", "--out", tmp_path / "r.npz")
    (cache / "mine.doc").write_text("keep")
    _, said, _ = run("cache", "--list")
    assert "rows of tiles-1" in said
    assert "1 files" in said
    code, said, _ = run("cache", "--clear")
    assert code == 0
    assert said.startswith("removed 0.0 MB")
    assert sorted(path.name for path in cache.iterdir()) == ["mine.doc"]
    code, _, error = run("cache")
    assert code == 2
    assert "Choose one" in error
