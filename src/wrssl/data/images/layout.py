"""What the user's folders must look like, checked before anything is decoded."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from wrssl.api import DataError, OptionError
from wrssl.data.images.scan import ImageFile, Skipped, hidden, printable, scan


class Folder(NamedTuple):
    """A folder and what is in it.

    Attributes:
        path: absolute.
        files: its images.
        skipped: the rest.
    """

    path: Path
    files: list[ImageFile]
    skipped: list[Skipped]


def check_folders(given: Mapping[str, Any]) -> dict[str, Path]:
    """Absolute paths of these folders, by part; a ``DataError`` unless all exist and none holds another."""
    paths: dict[str, Path] = {}
    for part, value in given.items():
        if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str) or not os.fspath(value):
            raise OptionError(f"The {part} folder must be a path, not {value!r}.")
        paths[part] = path = Path(os.path.abspath(os.path.expanduser(value)))
        if not path.exists():
            raise DataError(f"{_where(part, path)} does not exist; check the path.")
        if not path.is_dir():
            raise DataError(f"{_where(part, path)} is a file; name the folder that holds the images.")
    real = {part: Path(os.path.realpath(path)) for part, path in paths.items()}
    for inner, outer in permutations(real, 2):
        if real[inner] == real[outer]:
            raise DataError(f"{_where(outer, paths[outer])} is the {inner} folder too; give each part its own.")
        if real[outer] in real[inner].parents:
            raise DataError(
                f"{_where(inner, paths[inner])} is inside the {outer} folder; move it out, so that no image is in both."
            )
    return paths


def _where(part: str, path: Path) -> str:
    return f"The {part} folder {printable(str(path))}"


def class_of(file: ImageFile) -> str:
    """The class of a labelled file: the first folder of its name; one spelling of letters with accents."""
    return _class_name(file.name.split("/", 1)[0])


def _class_name(folder: str) -> str:
    return unicodedata.normalize("NFC", printable(folder))


def scan_pool(path: Path, part: str) -> Folder:
    """The images of a folder without classes; at least one."""
    files, skipped = scan(path)
    if not files:
        raise DataError(
            f"{_where(part, path)} holds no image{_example(skipped)}; put .jpg, .png, .webp, .tif or .bmp files there."
        )
    return Folder(path, files, skipped)


def scan_classes(path: Path, part: str, allowed: set[str] | None = None) -> Folder:
    """The images of a folder with one sub-folder per class.

    An empty sub-folder of the labelled part is an error and not a class less: a model that can never answer with a
    class that the user has named would be a surprise. In the other parts a class may be missing.

    Args:
        path: the folder.
        part: its name in messages.
        allowed: the classes that there may be; None for the labelled part, which sets them.
    """
    files, skipped = scan(path)
    inside = [file for file in files if "/" in file.name]
    beside = [(printable(file.name), "an image outside of the class folders") for file in files if "/" not in file.name]
    filled = {class_of(file) for file in inside}
    where = _where(part, path)
    if not inside:
        raise DataError(f"{where} has no sub-folder with images; make one sub-folder per class, named like the class.")
    if allowed is None:
        with os.scandir(path) as entries:
            empty = sorted({_class_name(e.name) for e in entries if e.is_dir() and not hidden(e.name)} - filled)
        if empty:
            raise DataError(f"{where} has no image of the class {empty[0]!r}; put some there or remove the sub-folder.")
        if len(filled) < 2:
            raise DataError(f"{where} has only the class {min(filled)!r}; give images of at least two classes.")
    elif filled - allowed:
        raise DataError(
            f"{where} has the class {min(filled - allowed)!r}, which the labelled folder does not have "
            f"({', '.join(sorted(allowed))}); rename or remove that sub-folder."
        )
    return Folder(path, inside, sorted(skipped + beside))


def _example(skipped: list[Skipped]) -> str:
    return f" that can be read ({skipped[0][0]}: {skipped[0][1]})" if skipped else ""
