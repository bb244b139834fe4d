"""Find the files below a folder, and check that the user's folders look as they must before anything is read.

Everything that is there and is not read gets a reason, and no folder is read twice.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import NamedTuple, TypeAlias

from wrssl.data.images.decode import Unreadable
from wrssl.data.items import IMAGE, TEXT
from wrssl.errors import DataError, OptionError

AnyPath: TypeAlias = str | os.PathLike[str]
Skipped: TypeAlias = tuple[str, str]  # a name and the reason
EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp"})
TEXTS = frozenset({".txt"})
_ENDINGS = {IMAGE: EXTENSIONS, TEXT: TEXTS}
LONGEST_TEXT = 1_000_000  # bytes
_ADVICE = {IMAGE: ".jpg, .png, .webp, .tif or .bmp files", TEXT: ".txt files"}
# What systems leave in folders of pictures; it is never meant as data and needs no message.
_LITTER = frozenset(
    {"__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "@eadir", "$recycle.bin", "system volume information"}
)


class ImageFile(NamedTuple):
    """A file to read.

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
    r"""The name as text that can be written as UTF-8; invalid bytes appear as ``\udcXX``."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def hidden(name: str) -> bool:
    """Whether a file or folder of this name is ignored without a message."""
    return name.startswith(".") or name.lower() in _LITTER


def scan(folder: AnyPath, kind: str = IMAGE) -> tuple[list[ImageFile], list[Skipped]]:
    """All files of a kind below a folder, sorted by name, and what was left out.

    Links are followed. A folder that can be reached in several ways is read once, by its own path rather than by a
    link, so that circular links end.

    Args:
        folder: where to look.
        kind: ``"image"``, or ``"text"`` for files with one text each.

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
                        _sort_in(
                            entry, f"{name}/{entry.name}" if name else entry.name, kind, images, skipped, folders, links
                        )
        except OSError as error:
            if not name:
                raise DataError(
                    f"The folder {printable(path)} cannot be opened ({error.strerror}); check its permissions."
                ) from error
            skipped.append((name, f"a folder that cannot be opened ({error.strerror})"))
    images.sort(key=lambda image: image.name)
    return images, sorted((printable(name), reason) for name, reason in skipped)


def image_files(path: AnyPath, kind: str = IMAGE) -> list[Path]:
    """The images (or texts) below a folder, sorted by name; of a file itself, whatever its ending, just that."""
    return [Path(file.path) for file in scan(path, kind)[0]] if os.path.isdir(path) else [Path(path)]


def read_text(path: AnyPath) -> str | Unreadable:
    """The text of a file, without white space around it; never an exception because of the file."""
    try:
        if os.path.getsize(path) > LONGEST_TEXT:
            return Unreadable(f"more than {LONGEST_TEXT:,} bytes")
        return Path(path).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        return Unreadable("not a text in UTF-8")
    except OSError as error:
        return Unreadable(f"cannot be read ({error.strerror})", lasting=False)


def kind_of_folder(path: Path) -> str:
    """``"text"`` for a folder with text files and not a single image, else ``"image"``."""
    return TEXT if not scan(path)[0] and scan(path, TEXT)[0] else IMAGE


def _sort_in(
    entry: os.DirEntry[str],
    name: str,
    kind: str,
    images: list[ImageFile],
    skipped: list[Skipped],
    folders: list[tuple[str, str]],
    links: list[tuple[str, str]],
) -> None:
    """Append one entry to the list that it belongs to."""
    try:
        if entry.is_dir():
            (links if entry.is_symlink() else folders).append((name, entry.path))
            return
        suffix = os.path.splitext(entry.name)[1].lower()
        if entry.is_file() and suffix in _ENDINGS[kind]:
            stat = entry.stat()
            images.append(ImageFile(entry.path, name, (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)))
        elif entry.is_file():
            skipped.append((name, f"not {_article(kind)} type that is read ({printable(suffix) or 'no ending'})"))
        else:  # also a named pipe, which would block when it is opened
            skipped.append((name, "a link that leads nowhere" if entry.is_symlink() else "not a regular file"))
    except OSError as error:
        skipped.append((name, f"cannot be read ({error.strerror})"))


def _article(kind: str) -> str:
    return "an image" if kind == IMAGE else "a text"


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


def check_folders(given: Mapping[str, object]) -> dict[str, Path]:
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
    """The class of a labeled file: the first folder of its name, with accented letters normalized to one form."""
    return _class_name(file.name.split("/", 1)[0])


def _class_name(folder: str) -> str:
    return unicodedata.normalize("NFC", printable(folder))


def scan_pool(path: Path, part: str, kind: str = IMAGE) -> Folder:
    """The files of a folder without classes; at least one."""
    files, skipped = scan(path, kind)
    if not files:
        raise DataError(f"{_where(part, path)} holds no {kind}{_example(skipped)}; put {_ADVICE[kind]} there.")
    return Folder(path, files, skipped)


def scan_classes(path: Path, part: str, allowed: set[str] | None = None, kind: str = IMAGE) -> Folder:
    """The files of a folder with one sub-folder per class.

    An empty sub-folder of the labeled part is an error: without it the model could never predict a class that the user
    has named. In the other parts a class may be missing.

    Args:
        path: the folder.
        part: its name in messages.
        allowed: the classes that there may be; None for the labeled part, which defines them.
        kind: ``"image"`` or ``"text"``.
    """
    files, skipped = scan(path, kind)
    inside = [file for file in files if "/" in file.name]
    beside = [
        (printable(file.name), f"{_article(kind)} outside of the class folders")
        for file in files
        if "/" not in file.name
    ]
    filled = {class_of(file) for file in inside}
    where = _where(part, path)
    if not inside:
        raise DataError(f"{where} has no sub-folder with {kind}s; make one sub-folder per class, named like the class.")
    if allowed is None:
        with os.scandir(path) as entries:
            empty = sorted({_class_name(e.name) for e in entries if e.is_dir() and not hidden(e.name)} - filled)
        if empty:
            raise DataError(
                f"{where} has no {kind} of the class {empty[0]!r}; put some there or remove the sub-folder."
            )
        if len(filled) < 2:
            raise DataError(f"{where} has only the class {min(filled)!r}; give {kind}s of at least two classes.")
    elif filled - allowed:
        raise DataError(
            f"{where} has the class {min(filled - allowed)!r}, which the labeled folder does not have "
            f"({', '.join(sorted(allowed))}); rename or remove that sub-folder."
        )
    return Folder(path, inside, sorted(skipped + beside))


def _example(skipped: list[Skipped]) -> str:
    return f" that can be read ({skipped[0][0]}: {skipped[0][1]})" if skipped else ""
