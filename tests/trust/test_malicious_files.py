"""Files that want to execute something, to take all memory, or to be written elsewhere."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

import wrssl
from wrssl.api import DataError, WRSSLError
from wrssl.data import take_from_zip
from wrssl.data.images import Unreadable, decode, open_rows
from wrssl.data.readers import read_cifar, read_idx, read_pickle, read_svhn
from wrssl.runs import load_page

CIFAR10 = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.fixture(scope="module")
def finished(blobs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("malicious") / "run"
    wrssl.fit(blobs, "mlp", "pl", "wr", steps=3, batch_size=8, out=folder, progress=False)
    return folder


def bombs(mark):
    """A bomb as it is, packed, as NumPy and torch would store it."""
    plain = pickle.dumps(Bomb(mark))
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archive/data.pkl", plain)
    return {"pickle": plain, "gzip": gzip.compress(plain), "npy": array.getvalue(), "torch": archive.getvalue()}


def test_the_bomb_is_one(tmp_path):
    pickle.loads(bombs(tmp_path / "mark")["pickle"])
    assert (tmp_path / "mark").exists()


RUN = ["config.json", "metrics.json", "history.csv", "verdicts.csv", "model.safetensors", "state/judge.safetensors",
       "state/report.json"]  # fmt: skip


@pytest.mark.parametrize("form", ["pickle", "gzip", "npy", "torch"])
@pytest.mark.parametrize("name", RUN)
def test_no_file_of_a_run_is_executed(name, form, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / name).write_bytes(bombs(tmp_path / "mark")[form])
    with pytest.raises(WRSSLError, match="damaged"):
        wrssl.load(folder)
    if name == "state/report.json":
        with pytest.raises(WRSSLError, match="damaged"):
            load_page(folder)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("form", ["pickle", "gzip", "npy", "torch"])
def test_no_state_is_executed(form, blobs, tmp_path):
    """Every file that a stopped run leaves becomes a bomb, and the run is resumed."""
    options = {"model": "mlp", "method": "pl", "weights": "none", "steps": 4, "batch_size": 8, "progress": False}
    folder = tmp_path / "run"
    wrssl.fit(blobs, **options, out=folder)
    (folder / "metrics.json").unlink()
    for path in [*(folder / "state").rglob("*")]:
        if path.is_file() and path.name != "lock":
            path.write_bytes(bombs(tmp_path / "mark")[form])
    try:
        wrssl.fit(blobs, **options, out=folder, resume=True)
    except WRSSLError as error:
        assert "state" in str(error)  # noqa: PT017  (an older state may be used instead)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("form", ["pickle", "gzip", "npy", "torch"])
def test_no_data_file_is_executed(form, tmp_path):
    bomb = bombs(tmp_path / "mark")[form]
    (tmp_path / "x").write_bytes(bomb)
    for read in (read_idx, read_svhn, lambda path: read_cifar(path, "cifar10")):
        with pytest.raises(DataError):
            read(tmp_path / "x")
    folder = tmp_path / "cifar"
    folder.mkdir()
    for name in CIFAR10:
        (folder / name).write_bytes(bomb)
    with pytest.raises(DataError):
        read_cifar(folder, "cifar10")
    assert isinstance(decode(str(tmp_path / "x"), (8, 8), 3, 10**6), Unreadable)
    assert open_rows(tmp_path / "x", (1, 2, 2)) is None
    assert not (tmp_path / "mark").exists()


LIMITED = """
import resource, sys, warnings
from pathlib import Path
import numpy, torch, PIL.Image, safetensors.torch, pandas
import wrssl
from wrssl.api import WRSSLError
from wrssl.data.images import Unreadable, decode, formats, open_rows, quiet
from wrssl.data.readers import read_cifar, read_idx, read_pickle, read_svhn

def picture(path):
    with quiet():
        outcome = decode(str(path), (8, 8), 3, 100_000_000)
    if isinstance(outcome, Unreadable):
        raise WRSSLError(outcome.reason)

def rows(path):
    if open_rows(path, (1, 2, 2)) is None:
        raise WRSSLError("no rows")

readers = {
    "idx": read_idx, "mat": read_svhn, "pkl": lambda p: read_pickle(p.read_bytes(), "x"), "rows": rows,
    "tar": lambda p: read_cifar(p, "cifar10"), "run": wrssl.load,
}
formats()
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (400 << 20), now + (400 << 20)))
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        readers.get(path.suffix[1:], picture)(path)
        print(path.name, "was read")
    except WRSSLError as error:
        print(path.name, "refused")
    except MemoryError:
        print(path.name, "asked for memory")
