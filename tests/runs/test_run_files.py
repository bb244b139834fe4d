"""Files are written whole or not at all, and trouble with the disk is one sentence."""

from __future__ import annotations

import errno
import os
import resource
import signal
from contextlib import contextmanager, suppress

import pytest
import torch

from wrssl.runs.files import (
    StorageError,
    make_folder,
    sha256_of,
    storing,
    write_atomically,
    write_json,
    write_tensors,
)


@contextmanager
def largest_file(size):
    """A real limit of the system: what would write more gets an error, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_json(path, {"much": "x" * 100_000}),
        lambda path: write_atomically(path, lambda p: write_tensors({"much": torch.zeros(100_000)}, p)),
    ],
    ids=["json", "tensors"],
)
def test_a_full_disk_leaves_the_old_file(write, tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with largest_file(10_000), pytest.raises(OSError, match="too large") as error:
        write(path)
    assert error.value.errno == errno.EFBIG
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"
    write(path)
    assert path.stat().st_size > 100_000


@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
def test_old_or_new_whatever_goes_wrong(kill, tmp_path, disk):
    outcomes = []
    for at in range(9):
        path = tmp_path / f"{at}.json"
        write_json(path, "old")
        with disk(at, kill) as watched, suppress(OSError, disk.Killed):
            write_json(path, "new")
        outcomes.append(path.read_text().strip())
        assert kill or not list(tmp_path.glob(".*"))
        write_json(path, "newer")
        assert path.read_text() == '"newer"\n'
        if len(watched.calls) <= at:
            break
    assert outcomes == ['"old"'] * 3 + ['"new"'] * 2  # written, flushed, renamed; then the name is flushed
    assert watched.calls == ["write_text", "fsync", "replace", "fsync"]


def test_the_name_may_follow_from_the_content(tmp_path):
    path = write_atomically(tmp_path / "draft", lambda p: p.write_text("abc"), lambda p: sha256_of(p)[:8])
    assert path == tmp_path / "ba7816bf"  # the test vector of FIPS 180
    assert [p.name for p in tmp_path.iterdir()] == ["ba7816bf"]


def test_an_error_of_the_content_leaves_nothing(tmp_path):
    def write(path):
        path.write_text("half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_atomically(tmp_path / "file", write)
    assert list(tmp_path.iterdir()) == []


def test_every_new_folder_is_flushed(tmp_path, monkeypatch):
    flushed, flush = [], os.fsync

    def watched(number):
        flushed.append(os.fstat(number).st_ino)
        flush(number)

    monkeypatch.setattr(os, "fsync", watched)
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    # A folder's name stands in its parent.
    assert flushed == [(tmp_path / "a").stat().st_ino, tmp_path.stat().st_ino]
    make_folder(tmp_path / "a" / "b")
    assert len(flushed) == 2


@pytest.mark.parametrize(("number", "advice"), [(errno.ENOSPC, "make room"), (errno.EIO, "see to the disk")])
def test_trouble_is_one_sentence(number, advice):
    words = f"^The model cannot be stored .*{os.strerror(number)}.*; {advice}, then go"
    with pytest.raises(StorageError, match=words), storing("The model", "go on."):
        raise OSError(number, os.strerror(number))
