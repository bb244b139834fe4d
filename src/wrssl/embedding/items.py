"""What can be embedded: files, pictures, arrays, texts; the hash of its content, and how it is opened.

The hash is of the bytes of a file, of the values and the shape of an array, or of a text in UTF-8. So a file that was
renamed or copied keeps its rows, and one that was changed does not.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wrssl.data.images import Unreadable, image_files, open_picture, printable
from wrssl.embedding.cache import KEY
from wrssl.embedding.embedder import IMAGE, TEXT, Picture
from wrssl.errors import DataError

MAX_PIXELS = 100_000_000
TEXT_FILES = (".txt",)


def content(item: Any, kind: str) -> bytes | Unreadable:
    """What is hashed, and what is opened: the bytes of a file, else the item itself in a form that has bytes.

    Args:
        item: a path, PIL image, uint8 array ``(H, W, 3)`` or ``(H, W)``, or a string.
        kind: of the embedder, which decides whether a string is a path or a text.
    """
    if kind == TEXT:
        if not isinstance(item, str):
            raise DataError(f"This embedder takes texts, not {type(item).__name__}; give strings.")
        return b"text" + item.encode("utf-8", "surrogatepass")
    if isinstance(item, (str, os.PathLike)):
        try:
            with open(item, "rb") as file:
                data = file.read()
        except OSError as error:
            return Unreadable(f"cannot be read ({error.strerror})", lasting=False)
        return b"file" + data if data else Unreadable("empty file")
    values = as_array(item)
    return b"pixels" + repr(values.shape).encode() + values.tobytes()


def as_array(item: Any) -> Picture:
    """A picture that is in memory already, as uint8 ``(H, W, 3)``."""
    if hasattr(item, "convert"):  # a PIL image
        return np.asarray(item.convert("RGB"))
    values = np.asarray(item)
    if values.dtype != np.uint8 or values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] != 3):
        raise DataError(
            f"A picture is a path, a PIL image or a uint8 array of shape (H, W, 3) or (H, W), not "
            f"{getattr(item, 'dtype', type(item).__name__)} of shape {values.shape}; convert it first."
        )
    if 0 in values.shape:
        raise DataError("A picture has no pixels; leave it out.")
    return np.ascontiguousarray(values if values.ndim == 3 else np.repeat(values[..., None], 3, axis=2))


def key_of(data: bytes) -> bytes:
    """The hash of a content."""
    return hashlib.blake2b(data, digest_size=KEY).digest()


def opened(item: Any, key: bytes, kind: str, side: int | None) -> Any:
    """The item as embedders take it: a string, or a uint8 picture ``(H, W, 3)``; ``Unreadable`` for a bad file.

    Args:
        item: as it was given.
        key: the hash of its content; a file that has another one by now is not used.
        kind: of the embedder.
        side: to what the shorter side of a picture may be reduced.
    """
    if kind == TEXT:
        return item
    if not isinstance(item, (str, os.PathLike)):
        return as_array(item)
    data = content(item, kind)
    if isinstance(data, Unreadable):
        return data
    if key_of(data) != key:
        return Unreadable("it changed while it was read", lasting=False)
    return open_picture(io.BytesIO(memoryview(data)[4:]), side, MAX_PIXELS)


def read_items(paths: Sequence[Path]) -> tuple[str, list[str], list[Any]]:
    """The items that are meant by files and folders: their kind, a name for each, and the items.

    Args:
        paths: image files and folders of them, or text files with one text per line.
    """
    for path in paths:
        if not path.exists():
            raise DataError(f"{printable(str(path))} does not exist; name files and folders that are there.")
    texts = [path for path in paths if path.suffix.lower() in TEXT_FILES]
    if texts and len(texts) < len(paths):
        raise DataError("Texts and images cannot be embedded together; name files of one kind.")
    if not texts:
        files = [file for path in paths for file in image_files(path)]
        if not files:
            raise DataError("There is no image file in what was named; name image files, or folders that hold some.")
        return IMAGE, [printable(file.as_posix()) for file in files], list(files)
    names, lines = [], []
    for path in texts:
        try:
            found = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not text in UTF-8; convert it first.") from error
        names += [f"{printable(path.as_posix())}:{number}" for number in range(1, len(found) + 1)]
        lines += found
    if not lines:
        raise DataError("The text files have no line; name files with one text per line.")
    return TEXT, names, lines