"""


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"x")) + chunk(b"IEND", b"")


def bmp(width, height):
    return b"BM" + struct.pack("<IHHI", 200, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, *[0] * 6)


def tiff(width, height):
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, height), (279, 9)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + bytes(4)


def mat(sizes, length, packed=False):
    def element(kind, data, claimed=None):
        return struct.pack("<II", kind, len(data) if claimed is None else claimed) + data + bytes(-len(data) % 8)

    inner = element(6, struct.pack("<II", 9, 0)) + element(5, struct.pack(f"<{len(sizes)}i", *sizes)) + element(1, b"X")
    whole = element(14, inner + element(2, b"abc", length), None if not packed else 0xFFFFFFF0)
    if packed:
        whole = struct.pack("<II", 15, len(zlib.compress(whole))) + zlib.compress(whole)
    return b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x100) + b"IM" + whole


def tar_claiming(size):
    info = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of memory is the kernel's")
def test_a_header_that_claims_a_million_by_a_million_allocates_nothing(finished, tmp_path):
    """All of them in one process that may have 400 MB more than it has when it starts to read."""
    million = 10**6
    header = json.dumps({"x": {"dtype": "F32", "shape": [million, million], "data_offsets": [0, 4 * million**2]}})
    files = {
        "plain.idx": b"\0\0\x08\2" + struct.pack(">2I", million, million) + b"abc",
        "packed.idx": gzip.compress(b"\0\0\x08\2" + struct.pack(">2I", million, million) + b"abc"),
        "axes.idx": b"\0\0\x08\xff" + struct.pack(">255I", *[1] * 255) + b"a",
        "size.mat": mat((million, million), 3),
        "length.mat": mat((1 << 16, (1 << 16) - 1), 0xFFFF0000),
        "packed.mat": mat((1 << 15, 1 << 15), 1 << 30, packed=True),
        "memo.pkl": b"\x80\x02}r\xff\xff\xff\x7f.",
        "bytes.pkl": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b".",
        "frame.pkl": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b".",
        "shape.pkl": pickle.dumps({"data": np.zeros(4, np.uint8)}, 2).replace(b"K\x04\x85", b"J\xff\xff\xff\x7f\x85"),
        "claim.tar": tar_claiming(1 << 40),
        "header.tar": tar_claiming(1 << 27),
        "image.png": png(million, million),
        "image.bmp": bmp(million, million),
        "image.tif": tiff(million, million),
        "end.rows": struct.pack("<8sQQII", b"wrssl-im", million**2, 2, 0, 0),
    }
    place = tmp_path / "files"
    place.mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)
    tensors = struct.pack("<Q", len(header)) + header.encode()
    for name, file, content in (
        ("tensors.run", "model.safetensors", tensors),
        ("header.run", "model.safetensors", struct.pack("<Q", 1 << 40) + b"{}"),
        ("judge.run", "state/judge.safetensors", tensors),
        ("config.run", "config.json", None),
    ):
        folder = shutil.copytree(finished, place / name)
        if content is None:
            config = json.loads((folder / file).read_text())
            content = json.dumps(config | {"input_shape": [1, million, million], "num_classes": million}).encode()
        (folder / file).write_bytes(content)
    names = sorted([*files, "tensors.run", "header.run", "judge.run", "config.run"])
    done = subprocess.run([sys.executable, "-c", LIMITED, place], capture_output=True, text=True, timeout=120)
    said = [f"{name} {'was read' if name == 'memo.pkl' else 'refused'}" for name in names]  # that one is just empty
    assert done.stdout.splitlines() == said, done.stderr


def test_the_same_files_are_read_where_they_are_honest(tmp_path):
    """The headers above are refused for their claims, not for their form."""
    Image.new("RGB", (3, 3)).save(tmp_path / "x.png")
    assert decode(str(tmp_path / "x.png"), (2, 2), 3, 100).shape == (3, 2, 2)
    honest = tmp_path / "x.mat"
    honest.write_bytes(mat((3, 1), 3))
    with pytest.raises(DataError, match="no 32x32 color images X"):
        read_svhn(honest)


def nested(depth):
    """A tuple whose hash and representation take 2^depth steps, in a few bytes per level."""
    return b"N\x85q\x00" + b"".join(b"h%c\x86q%c" % (n, n + 1) if n else b"h\x00\x86q\x01" for n in range(depth))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02}" + nested(60) + b"K\x01s.",  # as a key
        b"\x80\x02cnumpy\ndtype\n" + nested(60) + b"\x85R.",  # as the name of a type
        b"\x80\x02c_codecs\nencode\nX\x01\0\0\0a" + nested(60) + b"\x86R.",  # as an encoding
        b"\x80\x04\x8f(" + nested(60) + b"\x90.",  # in a set
    ],
    ids=["key", "type", "encoding", "set"],
)
def test_a_pickle_that_never_ends_is_refused(data):
    with pytest.raises(DataError):
        read_pickle(data, "x")


EVIL = ["../outside", "/outside", "..\\outside", "a/../../outside", "C:\\outside"]


def test_a_tar_archive_writes_nothing_at_all(tmp_path):
    """Names that lead outside, links and devices: nothing is unpacked, and what is no file is not read."""
    path = tmp_path / "in" / "cifar.tar"
    path.parent.mkdir()
    (tmp_path / "secret").write_bytes(b"\0" * 3073)
    with tarfile.open(path, "w") as archive:
        for name in EVIL:
            archive.addfile(tarfile.TarInfo(name))
        for number, kind in enumerate([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE], start=1):
            info = tarfile.TarInfo(f"x/data_batch_{number}.bin")
            info.type, info.linkname = kind, str(tmp_path / "secret")
            archive.addfile(info)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="data_batch_1"):
        read_cifar(path, "cifar10")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_archive_writes_only_what_was_asked_for(tmp_path):
    path, target = tmp_path / "in" / "x.zip", tmp_path / "in" / "wanted"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name in [*EVIL, "wanted"]:
            archive.writestr(name, name)
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16  # a symbolic link
        archive.writestr(link, str(tmp_path))
    take_from_zip(path, {"wanted": target, "link": tmp_path / "in" / "link", "../outside": tmp_path / "in" / "taken"})
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["in", "link", "taken", "wanted", "x.zip"]
    assert not (tmp_path / "in" / "link").is_symlink()
    assert target.read_text() == "wanted"
