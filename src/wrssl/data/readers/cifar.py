"""CIFAR-10 and CIFAR-100 in the two official forms, and CIFAR-10 as image files; a folder or an archive of each.

Binary: records of 1 label byte (CIFAR-100: 2, coarse and fine) and 3,072 image bytes. Pickled: a dict with ``data``
``(N, 3072)`` and ``labels`` or ``fine_labels``. Both store red, green and blue planes, each 32×32 row by row.

Image files are ``{train,test}/<class>/<file>``, in a tar archive of any compression. Such copies were packed again, as
JPEG for instance, so their pixels differ a little from the official ones. Images are put in the order of class and file
name, because the official order is lost.

Archives are read and never unpacked to disk.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from wrssl.data.readers.restricted_pickle import read_pickle
from wrssl.data.source import Array, LabeledArrays
from wrssl.errors import DataError

_PIXELS = 3 * 32 * 32
_MAX_MEMBER = 1 << 28
_MAX_IMAGE = 1 << 20
IMAGE_FOLDER, IMAGE_ARCHIVE = "CIFAR-10-images", "cifar10-images.tar.xz"
_PARTS = ("train", "test")
_ENDINGS = (".jpg", ".jpeg", ".png")

# (data set, part) → the files of the pickled form; the binary ones have ".bin" added.
FILES = {
    ("cifar10", "train"): tuple(f"data_batch_{number}" for number in range(1, 6)),
    ("cifar10", "test"): ("test_batch",),
    ("cifar100", "train"): ("train",),
    ("cifar100", "test"): ("test",),
}
FOLDERS = {
    "cifar10": ("cifar-10-batches-py", "cifar-10-batches-bin"),
    "cifar100": ("cifar-100-python", "cifar-100-binary"),
}
ARCHIVES = {
    "cifar10": ("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"),
    "cifar100": ("cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"),
}


def read_cifar(place: Path, name: str) -> tuple[LabeledArrays, LabeledArrays]:
    """The training and the test part.

    Args:
        place: an official folder or archive, pickled or binary.
        name: ``"cifar10"`` or ``"cifar100"`` (fine labels).

    Returns:
        Two pairs of uint8 images ``(N, 3, 32, 32)`` and int64 labels.
    """
    wanted = [file for part in ("train", "test") for file in FILES[name, part]]
    found = _folder(place, wanted) if place.is_dir() else _archive(place, wanted)
    parts = []
    for part in ("train", "test"):
        pieces = [_decode(found, file, name, place) for file in FILES[name, part]]
        images = np.concatenate([piece[0] for piece in pieces]).reshape(-1, 3, 32, 32)
        parts.append((images, np.concatenate([piece[1] for piece in pieces])))
    return parts[0], parts[1]


def _folder(place: Path, wanted: list[str]) -> dict[str, bytes]:
    found = {}
    for path in (place / name for file in wanted for name in (file, f"{file}.bin")):
        try:
            if path.is_file():
                _check_size(path.name, path.stat().st_size, place)
                found[path.name] = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}); check its permissions.") from error
    return found


def _archive(place: Path, wanted: list[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(place, "r:*") as archive:
            for member in archive:
                name = member.name.rsplit("/", 1)[-1]
                if not member.isfile() or name.removesuffix(".bin") not in wanted:
                    continue
                _check_size(name, member.size, place)
                file = archive.extractfile(member)
                found[name] = b"" if file is None else file.read()
    except DataError:
        raise
    except Exception as error:  # a damaged archive fails in many ways, with a size of 10²⁰ bytes for instance
        raise DataError(f"{place} is a damaged archive ({error}); fetch it again.") from error
    return found


def _check_size(name: str, size: int, place: Path) -> None:
    if size > _MAX_MEMBER:
        raise DataError(f"{name} in {place} is larger than expected; fetch it again.")


def _decode(found: dict[str, bytes], file: str, name: str, place: Path) -> LabeledArrays:
    classes = 10 if name == "cifar10" else 100
    where = f"{place}/{file}"
    if file in found:
        content = read_pickle(found[file], where)
        images: Any = content.get("data")
        labels = content.get("labels" if name == "cifar10" else "fine_labels")
        if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 2:
            raise DataError(f"{where} holds no images; fetch it again.")
        if not isinstance(labels, list) or not all(type(label) is int for label in labels):
            raise DataError(f"{where} holds no labels; fetch it again.")
        codes = np.array(labels, dtype=np.int64)
    elif f"{file}.bin" in found:
        heads = 1 if name == "cifar10" else 2
        raw = np.frombuffer(found[f"{file}.bin"], np.uint8)
        if len(raw) % (heads + _PIXELS):
            raise DataError(f"{where}.bin does not end after a whole image; fetch it again.")
        records = raw.reshape(-1, heads + _PIXELS)
        images, codes = records[:, heads:], records[:, heads - 1].astype(np.int64)
    else:
        raise DataError(f"{file} (or {file}.bin) is not in {place}; fetch the official archive again.")
    if images.shape != (len(codes), _PIXELS) or not len(codes) or not 0 <= codes.min() <= codes.max() < classes:
        raise DataError(f"{where} holds images {images.shape} and {len(codes)} labels that do not fit; fetch it again.")
    return images, codes


def read_cifar_images(place: Path, classes: list[str]) -> tuple[LabeledArrays, LabeledArrays]:
    """The training and the test part.

    Args:
        place: a folder or an archive.
        classes: the folder names, in the order of the labels.

    Returns:
        Two pairs of uint8 images ``(N, 3, 32, 32)`` and int64 labels.
    """
    found: dict[str, list[tuple[int, str, Array]]] = {part: [] for part in _PARTS}
    for name, content in _image_folder(place) if place.is_dir() else _image_archive(place):
        part, kind, file = PurePosixPath(name).parts[-3:]
        if part in found and kind in classes:
            found[part].append((classes.index(kind), file, _decode_image(content, f"{place}/{name}")))
    return _stack(found["train"], "train", place), _stack(found["test"], "test", place)


def _stack(rows: list[tuple[int, str, Array]], part: str, place: Path) -> LabeledArrays:
    if not rows:
        raise DataError(f"{place} holds no images {part}/<class>/<file>; fetch it again.")
    rows.sort(key=lambda row: row[:2])
    return np.stack([row[2] for row in rows]), np.array([row[0] for row in rows], dtype=np.int64)


def _is_image(name: str) -> bool:
    return name.lower().endswith(_ENDINGS) and len(PurePosixPath(name).parts) >= 3


def _image_folder(place: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place.parent).as_posix()
        if _is_image(name) and path.is_file():
            try:
                yield name, path.read_bytes()
            except OSError as error:
                raise DataError(f"{path} cannot be read ({error.strerror}); check its permissions.") from error


def _image_archive(place: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(place, "r|*") as archive:  # as a stream, since xz has no random access
            for member in archive:
                if not member.isfile() or not _is_image(member.name):
                    continue
                if member.size > _MAX_IMAGE:
                    raise DataError(f"{member.name} in {place} is larger than expected; fetch the archive again.")
                file = archive.extractfile(member)
                yield member.name, b"" if file is None else file.read()
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise DataError(f"{place} is a damaged archive ({error}); fetch it again.") from error


def _decode_image(content: bytes, where: str) -> Array:
    """One image as uint8 ``(3, 32, 32)``; its size is checked before its pixels are decoded."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.size != (32, 32):
                raise DataError(f"{where} is an image of {image.size[0]}x{image.size[1]}, not 32x32; fetch it again.")
            pixels = np.asarray(image.convert("RGB"), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{where} is no image or is damaged; fetch it again.") from error
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
