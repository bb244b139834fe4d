"""The cache: nothing is decoded twice, nothing is ever out of date, and no trouble with it is fatal."""

from __future__ import annotations

import errno
import os
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import PIL
import pytest
from PIL import Image, ImageFile

from wrssl.data.images import ImageReader, cache, reader
from wrssl.data.images import store as storing
from wrssl.data.images.cache import Part, Work, cache_folder, read_part
from wrssl.data.images.files import scan
from wrssl.data.images.store import open_rows
from wrssl.errors import DataError

READER = ImageReader((4, 4), 3)


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Files of this very instant are trusted, except where a test is about that."""
    monkeypatch.setattr(cache, "_SETTLED", -1)


@pytest.fixture
def decoded(monkeypatch) -> list[str]:
    """The names of the files that are decoded, as it happens."""
    seen: list[str] = []
    true_decode = reader.decode

    def watched(path, *rest):
        seen.append(Path(path).name)
        return true_decode(path, *rest)

    monkeypatch.setattr(reader, "decode", watched)
    return seen


@pytest.fixture
def pool(tmp_path) -> Path:
    folder = tmp_path / "pool"
    folder.mkdir()
    for index in range(6):
        paint(folder / f"{index}.png", index)
    (folder / "2b.png").touch()
    return folder


def paint(path: Path, value: int) -> None:
    Image.new("RGB", (4, 4), (value, value, value)).save(path)


def get(pool: Path, how: ImageReader = READER, store: Path | None = None, jobs: int = 1) -> Part:
    return read_part(scan(pool)[0], pool, how, "Reading", Work(store or pool.parent / "cache", jobs, False))


def values(part: Part) -> list[int]:
    return part.rows[:, 0, 0, 0].tolist()


def stores(pool: Path) -> list[Path]:
    return sorted((pool.parent / "cache").rglob("*.rows"))


def check(part: Part, expected: list[int]) -> None:
    assert values(part) == expected
    assert [int(file.name[0]) for file in part.files] == expected
    assert part.skipped == [("2b.png", "empty file")]
    assert part.trouble is None


def test_the_second_time_nothing_is_decoded(pool, decoded):
    check(get(pool), [0, 1, 2, 3, 4, 5])
    assert len(decoded) == 7
    again = get(pool)
    check(again, [0, 1, 2, 3, 4, 5])
    assert len(decoded) == 7  # the broken one is remembered too
    assert not again.rows.flags.writeable
    assert len(stores(pool)) == 1


def test_rows_stay_on_the_disk(pool):
    for part in (get(pool), get(pool)):
        base = part.rows
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)


def test_changed_new_and_removed_files(pool, decoded):
    get(pool)
    decoded.clear()
    paint(pool / "3.png", 33)
    paint(pool / "6.png", 6)
    (pool / "0.png").unlink()
    part = get(pool)
    assert values(part) == [1, 2, 33, 4, 5, 6]
    assert [file.name for file in part.files] == ["1.png", "2.png", "3.png", "4.png", "5.png", "6.png"]
    assert sorted(decoded) == ["3.png", "6.png"]


def test_an_other_file_of_equal_size_and_time_is_noticed(pool):
    for name in ("a.bmp", "b.bmp"):
        paint(pool / name, ord(name[0]))
        os.utime(pool / name, ns=(10**18, 10**18))
    get(pool)
    time.sleep(0.02)  # the clock of file systems ticks slowly
    os.replace(pool / "b.bmp", pool / "a.bmp")
    assert values(get(pool))[-1] == ord("b")


def test_a_repaired_file_comes_back_and_a_broken_one_goes(pool):
    get(pool)
    paint(pool / "2b.png", 22)
    (pool / "4.png").write_bytes(b"oops")
    part = get(pool)
    assert values(part) == [0, 1, 2, 22, 3, 5]
    assert part.skipped == [("4.png", "not an image, whatever its name says")]


def test_a_file_of_this_instant_is_read_again(pool, decoded, monkeypatch):
    monkeypatch.setattr(cache, "_SETTLED", 3600 * 10**9)
    get(pool)
    decoded.clear()
    check(get(pool), [0, 1, 2, 3, 4, 5])
    assert len(decoded) == 7


def test_failures_that_may_pass_are_tried_again(pool, decoded, monkeypatch):
    true_decode = reader.decode
    refused = reader.Unreadable("cannot be read (Permission denied)", lasting=False)
    monkeypatch.setattr(reader, "decode", lambda p, *r: refused if p.endswith("1.png") else true_decode(p, *r))
    assert get(pool).skipped[0] == ("1.png", "cannot be read (Permission denied)")
    monkeypatch.setattr(reader, "decode", true_decode)
    decoded.clear()
    check(get(pool), [0, 1, 2, 3, 4, 5])
    assert decoded == ["1.png"]


@pytest.mark.parametrize("change", [{"size": (4, 5)}, {"channels": 1}, {"max_pixels": 10}])
def test_every_way_of_reading_has_its_own(pool, decoded, change):
    get(pool)
    decoded.clear()
    other = ImageReader(**({"size": (4, 4), "channels": 3} | change))
    part = get(pool, other)
    assert len(decoded) == 7
    assert len(part.rows) == (0 if "max_pixels" in change else 6)
    decoded.clear()
    get(pool, other)
    get(pool)
    assert decoded == []


def test_pillow_and_its_tolerance_belong_to_the_way(pool, decoded, monkeypatch):
    get(pool)
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    get(pool)
    assert len(decoded) == 14
    monkeypatch.setattr(PIL, "__version__", "99.0")
    get(pool)
    assert len(decoded) == 21


def test_another_folder_with_the_same_names(pool, tmp_path, decoded):
    get(pool)
    other = tmp_path / "other"
    other.mkdir()
    paint(other / "0.png", 9)
    assert values(get(other)) == [9]
    assert len({path.parent for path in stores(pool)}) == 2


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_torn_files_are_noticed_and_replaced(pool, decoded, part):
    get(pool)
    (store,) = stores(pool)
    data = store.read_bytes()
    store.write_bytes(data[: int(part * len(data))])
    decoded.clear()
    check(get(pool), [0, 1, 2, 3, 4, 5])
    assert len(decoded) == 7
    assert stores(pool)[0].read_bytes()[:288] == data[:288]  # the rows


def test_every_damaged_byte_is_noticed(pool):
    get(pool)
    (store,) = stores(pool)
    data = store.read_bytes()
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        store.write_bytes(damaged)
        assert open_rows(store, READER.shape) is None, place
    store.write_bytes(data)
    assert open_rows(store, READER.shape) is not None


def test_foreign_files_are_noticed(pool, decoded):
    get(pool)
    (store,) = stores(pool)
    good = store.read_bytes()
    get(pool, ImageReader((4, 4), 3, 77))
    (other,) = [path for path in stores(pool) if path != store]
    for content in (b"", b"something else entirely" * 50, other.read_bytes(), good + b"x"):
        store.write_bytes(content)
        decoded.clear()
        check(get(pool), [0, 1, 2, 3, 4, 5])
        assert len(decoded) == 7
    store.unlink()
    store.mkdir()  # not even a file: it is in the way, and reading goes on without it
    assert values(get(pool)) == [0, 1, 2, 3, 4, 5]
    assert get(pool).trouble


def test_a_store_of_more_files_under_the_name_of_fewer(pool):
    get(pool)
    (more,) = stores(pool)
    data = more.read_bytes()
    (pool / "0.png").unlink()
    get(pool)
    for path in stores(pool):
        path.write_bytes(data)
    check(get(pool), [1, 2, 3, 4, 5])


def test_an_index_that_does_not_fit_is_refused(pool):
    get(pool)
    (store,) = stores(pool)
    rows, index = open_rows(store, READER.shape)
    for files in (index["files"][:-1], [[1, 2]], None, [["0.png", [1, 2, 3], None]]):
        out = storing.RowWriter(store.parent, READER.shape, len(rows))
        for row in rows:
            out.append(row)
        out.finish(store, {"way": index["way"], "files": files})
        assert cache.look_up(store, index["way"], READER.shape) is None
    assert cache.look_up(store, index["way"] | {"size": [9, 9]}, READER.shape) is None


def test_old_stores_are_removed_once_no_program_can_use_them(pool):
    get(pool)
    (first,) = stores(pool)
    left = first.parent / ".part-killed"
    left.write_bytes(b"half")
    foreign = first.parent / "notes.txt"
    foreign.write_text("mine")
    paint(pool / "6.png", 6)
    get(pool)
    assert len(stores(pool)) == 2  # another program may be at work with the first
    for path in (first, left, foreign):
        os.utime(path, (1, 1))
    paint(pool / "7.png", 7)
    get(pool)
    assert first not in stores(pool)
    assert not left.exists()
    assert foreign.exists()


def test_use_keeps_a_store_young(pool):
    get(pool)
    (store,) = stores(pool)
    os.utime(store, (1, 1))
    get(pool)
    assert time.time() - store.stat().st_mtime < 100


def test_no_cache_is_no_trouble(pool, monkeypatch):
    part = read_part(scan(pool)[0], pool, READER, "Reading", Work(None, 1, False))
    check(part, [0, 1, 2, 3, 4, 5])
    assert not (pool.parent / "cache").exists()


def test_a_cache_that_cannot_be_made(pool, decoded):
    (pool.parent / "cache").write_text("a file where the folder should be")
    part = get(pool)
    assert values(part) == [0, 1, 2, 3, 4, 5]
    assert part.trouble in ("Not a directory", "File exists")


@pytest.mark.parametrize("room", [0, 50, 48 * 3, 48 * 6, 48 * 6 + 20])
def test_a_full_disk(pool, monkeypatch, room):
    true_write, left = os.write, [room]

    def write(file, data):
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = true_write(file, data[: left[0]])
        left[0] -= done
        return done

    monkeypatch.setattr(storing.os, "write", write)
    part = get(pool, jobs=2)
    assert values(part) == [0, 1, 2, 3, 4, 5]
    assert part.trouble == "No space left on device"
    assert [path for path in (pool.parent / "cache").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_trouble_at_the_very_end(pool, monkeypatch, step):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(storing.os, step, fail)
    part = get(pool)
    assert values(part) == [0, 1, 2, 3, 4, 5]
    assert part.trouble == "Input/output error"
    assert [path for path in (pool.parent / "cache").rglob("*") if path.is_file()] == []


def test_rows_that_do_not_even_fit_into_memory(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(storing.np, "empty", full)
    with pytest.raises(DataError, match="9 images do not fit into memory; name a cache_dir"):
        storing.RowWriter(None, (3, 4, 4), 9)


def test_an_interruption_leaves_nothing_behind(pool, monkeypatch):
    def interrupt(path, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reader, "decode", interrupt)
    with pytest.raises(KeyboardInterrupt):
        get(pool)
    assert [path for path in (pool.parent / "cache").rglob("*") if path.is_file()] == []


def test_several_at_once_do_not_disturb_each_other(pool):
    filters = list(warnings.filters)
    start = threading.Barrier(4, timeout=20)
    seen: list[tuple[list[int], str | None]] = []

    def work(number: int) -> None:
        start.wait()
        for _ in range(15):
            part = get(pool)
            seen.append((values(part), part.trouble))
            if number == 0:  # one of them finds the store gone or torn again and again
                for path in stores(pool):
                    torn = path.with_suffix(".torn")
                    torn.write_bytes(path.read_bytes()[:100])
                    os.replace(torn, path) if len(seen) % 2 else path.unlink()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [([0, 1, 2, 3, 4, 5], None)] * 60
    assert list((pool.parent / "cache").rglob(".part-*")) == []
    assert warnings.filters == filters


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("WRSSL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder(None) == cache_folder(True) == tmp_path / "xdg" / "wrssl" / "images"
    monkeypatch.setenv("WRSSL_CACHE", str(tmp_path / "own"))
    assert cache_folder(None) == tmp_path / "own"
    assert cache_folder(tmp_path / "given") == cache_folder(str(tmp_path / "given")) == tmp_path / "given"
    assert cache_folder(False) is None
    monkeypatch.setattr(cache.os.path, "expanduser", lambda path: str(path))  # there is no home folder
    monkeypatch.delenv("WRSSL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder(None) is None
