"""Find the image files below a folder; what is there and is not read gets a reason, and no folder is read twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, TypeAlias

from wrssl.api import DataError

Skipped: TypeAlias = tuple[str, str]  # a name and the reason

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp"})
# What systems leave in folders of pictures. Nobody means it as data, so nobody has to read about it either.
_LITTER = frozenset(
    {"__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "@eadir", "$recycle.bin", "system volume information"}
)


class ImageFile(NamedTuple):
    """A file that is to be read.

    Attributes:
        path: where it is.
        name: its path relative to the folder, with ``/`` on every system.
        stamp: size, time of the last change of the content, and of the file's entry, in nanoseconds. The last one
            also notices a copy that keeps the time of its original.
    """

    path: str
    name: str
    stamp: tuple[int, int, int]


def printable(name: str) -> str:
    r"""The name as text that can be written as UTF-8; bytes that are none appear as ``\udcXX``, all else stays."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def hidden(name: str) -> bool:
    """Whether a file or folder of this name is ignored without a word."""
    return name.startswith(".") or name.lower() in _LITTER


def scan(folder: str | os.PathLike[str]) -> tuple[list[ImageFile], list[Skipped]]:
    """All image files below a folder, sorted by name, and what was passed over.

    Links are followed. A folder that can be reached in several ways is read once, by its own place rather than by a
    link, so that links in a circle end.

    Args:
        folder: where to look.

    Returns:
        The files, and a pair of name and reason for everything else that is not hidden.
    """
    images: list[ImageFile] = []
    skipped: list[Skipped] = []
    seen: set[str] = set()
    folders, links = [("", os.fspath(folder))], list[tuple[str, str]]()
    while folders or links:
        if not folders:  # links wait until all real folders are known
            links.sort(reverse=True)
        name, path = (folders or links).pop()
        real = os.path.realpath(path)
        if real in seen:
            skipped.append((name, "a folder that is read already, by another way"))
            continue
        seen.add(real)
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if not hidden(entry.name):
                        _look(entry, f"{name}/{entry.name}" if name else entry.name, images, skipped, folders, links)
        except OSError as error:
            if not name:
                raise DataError(
                    f"The folder {printable(path)} cannot be opened ({error.strerror}); check its permissions."
                ) from error
            skipped.append((name, f"a folder that cannot be opened ({error.strerror})"))
    images.sort(key=lambda image: image.name)
    return images, sorted((printable(name), reason) for name, reason in skipped)


def image_files(path: str | os.PathLike[str]) -> list[Path]:
    """The images below a folder, sorted by name; of a file itself, whatever its ending, just that."""
    return [Path(file.path) for file in scan(path)[0]] if os.path.isdir(path) else [Path(path)]


def _look(
    entry: os.DirEntry[str],
    name: str,
    images: list[ImageFile],
    skipped: list[Skipped],
    folders: list[tuple[str, str]],
    links: list[tuple[str, str]],
) -> None:
    """Put one entry where it belongs."""
    try:
        if entry.is_dir():
            (links if entry.is_symlink() else folders).append((name, entry.path))
            return
        suffix = os.path.splitext(entry.name)[1].lower()
        if entry.is_file() and suffix in EXTENSIONS:
            stat = entry.stat()
            images.append(ImageFile(entry.path, name, (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)))
        elif entry.is_file():
            skipped.append((name, f"not an image type that is read ({printable(suffix) or 'no ending'})"))
        else:  # also a named pipe, which would block whoever opens it
            skipped.append((name, "a link that leads nowhere" if entry.is_symlink() else "not a regular file"))
    except OSError as error:
        skipped.append((name, f"cannot be read ({error.strerror})"))
