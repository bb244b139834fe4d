"""Which files below a folder are images, and what becomes of the rest."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import pytest

from wrssl.data.images import image_files
from wrssl.data.images.files import printable, scan
from wrssl.errors import DataError

links = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())


def names(folder: Path) -> list[str]:
    return [file.name for file in scan(folder)[0]]


def test_images_are_found_at_any_depth_in_sorted_order(tmp_path):
    wanted = ["A.JPG", "a-b/x.tif", "a/b/c/d.webp", "a/z.TiFF", "b.Jpeg", "c.bmp", "dir.jpg/in.png"]
    make(tmp_path, *reversed(wanted))
    assert names(tmp_path) == wanted
    assert scan(tmp_path)[1] == []


def test_litter_is_ignored_and_other_files_are_listed(tmp_path):
    make(tmp_path, "a.png", ".DS_Store", "._a.png", ".git/x.png", "__MACOSX/a.png", "Thumbs.db", "d/desktop.ini")
    make(tmp_path, "readme.txt", "d/labels.CSV", "d/noending", "anim.gif")
    images, skipped = scan(tmp_path)
    assert [image.name for image in images] == ["a.png"]
    assert skipped == [
        ("anim.gif", "not an image type that is read (.gif)"),
        ("d/labels.CSV", "not an image type that is read (.csv)"),
        ("d/noending", "not an image type that is read (no ending)"),
        ("readme.txt", "not an image type that is read (.txt)"),
    ]


def test_a_hidden_root_is_not_hidden(tmp_path):
    make(tmp_path, ".cache/a.png")
    assert names(tmp_path / ".cache") == ["a.png"]


def test_the_stamp_is_that_of_the_file(tmp_path):
    make(tmp_path, "a.png")
    stat = (tmp_path / "a.png").stat()
    (image,) = scan(tmp_path)[0]
    assert image.stamp == (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    assert image.path == str(tmp_path / "a.png")


@links
def test_links_to_files_are_followed_and_dead_ones_listed(tmp_path):
    make(tmp_path, "elsewhere/real.png", "pool/a.png")
    os.symlink(tmp_path / "elsewhere/real.png", tmp_path / "pool/link.png")
    os.symlink("nowhere.png", tmp_path / "pool/dead.png")
    os.symlink("self.png", tmp_path / "pool/self.png")
    images, skipped = scan(tmp_path / "pool")
    assert [image.name for image in images] == ["a.png", "link.png"]
    assert images[1].stamp[0] == len("elsewhere/real.png")
    assert [name for name, _ in skipped] == ["dead.png", "self.png"]
    assert skipped[0][1] == "a link that leads nowhere"


@links
def test_links_to_folders_end(tmp_path):
    make(tmp_path, "pool/z/a.png", "other/b.png", "other/deep/c.png")
    os.symlink("..", tmp_path / "pool/z/up")
    os.symlink(tmp_path / "pool/z", tmp_path / "pool/again")
    os.symlink(tmp_path / "other", tmp_path / "pool/one")
    os.symlink(tmp_path / "other", tmp_path / "pool/two")
    os.symlink(tmp_path / "pool", tmp_path / "other/back")
    images, skipped = scan(tmp_path / "pool")
    # A folder is read at its own place, or else by the first of its links.
    assert [image.name for image in images] == ["one/b.png", "one/deep/c.png", "z/a.png"]
    reason = "a folder that is read already, by another way"
    assert skipped == [(name, reason) for name in ("again", "one/back", "two", "z/up")]


@links
def test_a_named_pipe_is_not_opened(tmp_path):
    make(tmp_path, "a.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert scan(tmp_path)[1] == [("pipe.png", "not a regular file")]


def test_a_closed_folder_is_listed_and_a_closed_root_is_an_error(tmp_path, monkeypatch):
    make(tmp_path, "a.png", "closed/b.png")
    true_scandir = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return true_scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    images, skipped = scan(tmp_path)
    assert [image.name for image in images] == ["a.png"]
    assert skipped == [("closed", "a folder that cannot be opened (Permission denied)")]
    with pytest.raises(DataError, match=r"closed cannot be opened \(Permission denied\); check its permissions"):
        scan(tmp_path / "closed")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_strange_names_survive_and_can_be_written(tmp_path):
    for name in (b"a\nb.png", "ünï 猫.png".encode(), b"<script>x.png", b'quote".png', b"bad\xff.png"):
        with open(os.fsencode(tmp_path) + b"/" + name, "wb"):
            pass
    images, _ = scan(tmp_path)
    shown = [printable(image.name) for image in images]
    assert shown == ["<script>x.png", "a\nb.png", "bad\\udcff.png", 'quote".png', "ünï 猫.png"]
    assert all(os.path.exists(image.path) for image in images)
    with (tmp_path / "t.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([name] for name in shown)
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        assert [row[0] for row in csv.reader(file)] == shown


def test_image_files_of_folders_and_of_files(tmp_path):
    make(tmp_path, "b.png", "a/c.jpg", "x.txt")
    assert image_files(tmp_path) == [tmp_path / "a/c.jpg", tmp_path / "b.png"]
    assert image_files(str(tmp_path / "x.txt")) == [tmp_path / "x.txt"]  # asked for by name, so it is tried
