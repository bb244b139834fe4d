from __future__ import annotations

import zipfile

import pytest

from wrssl.data.download import take_from_zip
from wrssl.errors import DataError


def test_only_what_is_wanted_is_written_and_only_where_the_caller_says(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("gzip/letters", b"good")
        archive.writestr("../letters", b"evil")
        archive.writestr("../../outside", b"evil")
        archive.writestr("gzip/other", b"not wanted")
    take_from_zip(tmp_path / "a.zip", {"gzip/letters": folder / "letters"})
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()} == {"a.zip", "raw/letters"}
    assert (folder / "letters").read_bytes() == b"good"


def test_errors(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x", b"abc" * 100)
    with pytest.raises(DataError, match="does not hold"):
        take_from_zip(tmp_path / "a.zip", {"y": tmp_path / "y"})
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(data.replace(b"abcabc", b"abcabd", 1))
    with pytest.raises(DataError, match="damaged zip"):
        take_from_zip(tmp_path / "a.zip", {"x": tmp_path / "x"})
    assert not (tmp_path / "x").exists()
    (tmp_path / "a.zip").write_bytes(b"junk")
    with pytest.raises(DataError, match="damaged zip"):
        take_from_zip(tmp_path / "a.zip", {"x": tmp_path / "x"})


def test_a_member_that_claims_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("wrssl.data.download._MAX_MEMBER", 10)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", bytes(1000))
    with pytest.raises(DataError, match="larger than expected"):
        take_from_zip(tmp_path / "a.zip", {"x": tmp_path / "x"})
    assert not (tmp_path / "x").exists()
