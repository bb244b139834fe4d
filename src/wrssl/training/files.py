"""Writing files so that a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """``write(temporary)``, flush to disk, rename to ``path``."""
    temporary = path.with_name(f".{path.name}.part")
    write(temporary)
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


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
