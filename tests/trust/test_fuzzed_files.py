"""Files with changed bytes: a valid result or a clear error, and no other exception, whatever stands in them."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import shutil
import sys
import tarfile
import zipfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

import wrssl
from wrssl.api import DataError, WRSSLError
from wrssl.cli import main
from wrssl.data import take_from_zip
from wrssl.data.images import RowWriter, Unreadable, decode, open_rows, quiet
from wrssl.data.readers import read_cifar, read_idx, read_pickle, read_svhn

CIFAR10 = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]

# A training costs more than these do, so there is time for more of them.
often = settings(max_examples=15 * settings.default.max_examples)

EXTREMES = [b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0\0\0\1", b"\x80"]
changes = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.floats(0, 1), st.binary(min_size=1, max_size=4) | st.sampled_from(EXTREMES)),
        st.tuples(st.just("write at the front"), st.integers(0, 200), st.sampled_from(EXTREMES)),
        st.tuples(st.just("insert"), st.floats(0, 1), st.binary(min_size=1, max_size=20)),
        st.tuples(st.just("cut"), st.floats(0, 1), st.integers(1, 40)),
        st.tuples(st.just("end"), st.floats(0, 1), st.none()),
        st.tuples(st.just("repeat"), st.floats(0, 1), st.integers(1, 60)),
        st.tuples(st.just("instead"), st.none(), st.binary(max_size=200)),
    ),
    max_size=4,
)


def changed(data, edits):
    """``data`` after these edits."""
    data = bytearray(data)
    for what, where, value in edits:
        place = int(where * len(data)) if isinstance(where, float) else (where or 0)
        if what.startswith("write"):
            data[place : place + len(value)] = value
        elif what == "insert":
            data[place:place] = value
        elif what == "cut":
            del data[place : place + value]
        elif what == "end":
            del data[place:]
        elif what == "repeat":
            data[place:place] = data[place : place + value]
        else:
            data = bytearray(value)
    return bytes(data)


def stored(data, read):
    """What ``read`` makes of a file with this content; None for a ``DataError``."""
    with TemporaryDirectory() as place:
        path = Path(place) / "file"
        path.write_bytes(data)
        try:
            return read(path)
        except DataError:
            return None


IDX = b"\0\0\x08\3" + b"\0\0\0\4\0\0\0\2\0\0\0\2" + bytes(range(16))


@often
@given(changes, st.booleans(), st.booleans())
def test_a_changed_idx_file_is_read_or_refused(edits, packed, inside):
    data = gzip.compress(changed(IDX, edits)) if inside else changed(gzip.compress(IDX) if packed else IDX, edits)
    array = stored(data, read_idx)
    assert array is None or (isinstance(array, np.ndarray) and array.size > 0)


def mat(**options):
    file = io.BytesIO()
    images = np.arange(32 * 32 * 3 * 2).reshape(32, 32, 3, 2) % 251
    savemat(file, {"before": "x", "X": images.astype(np.uint8), "y": np.array([[1.0], [10.0]])}, **options)
    return file.getvalue()


MATS = [mat(), mat(do_compression=True)]


@often
@given(st.sampled_from(MATS), changes)
def test_a_changed_svhn_file_is_read_or_refused(data, edits):
    found = stored(changed(data, edits), read_svhn)
    assert found is None or found[0].shape == (len(found[1]), 3, 32, 32)


def batch(form):
    rows = np.arange(2 * 3072).reshape(2, 3072).astype(np.uint8)
    if form == "bin":
        return b"".join(bytes([label]) + row.tobytes() for label, row in enumerate(rows))
    return pickle.dumps({b"data": rows, b"labels": [0, 1], b"filenames": ["a", "b"]}, 2 if form == "old" else 4)


@often
@given(st.sampled_from(["bin", "old", "new"]), changes)
def test_a_changed_file_of_a_cifar_folder_is_read_or_refused(form, edits):
    with TemporaryDirectory() as place:
        for name in CIFAR10:
            (Path(place) / f"{name}{'.bin' if form == 'bin' else ''}").write_bytes(batch(form))
        path = next(Path(place).glob("data_batch_3*"))
        path.write_bytes(changed(batch(form), edits))
        try:
            (images, labels), _ = read_cifar(Path(place), "cifar10")
        except DataError:
            return
    assert images.shape == (len(labels), 3, 32, 32)
    assert 0 <= labels.min() <= labels.max() < 10


def tar(mode):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name in CIFAR10:
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            info.size = len(batch("bin"))
            archive.addfile(info, io.BytesIO(batch("bin")))
    return file.getvalue()


TARS = [tar("w:"), tar("w:gz"), tar("w:xz"), tar("w:bz2")]


@often
@given(st.sampled_from(TARS), changes)
def test_a_changed_cifar_archive_is_read_or_refused(data, edits):
    found = stored(changed(data, edits), lambda path: read_cifar(path, "cifar10"))
    assert found is None or found[0][0].shape[1:] == (3, 32, 32)


@often
@given(st.binary(max_size=300) | changes.map(lambda edits: changed(batch("old")[:400], edits)))
def test_any_bytes_as_a_pickle_are_a_dictionary_or_refused(data):
    with suppress(DataError):
        assert isinstance(read_pickle(data, "x"), dict)


def picture(form, mode="RGB"):
    file = io.BytesIO()
    pixels = (np.arange(12 * 9 * 3) % 256).astype(np.uint8).reshape(12, 9, 3)
    Image.fromarray(pixels).convert(mode).save(file, form)
    return file.getvalue()


PICTURES = [
    picture(form, mode)
    for form, mode in (
        ("PNG", "RGB"), ("PNG", "I;16"), ("PNG", "P"), ("JPEG", "L"), ("JPEG", "CMYK"), ("WEBP", "RGB"), ("TIFF", "F"),
        ("TIFF", "RGBA"), ("BMP", "RGB"), ("GIF", "P"),
    )
]  # fmt: skip


@often
@given(st.sampled_from(PICTURES), changes)
def test_a_changed_picture_is_decoded_or_unreadable(data, edits):
    with quiet():
        outcome = stored(changed(data, edits), lambda path: decode(str(path), (8, 8), 3, 10**6))
    assert isinstance(outcome, Unreadable) or (outcome.shape == (3, 8, 8) and outcome.dtype == np.uint8)


@often
@given(changes)
def test_changed_rows_are_those_that_were_stored_or_none(edits):
    with TemporaryDirectory() as place:
        path = Path(place) / "x.rows"
        writer = RowWriter(Path(place), (1, 2, 2), 3)
        for value in range(3):
            writer.append(np.full((1, 2, 2), value, np.uint8))
        writer.finish(path, {"files": ["a", "b", "c"]})
        data = changed(path.read_bytes(), edits)
        path.write_bytes(data)
        found = open_rows(path, (1, 2, 2))
        assert found is None or found[0].tolist() == [[[[v, v], [v, v]]] for v in range(3)]


def zipped(method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("gzip/a", b"content" * 20)
    return file.getvalue()


ZIPS = [zipped(method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)]


@often
@given(st.sampled_from(ZIPS), changes)
def test_a_changed_zip_archive_is_unpacked_or_leaves_nothing(data, edits):
    with TemporaryDirectory() as place:
        (Path(place) / "x.zip").write_bytes(changed(data, edits))
        try:
            take_from_zip(Path(place) / "x.zip", {"gzip/a": Path(place) / "a"})
        except DataError:
            assert [path.name for path in Path(place).iterdir()] == ["x.zip"]


@pytest.fixture(scope="module")
def finished(blobs, tmp_path_factory):
    """A run directory with everything in it."""
    folder = tmp_path_factory.mktemp("fuzz") / "run"
    wrssl.fit(blobs, "mlp", "pl", "wr", steps=3, batch_size=8, out=folder, progress=False)
    return folder


READ = ["config.json", "metrics.json", "history.csv", "verdicts.csv", "skipped.csv", "model.safetensors",
        "state/judge.safetensors", "state/report.json"]  # fmt: skip
ODD = st.sampled_from([None, [], {}, "", "x", "<b>", -1, 0, 10**30, 1.5, float("nan"), True, [1], [[[]]], {"a": 1}])


def readable_or_refused(folder, pool):
    """The run is read, and then predicts; or it is refused in one line."""
    try:
        result = wrssl.load(folder)
        p = result.predict_proba(pool)
    except WRSSLError as error:
        return len(str(error).splitlines()) == 1
    return bool(np.isfinite(p).all())


@given(st.sampled_from(READ), changes)
def test_a_changed_run_directory_predicts_or_is_refused(finished, blobs, name, edits):
    with TemporaryDirectory() as place:
        folder = Path(shutil.copytree(finished, Path(place) / "run"))
        path = folder / name
        path.write_bytes(changed(path.read_bytes(), edits))
        assert readable_or_refused(folder, blobs.unlabeled)


def report_again(folder, page):
    """The exit code of ``wrssl report``; any exception but the one that ends the program is a failure."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(None), redirect_stderr(None):
        patch.setattr(sys, "argv", ["wrssl", "report", str(folder), "--out", str(page)])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code


def places(value, at=()):
    """All places in a nested value."""
    yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*at, key))


@given(st.sampled_from([name for name in READ if name.endswith(".json")]), st.integers(0, 10**6), ODD)
def test_odd_values_in_the_json_of_a_run_directory_are_read_or_refused(finished, blobs, name, number, value):
    with TemporaryDirectory() as place:
        folder = Path(shutil.copytree(finished, Path(place) / "run"))
        path = folder / name
        content = json.loads(path.read_text(encoding="utf-8"))
        *outer, key = [at for at in places(content) if at][number % (sum(1 for _ in places(content)) - 1)]
        inner = content
        for step in outer:
            inner = inner[step]
        inner[key] = value
        path.write_text(json.dumps(content), encoding="utf-8")
        assert readable_or_refused(folder, blobs.unlabeled)
        page = Path(place) / "again.html"
        assert report_again(folder, page) == (0 if page.exists() else 2)
