"""CIFAR-10 as image files: ``{train,test}/<class>/<file>``, in a folder or inside a tar archive of any compression.

Such copies were packed again, as JPEG for instance, so their pixels differ a little from the official ones. Images are
put in the order of class and file name, because the official order is lost.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from wrssl.api import DataError
from wrssl.data.parts import Array, LabeledArrays

FOLDER, ARCHIVE = "CIFAR-10-images", "cifar10-images.tar.xz"
_PARTS = ("train", "test")
_ENDINGS = (".jpg", ".jpeg", ".png")
_MAX_MEMBER = 1 << 20


def read_cifar_images(place: Path, classes: list[str]) -> tuple[LabeledArrays, LabeledArrays]:
    """The training and the test part.

    Args:
        place: a folder, or an archive, which is read and never unpacked.
        classes: the folder names, in the order of the labels.

    Returns:
        Two pairs of uint8 images ``(N, 3, 32, 32)`` and int64 labels.
    """
    found: dict[str, list[tuple[int, str, Array]]] = {part: [] for part in _PARTS}
    for name, content in _folder(place) if place.is_dir() else _archive(place):
        part, kind, file = PurePosixPath(name).parts[-3:]
        if part in found and kind in classes:
            found[part].append((classes.index(kind), file, _decode(content, f"{place}/{name}")))
    return _stack(found["train"], "train", place), _stack(found["test"], "test", place)


def _stack(rows: list[tuple[int, str, Array]], part: str, place: Path) -> LabeledArrays:
    if not rows:
        raise DataError(f"{place} holds no images {part}/<class>/<file>; fetch it again.")
    rows.sort(key=lambda row: row[:2])
    return np.stack([row[2] for row in rows]), np.array([row[0] for row in rows], dtype=np.int64)


def _is_image(name: str) -> bool:
    return name.lower().endswith(_ENDINGS) and len(PurePosixPath(name).parts) >= 3


def _folder(place: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place.parent).as_posix()
        if _is_image(name) and path.is_file():
            try:
                yield name, path.read_bytes()
            except OSError as error:
                raise DataError(f"{path} cannot be read ({error.strerror}); check its permissions.") from error


def _archive(place: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(place, "r|*") as archive:  # as a stream: xz cannot be entered in the middle
            for member in archive:
                if not member.isfile() or not _is_image(member.name):
                    continue
                if member.size > _MAX_MEMBER:
                    raise DataError(f"{member.name} in {place} is larger than expected; fetch the archive again.")
                file = archive.extractfile(member)
                yield member.name, b"" if file is None else file.read()
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise DataError(f"{place} is a damaged archive ({error}); fetch it again.") from error


def _decode(content: bytes, where: str) -> Array:
    """One image as uint8 ``(3, 32, 32)``; its size is looked at before its pixels are."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.size != (32, 32):
                raise DataError(f"{where} is an image of {image.size[0]}x{image.size[1]}, not 32x32; fetch it again.")
            pixels = np.asarray(image.convert("RGB"), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{where} is no image or is damaged; fetch it again.") from error
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
