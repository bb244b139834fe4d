"""Writing files whole or not at all: a reader sees the old content or the new one, also after a crash."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from wrssl.api import WRSSLError


class StorageError(WRSSLError):
    """A file cannot be written, for example because the disk is full; what was stored before is intact."""


@contextmanager
def storing(what: str, advice: str) -> Iterator[None]:
    """Turns an I/O error into one sentence: what cannot be stored, why, and how to go on."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None))
        first = "make room" if full else "see to the disk"
        raise StorageError(f"{what} cannot be stored ({error.strerror or error}); {first}, then {advice}") from error


def write_atomically(path: Path, write: Callable[[Path], Any], name_of: Callable[[Path], str] | None = None) -> Path:
    """``write(temporary)``, flush it to the disk, rename it, flush the folder; returns where the file is.

    After a power cut the old content is there or the new one. Where this fails, the temporary file is removed.

    Args:
        path: where to; its name is also that of the temporary file.
        write: makes the content.
        name_of: from the finished temporary file to its name, where that depends on the content.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        target = path if name_of is None else path.with_name(name_of(temporary))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(path.parent)
    return target


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk; Windows has no such thing."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def make_folder(folder: Path) -> None:
    """Create it, with its parents, so that it is still there after a power cut."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def write_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """A safetensors file; I/O errors are an ``OSError`` here as everywhere else."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(tensors, path, metadata=metadata)
    except SafetensorError as error:
        found = re.search(r"(?:os error |code: )(\d+)", str(error))  # the second in versions before 0.6
        number = int(found[1]) if found else errno.EIO
        raise OSError(number, os.strerror(number) if found else str(error), str(path)) from error


def sha256_of(path: Path) -> str:
    """The checksum of a file's content, 64 digits; the file is read in parts."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: both become null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else str(value)


def write_json(path: Path, value: Any) -> None:
    """A readable JSON file, keys in the order given."""
    text = json.dumps(plain(value), indent=2, allow_nan=False) + "\n"
    write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
